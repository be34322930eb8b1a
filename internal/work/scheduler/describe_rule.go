package scheduler

import "context"

// DescribeRule describes a rule, without its targets.
func (s *Scheduler) DescribeRule(ctx context.Context, in *DescribeRuleInput) (*DescribeRuleOutput, error) {
	if err := checkRuleInput((*RuleInput)(in)); err != nil {
		return nil, err
	}
	r, err := s.ruleNamed(ctx, *in.Name)
	if err != nil {
		return nil, err
	}
	out := s.describeRule(*in.Name, r)
	out.CreatedBy = s.o.Account
	return &out, nil
}

func checkRuleInput(in *RuleInput) error {
	var sh shape
	sh.rule("name", in.Name)
	sh.bus(in.EventBusName)
	return sh.err()
}
