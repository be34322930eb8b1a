package scheduler

import (
	"context"
	"slices"
	"strings"
)

// ListScheduleGroups lists the groups, sorted by name, with the default group.
func (s *Scheduler) ListScheduleGroups(ctx context.Context, in *ListScheduleGroupsInput) (*ListScheduleGroupsOutput, error) {
	var sh shape
	sh.optionalName("namePrefix", in.NamePrefix)
	most := sh.page(in.MaxResults, in.NextToken)
	if err := sh.err(); err != nil {
		return nil, err
	}
	l, err := newListing("ListScheduleGroups", in.NextToken, most, in.NamePrefix)
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
	all = slices.DeleteFunc(all, func(g *group) bool { return !strings.HasPrefix(g.name, orElse(in.NamePrefix, "")) })
	page, next := pageOf(l, all, func(g *group) string { return g.name })
	out := &ListScheduleGroupsOutput{ScheduleGroups: []ScheduleGroup{}, NextToken: next}
	for _, g := range page {
		out.ScheduleGroups = append(out.ScheduleGroups, s.describe(g))
	}
	return out, nil
}
