package scheduler

import "context"

// EnableRule enables a rule. Its next firing is its first occurrence from now on.
func (s *Scheduler) EnableRule(ctx context.Context, in *EnableRuleInput) (*Empty, error) {
	return s.setRuleState(ctx, (*RuleInput)(in), stateEnabled)
}

// DisableRule disables a rule.
func (s *Scheduler) DisableRule(ctx context.Context, in *DisableRuleInput) (*Empty, error) {
	return s.setRuleState(ctx, (*RuleInput)(in), stateDisabled)
}

func (s *Scheduler) setRuleState(ctx context.Context, in *RuleInput, state string) (*Empty, error) {
	if err := checkRuleInput(in); err != nil {
		return nil, err
	}
	return empty(s.alterRule(ctx, *in.Name, false, func(r *rule) error {
		r.State = state
		return nil
	}))
}
