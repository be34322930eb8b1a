package scheduler

import (
	"context"
	"errors"
	"slices"
)

// PutTargets adds targets to a rule, or replaces those with the same ID. A target that cannot be
// added is a failed entry, and the others are added.
func (s *Scheduler) PutTargets(ctx context.Context, in *PutTargetsInput) (*PutTargetsOutput, error) {
	var sh shape
	sh.rule("rule", in.Rule)
	sh.bus(in.EventBusName)
	sh.targets(in.Targets)
	if err := sh.err(); err != nil {
		return nil, err
	}
	for i := range in.Targets {
		if err := checkRuleTarget(&in.Targets[i]); err != nil {
			return nil, err
		}
	}
	out := &PutTargetsOutput{}
	err := s.alterRule(ctx, *in.Rule, false, func(r *rule) error {
		out.FailedEntries = []FailedEntry{}
		for _, t := range in.Targets {
			if err := s.putTarget(r, t); err != nil {
				out.FailedEntries = append(out.FailedEntries, failedEntry(*t.Id, err))
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	out.FailedEntryCount = len(out.FailedEntries)
	return out, nil
}

func (s *Scheduler) putTarget(r *rule, t RuleTarget) error {
	if err := s.checkMapped(*t.Arn); err != nil {
		return err
	}
	if d := t.DeadLetterConfig; d != nil && d.Arn != nil {
		if err := s.checkMapped(*d.Arn); err != nil {
			return err
		}
	}
	i := slices.IndexFunc(r.Targets, func(o RuleTarget) bool { return *o.Id == *t.Id })
	switch {
	case i >= 0:
		r.Targets[i] = t
	case len(r.Targets) == ruleTargetsMax:
		return limitExceeded("The requested resource exceeds the maximum number allowed.")
	default:
		r.Targets = append(r.Targets, t)
	}
	return nil
}

func failedEntry(id string, err error) FailedEntry {
	var e *Error
	if !errors.As(err, &e) {
		e = &Error{Code: "InternalException", Message: err.Error()}
	}
	return FailedEntry{TargetId: id, ErrorCode: e.Code, ErrorMessage: e.Message}
}
