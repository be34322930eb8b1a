package service

import (
	"context"
	"slices"

	"github.com/mayflydb/mayfly/internal/constraint"
	"github.com/mayflydb/mayfly/internal/store/engine"
	"github.com/mayflydb/mayfly/internal/store/expr"
)

const (
	batchGetKeysMax  = 100
	batchGetBytesMax = 16 * 1024 * 1024
)

// BatchGetItem returns up to 100 items by their keys. Keys whose items do not fit into 16 MB, or for
// which throttling leaves no units, are returned as unprocessed.
//
// The order of checks: the shape; expressions for one table and legacy parameters for another; then
// for each table its name, placeholders, the keys' values, repeated keys, the projection and the
// number of keys so far; then for each table its existence and its keys.
func (s *Service) BatchGetItem(ctx context.Context, in *BatchGetItemInput) (*BatchGetItemOutput, error) {
	gets, err := newBatchGets(in)
	if err != nil {
		return nil, err
	}
	for i := range gets {
		if err := gets[i].bind(s); err != nil {
			return nil, apiError(err, "")
		}
	}
	out := &BatchGetItemOutput{}
	err = s.engine.Read(ctx, func(v *engine.View) error {
		v.Show(in.Expired)
		*out = BatchGetItemOutput{}
		return readBatch(ctx, v, gets, out)
	})
	if err != nil {
		return nil, apiError(err, "")
	}
	if err := s.throttledBatch(gets); err != nil {
		return nil, err
	}
	used := meters{mode: capacityMode(in.ReturnConsumedCapacity.V)}
	for i := range gets {
		gets[i].table.Desc().Units.AddRead(gets[i].units)
		used.table(gets[i].in.Table).read(gets[i].units)
	}
	out.Capacity = used.results()
	return out, nil
}

// batchGet is the part of a BatchGetItem that reads one table.
type batchGet struct {
	in         *BatchGetTable
	ref        tableRef
	projection *expr.Projection
	table      *engine.Table
	keys       []engine.Key
	units      float64 // read units used
	room       float64 // read units that throttling leaves to it
	throttled  bool    // it ended because no room was left
}

// newBatchGets returns the parts of a request after the checks that need no table.
func newBatchGets(in *BatchGetItemInput) ([]batchGet, error) {
	if err := batchGetShape(in); err != nil {
		return nil, err
	}
	if err := batchGetMixed(in.RequestItems); err != nil {
		return nil, err
	}
	gets := make([]batchGet, len(in.RequestItems))
	total := 0
	for i := range in.RequestItems {
		t := &in.RequestItems[i]
		ref, err := tableRef{name: t.Table, given: t.Table}.resolve()
		if err != nil {
			return nil, err
		}
		gets[i] = batchGet{in: t, ref: ref}
		if gets[i].projection, err = batchGetProjection(t); err != nil {
			return nil, err
		}
		if total += len(t.Keys); total > batchGetKeysMax {
			return nil, invalid("Too many items requested for the BatchGetItem call")
		}
	}
	return gets, nil
}

func batchGetShape(in *BatchGetItemInput) error {
	var s shape
	s.enum("returnConsumedCapacity", in.ReturnConsumedCapacity, enumCapacity)
	switch {
	case in.RequestItems == nil:
		s.Null("requestItems")
	case len(in.RequestItems) == 0:
		s.Fail("{}", "requestItems", "Member must have length greater than or equal to 1")
	}
	for i := range in.RequestItems {
		s.requestItemsKey(in.RequestItems[i].Table)
	}
	for i := range in.RequestItems {
		t := &in.RequestItems[i]
		path := "requestItems." + t.Table + ".member"
		s.attributesToGet(path+".attributesToGet", &t.Legacy)
		if t.Keys == nil {
			s.Null(path + ".keys")
			continue
		}
		s.Count(path+".keys", len(t.Keys), 1, batchGetKeysMax, func() string { return printedKeys(t.Keys) })
	}
	return s.err()
}

// requestItemsKey checks a table's name as a key of RequestItems. A fault is reported as a fault of
// the map.
func (s *shape) requestItemsKey(name string) {
	if isARN(name) || constraint.IsTable(name) {
		return
	}
	s.Fail("{"+name+"=…}", "requestItems", "Map keys must satisfy constraint: [Member must have length less than or equal to 255, "+
		"Member must have length greater than or equal to 3, Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+]")
}

func printedKeys(keys []ItemArg) string {
	printed := make([]string, len(keys))
	for i, k := range keys {
		printed[i] = k.Item.String()
	}
	return printedList(printed)
}

// batchGetMixed refuses a request that uses legacy parameters for one table and expressions for
// another.
func batchGetMixed(tables []BatchGetTable) error {
	legacy := slices.ContainsFunc(tables, func(t BatchGetTable) bool { return t.Legacy.AttributesToGet != nil })
	modern := slices.ContainsFunc(tables, func(t BatchGetTable) bool { return t.Projection.Set })
	if legacy && modern {
		return expr.MixedParameters([]string{"AttributesToGet"}, []string{expr.ProjectionExpression})
	}
	return nil
}

// batchGetProjection returns the compiled projection of one table's part. In between, in AWS's
// order, it checks the values of the keys and that no key is repeated.
func batchGetProjection(t *BatchGetTable) (*expr.Projection, error) {
	sess, err := projectionSession(t.Names, t.Projection, &t.Legacy)
	if err != nil {
		return nil, err
	}
	for i := range t.Keys {
		if t.Keys[i].Err != nil {
			return nil, t.Keys[i].Err
		}
	}
	if keysRepeat(t.Keys) {
		return nil, invalid(msgDuplicateKeys)
	}
	return onlyProjection(sess, t.Projection, &t.Legacy)
}

const msgDuplicateKeys = "Provided list of item keys contains duplicates"

// keysRepeat reports whether two keys are equal. The binary form is canonical, so it compares
// bytes.
func keysRepeat(keys []ItemArg) bool {
	seen := make(map[string]struct{}, len(keys))
	for _, k := range keys {
		if _, twice := seen[string(k.Item)]; twice {
			return true
		}
		seen[string(k.Item)] = struct{}{}
	}
	return false
}

func (g *batchGet) bind(s *Service) (err error) {
	if g.table, err = s.table(g.ref.name); err != nil {
		return err
	}
	d := g.table.Desc()
	g.keys = make([]engine.Key, len(g.in.Keys))
	for i := range g.in.Keys {
		if g.keys[i], err = lookupKey(d, g.in.Keys[i].Item); err != nil {
			return err
		}
	}
	g.room = s.room(flow{desc: d})
	return nil
}

// readBatch reads table after table until all items are read or the answer is full. It puts the
// keys that are left into Unprocessed, with the other parameters of their table.
func readBatch(ctx context.Context, v *engine.View, gets []batchGet, out *BatchGetItemOutput) error {
	left := batchGetBytesMax
	for i := range gets {
		g := &gets[i]
		answer := TableItems{Table: g.in.Table}
		n, err := g.read(ctx, v, &answer, &left)
		if err != nil {
			return err
		}
		out.Responses = append(out.Responses, answer)
		if n < len(g.keys) {
			unread := *g.in
			unread.Keys = g.in.Keys[n:]
			out.Unprocessed = append(out.Unprocessed, unread)
		}
	}
	return nil
}

// read reads keys in their order while the answer has room, and returns how many it read. left is
// the room in bytes. The first item that does not fit sets it to 0, so that later tables read no
// items either.
func (g *batchGet) read(ctx context.Context, v *engine.View, answer *TableItems, left *int) (int, error) {
	g.units, g.throttled = 0, false
	perBlock, turn := readKind(g.in.ConsistentRead), turnOf(ctx)
	for i, key := range g.keys {
		if g.units >= g.room {
			g.throttled = true
			return i, nil
		}
		item, size, err := v.Get(g.table, key)
		if err == nil {
			err = turn.Do(ctx, size+entryWork)
		}
		if err != nil {
			return i, err
		}
		if size > *left {
			*left = 0
			return i, nil
		}
		*left -= size
		g.units += readUnits(size, perBlock)
		if item != nil {
			answer.Items = append(answer.Items, project(g.projection, item))
		}
	}
	return len(g.keys), nil
}
