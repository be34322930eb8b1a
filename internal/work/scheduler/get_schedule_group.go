package scheduler

import "context"

// GetScheduleGroup describes a group.
func (s *Scheduler) GetScheduleGroup(ctx context.Context, in *GetScheduleGroupInput) (*GetScheduleGroupOutput, error) {
	var sh shape
	sh.name("name", in.Name)
	if err := sh.err(); err != nil {
		return nil, err
	}
	g, err := s.readGroupNamed(ctx, in.Name)
	switch {
	case err != nil:
		return nil, apiError(err)
	case g == nil:
		return nil, noGroup(in.Name)
	}
	out := s.describe(g)
	return &out, nil
}
