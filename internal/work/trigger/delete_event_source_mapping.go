package trigger

import (
	"context"
	"errors"
)

// DeleteEventSourceMapping ends a mapping. The mapping is in state Deleting until it has stopped.
// (AWS answers with the status 202.)
func (t *Triggers) DeleteEventSourceMapping(ctx context.Context, in *DeleteEventSourceMappingInput) (*EventSourceMapping, error) {
	for {
		m, err := t.get(ctx, in.UUID)
		if err != nil {
			return nil, err
		}
		if !settled(m.State) {
			return nil, inUse("delete")
		}
		m.State, m.StateTransitionReason, m.Enabled = stateDeleting, userAction, false
		m.touch(t.o.Clock.Now())
		m.revision++
		err = t.put(ctx, m)
		if errors.Is(err, errChanged) && ctx.Err() == nil {
			continue
		}
		if err != nil {
			return nil, err
		}
		t.look()
		return &m.EventSourceMapping, nil
	}
}
