package scheduler

import "context"

// GetSchedule returns a schedule, with the defaults of missing members.
func (s *Scheduler) GetSchedule(ctx context.Context, in *GetScheduleInput) (*GetScheduleOutput, error) {
	var sh shape
	sh.optionalName("groupName", in.GroupName)
	sh.name("name", in.Name)
	if err := sh.err(); err != nil {
		return nil, err
	}
	group := orElse(in.GroupName, groupDefault)
	var e *entry
	err := s.ofGroup(ctx, group, in.Name, func(table string) (err error) {
		e, err = s.entry(ctx, table, in.Name)
		return err
	})
	if err != nil {
		return nil, err
	}
	if e == nil {
		return nil, noSchedule(in.Name)
	}
	d, _, err := s.readDocument(e.document, e.input)
	if err != nil {
		return nil, err
	}
	out := &GetScheduleOutput{
		Arn:                  s.scheduleARN(group, e.name),
		Name:                 e.name,
		GroupName:            group,
		CreationDate:         at(e.created),
		LastModificationDate: at(e.modified),
		Settings:             d.Settings,
	}
	out.Settings.fillIn()
	return out, nil
}

// fillIn sets missing members to their defaults.
func (s *Settings) fillIn() {
	s.ScheduleExpressionTimezone = new(orElse(s.ScheduleExpressionTimezone, zoneDefault))
	s.State = new(orElse(s.State, stateEnabled))
	s.ActionAfterCompletion = new(orElse(s.ActionAfterCompletion, actionNone))
	if s.Target.RetryPolicy == nil {
		s.Target.RetryPolicy = &RetryPolicy{}
	}
	s.Target.RetryPolicy.fillIn()
	if p := s.Target.EcsParameters; p != nil {
		p.TaskCount = new(orElse(p.TaskCount, 1))
	}
}

func (r *RetryPolicy) fillIn() {
	r.MaximumEventAgeInSeconds = new(orElse(r.MaximumEventAgeInSeconds, ageMax))
	r.MaximumRetryAttempts = new(orElse(r.MaximumRetryAttempts, retriesMax))
}
