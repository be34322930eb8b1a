package scheduler

import (
	"context"
	"slices"
)

// RemoveTargets removes targets from a rule. A missing target is a failed entry.
func (s *Scheduler) RemoveTargets(ctx context.Context, in *RemoveTargetsInput) (*RemoveTargetsOutput, error) {
	var sh shape
	sh.rule("rule", in.Rule)
	sh.bus(in.EventBusName)
	if sh.Required("ids", in.Ids != nil); in.Ids != nil {
		sh.count("ids", len(in.Ids), 1, targetsListMax)
	}
	for i := range in.Ids {
		sh.text(member("ids", i), &in.Ids[i], 1, targetIDMax, patternRuleName)
	}
	if err := sh.err(); err != nil {
		return nil, err
	}
	out := &RemoveTargetsOutput{}
	err := s.alterRule(ctx, *in.Rule, false, func(r *rule) error {
		out.FailedEntries = []FailedEntry{}
		for _, id := range in.Ids {
			i := slices.IndexFunc(r.Targets, func(t RuleTarget) bool { return *t.Id == id })
			if i < 0 {
				err := notFound("Rule '" + *in.Rule + "' does not have a target with the Id '" + id + "'.")
				out.FailedEntries = append(out.FailedEntries, failedEntry(id, err))
				continue
			}
			r.Targets = slices.Delete(r.Targets, i, i+1)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	out.FailedEntryCount = len(out.FailedEntries)
	return out, nil
}
