package strict

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// query answers Query.
func (c *call) query(ctx context.Context, attribute string) (answer, error) {
	return c.page(ctx, attribute, memberFilter, memberKey, memberProjection)
}

// scan answers Scan.
func (c *call) scan(ctx context.Context, attribute string) (answer, error) {
	return c.page(ctx, attribute, memberFilter, memberProjection)
}

// pageLegacy are the legacy parameters of Query and Scan. They do not mix with expressions, so no
// filter can be added; expired items are removed from the answer instead.
var pageLegacy = []string{"KeyConditions", "QueryFilter", "ScanFilter", memberAttributes, "ConditionalOperator"}

// page answers a Query or Scan. kinds are its kinds of expression.
func (c *call) page(ctx context.Context, attribute string, kinds ...string) (_ answer, err error) {
	table := c.in.text("TableName")
	var t *terms
	if c.in.hasAny(pageLegacy...) && !c.in.has(memberProjection) && !c.in.has(memberFilter) && !c.in.has(memberKey) {
		t = &terms{members: c.in, attribute: attribute}
	} else if t, err = readTerms(c.in, attribute, kinds...); err != nil {
		return answer{}, err
	}
	p := &page{call: c, terms: t, table: table}
	index := c.in.text("IndexName")
	if p.desc, err = c.tables.describe(ctx, tableName(table), index, c.send); err != nil {
		return answer{}, err
	}
	if p.desc == nil || index != "" && p.desc.indexes[index] == nil {
		return c.refusedPage(ctx)
	}
	p.index = p.desc.indexes[index]
	return p.answer(ctx)
}

// refusedPage forwards a request for a missing table or index, so that the endpoint words the
// error. If the table has just been created, the caller must retry.
func (c *call) refusedPage(ctx context.Context) (answer, error) {
	a, err := c.forward(ctx)
	if err == nil && a.ok() {
		return refuse(&dynamo.Error{Code: dynamo.CodeInternal, Message: "strict reads: the table or index has just been created; try again"}), nil
	}
	return a, err
}

// page is a Query or Scan of a guarded table.
type page struct {
	*call
	*terms
	table string
	desc  *description
	index *indexDescription // nil: the table
}

// answer hides the expired items: by a filter in the request if it may have one and the result is
// not too long, and otherwise by removing them from the endpoint's answer.
func (p *page) answer(ctx context.Context) (answer, error) {
	if p.filters() {
		x := p.extend()
		if x.connect(memberFilter, "NOT "+x.expired(p.attribute, p.at), "AND") {
			return p.send(ctx, p.operation, x.bytes())
		}
	}
	return p.sift(ctx)
}

// filters reports whether a filter may name the TTL attribute. A Query's filter must not name a
// part of the key, and an index without the attribute would yield nothing.
func (p *page) filters() bool {
	keys := p.desc.keys
	if p.index != nil {
		keys = p.index.keys
	}
	return !p.in.hasAny(pageLegacy...) && p.holdsAttribute() && (p.operation == "Scan" || !slices.Contains(keys, p.attribute))
}

// holdsAttribute reports whether the entries contain the TTL attribute.
func (p *page) holdsAttribute() bool { return p.index == nil || p.desc.holds(p.index, p.attribute) }

// sift reads the items, and answers with those that have not expired.
func (p *page) sift(ctx context.Context) (answer, error) {
	body, added, err := p.asked()
	if err != nil {
		return answer{}, err
	}
	a, out, err := p.read(ctx, p.operation, body)
	if err != nil || out == nil {
		return a, err
	}
	items, err := partList(out["Items"])
	if err != nil {
		return answer{}, err
	}
	expired := p.hasExpired
	if !p.holdsAttribute() {
		if expired, err = p.lookThrough(ctx, items); err != nil {
			return answer{}, err
		}
	}
	items = slices.DeleteFunc(items, expired)
	for _, item := range items {
		omit(item, added)
	}
	out["Count"] = strconv.AppendInt(nil, int64(len(items)), 10)
	out["Items"] = listBytes(items)
	if p.countOnly() {
		delete(out, "Items")
	}
	return a.with(out.bytes()), nil
}

// hasExpired reports whether an item with the TTL attribute has expired.
func (p *page) hasExpired(item object) bool { return p.at.expired(item[p.attribute]) }

func (p *page) countOnly() bool { return p.in.text("Select") == "COUNT" }

// needed returns the attributes for judging an entry, by itself or by its item.
func (p *page) needed() []string {
	if p.holdsAttribute() {
		return []string{p.attribute}
	}
	return p.desc.keys
}

// asked returns the request, changed so that items come with the needed attributes. added are the
// attributes that the caller did not request, which its answer must not have.
func (p *page) asked() (body json.RawMessage, added []string, err error) {
	x := p.extend()
	switch {
	case p.in.has(memberAttributes):
		added, err = x.getAttributes(p.needed()...)
	case p.projection != nil:
		added, err = x.project(p.projection, p.needed()...)
	case p.countOnly() && p.in.hasAny(memberFilter, memberKey):
		delete(x.members, "Select")
		x.projectOnly(p.needed()...)
	case p.countOnly():
		delete(x.members, "Select")
		x.members[memberAttributes], err = json.Marshal(p.needed())
	}
	return x.bytes(), added, err
}

// The items of an index's entries are read in batches.
const (
	batchKeysMax   = 100
	batchRoundsMax = 10 // for unprocessed keys
)

// lookThrough reads the items of an index's entries without the TTL attribute. It returns a
// function that reports whether an entry's item is gone.
func (p *page) lookThrough(ctx context.Context, entries []object) (gone func(object) bool, err error) {
	alive := map[string]bool{}
	for part := range slices.Chunk(entries, batchKeysMax) {
		if err := p.readAlive(ctx, part, alive); err != nil {
			return nil, err
		}
	}
	return func(entry object) bool {
		_, key, ok := keyOf(entry, p.desc.keys)
		return !ok || !alive[key]
	}, nil
}

// readAlive records the keys of the items that exist and have not expired.
func (p *page) readAlive(ctx context.Context, entries []object, alive map[string]bool) error {
	keys, seen := []object{}, map[string]bool{}
	for _, entry := range entries {
		key, text, ok := keyOf(entry, p.desc.keys)
		if !ok {
			return errUnreadable
		}
		if !seen[text] {
			seen[text] = true
			keys = append(keys, key)
		}
	}
	x := &extended{object{"ConsistentRead": []byte("true")}, object{}, object{}}
	x.projectOnly(append([]string{p.attribute}, p.desc.keys...)...)
	x.members["Keys"] = listBytes(keys)
	request := object{p.table: x.bytes()}
	for round := range batchRoundsMax {
		if round > 0 {
			clock.Pause(min(50*time.Millisecond<<round, time.Second), ctx.Done())
		}
		a, out, err := p.read(ctx, "BatchGetItem", object{"RequestItems": request.bytes()}.bytes())
		switch {
		case err != nil:
			return named(err, "BatchGetItem")
		case out == nil:
			return advised(a, "BatchGetItem", p.table, "because the index lacks its TTL attribute")
		}
		if request, err = p.noteAlive(out, alive); err != nil || len(request) == 0 {
			return named(err, "BatchGetItem")
		}
	}
	return &refused{refuse(&dynamo.Error{Code: "ProvisionedThroughputExceededException",
		Message: "strict reads: the items of the index entries could not be read in " + strconv.Itoa(batchRoundsMax) + " attempts"})}
}

// noteAlive reads an answer, and returns the request for the unprocessed keys.
func (p *page) noteAlive(out object, alive map[string]bool) (unprocessed object, err error) {
	responses, err := out.part("Responses")
	if err != nil {
		return nil, err
	}
	for _, raw := range responses { // there is only one table
		items, err := partList(raw)
		if err != nil {
			return nil, err
		}
		for _, item := range items {
			if _, key, ok := keyOf(item, p.desc.keys); ok && !p.hasExpired(item) {
				alive[key] = true
			}
		}
	}
	return out.part("UnprocessedKeys")
}
