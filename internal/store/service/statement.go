package service

import (
	"strings"

	"github.com/mayflydb/mayfly/internal/constraint"
	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/engine"
	"github.com/mayflydb/mayfly/internal/store/expr"
	"github.com/mayflydb/mayfly/internal/store/partiql"
)

// Statements of PartiQL mean the same as the other operations, and use their parts: a SELECT is a page
// of a Query or Scan, and the others are actions. So nothing here knows about expiry: an expired item
// does not exist for a statement because it does not for pages and actions.
//
// newStatement and the files of the three operations list the order of checks.

// StatementLength is the most characters of a statement, and so of its parameters.
const StatementLength = partiql.MaxLength

// Messages about statements.
const (
	msgParameterCount = "Number of parameters in request and statement don't match."
	msgTableName      = "Table name should be within the length [3, 255] and only contain 'a-z', 'A-Z', '0-9', '-', '_', '.'."
	msgWholeKey       = "Where clause does not contain a mandatory equality on all key attributes"
	msgKeyKind        = "Key attribute's data type should match its data type in table's schema: Key "
	msgKeyAbsent      = "Key attribute should be present in the item: Key "
	msgCompositeIndex = "PartiQL statements cannot be executed on tables with multi-attribute HASH keys or multi-attribute RANGE keys."
	msgExistsAlone    = "EXISTS can only be used in ExecuteTransaction write requests."
)

// statement is a statement with its parameters, after the checks that need no table.
type statement struct {
	*partiql.Statement
	in         *StatementInput
	parameters []dynamo.Value
	ref        tableRef
	b          expr.Builder
}

// newStatement parses a statement and checks its parameters. The error is a *dynamo.Error.
//
// The order of checks: the syntax; the parameters' values, then their number; the table's name.
func newStatement(in *StatementInput) (*statement, error) {
	parsed, err := in.parse()
	switch {
	case err != nil:
		return nil, err
	case in.Parameters.Err != nil:
		return nil, in.Parameters.Err
	case parsed.Parameters != len(in.Parameters.V):
		return nil, invalid(msgParameterCount)
	case !isARN(parsed.Table) && !constraint.IsTable(parsed.Table):
		return nil, invalid(msgTableName)
	}
	s := &statement{Statement: parsed, in: in, parameters: in.Parameters.V}
	s.ref, err = tableRef{name: parsed.Table, given: parsed.Table}.resolve()
	return s, err
}

// statementShape checks the members of one statement; path is their beginning.
func (s *shape) statement(path string, in *StatementInput) {
	if in.Statement.Set {
		s.length(path+"statement", in.Statement, 1, partiql.MaxLength)
	} else {
		s.Null(path + "statement")
	}
	if in.Parameters.V != nil && len(in.Parameters.V) == 0 {
		s.Fail("[]", path+"parameters", "Member must have length greater than or equal to 1")
	}
	s.enum(path+"returnValuesOnConditionCheckFailure", in.ReturnValuesOnConditionFail, enumReturnOnFail)
}

// keyValue returns the value of a key attribute, which must be of its type.
func (s *statement) keyValue(attr engine.KeyAttr, e *partiql.Expr) (dynamo.Value, error) {
	v, err := e.Evaluate(s.parameters)
	if err == nil && v.Kind() != attr.Kind {
		err = invalid(msgKeyKind + attr.Name)
	}
	return v, err
}

// key returns the key that the WHERE clause demands by equality, and the clause's other conditions.
func (s *statement) key(d *engine.TableDesc) (key dynamo.Item, others []*partiql.Expr, err error) {
	var b dynamo.Builder
	found := map[string]bool{}
	for _, c := range s.Where.Conjuncts() {
		name, value := c.Equality()
		if name == "" || !d.Key.Has(name) {
			others = append(others, c)
			continue
		}
		if found[name] {
			return nil, nil, invalid("Multiple conditions on same key " + name + ". Only single item Update/Insert/Delete are supported")
		}
		found[name] = true
		for attr := range d.Key.Attrs {
			if attr.Name != name {
				continue
			}
			v, err := s.keyValue(attr, value)
			if err != nil {
				return nil, nil, err
			}
			b.Set(name, v)
		}
	}
	if len(found) < d.Key.Len() {
		return nil, nil, invalid(msgWholeKey)
	}
	return b.Item(), others, nil
}

// newItem returns the item of an INSERT, which must have the table's key.
func (s *statement) newItem(d *engine.TableDesc) (dynamo.Item, error) {
	item, err := s.Item.Members(s.parameters)
	if err != nil {
		return nil, err
	}
	for attr := range d.Key.Attrs {
		switch v := item.Get(attr.Name); {
		case v == nil:
			return nil, invalid(msgKeyAbsent + attr.Name)
		case v.Kind() != attr.Kind:
			return nil, invalid(msgKeyKind + attr.Name)
		}
	}
	return item, nil
}

// subject returns the item of an INSERT, or the key of another statement on one item with the further
// conditions of its WHERE clause.
func (s *statement) subject(d *engine.TableDesc) (item dynamo.Item, others []*partiql.Expr, err error) {
	if s.Verb == partiql.Insert {
		item, err = s.newItem(d)
		return item, nil, err
	}
	return s.key(d)
}

// reads reports whether the statement only reads.
func (s *statement) reads() bool { return s.Verb == partiql.Select }

// steps returns a path as package expr takes it.
func steps(p partiql.Path) []expr.PathStep {
	list := make([]expr.PathStep, len(p))
	for i, s := range p {
		list[i] = expr.PathStep(s)
	}
	return list
}

// projection returns the projection of a SELECT, or nil for *.
func (s *statement) projection() (*expr.Projection, error) {
	if s.Columns == nil {
		return nil, nil
	}
	columns := make([]expr.Column, len(s.Columns))
	for i, c := range s.Columns {
		columns[i] = expr.Column{Path: steps(c), Name: c.Column()}
	}
	return expr.Columns(columns)
}

// checkIndexKey refuses an index that PartiQL cannot read.
func (s *statement) checkIndexKey(d *engine.TableDesc) error {
	if s.Index == "" {
		return nil
	}
	if ix := d.Index(s.Index); ix != nil && (len(ix.Key.Partition) > 1 || len(ix.Key.Sort) > 1) {
		return invalid(msgCompositeIndex)
	}
	return nil
}

// batchCode returns the code of an error in the answers of a batch.
func batchCode(code dynamo.Code) string {
	switch code {
	case dynamo.CodeValidation:
		return reasonValidation
	case dynamo.CodeThrottling:
		return "ThrottlingError"
	case dynamo.CodeInternal:
		return string(code)
	}
	return strings.TrimSuffix(string(code), "Exception")
}
