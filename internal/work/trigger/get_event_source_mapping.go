package trigger

import "context"

// GetEventSourceMapping returns a mapping.
func (t *Triggers) GetEventSourceMapping(ctx context.Context, in *GetEventSourceMappingInput) (*EventSourceMapping, error) {
	m, err := t.get(ctx, in.UUID)
	if err != nil {
		return nil, err
	}
	return &m.EventSourceMapping, nil
}
