package service

import (
	"slices"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/engine"
	"github.com/mayflydb/mayfly/internal/store/expr"
	"github.com/mayflydb/mayfly/internal/store/partiql"
)

// statementReadsMax is the number of partitions that one SELECT reads.
const statementReadsMax = 50

// statementRead is the part of a SELECT that reads one partition, or the whole table or index.
type statementRead struct {
	hash   dynamo.Value // nil: the whole table or index
	terms  []expr.LegacyCondition
	filter *expr.Condition
}

// selection is what a SELECT reads: a Query for each value that the WHERE clause demands of the
// partition key, or one Scan.
type selection struct {
	reads []statementRead
	// the partition key is a condition of the whole clause, not of the branches of an OR
	keyed bool
	whole bool // the one read demands a whole key of the table
}

var errTooManyReads = invalid("Too many decomposed read operations for a given query.")

// scans reports whether the selection reads the whole table or index.
func (sel *selection) scans() bool { return sel.reads[0].hash == nil }

// selection plans the reads of a SELECT over a key of one partition attribute and at most one sort
// attribute.
func (s *statement) selection(key engine.KeySchema) (*selection, error) {
	branches := s.Where.Disjuncts()
	sel := &selection{keyed: len(branches) == 1}
	overlap := false
	for _, e := range branches {
		b, err := s.branch(key, e)
		if err != nil {
			return nil, err
		}
		if b.hashes == nil {
			return s.scan()
		}
		filter, err := s.compile(b.others...)
		if err != nil {
			return nil, err
		}
		sel.whole = sel.keyed && len(b.hashes) == 1 && (len(key.Sort) == 0 || b.sort != nil && b.sort.Operator == "EQ")
		for _, v := range b.hashes {
			if len(sel.reads) > 2*statementReadsMax {
				return nil, errTooManyReads
			}
			overlap = overlap || slices.ContainsFunc(sel.reads, func(r statementRead) bool { return dynamo.Equal(r.hash, v) })
			sel.reads = append(sel.reads, b.read(key, v, filter))
		}
	}
	if len(sel.reads) == 0 {
		return s.scan()
	}
	if overlap {
		if err := s.merge(sel, key); err != nil {
			return nil, err
		}
	}
	if len(sel.reads) > statementReadsMax {
		return nil, errTooManyReads
	}
	return sel, nil
}

// scan returns the selection that tests every entry.
func (s *statement) scan() (*selection, error) {
	if s.Where == nil {
		return &selection{reads: []statementRead{{}}}, nil
	}
	filter, err := s.compile(s.Where)
	return &selection{reads: []statementRead{{filter: filter}}}, err
}

// merge reads each partition once, and tests its entries with the whole clause: several branches of an
// OR name it.
func (s *statement) merge(sel *selection, key engine.KeySchema) error {
	filter, err := s.compile(s.Where)
	if err != nil {
		return err
	}
	var merged []statementRead
	for _, r := range sel.reads {
		if !slices.ContainsFunc(merged, func(m statementRead) bool { return dynamo.Equal(m.hash, r.hash) }) {
			merged = append(merged, (&branch{}).read(key, r.hash, filter))
		}
	}
	sel.reads = merged
	return nil
}

// branch is one of the alternatives of a WHERE clause.
type branch struct {
	hashes []dynamo.Value        // values of the partition key; nil: any
	sort   *expr.LegacyCondition // of the sort key
	others []*partiql.Expr       // further conditions
}

// read returns the read of one partition for the branch.
func (b *branch) read(key engine.KeySchema, hash dynamo.Value, filter *expr.Condition) statementRead {
	r := statementRead{hash: hash, filter: filter}
	r.terms = []expr.LegacyCondition{{Attribute: key.Partition[0].Name, Operator: "EQ", Values: []dynamo.Value{hash}}}
	if b.sort != nil {
		r.terms = append(r.terms, *b.sort)
	}
	return r
}

// branch takes the conditions on the key out of an alternative: the first equality or IN on the
// partition key, and one condition on the sort key, preferably an equality.
func (s *statement) branch(key engine.KeySchema, e *partiql.Expr) (*branch, error) {
	b := &branch{}
	var sortExpr *partiql.Expr
	for _, c := range e.Conjuncts() {
		hashes, err := s.hashes(key.Partition[0], c)
		if err != nil {
			return nil, err
		}
		if hashes != nil && b.hashes == nil {
			b.hashes = hashes
			continue
		}
		if len(key.Sort) > 0 {
			sort, err := s.sortCondition(key.Sort[0], c)
			if err != nil {
				return nil, err
			}
			if sort != nil && (b.sort == nil || sort.Operator == "EQ" && b.sort.Operator != "EQ") {
				if sortExpr != nil {
					b.others = append(b.others, sortExpr)
				}
				b.sort, sortExpr = sort, c
				continue
			}
		}
		b.others = append(b.others, c)
	}
	return b, nil
}

// hashes returns the values, each once, that a condition allows for the partition key, or nil if it is
// no equality or IN.
func (s *statement) hashes(attr engine.KeyAttr, c *partiql.Expr) (list []dynamo.Value, err error) {
	var values []*partiql.Expr
	if name, value := c.Equality(); name == attr.Name {
		values = []*partiql.Expr{value}
	} else if c.Op == partiql.OpIn && c.Args[0].Attribute() == attr.Name {
		values = c.Args[1:]
	}
	for _, e := range values {
		if !e.IsValue() {
			return nil, nil
		}
		v, err := s.keyValue(attr, e)
		if err != nil {
			return nil, err
		}
		if len(list) > statementReadsMax {
			return nil, errTooManyReads
		}
		if !slices.ContainsFunc(list, func(have dynamo.Value) bool { return dynamo.Equal(have, v) }) {
			list = append(list, v)
		}
	}
	return list, nil
}

// sortOperators are the comparisons that a Query makes with the sort key; mirroredOperators are those
// for exchanged operands.
var (
	sortOperators     = map[partiql.Op]string{partiql.OpEQ: "EQ", partiql.OpLT: "LT", partiql.OpLE: "LE", partiql.OpGT: "GT", partiql.OpGE: "GE"}
	mirroredOperators = map[partiql.Op]string{partiql.OpEQ: "EQ", partiql.OpLT: "GT", partiql.OpLE: "GE", partiql.OpGT: "LT", partiql.OpGE: "LE"}
)

// sortCondition returns a condition on the sort key that a Query can have, or nil.
func (s *statement) sortCondition(attr engine.KeyAttr, c *partiql.Expr) (*expr.LegacyCondition, error) {
	of := &expr.LegacyCondition{Attribute: attr.Name}
	var values []*partiql.Expr
	switch {
	case sortOperators[c.Op] != "" && c.Args[0].Attribute() == attr.Name:
		of.Operator, values = sortOperators[c.Op], c.Args[1:]
	case sortOperators[c.Op] != "" && c.Args[1].Attribute() == attr.Name:
		of.Operator, values = mirroredOperators[c.Op], c.Args[:1]
	case c.Op == partiql.OpBetween && c.Args[0].Attribute() == attr.Name:
		of.Operator, values = "BETWEEN", c.Args[1:]
	case c.Op == partiql.OpCall && c.Name == "begins_with" && len(c.Args) == 2 && c.Args[0].Attribute() == attr.Name && attr.Kind != dynamo.KindNumber:
		of.Operator, values = "BEGINS_WITH", c.Args[1:]
	default:
		return nil, nil
	}
	for _, e := range values {
		if !e.IsValue() {
			return nil, nil
		}
		v, err := s.keyValue(attr, e)
		if err != nil {
			return nil, err
		}
		of.Values = append(of.Values, v)
	}
	return of, nil
}

// checkOrder refuses ORDER BY with an attribute that is not of the key.
func (s *statement) checkOrder(key engine.KeySchema) error {
	for _, o := range s.Order {
		if !key.Has(o.Attribute) {
			return invalid("Variable reference " + o.Attribute + " in ORDER BY clause must be part of the primary key")
		}
	}
	return nil
}

// order applies ORDER BY: the partitions by their keys, and each of them by the sort key.
func (s *statement) order(sel *selection, key engine.KeySchema) (backward bool, err error) {
	if len(s.Order) == 0 {
		return false, nil
	}
	switch {
	case s.Where == nil:
		return false, invalid("Must have WHERE clause in the statement when using ORDER BY clause.")
	case sel.scans():
		return false, invalid("Must have at least one non-optional hash key condition in WHERE clause when using ORDER BY clause.")
	}
	if err := s.checkOrder(key); err != nil {
		return false, err
	}
	byHash := false
	for _, o := range s.Order {
		if o.Attribute != key.Partition[0].Name {
			backward = o.Descending
			continue
		}
		byHash = true
		slices.SortFunc(sel.reads, func(a, b statementRead) int {
			if o.Descending {
				a, b = b, a
			}
			return dynamo.Compare(a.hash, b.hash)
		})
	}
	if !byHash && len(sel.reads) > 1 {
		return false, invalid("Must have hash key in ORDER BY clause when more than one hash key condition specified in WHERE clause.")
	}
	return backward, nil
}
