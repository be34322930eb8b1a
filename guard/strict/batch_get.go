package strict

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// errUnreadable is the error for an answer that the API does not define.
var errUnreadable = errors.New("strict: the endpoint's answer does not follow the API")

// batchGetItem answers BatchGetItem.
func (c *call) batchGetItem(ctx context.Context) (answer, error) {
	asked, ok := c.in.member("RequestItems")
	if !ok {
		return answer{}, wrongType("RequestItems")
	}
	gets, err := c.readGets(ctx, asked)
	if err != nil || len(gets) == 0 {
		if err != nil {
			return answer{}, err
		}
		return c.send(ctx, c.operation, c.in.bytes())
	}
	sent := maps.Clone(asked)
	for table, g := range gets {
		sent[table] = g.body
	}
	a, err := c.send(ctx, c.operation, c.in.with("RequestItems", sent.bytes()).bytes())
	if err != nil || !a.ok() {
		return a, err
	}
	out, ok := readObject(a.body)
	if !ok || c.showBatch(out, asked, gets) != nil {
		return unreadable(c.operation), nil
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
	responses, ok := out.member("Responses")
	if !ok {
		return errUnreadable
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
	unprocessed, ok := out.member("UnprocessedKeys")
	if !ok {
		return errUnreadable
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
	a, err := c.send(ctx, c.operation, c.in.with("TransactItems", listBytes(actions)).bytes())
	if err != nil {
		return a, err
	}
	if !a.ok() {
		return a, nil // the reasons of cancelled reads have no items
	}
	out, ok := readObject(a.body)
	if !ok {
		return unreadable(c.operation), nil
	}
	responses, ok := readList(out["Responses"])
	if !ok || len(responses) != len(gets) {
		return unreadable(c.operation), nil
	}
	for i, g := range gets {
		if g != nil && g.show(c.at, responses[i]) != nil {
			return unreadable(c.operation), nil
		}
	}
	out["Responses"] = listBytes(responses)
	return a.with(out.bytes()), nil
}

// lookUp returns an item that an answer does not show, or nil if there is none.
func (c *call) lookUp(ctx context.Context, table string, key []byte) (object, error) {
	a, err := c.send(ctx, "GetItem", object{"TableName": quoted(table), "Key": key, "ConsistentRead": []byte("true")}.bytes())
	if err != nil {
		return nil, err
	}
	if !a.ok() {
		return nil, &refused{a}
	}
	out, ok := readObject(a.body)
	if !ok {
		return nil, &refused{unreadable("GetItem")}
	}
	item, ok := out.member("Item")
	if !ok {
		return nil, &refused{unreadable("GetItem")}
	}
	return item, nil
}

// keyOf returns the key attributes of an item in a comparable form.
func keyOf(item object, attributes []string) (string, bool) {
	key := object{}
	for _, a := range attributes {
		key[a] = item[a]
		if item[a] == nil {
			return "", false
		}
	}
	b, invalid, fatal := dynamo.NewJSON(key.bytes()).AppendItem(nil)
	return string(b), invalid == nil && fatal == nil
}
