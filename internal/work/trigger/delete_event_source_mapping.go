package trigger

import "context"

// DeleteEventSourceMapping ends a mapping. The mapping is in state Deleting until it has stopped.
// (AWS answers with the status 202.)
func (t *Triggers) DeleteEventSourceMapping(ctx context.Context, in *DeleteEventSourceMappingInput) (*EventSourceMapping, error) {
	return t.alter(ctx, in.UUID, "delete", func(m *mapping) error {
		m.State, m.Enabled = stateDeleting, false
		return nil
	})
}
