package service

import (
	"context"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/engine"
	"github.com/mayflydb/mayfly/internal/store/expr"
)

// TransactGetItems returns up to 100 items as of one instant.
//
// The order of checks: the shape; for each action the table's name, placeholders, the key's values and
// the projection; then the existence of the tables; keys that do not fit, which cancel the
// transaction; repeated items; and when the items are read, their size.
func (s *Service) TransactGetItems(ctx context.Context, in *TransactGetItemsInput) (*TransactGetItemsOutput, error) {
	gets, err := newTransactGets(in)
	if err != nil {
		return nil, err
	}
	if err := s.bindTransactGets(gets); err != nil {
		return nil, err
	}
	if err := s.readTransaction(ctx, gets, in.Expired); err != nil {
		return nil, err
	}
	return transactGetOutput(gets, capacityMode(in.ReturnConsumedCapacity.V)), nil
}

// readTransaction reads the items of bound gets as of one instant.
func (s *Service) readTransaction(ctx context.Context, gets []transactGet, expired Expired) error {
	turn := turnOf(ctx)
	err := s.engine.ReadSnapshot(ctx, func(v *engine.View) (err error) {
		v.Show(expired)
		for i := range gets {
			g := &gets[i]
			if g.found, g.size, err = v.Get(g.table, g.key); err != nil {
				return err
			}
			if err = turn.Do(ctx, g.size+entryWork); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return apiError(err, "")
	}
	total := 0
	for i := range gets {
		total += gets[i].size
	}
	if total > transactBytesMax {
		return invalid(msgTransactBytes)
	}
	return nil
}

// transactGet is one action of a TransactGetItems.
type transactGet struct {
	ref        tableRef
	item       dynamo.Item // the Key
	projection *expr.Projection
	table      *engine.Table
	key        engine.Key

	found dynamo.Item // nil: no such item
	size  int         // of found, in bytes
}

// newTransactGets returns the actions of a request after the checks that need no table.
func newTransactGets(in *TransactGetItemsInput) ([]transactGet, error) {
	gets := make([]transactGet, len(in.Items))
	if err := transactGetShape(in, gets); err != nil {
		return nil, err
	}
	for i := range in.Items {
		get := &in.Items[i]
		var err error
		if gets[i].ref, err = gets[i].ref.resolve(); err != nil {
			return nil, err
		}
		sess, err := projectionSession(get.Names, get.Projection, &Legacy{})
		if err != nil {
			return nil, err
		}
		if get.Key.Err != nil {
			return nil, get.Key.Err
		}
		gets[i].item = get.Key.Item
		if gets[i].projection, err = onlyProjection(sess, get.Projection, &Legacy{}); err != nil {
			return nil, err
		}
	}
	return gets, nil
}

func transactGetShape(in *TransactGetItemsInput, gets []transactGet) error {
	var s shape
	s.transactItems(len(in.Items), in.Items != nil)
	for i := range in.Items {
		path := member("transactItems", i) + ".get"
		if !in.Items[i].Present {
			s.Null(path)
			continue
		}
		gets[i].ref = s.dataTable(path+".tableName", in.Items[i].TableName)
		s.Required(path+".key", in.Items[i].Key.present())
	}
	s.enum("returnConsumedCapacity", in.ReturnConsumedCapacity, enumCapacity)
	return s.err()
}

// bindTransactGets checks the keys against the tables' schemas.
func (s *Service) bindTransactGets(gets []transactGet) error {
	bind := func(i int) (err error) {
		g := &gets[i]
		if g.table, err = s.table(g.ref.name); err == nil {
			g.key, err = lookupKey(g.table.Desc(), g.item)
		}
		if err == nil {
			err = s.admit(flow{desc: g.table.Desc()})
		}
		return err
	}
	return bindAll(len(gets), bind, func(i, j int) bool { return gets[i].table == gets[j].table && gets[i].key == gets[j].key }, func([]error) {})
}

func transactGetOutput(gets []transactGet, mode capacityMode) *TransactGetItemsOutput {
	out := &TransactGetItemsOutput{Responses: make([]dynamo.Item, len(gets))}
	used := meters{mode: mode, transaction: meterReads}
	for i := range gets {
		g := &gets[i]
		out.Responses[i] = project(g.projection, g.found)
		units := readUnits(g.size, readTransactional)
		g.table.Desc().Units.AddRead(units)
		used.table(g.ref.given).read(units)
	}
	out.Capacity = used.results()
	return out
}
