package scheduler

import (
	"context"

	"github.com/mayflydb/mayfly/internal/work/items"
)

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
		old, _, err := readRule(e.document)
		if err != nil {
			return err
		}
		if len(old.Targets) > 0 {
			return invalid("Rule can't be deleted since it has targets.")
		}
		actions := []action{items.Delete(rulesTable, key(e.name, partDefinition), e.unchanged())}
		if e.tail.pending() {
			actions = append(actions, items.Delete(rulesTable, key(e.name, partRemains), nil))
		}
		r, err := s.transact(ctx, actions)
		if r != nil {
			return errChanged
		}
		return err
	})
	if noTable(err) {
		err = nil
	}
	return empty(apiError(err))
}
