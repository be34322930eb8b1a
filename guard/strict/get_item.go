package strict

import (
	"context"
	"encoding/json"
	"slices"
)

const memberAttributes = "AttributesToGet" // the legacy form of a projection

// getItem answers GetItem.
func (c *call) getItem(ctx context.Context, attribute string) (answer, error) {
	g, err := readGet(c.in, attribute)
	if err != nil {
		return answer{}, err
	}
	a, out, err := c.read(ctx, c.operation, g.body)
	if err != nil || out == nil {
		return a, err
	}
	if err := g.show(c.at, out); err != nil {
		return answer{}, err
	}
	return a.with(out.bytes()), nil
}

// get is a read of items of a table, with the attribute that shows whether they have expired.
type get struct {
	attribute string
	body      json.RawMessage
	added     []string // the attributes that the caller did not request
}

// readGet reads the common members of GetItem, a table of BatchGetItem and an action of
// TransactGetItems.
func readGet(in object, attribute string) (*get, error) {
	t, err := readTerms(in, attribute, memberProjection)
	if err != nil {
		return nil, err
	}
	x, g := t.extend(), &get{attribute: attribute}
	if in.has(memberAttributes) {
		g.added, err = x.getAttributes(attribute)
	} else {
		g.added, err = x.project(t.projection, attribute)
	}
	g.body = x.bytes()
	return g, err
}

// getAttributes adds attributes to AttributesToGet and returns the new ones.
func (x *extended) getAttributes(attributes ...string) (added []string, err error) {
	var list []string
	if json.Unmarshal(x.members[memberAttributes], &list) != nil {
		return nil, wrongType(memberAttributes)
	}
	if len(list) == 0 {
		return nil, nil // the endpoint refuses it
	}
	for _, a := range attributes {
		if !slices.Contains(list, a) {
			list, added = append(list, a), append(added, a)
		}
	}
	raw, err := json.Marshal(list)
	x.members[memberAttributes] = raw
	return added, err
}

// item returns an item as the caller sees it, or nil if it has expired.
func (g *get) item(m moment, item object) object {
	if m.expired(item[g.attribute]) {
		return nil
	}
	return omit(item, g.added)
}

// show removes an expired item from an answer's member Item.
func (g *get) show(m moment, out object) error {
	item, err := out.part("Item")
	if err != nil || item == nil {
		return err
	}
	if item = g.item(m, item); item == nil {
		delete(out, "Item")
		return nil
	}
	out["Item"] = item.bytes()
	return nil
}

// items returns the live items of a list.
func (g *get) items(m moment, raw json.RawMessage) ([]object, error) {
	list, err := partList(raw)
	if err != nil {
		return nil, err
	}
	live := list[:0]
	for _, item := range list {
		if item = g.item(m, item); item != nil {
			live = append(live, item)
		}
	}
	return live, nil
}
