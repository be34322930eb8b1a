package service

import (
	"encoding/base64"
	"slices"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/engine"
	"github.com/mayflydb/mayfly/internal/store/expr"
)

// accessFacts fills in accesses. It compiles expressions as the operations do, and leaves out what
// cannot be compiled: the operation then fails for the same reason, before it reads or writes.
type accessFacts struct {
	s *Service
	Facts
}

func (f accessFacts) get(a *Access, in *GetItemInput) {
	a.Resource = f.s.tableResource(in.TableName.V)
	a.Select = readSelect(in.Projection.Set || in.Legacy.AttributesToGet != nil)
	a.ReturnCapacity = in.ReturnConsumedCapacity.V
	f.keys(a, in.TableName.V, in.Key)
	if f.Attributes {
		if p, err := keep(&in.compiled, in, getProjection); err == nil {
			a.add(p.Attributes()...)
		}
	}
}

// readSelect returns the Select of a read by key. Amazon's condition key exists for Query and Scan.
// Policies that limit attributes compare it with SPECIFIC_ATTRIBUTES, if it exists: so that they
// also hold for a GetItem that names no attributes and would return all, such a read has one too.
func readSelect(attributes bool) string {
	if attributes {
		return ""
	}
	return selectAll
}

// pageSelect returns the Select of a Query or Scan: given or implied.
func pageSelect(given, index Opt[string], attributes bool) string {
	switch {
	case given.Set:
		return given.V
	case attributes:
		return selectSpecific
	case index.Set:
		return selectAllProjected
	default:
		return selectAll
	}
}

func (f accessFacts) write(a *Access, in *WriteInput, kind actionKind) {
	a.Resource = f.s.tableResource(in.TableName.V)
	a.ReturnCapacity = in.ReturnConsumedCapacity.V
	a.ReturnValues = in.ReturnValues.V
	if returnsOldOnFail(in) && (a.ReturnValues == "" || a.ReturnValues == returnNone) {
		a.ReturnValues = returnAllOld // Amazon has no condition key for it; it returns as much
	}
	f.keys(a, in.TableName.V, in.Item)
	if !f.Attributes {
		return
	}
	if kind == actionPut {
		for name := range in.Item.Item.All() {
			a.add(string(name))
		}
	}
	if action, err := newAction(kind, in, wordEnveloped); err == nil {
		a.add(action.condition.Attributes()...)
		a.add(action.update.Attributes()...)
	}
}

func returnsOldOnFail(in *WriteInput) bool { return in.ReturnValuesOnConditionFail.V == returnAllOld }

// withOldItem returns the access of a write. If the write returns other values on success than on a
// failed condition, policies must allow both, so there is a second access.
func withOldItem(a Access, in *WriteInput) []Access {
	list := []Access{a}
	if returnsOldOnFail(in) && a.ReturnValues != returnAllOld {
		a.ReturnValues = returnAllOld
		list = append(list, a)
	}
	return list
}

func (f accessFacts) query(a *Access, in *QueryInput) {
	a.Resource = f.s.indexResource(in.TableName, in.IndexName)
	a.Select = pageSelect(in.Select, in.IndexName, in.Projection.Set || in.Legacy.AttributesToGet != nil)
	a.ReturnCapacity = in.ReturnConsumedCapacity.V
	if f.Facts == (Facts{}) {
		return
	}
	q, err := keep(&in.compiled, in, compileQuery)
	if err != nil {
		return
	}
	schema, known := f.schema(in.TableName.V, in.IndexName)
	if !known {
		return
	}
	if f.LeadingKeys {
		r, err := q.key.Range(expr.KeySchema{Partition: exprAttrs(schema.Partition), Sort: exprAttrs(schema.Sort)})
		if err == nil {
			// Every attribute of an index's partition key counts. So a policy must allow each value, and
			// none escapes a policy that forbids it.
			for _, v := range r.Partition {
				a.LeadingKeys = append(a.LeadingKeys, keyText(v))
			}
		}
	}
	if f.Attributes {
		a.addSchema(schema)
		a.add(q.filter.Attributes()...)
		a.add(q.projection.Attributes()...)
	}
}

func (f accessFacts) scan(a *Access, in *ScanInput) {
	a.Resource = f.s.indexResource(in.TableName, in.IndexName)
	a.Select = pageSelect(in.Select, in.IndexName, in.Projection.Set || in.Legacy.AttributesToGet != nil)
	a.ReturnCapacity = in.ReturnConsumedCapacity.V
	if !f.Attributes {
		return
	}
	if q, err := compileScan(in); err == nil {
		a.add(q.filter.Attributes()...)
		a.add(q.projection.Attributes()...)
	}
}

func (f accessFacts) batchGet(a Access, in *BatchGetItemInput) []Access {
	tables := atMost(in.RequestItems, batchGetKeysMax)
	list := make([]Access, len(tables))
	for i := range tables {
		t, to := tables[i], &list[i]
		t.Keys = atMost(t.Keys, batchGetKeysMax)
		*to = a
		to.Resource = f.s.tableResource(t.Table)
		to.Select = readSelect(t.Projection.Set || t.Legacy.AttributesToGet != nil)
		to.ReturnCapacity = in.ReturnConsumedCapacity.V
		f.keys(to, t.Table, t.Keys...)
		if f.Attributes {
			if p, err := batchGetProjection(&t); err == nil {
				to.add(p.Attributes()...)
			}
		}
	}
	return orWhole(list, a)
}

func (f accessFacts) batchWrite(a Access, in *BatchWriteItemInput) []Access {
	tables := atMost(in.RequestItems, batchWritesMax)
	list := make([]Access, len(tables))
	for i := range tables {
		t, to := &tables[i], &list[i]
		*to = a
		to.Resource = f.s.tableResource(t.Table)
		to.ReturnCapacity = in.ReturnConsumedCapacity.V
		for _, r := range atMost(t.Requests, batchWritesMax) {
			for _, arg := range []*ItemArg{r.Put, r.Delete} {
				if arg != nil {
					f.keys(to, t.Table, *arg)
				}
			}
			if f.Attributes && r.Put != nil {
				for name := range r.Put.Item.All() {
					to.add(string(name))
				}
			}
		}
	}
	return orWhole(list, a)
}

func (f accessFacts) transactGet(a Access, in *TransactGetItemsInput) []Access {
	items := atMost(in.Items, transactItemsMax)
	list := make([]Access, len(items))
	for i := range items {
		get := &items[i]
		list[i] = Access{Action: "dynamodb:GetItem", EnclosingOperation: "TransactGetItems"}
		f.get(&list[i], &GetItemInput{
			TableName: get.TableName, Key: get.Key, Projection: get.Projection, Names: get.Names,
			ReturnConsumedCapacity: in.ReturnConsumedCapacity,
		})
	}
	return orWhole(list, a)
}

func (f accessFacts) transactWrite(a Access, in *TransactWriteItemsInput) []Access {
	var list []Access
	items := atMost(in.Items, transactItemsMax)
	for i := range items {
		members := [...]struct {
			action string
			kind   actionKind
			in     *WriteInput
		}{
			{"ConditionCheckItem", actionCheck, items[i].Check}, {"PutItem", actionPut, items[i].Put},
			{"UpdateItem", actionUpdate, items[i].Update}, {"DeleteItem", actionDelete, items[i].Delete},
		}
		for _, m := range members {
			if m.in == nil {
				continue
			}
			to := Access{Action: "dynamodb:" + m.action, EnclosingOperation: "TransactWriteItems"}
			f.write(&to, m.in, m.kind)
			to.ReturnCapacity = in.ReturnConsumedCapacity.V
			list = append(list, to)
		}
	}
	return orWhole(list, a)
}

// atMost returns the first elements of a list, one more than the operation accepts. It refuses a longer
// list, but only after the policies have seen it: a body of 16 MB can have hundreds of thousands.
func atMost[E any](list []E, most int) []E { return list[:min(len(list), most+1)] }

// orWhole returns the list, or the operation itself if its list is empty: such a request is refused
// later, but by who may ask.
func orWhole(list []Access, whole Access) []Access {
	if len(list) == 0 {
		return []Access{whole}
	}
	return list
}

// keys adds the partition keys, and the names of the key attributes, of items or keys.
func (f accessFacts) keys(a *Access, table string, items ...ItemArg) {
	if f.Facts == (Facts{}) {
		return
	}
	schema, known := f.schema(table, Opt[string]{})
	if !known {
		return
	}
	if f.Attributes {
		a.addSchema(schema)
	}
	if !f.LeadingKeys {
		return
	}
	for _, arg := range items {
		if v := arg.Item.Get(schema.Partition[0].Name); v != nil {
			a.LeadingKeys = append(a.LeadingKeys, keyText(v))
		}
	}
}

// schema returns the key of a table or of its index, and whether there is one.
func (f accessFacts) schema(table string, index Opt[string]) (engine.KeySchema, bool) {
	ref, err := tableRef{name: table, given: table}.resolve()
	if err != nil {
		return engine.KeySchema{}, false
	}
	t, err := f.s.table(ref.name)
	if err != nil {
		return engine.KeySchema{}, false
	}
	if !index.Set {
		return t.Desc().Key, true
	}
	d := t.Desc().Index(index.V)
	if d == nil {
		return engine.KeySchema{}, false
	}
	return d.Key, true
}

func (a *Access) addSchema(schema engine.KeySchema) {
	for _, list := range [][]engine.KeyAttr{schema.Partition, schema.Sort} {
		for _, attr := range list {
			a.add(attr.Name)
		}
	}
}

// add adds the names that the access does not have yet. An item can have 100,000.
func (a *Access) add(names ...string) {
	for _, name := range names {
		if !a.has(name) {
			a.Attributes = append(a.Attributes, name)
		}
	}
}

// has reports whether the access has a name. It looks through a short list, and remembers the names
// of a long one.
func (a *Access) has(name string) bool {
	const short = 16
	if len(a.Attributes) < short {
		return slices.Contains(a.Attributes, name)
	}
	if a.seen == nil {
		a.seen = make(map[string]struct{}, 2*short)
	}
	for i := len(a.seen); i < len(a.Attributes); i++ {
		a.seen[a.Attributes[i]] = struct{}{}
	}
	_, known := a.seen[name]
	return known
}

// keyText returns a key value as policies compare it: a string as it is, a number in DynamoDB's
// form, bytes in base64.
func keyText(v dynamo.Value) string {
	switch v.Kind() {
	case dynamo.KindString:
		return string(v.Bytes())
	case dynamo.KindBinary:
		return base64.StdEncoding.EncodeToString(v.Bytes())
	case dynamo.KindNumber:
		return v.Number().String()
	default:
		return "" // no key: the operation refuses it
	}
}
