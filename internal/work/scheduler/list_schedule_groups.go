package scheduler

import (
	"context"
	"strings"
)

// ListScheduleGroups lists the groups, sorted by name, with the default group.
func (s *Scheduler) ListScheduleGroups(ctx context.Context, in *ListScheduleGroupsInput) (*ListScheduleGroupsOutput, error) {
	var sh shape
	sh.nameIfAny("namePrefix", in.NamePrefix)
	most := sh.page(in.MaxResults, in.NextToken)
	if err := sh.err(); err != nil {
		return nil, err
	}
	narrowed := filter(in.NamePrefix)
	begin, err := from(in.NextToken, "ListScheduleGroups", narrowed)
	if err != nil {
		return nil, err
	}
	own, err := s.readGroupNamed(ctx, groupDefault) // stores it
	if err != nil {
		return nil, apiError(err)
	}
	all, err := s.groups(ctx)
	if err != nil {
		return nil, apiError(err)
	}
	if len(all) == 0 {
		all = append(all, own) // there is no table yet
	}
	out := &ListScheduleGroupsOutput{ScheduleGroups: []ScheduleGroup{}}
	for _, g := range all {
		if !strings.HasPrefix(g.name, orElse(in.NamePrefix, "")) || begin != nil && g.name <= begin.Name {
			continue
		}
		if len(out.ScheduleGroups) == most {
			out.NextToken = listed{Operation: "ListScheduleGroups", Filter: narrowed, Name: out.ScheduleGroups[most-1].Name}.token()
			break
		}
		out.ScheduleGroups = append(out.ScheduleGroups, s.describe(g))
	}
	return out, nil
}
