package scheduler

import (
	"context"
	"sort"
)

// ListTargetsByRule lists the targets of a rule, sorted by ID.
func (s *Scheduler) ListTargetsByRule(ctx context.Context, in *ListTargetsByRuleInput) (*ListTargetsByRuleOutput, error) {
	var sh shape
	sh.rule("rule", in.Rule)
	sh.bus(in.EventBusName)
	most := sh.limit(in.Limit, in.NextToken)
	if err := sh.err(); err != nil {
		return nil, err
	}
	l, err := newListing("ListTargetsByRule", in.NextToken, most, in.Rule)
	if err != nil {
		return nil, err
	}
	r, err := s.ruleNamed(ctx, *in.Rule)
	if err != nil {
		return nil, err
	}
	sort.Slice(r.Targets, func(i, j int) bool { return *r.Targets[i].Id < *r.Targets[j].Id })
	page, next := pageOf(l, r.Targets, func(t RuleTarget) string { return *t.Id })
	return &ListTargetsByRuleOutput{Targets: page, NextToken: next}, nil
}
