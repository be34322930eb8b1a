package service

import (
	"context"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/engine"
	"github.com/mayflydb/mayfly/internal/store/expr"
)

// GetItem returns one item.
//
// The order of checks: the shape, with TableName; mixed parameters and placeholders; the key's values;
// the projection; unused placeholders; the table; the key.
func (s *Service) GetItem(ctx context.Context, in *GetItemInput) (*GetItemOutput, error) {
	if err := getItemShape(in); err != nil {
		return nil, err
	}
	ref, err := dataTable(in.TableName)
	if err != nil {
		return nil, err
	}
	projection, err := take(&in.compiled, in, getProjection)
	if err != nil {
		return nil, err
	}
	t, err := s.table(ref.name)
	if err != nil {
		return nil, apiError(err, "")
	}
	key, err := lookupKey(t.Desc(), in.Key.Item)
	if err != nil {
		return nil, apiError(err, "")
	}
	if err := s.admit(flow{desc: t.Desc()}); err != nil {
		return nil, err
	}
	var item dynamo.Item
	var size int
	err = s.engine.Read(ctx, func(v *engine.View) (err error) {
		v.Show(in.Expired)
		item, size, err = v.Get(t, key)
		return err
	})
	if err != nil {
		return nil, apiError(err, "")
	}
	units := readUnits(size, readKind(in.ConsistentRead))
	t.Desc().Units.AddRead(units)
	out := &GetItemOutput{Item: project(projection, item)}
	if mode := capacityMode(in.ReturnConsumedCapacity.V); mode.asked() {
		m := meter{given: ref.given, mode: mode}
		m.read(units)
		out.Capacity = m.result()
	}
	return out, nil
}

func getItemShape(in *GetItemInput) error {
	var s shape
	s.enum("returnConsumedCapacity", in.ReturnConsumedCapacity, enumCapacity)
	s.attributesToGet("attributesToGet", &in.Legacy)
	s.dataTable("tableName", in.TableName)
	s.Required("key", in.Key.present())
	return s.err()
}

// getProjection makes the remaining checks that need no table, and returns the compiled projection.
func getProjection(in *GetItemInput) (*expr.Projection, error) {
	sess, err := projectionSession(in.Names, in.Projection, &in.Legacy)
	if err != nil {
		return nil, err
	}
	if in.Key.Err != nil {
		return nil, in.Key.Err
	}
	return onlyProjection(sess, in.Projection, &in.Legacy)
}

// onlyProjection returns the compiled projection of a read whose only expression it is.
func onlyProjection(sess *expr.Session, text Opt[string], legacy *Legacy) (*expr.Projection, error) {
	p, err := compileProjection(sess, text, legacy)
	if err != nil {
		return nil, err
	}
	return p, sess.Unused()
}

// project returns the item under a projection; both may be nil.
func project(p *expr.Projection, item dynamo.Item) dynamo.Item {
	if p == nil || item == nil {
		return item
	}
	return p.Apply(nil, item)
}
