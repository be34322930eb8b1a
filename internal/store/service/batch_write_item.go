package service

import (
	"context"
	"errors"
	"slices"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/engine"
)

const batchWritesMax = 25

// BatchWriteItem puts and deletes up to 25 items. It applies all of them in one batch of the
// engine, except those for which throttling leaves no units: they are returned as unprocessed.
//
// The order of checks: the shape, with the required item or key of each request; no requests at all;
// for each request one of Put and Delete, its values and the item's size; the number of requests; then
// for each request the table's existence, the keys, and whether it repeats an item.
func (s *Service) BatchWriteItem(ctx context.Context, in *BatchWriteItemInput) (*BatchWriteItemOutput, error) {
	if err := batchWriteShape(in); err != nil {
		return nil, err
	}
	actions, err := newBatchWrites(in.RequestItems)
	if err != nil {
		return nil, err
	}
	mode := capacityMode(in.ReturnConsumedCapacity.V)
	if err := s.bindBatch(actions, mode); err != nil {
		return nil, err
	}
	actions, processed, err := s.admitBatch(actions)
	if err != nil {
		return nil, err
	}
	if err := s.engine.Write(ctx, writesOf(actions)...); err != nil {
		return nil, batchOutcome(actions, err)
	}
	s.noteMistakes(actions...)
	out := &BatchWriteItemOutput{Unprocessed: unprocessed(in.RequestItems, processed), Capacity: writesCapacity(actions, meters{mode: mode}, 1)}
	if in.ReturnItemCollectionMetrics.V == collectionSize {
		out.Collections = collectionsOf(actions)
	}
	return out, nil
}

// batchOutcome returns the API's error for a batch that was not applied, by its first refused write if
// there is any.
func batchOutcome(actions []*action, err error) error {
	for _, a := range actions {
		if a.write.Err != nil {
			return a.outcome(err)
		}
	}
	return apiError(err, "")
}

func batchWriteShape(in *BatchWriteItemInput) error {
	var s shape
	s.enum("returnConsumedCapacity", in.ReturnConsumedCapacity, enumCapacity)
	s.enum("returnItemCollectionMetrics", in.ReturnItemCollectionMetrics, enumCollection)
	for i := range in.RequestItems {
		s.requestItemsKey(in.RequestItems[i].Table)
	}
	for i := range in.RequestItems {
		t := &in.RequestItems[i]
		if n := len(t.Requests); n < 1 || n > batchWritesMax {
			s.Fail("{"+t.Table+"=…}", "requestItems", "Map value must satisfy constraint: [Member must have length less than or equal to 25, "+
				"Member must have length greater than or equal to 1]")
		}
	}
	for i := range in.RequestItems {
		t := &in.RequestItems[i]
		for j := range t.Requests {
			path := member("requestItems."+t.Table+".member", j)
			if put := t.Requests[j].Put; put != nil {
				s.Required(path+".putRequest.item", put.present())
			}
			if del := t.Requests[j].Delete; del != nil {
				s.Required(path+".deleteRequest.key", del.present())
			}
		}
	}
	if err := s.err(); err != nil {
		return err
	}
	if len(in.RequestItems) == 0 {
		return invalid("The requestItems parameter is required for BatchWriteItem")
	}
	return nil
}

// newBatchWrites returns the actions of a request after the checks that need no table.
func newBatchWrites(tables []BatchWriteTable) ([]*action, error) {
	var actions []*action
	for i := range tables {
		ref, err := tableRef{name: tables[i].Table, given: tables[i].Table}.resolve()
		if err != nil {
			return nil, err
		}
		for _, r := range tables[i].Requests {
			a, err := newBatchWrite(r)
			if err != nil {
				return nil, err
			}
			a.ref = ref
			actions = append(actions, a)
		}
	}
	if len(actions) > batchWritesMax {
		return nil, invalid("Too many items requested for the BatchWriteItem call")
	}
	return actions, nil
}

func newBatchWrite(r WriteRequest) (*action, error) {
	switch {
	case (r.Put == nil) == (r.Delete == nil):
		return nil, invalid("Supplied AttributeValue has more than one datatypes set, must contain exactly one of the supported datatypes")
	case r.Delete != nil:
		return &action{kind: actionDelete, item: r.Delete.Item}, r.Delete.Err
	case r.Put.Err != nil:
		return nil, r.Put.Err
	case itemTooLarge(r.Put.Item):
		return nil, invalid(msgItemTooLarge)
	}
	return &action{kind: actionPut, item: r.Put.Item}, nil
}

// unprocessed returns the requests that were not processed. processed has an entry for each request,
// in the order of the tables; nil: all were.
func unprocessed(tables []BatchWriteTable, processed []bool) (out []BatchWriteTable) {
	if processed == nil {
		return nil
	}
	for _, t := range tables {
		left := BatchWriteTable{Table: t.Table}
		for i, r := range t.Requests {
			if !processed[i] {
				left.Requests = append(left.Requests, r)
			}
		}
		processed = processed[len(t.Requests):]
		if left.Requests != nil {
			out = append(out, left)
		}
	}
	return out
}

// bindBatch binds the actions and refuses two actions on one item. A put whose item has a bad key
// gets the error for keys.
func (s *Service) bindBatch(actions []*action, mode capacityMode) error {
	for i, a := range actions {
		a.returnOld = mode.asked()
		err := a.bind(s)
		if bad, ok := errors.AsType[*engine.KeyError](err); ok && bad.Index == "" && (bad.Problem == engine.KeyWrongType || bad.Problem == engine.KeyMissing) {
			return errKeyMismatch
		}
		if err != nil {
			return apiError(err, "")
		}
		if slices.ContainsFunc(actions[:i], a.sameItem) {
			return invalid(msgDuplicateKeys)
		}
	}
	return nil
}

// sameItem reports whether two bound actions write the same item.
func (a *action) sameItem(b *action) bool {
	return a.write.Table == b.write.Table && a.write.Key == b.write.Key
}

func writesOf(actions []*action) []*engine.Write {
	writes := make([]*engine.Write, len(actions), len(actions)+1)
	for i, a := range actions {
		writes[i] = &a.write
	}
	return writes
}

// writesCapacity counts the units of applied actions for the operator. It returns the sums of each
// table if the request asks for them, and otherwise nil. factor applies to the units of tables, not
// of indexes.
func writesCapacity(actions []*action, used meters, factor float64) []*Capacity {
	for _, a := range actions {
		a.countWrite(factor)
	}
	if !used.mode.asked() {
		return nil
	}
	for _, a := range actions {
		used.table(a.ref.given).write(&a.write, factor)
	}
	return used.results()
}

// collectionsOf returns the item collections that actions wrote to, each once.
func collectionsOf(actions []*action) []TableCollections {
	var out []TableCollections
	for _, a := range actions {
		m := a.collectionMetrics()
		if m == nil {
			continue
		}
		at := slices.IndexFunc(out, func(t TableCollections) bool { return t.Table == a.ref.given })
		if at < 0 {
			at = len(out)
			out = append(out, TableCollections{Table: a.ref.given})
		}
		same := func(n *CollectionMetrics) bool { return dynamo.Equal(dynamo.Value(n.Key), dynamo.Value(m.Key)) }
		if !slices.ContainsFunc(out[at].Metrics, same) {
			out[at].Metrics = append(out[at].Metrics, m)
		}
	}
	return out
}
