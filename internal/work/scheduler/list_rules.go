package scheduler

import (
	"context"
	"slices"
)

// ListRules lists the rules, sorted by name.
func (s *Scheduler) ListRules(ctx context.Context, in *ListRulesInput) (*ListRulesOutput, error) {
	var sh shape
	sh.text("namePrefix", in.NamePrefix, 1, nameMax, patternRuleName)
	sh.bus(in.EventBusName)
	most := sh.limit(in.Limit, in.NextToken)
	if err := sh.err(); err != nil {
		return nil, err
	}
	l, err := newListing("ListRules", in.NextToken, most, in.NamePrefix)
	if err != nil {
		return nil, err
	}
	all, err := s.rules(ctx, orElse(in.NamePrefix, ""))
	if err != nil {
		return nil, apiError(err)
	}
	page, next := pageOf(l, all, func(r namedRule) string { return r.name })
	out := &ListRulesOutput{Rules: []Rule{}, NextToken: next}
	for _, r := range page {
		out.Rules = append(out.Rules, s.describeRule(r.name, r.rule))
	}
	return out, nil
}

// ListRuleNamesByTarget lists the rules with a certain target, sorted by name.
func (s *Scheduler) ListRuleNamesByTarget(ctx context.Context, in *ListRuleNamesByTargetInput) (*ListRuleNamesByTargetOutput, error) {
	var sh shape
	sh.required("targetArn", in.TargetArn, 1, arnMax, nil)
	sh.bus(in.EventBusName)
	most := sh.limit(in.Limit, in.NextToken)
	if err := sh.err(); err != nil {
		return nil, err
	}
	l, err := newListing("ListRuleNamesByTarget", in.NextToken, most, in.TargetArn)
	if err != nil {
		return nil, err
	}
	all, err := s.rules(ctx, "")
	if err != nil {
		return nil, apiError(err)
	}
	names := []string{}
	for _, r := range all {
		if slices.ContainsFunc(r.Targets, func(t RuleTarget) bool { return *t.Arn == *in.TargetArn }) {
			names = append(names, r.name)
		}
	}
	page, next := pageOf(l, names, func(name string) string { return name })
	return &ListRuleNamesByTargetOutput{RuleNames: page, NextToken: next}, nil
}
