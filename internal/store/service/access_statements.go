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

// statements returns the accesses of statements, and none for a malformed one: the operation refuses it
// before it looks at a table. alone is the one statement of ExecuteStatement, which may read many items.
func (f accessFacts) statements(alone bool, enclosing, capacity string, list ...*StatementInput) (accesses []Access) {
	for i := range list {
		st, err := newStatement(list[i])
		if err != nil {
			continue
		}
		index := Opt[string]{V: st.Index, Set: st.Index != ""}
		a := Access{
			Action: statementActions[st.Verb], EnclosingOperation: enclosing, ReturnCapacity: capacity, Statement: true,
			Resource: f.s.indexResource(Some(st.Table), index), ReturnValues: string(st.Returning),
		}
		f.statement(&a, st, alone && st.Verb == partiql.Select)
		accesses = append(accesses, a)
		if st.in.ReturnValuesOnConditionFail.V == returnAllOld && a.ReturnValues != returnAllOld && st.Verb != partiql.Select {
			a.ReturnValues = returnAllOld // policies must allow both
			accesses = append(accesses, a)
		}
	}
	return accesses
}

// statement fills in the facts of one statement that need its table's schema. They follow from the same
// reading of the WHERE clause as the operation's: a policy must decide about the item that is touched.
func (f accessFacts) statement(a *Access, st *statement, pages bool) {
	if st.Verb == partiql.Select || st.Verb == partiql.Exists {
		a.Select = readSelect(st.Columns != nil)
	}
	t, err := f.s.table(st.ref.name)
	if err != nil {
		return // the operation fails
	}
	schema, known := f.schema(st.Table, Opt[string]{V: st.Index, Set: st.Index != ""})
	if !known {
		return // the same
	}
	if f.Attributes {
		a.addSchema(schema)
		st.addAttributes(a)
	}
	var hashes []dynamo.Value
	if pages {
		hashes = st.hashesRead(a, schema)
	} else if item, _, err := st.subject(t.Desc()); err == nil {
		hashes = append(hashes, item.Get(schema.Partition[0].Name))
	}
	for _, v := range hashes {
		if f.LeadingKeys && v != nil {
			a.LeadingKeys = append(a.LeadingKeys, keyText(v))
		}
	}
}

// hashesRead returns the partition keys that a SELECT reads, and finds whether it reads the whole table
// or index.
func (s *statement) hashesRead(a *Access, schema engine.KeySchema) (list []dynamo.Value) {
	if len(schema.Partition) > 1 || len(schema.Sort) > 1 {
		return nil // refused later
	}
	sel, err := s.selection(schema)
	if err != nil {
		return nil // refused later
	}
	a.FullTableScan = sel.scans()
	for _, r := range sel.reads {
		list = append(list, r.hash)
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

// pointers returns pointers to the elements of a list.
func pointers[E any](list []E) []*E {
	out := make([]*E, len(list))
	for i := range list {
		out[i] = &list[i]
	}
	return out
}
