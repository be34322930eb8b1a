package service

import (
	"context"

	"github.com/mayflydb/mayfly/internal/store/engine"
	"github.com/mayflydb/mayfly/internal/store/expr"
)

// The order of checks, of Scan too. Each is made completely before the next:
//
//  1. the shape: all constraints of the model at once (queryShape, scanShape)
//  2. legacy parameters: values; AttributesToGet; numbers and types of operands (compileLegacy)
//  3. expressions mixed with legacy parameters; names and values of placeholders (querySession)
//  4. Segment and TotalSegments of a Scan (checkSegments)
//  5. Select, expressions, unused placeholders (compileQuery, compileScan)
//  6. values in ExclusiveStartKey (startKeyArg)
//  7. existence of the table and the index (describedTable, useIndex)
//  8. ExclusiveStartKey against the schema (useStartKey)
//  9. key conditions (useKeyCondition), and ExclusiveStartKey against them (checkStartInRange)
//  10. a filter on key attributes (checkFilterOffKey)
//  11. Select, filter and projection against the index's projection (useProjection)

// Query returns a page of an item collection of a table or an index, in the order of the sort key.
func (s *Service) Query(ctx context.Context, in *QueryInput) (*PageOutput, error) {
	ref, err := queryShape(in)
	if err != nil {
		return nil, err
	}
	q, err := take(&in.compiled, in, compileQuery)
	if err != nil {
		return nil, err
	}
	t, d, err := s.describedTable(ref.name)
	if err != nil {
		return nil, apiError(err, "")
	}
	p, err := q.bind(t, d, in)
	if err != nil {
		return nil, err
	}
	if err := s.admitPage(p); err != nil {
		return nil, err
	}
	if err := p.read(ctx, s.engine); err != nil {
		return nil, err
	}
	return p.output(ref.given, in.ReturnConsumedCapacity.V), nil
}

func queryShape(in *QueryInput) (tableRef, error) {
	var s shape
	if in.Limit.Set && in.Limit.V < 1 {
		s.Add("Value at 'Limit' failed to satisfy constraint: Member must have value greater than or equal to 1")
	}
	s.conditions("keyConditions", in.Legacy.KeyConditions)
	s.enum("returnConsumedCapacity", in.ReturnConsumedCapacity, enumCapacity)
	s.conditions("queryFilter", in.Legacy.QueryFilter)
	s.enum("conditionalOperator", in.Legacy.ConditionalOperator, enumOperator)
	s.attributesToGet("attributesToGet", &in.Legacy)
	ref := s.dataTable("tableName", in.TableName)
	s.enum("select", in.Select, enumSelect)
	s.name("indexName", in.IndexName)
	if err := s.err(); err != nil {
		return ref, err
	}
	return ref.resolve()
}

// query is the compiled parameters of a Query or Scan.
type query struct {
	key        *expr.KeyCondition // nil in a Scan
	filter     *expr.Condition
	projection *expr.Projection
}

// compileQuery makes the remaining checks that need no table.
func compileQuery(in *QueryInput) (*query, error) {
	q, err := compileLegacy(in.Legacy.QueryFilter, &in.Legacy)
	if err != nil {
		return nil, err
	}
	sess, err := querySession(in)
	if err != nil {
		return nil, err
	}
	if err := in.Legacy.checkOperator(len(in.Legacy.QueryFilter)); err != nil {
		return nil, err
	}
	if err := checkSelect(in.Select, in.IndexName, in.Projection, &in.Legacy, wordEnveloped); err != nil {
		return nil, err
	}
	if err := q.compileKey(sess, in); err != nil {
		return nil, err
	}
	if err := q.compile(sess, in.Filter, in.Projection); err != nil {
		return nil, err
	}
	if err := q.key.Check(); err != nil {
		return nil, err
	}
	return q, startKeyArg(in.ExclusiveStartKey)
}

// compileLegacy returns the compiled legacy parameters of a Query or Scan, after the checks that
// concern them alone.
func compileLegacy(filter map[string]LegacyCondition, l *Legacy) (*query, error) {
	if l.Err != nil {
		return nil, l.Err
	}
	q := &query{}
	var err error
	if q.projection, err = legacyProjection(l); err != nil {
		return nil, err
	}
	if q.filter, err = legacyFilter(filter, l); err != nil {
		return nil, err
	}
	q.key, err = legacyKeyCondition(l)
	return q, err
}

// compileKey adds the key condition of an expression. A Query must have that or KeyConditions.
func (q *query) compileKey(sess *expr.Session, in *QueryInput) (err error) {
	switch {
	case in.KeyCondition.Set:
		q.key, err = sess.KeyCondition(in.KeyCondition.V)
	case q.key == nil:
		err = invalid("Either the KeyConditions or KeyConditionExpression parameter must be specified in the request.")
	}
	return err
}

// compile adds the other expressions of a Query or Scan.
func (q *query) compile(sess *expr.Session, filter, projection Opt[string]) (err error) {
	if filter.Set {
		if q.filter, err = sess.Condition(expr.FilterExpression, filter.V); err != nil {
			return err
		}
	}
	if projection.Set {
		if q.projection, err = sess.Projection(projection.V); err != nil {
			return err
		}
	}
	return sess.Unused()
}

func querySession(in *QueryInput) (*expr.Session, error) {
	l := &in.Legacy
	p := parameters{
		names: in.Names, values: in.Values,
		legacy: []parameter{
			{"AttributesToGet", l.AttributesToGet != nil}, {"QueryFilter", l.QueryFilter != nil},
			{"ConditionalOperator", l.ConditionalOperator.Set},
			// KeyConditions go with the other two expressions, but not with a
			// KeyConditionExpression.
			{"KeyConditions", l.KeyConditions != nil && in.KeyCondition.Set},
		},
		expressions: []parameter{
			{expr.ProjectionExpression, in.Projection.Set}, {expr.FilterExpression, in.Filter.Set},
			{expr.KeyConditionExpression, in.KeyCondition.Set},
		},
		valued: []string{expr.FilterExpression, expr.KeyConditionExpression},
	}
	return p.session()
}

// compileProjection returns the compiled projection of a read, from ProjectionExpression or
// AttributesToGet, or nil if it has neither.
func compileProjection(sess *expr.Session, text Opt[string], legacy *Legacy) (*expr.Projection, error) {
	if text.Set {
		return sess.Projection(text.V)
	}
	return legacyProjection(legacy)
}

// bind checks the query against the table's schema and returns its page.
func (q *query) bind(t *engine.Table, d *engine.TableDesc, in *QueryInput) (*page, error) {
	p := &page{table: t, desc: d, filter: q.filter, projection: q.projection, expired: in.Expired, limit: int(in.Limit.V)}
	if err := p.useIndex(in.IndexName, in.ConsistentRead); err != nil {
		return nil, err
	}
	if err := p.useStartKey(in.ExclusiveStartKey); err != nil {
		return nil, err
	}
	if err := p.useKeyCondition(q.key); err != nil {
		return nil, err
	}
	if err := p.checkStartInRange(); err != nil {
		return nil, err
	}
	if err := p.checkFilterOffKey(in.Legacy.QueryFilter != nil); err != nil {
		return nil, err
	}
	p.rng.Backward = !in.ScanIndexForward.Or(true)
	return p, p.useProjection(in.Select, q.filter)
}

// useKeyCondition sets the part of the table or index that the query reads.
func (p *page) useKeyCondition(k *expr.KeyCondition) error {
	schema := p.queriedKey()
	r, err := k.Range(expr.KeySchema{Partition: exprAttrs(schema.Partition), Sort: exprAttrs(schema.Sort)})
	if err != nil {
		return err
	}
	if err := checkKeySizes(r); err != nil {
		return err
	}
	p.rng.Partition, p.rng.Sort = r.Partition, r.Sort
	return nil
}

// The longest key values, in bytes.
const (
	partitionKeyMax = 2048
	sortKeyMax      = 1024
)

// checkKeySizes refuses conditions with values that are too long for a key. The attributes of a
// partition key share one limit, and the attributes of a sort key another.
func checkKeySizes(r expr.KeyRange) error {
	size := 0
	for _, v := range r.Partition {
		size += v.Size()
	}
	if size > partitionKeyMax {
		return keyError(&engine.KeyError{Problem: engine.KeyPartitionTooLong})
	}
	size = 0
	for _, c := range r.Sort {
		size += max(c.Low.Size(), c.High.Size())
	}
	if size > sortKeyMax {
		return keyError(&engine.KeyError{Problem: engine.KeySortTooLong})
	}
	return nil
}

func exprAttrs(attrs []engine.KeyAttr) []expr.KeyAttr {
	out := make([]expr.KeyAttr, len(attrs))
	for i, a := range attrs {
		out[i] = expr.KeyAttr{Name: a.Name, Kind: a.Kind}
	}
	return out
}

// checkFilterOffKey refuses a filter on the key attributes of the table or index that the query
// reads.
func (p *page) checkFilterOffKey(legacy bool) error {
	schema := p.queriedKey()
	for _, name := range p.filter.Attributes() {
		if !schema.Has(name) {
			continue
		}
		parameter := "Filter Expression"
		if legacy {
			parameter = "QueryFilter"
		}
		return invalid(parameter + " can only contain non-primary key attributes: Primary key attribute: " + name)
	}
	return nil
}
