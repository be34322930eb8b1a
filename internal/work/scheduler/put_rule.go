package scheduler

import (
	"context"

	"github.com/mayflydb/mayfly/internal/work/cron"
)

// PutRule creates a scheduled rule, or replaces a rule except for its targets and tags.
func (s *Scheduler) PutRule(ctx context.Context, in *PutRuleInput) (*PutRuleOutput, error) {
	if err := checkPutRule(in); err != nil {
		return nil, err
	}
	if s.o.Refuse != nil {
		if err := s.o.Refuse(); err != nil {
			return nil, throttled(err.Error())
		}
	}
	err := s.alterRule(ctx, *in.Name, true, func(r *rule) error {
		if r.State == "" {
			r.Tags = tagMap(nil, in.Tags)
		}
		r.Expression = *in.ScheduleExpression
		r.State = orElse(in.State, stateEnabled)
		r.Description, r.RoleArn = orElse(in.Description, ""), orElse(in.RoleArn, "")
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &PutRuleOutput{s.ruleARN(*in.Name)}, nil
}

func checkPutRule(in *PutRuleInput) error {
	var sh shape
	sh.rule("name", in.Name)
	sh.text("scheduleExpression", in.ScheduleExpression, 0, expressionMax, nil)
	sh.text("eventPattern", in.EventPattern, 0, eventPatternMax, nil)
	sh.enum("state", in.State, enumRuleState)
	sh.text("description", in.Description, 0, descriptionMax, nil)
	sh.text("roleArn", in.RoleArn, 1, arnMax, nil)
	sh.tags(in.Tags)
	sh.bus(in.EventBusName)
	if err := sh.err(); err != nil {
		return err
	}
	switch {
	case in.EventPattern != nil:
		return invalid("EventPattern is not supported: rules are scheduled here. For what changes in a table, create an event source mapping.")
	case in.ScheduleExpression == nil || *in.ScheduleExpression == "":
		return invalid("Parameter(s) EventPattern or ScheduleExpression must be specified.")
	case in.State != nil && *in.State != stateEnabled && *in.State != stateDisabled:
		return invalid("The state " + *in.State + " is one of rules with an EventPattern.")
	case len(in.Tags) > tagsMax:
		return invalid(msgTooManyRuleTags)
	}
	if _, err := cron.ParseRule(*in.ScheduleExpression); err != nil {
		return invalid("Parameter ScheduleExpression is not valid.")
	}
	return checkTags(in.Tags)
}
