package service

import (
	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/engine"
	"github.com/mayflydb/mayfly/internal/store/partiql"
)

// statementActions are the IAM actions of statements. EXISTS reads like a SELECT, within a transaction
// of writes ("IAM security policies with PartiQL for DynamoDB").
var statementActions = [...]string{
	partiql.Select: "dynamodb:PartiQLSelect", partiql.Insert: "dynamodb:PartiQLInsert", partiql.Update: "dynamodb:PartiQLUpdate",
	partiql.Delete: "dynamodb:PartiQLDelete", partiql.Exists: "dynamodb:PartiQLSelect",
}

// statements returns the access of each statement, and none for a malformed one: the operation refuses
// it before it looks at a table.
func (f accessFacts) statements(enclosing, capacity string, list ...StatementInput) (accesses []Access) {
	for i := range list {
		st, err := newStatement(&list[i])
		if err != nil {
			continue
		}
		a := Access{
			Action: statementActions[st.Verb], EnclosingOperation: enclosing, ReturnCapacity: capacity, Statement: true,
			Resource: f.s.indexResource(Some(st.Table), Opt[string]{V: st.Index, Set: st.Index != ""}),
		}
		f.statement(&a, st)
		accesses = append(accesses, a)
	}
	return accesses
}

// statement fills in the facts of one statement that need its table's schema.
func (f accessFacts) statement(a *Access, st *statement) {
	a.ReturnValues = string(st.Returning)
	if st.Verb != partiql.Insert && a.ReturnValues == "" && st.in.ReturnValuesOnConditionFail.V == returnAllOld {
		a.ReturnValues = returnAllOld
	}
	switch st.Verb {
	case partiql.Select, partiql.Exists:
		a.Select = readSelect(st.Columns != nil)
	}
	schema, known := f.schema(st.Table, Opt[string]{V: st.Index, Set: st.Index != ""})
	if !known {
		return // the operation fails
	}
	if f.Attributes {
		a.addSchema(schema)
		st.addAttributes(a)
	}
	for _, v := range st.leadingKeys(schema, a) {
		if f.LeadingKeys {
			a.LeadingKeys = append(a.LeadingKeys, keyText(v))
		}
	}
}

// leadingKeys returns the partition keys that the statement names, and finds whether it reads the whole
// table or index.
func (s *statement) leadingKeys(schema engine.KeySchema, a *Access) (list []dynamo.Value) {
	if s.Verb == partiql.Insert {
		if item, err := s.Item.Members(s.parameters); err == nil && item.Get(schema.Partition[0].Name) != nil {
			list = append(list, item.Get(schema.Partition[0].Name))
		}
		return list
	}
	if len(schema.Partition) > 1 || len(schema.Sort) > 1 {
		return nil // refused later
	}
	sel, err := s.selection(schema)
	if err != nil {
		return nil // refused later
	}
	a.FullTableScan = sel.scans() && s.Verb == partiql.Select
	for _, r := range sel.reads {
		if r.hash != nil {
			list = append(list, r.hash)
		}
	}
	return list
}

// addAttributes adds the attributes that the statement names.
func (s *statement) addAttributes(a *Access) {
	for _, c := range s.Columns {
		a.add(c.Attribute())
	}
	s.Where.EachPath(func(p partiql.Path) { a.add(p.Attribute()) })
	for _, c := range s.Changes {
		a.add(c.Path.Attribute())
		c.Value.EachPath(func(p partiql.Path) { a.add(p.Attribute()) })
	}
	if s.Verb == partiql.Insert {
		if item, err := s.Item.Members(s.parameters); err == nil {
			for name := range item.All() {
				a.add(string(name))
			}
		}
	}
}
