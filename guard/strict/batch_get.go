package strict

import (
	"context"
	"maps"
	"slices"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// batchGetItem answers BatchGetItem.
func (c *call) batchGetItem(ctx context.Context) (answer, error) {
	asked, ok := c.in.member("RequestItems")
	if !ok {
		return answer{}, wrongType("RequestItems")
	}
	gets, err := c.readGets(ctx, asked)
	if err != nil {
		return answer{}, err
	}
	if len(gets) == 0 {
		return c.send(ctx, c.operation, c.in.bytes())
	}
	sent := maps.Clone(asked)
	for table, g := range gets {
		sent[table] = g.body
	}
	a, out, err := c.read(ctx, c.operation, c.in.with("RequestItems", sent.bytes()).bytes())
	if err != nil || out == nil {
		return a, err
	}
	if err := c.showBatch(out, asked, gets); err != nil {
		return answer{}, err
	}
	return a.with(out.bytes()), nil
}

// readGets returns the reads of guarded tables in a request.
func (c *call) readGets(ctx context.Context, asked object) (map[string]*get, error) {
	gets := map[string]*get{}
	for _, table := range slices.Sorted(maps.Keys(asked)) {
		attribute, err := c.attributeOf(ctx, table)
		if err != nil {
			return nil, err
		}
		if attribute == "" {
			continue
		}
		in, ok := asked.member(table)
		if !ok || in == nil {
			return nil, wrongType("RequestItems")
		}
		if gets[table], err = readGet(in, attribute); err != nil {
			return nil, err
		}
	}
	return gets, nil
}

// showBatch changes the endpoint's answer into the caller's.
func (c *call) showBatch(out, asked object, gets map[string]*get) error {
	responses, err := out.part("Responses")
	if err != nil {
		return err
	}
	for table, raw := range responses {
		if g := gets[table]; g != nil {
			live, err := g.items(c.at, raw)
			if err != nil {
				return err
			}
			responses[table] = listBytes(live)
		} else if asked[table] == nil && c.names(gets, table) {
			return errUnreadable
		}
	}
	unprocessed, err := out.part("UnprocessedKeys")
	if err != nil {
		return err
	}
	for table := range unprocessed {
		one, ok := unprocessed.member(table)
		whole, _ := asked.member(table)
		if !ok || one == nil || whole == nil {
			continue
		}
		// with the caller's parameters, without additions
		unprocessed[table] = whole.with("Keys", one["Keys"]).bytes()
	}
	if responses != nil {
		out["Responses"] = responses.bytes()
	}
	if unprocessed != nil {
		out["UnprocessedKeys"] = unprocessed.bytes()
	}
	return nil
}

// names reports whether a table in an answer is a guarded one under another of its names.
func (c *call) names(gets map[string]*get, table string) bool {
	for given := range gets {
		if tableName(given) == tableName(table) {
			return true
		}
	}
	return false
}

// transactGetItems answers TransactGetItems.
func (c *call) transactGetItems(ctx context.Context) (answer, error) {
	actions, ok := readList(c.in["TransactItems"])
	if !ok {
		return c.send(ctx, c.operation, c.in.bytes())
	}
	gets := make([]*get, len(actions))
	for i, action := range actions {
		in, ok := action.member("Get")
		if !ok {
			return answer{}, wrongType("TransactItems")
		}
		attribute, err := c.attributeOf(ctx, in.text("TableName"))
		if err != nil {
			return answer{}, err
		}
		if in == nil || attribute == "" {
			continue
		}
		if gets[i], err = readGet(in, attribute); err != nil {
			return answer{}, err
		}
		action["Get"] = gets[i].body
	}
	a, out, err := c.read(ctx, c.operation, c.in.with("TransactItems", listBytes(actions)).bytes())
	if err != nil || out == nil {
		return a, err // the reasons of cancelled reads have no items
	}
	responses, ok := readList(out["Responses"])
	if !ok || len(responses) != len(gets) {
		return answer{}, errUnreadable
	}
	for i, g := range gets {
		if g == nil {
			continue
		}
		if err := g.show(c.at, responses[i]); err != nil {
			return answer{}, err
		}
	}
	out["Responses"] = listBytes(responses)
	return a.with(out.bytes()), nil
}

// lookUp returns an item that an answer does not show, or nil if there is none.
func (c *call) lookUp(ctx context.Context, table string, key []byte) (item object, err error) {
	a, out, err := c.read(ctx, "GetItem", object{"TableName": quoted(table), "Key": key, "ConsistentRead": []byte("true")}.bytes())
	switch {
	case err != nil:
		return nil, named(err, "GetItem")
	case out == nil:
		return nil, &refused{a}
	}
	item, err = out.part("Item")
	return item, named(err, "GetItem")
}

// keyOf returns the key of an item, and the same in a comparable form. ok is false for an item
// without its key.
func keyOf(item object, attributes []string) (key object, text string, ok bool) {
	key = object{}
	for _, a := range attributes {
		key[a] = item[a]
		if item[a] == nil {
			return nil, "", false
		}
	}
	b, invalid, fatal := dynamo.NewJSON(key.bytes()).AppendItem(nil)
	return key, string(b), invalid == nil && fatal == nil
}
