package service

import (
	"context"
	"errors"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/engine"
)

// The values of ReturnValues.
const (
	returnNone       = "NONE"
	returnAllOld     = "ALL_OLD"
	returnAllNew     = "ALL_NEW"
	returnUpdatedOld = "UPDATED_OLD"
	returnUpdatedNew = "UPDATED_NEW"
)

// writeOne executes one action and returns its answer, for PutItem, UpdateItem and DeleteItem.
func (s *Service) writeOne(ctx context.Context, a *action, returnValues, capacity, collection string) (*WriteOutput, error) {
	mode := capacityMode(capacity)
	a.returnOld = mode.asked() || returnValues == returnAllOld
	if err := a.bind(s); err != nil {
		return nil, apiError(err, "")
	}
	if err := s.admitWrite(a); err != nil {
		return nil, err
	}
	if err := s.engine.Write(ctx, &a.write); err != nil {
		if errors.Is(err, engine.ErrRefused) {
			countRefused([]*action{a}, 1)
		}
		return nil, a.outcome(err)
	}
	a.countWrite(1)
	s.noteMistakes(a)
	out := &WriteOutput{Attributes: a.returned(returnValues)}
	if mode.asked() {
		m := meter{given: a.ref.given, mode: mode}
		m.write(&a.write, 1)
		out.Capacity = m.result()
	}
	if collection == collectionSize {
		out.Collection = a.collectionMetrics()
	}
	return out, nil
}

// returned returns the attributes for ReturnValues; nil: the answer has no Attributes member.
func (a *action) returned(values string) dynamo.Item {
	switch {
	case values == returnAllOld:
		return a.write.Old
	case values == returnAllNew:
		return a.write.New
	case a.update == nil:
		return nil
	case values == returnUpdatedOld:
		return a.update.UpdatedOld(a.write.Old)
	case values == returnUpdatedNew:
		return a.update.UpdatedNew(a.write.New)
	}
	return nil
}
