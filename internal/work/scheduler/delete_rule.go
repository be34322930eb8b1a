package scheduler

import "context"

// DeleteRule deletes a rule without targets. It succeeds if there is no such rule.
func (s *Scheduler) DeleteRule(ctx context.Context, in *DeleteRuleInput) (*Empty, error) {
	if err := checkRuleInput((*RuleInput)(in)); err != nil {
		return nil, err
	}
	err := s.retryChange(ctx, "Rule "+*in.Name, func(bool) error {
		e, err := s.entry(ctx, rulesTable, *in.Name)
		if e == nil || err != nil {
			return err
		}
		r, _, err := readRule(e.document)
		if err != nil {
			return err
		}
		if len(r.Targets) > 0 {
			return invalid("Rule can't be deleted since it has targets.")
		}
		actions := []action{remove(rulesTable, key(e.name, partDefinition), e.unchanged())}
		if e.tail.pending() {
			actions = append(actions, remove(rulesTable, key(e.name, partRemains), nil))
		}
		c, err := s.transact(ctx, actions)
		if c != nil {
			return errChanged
		}
		return err
	})
	if err != nil && !noTable(err) {
		return nil, apiError(err)
	}
	return &Empty{}, nil
}
