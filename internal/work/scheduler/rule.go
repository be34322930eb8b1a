package scheduler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mayflydb/mayfly/internal/work/cron"
	"github.com/mayflydb/mayfly/internal/work/items"
)

// A classic rule is stored like a schedule, in one table for all rules. Its targets are part of it:
// when they change, so does its next firing. A rule that is disabled, or has no targets, has no
// firing.

// rule is the document of a rule in its definition and firings, in JSON.
type rule struct {
	Expression  string
	State       string
	Description string            `json:",omitempty"`
	RoleArn     string            `json:",omitempty"`
	Targets     []RuleTarget      `json:",omitempty"`
	Tags        map[string]string `json:",omitempty"`
	Anchor      int64             // start of a rate: ms since 1970, a full minute
}

func readRule(text string) (*rule, timing, error) {
	r := &rule{}
	if err := json.Unmarshal([]byte(text), r); err != nil {
		return nil, timing{}, fmt.Errorf("read a rule: %w", err)
	}
	expression, err := cron.ParseRule(r.Expression)
	if err != nil {
		return nil, timing{}, fmt.Errorf("read a rule: %w", err)
	}
	if slices.ContainsFunc(r.Targets, func(t RuleTarget) bool { return t.Id == nil || t.Arn == nil }) {
		return nil, timing{}, errors.New("read a rule: a target has no id or no ARN")
	}
	return r, timing{expression: expression, anchor: time.UnixMilli(r.Anchor).UTC()}, nil
}

const busDefault = "default"

func (s *Scheduler) ruleARN(name string) string { return s.arnPrefix("events") + "rule/" + name }

func noRule(name string) error {
	return notFound("Rule " + name + " does not exist on EventBus " + busDefault + ".")
}

// checkBus refuses every bus except the default one, the only one with schedules.
func checkBus(name *string) error {
	if name == nil || *name == busDefault {
		return nil
	}
	if a, ok := parseARN(*name); ok && a.resource == "event-bus/"+busDefault {
		return nil
	}
	return notFound("Event bus " + *name + " does not exist.")
}

// alterRule changes a rule, or creates it if create is set. alter gets the present rule, with an
// empty state if it is new. The first firing of the result is its first occurrence from now on.
func (s *Scheduler) alterRule(ctx context.Context, name string, create bool, alter func(*rule) error) error {
	work := func() error {
		return s.retryChange(ctx, "Rule "+name, func(missing bool) error { return s.alterRuleOnce(ctx, name, create, missing, alter) })
	}
	err := work()
	if noTable(err) {
		if !create {
			return noRule(name)
		}
		if err = s.makeTable(ctx, rulesPlace); err == nil {
			s.awaitOpen(ctx, rulesPlace)
			err = work()
		}
	}
	return apiError(err)
}

func (s *Scheduler) alterRuleOnce(ctx context.Context, name string, create, missing bool, alter func(*rule) error) error {
	before, err := s.entry(ctx, rulesTable, name)
	if err != nil {
		return err
	}
	now := s.now()
	r, wasTiming := &rule{Anchor: now.Truncate(time.Minute).UnixMilli()}, timing{}
	switch {
	case before != nil:
		if r, wasTiming, err = readRule(before.document); err != nil {
			return err
		}
	case !create:
		return noRule(name)
	default:
		if err := s.roomForRule(ctx); err != nil {
			return err
		}
	}
	expression := r.Expression
	if err := alter(r); err != nil {
		return err
	}
	if r.Expression != expression {
		r.Anchor = now.Truncate(time.Minute).UnixMilli()
	}
	after := &entry{edition: edition{name: name, incarnation: newIncarnation(), version: 1}, created: now, modified: now}
	if before != nil {
		copied := *before
		after = &copied
		after.version++
		after.next, after.modified = time.Time{}, now
		after.keepTail(before, wasTiming, now)
	}
	after.document, after.state = string(mustJSON(r)), r.State
	if err := after.checkSize(); err != nil {
		return err
	}
	var f *firing
	if r.State == stateEnabled && len(r.Targets) > 0 {
		_, t, err := readRule(after.document)
		if err != nil {
			return err
		}
		if occurrence, ok := t.after(now); ok {
			f = after.arm(t, occurrence, now)
		}
	}
	if before != nil {
		return s.apply(ctx, &change{table: rulesTable, before: before, after: after, firing: f, now: now, missing: missing})
	}
	actions := []action{items.Put(rulesTable, after.item(), absent())}
	if f != nil {
		actions = append(actions, items.Put(rulesTable, f.item(), nil))
	}
	if refusal, err := s.transact(ctx, actions); refusal == nil {
		return err
	}
	return errChanged
}

// roomForRule refuses a rule beyond the maximum.
func (s *Scheduler) roomForRule(ctx context.Context) error {
	all, err := s.rules(ctx, "")
	if err == nil && len(all) >= s.o.RulesMax {
		return limitExceeded("The requested resource exceeds the maximum number allowed.")
	}
	return err
}

// ruleNamed reads a rule.
func (s *Scheduler) ruleNamed(ctx context.Context, name string) (*rule, error) {
	e, err := s.entry(ctx, rulesTable, name)
	if err == nil && e == nil || noTable(err) {
		return nil, noRule(name)
	}
	if err != nil {
		return nil, apiError(err)
	}
	r, _, err := readRule(e.document)
	return r, err
}

// namedRule is a rule with its name.
type namedRule struct {
	name string
	*rule
}

// rules reads all rules with a prefix, sorted by name. There are at most a few hundred.
func (s *Scheduler) rules(ctx context.Context, prefix string) ([]namedRule, error) {
	var all []namedRule
	for it, err := range items.Query(ctx, s.o.DB, s.byName(rulesTable, prefix, "")) {
		if err != nil {
			return nil, err
		}
		e, err := readEntry(it)
		if err != nil {
			return nil, err
		}
		r, _, err := readRule(e.document)
		if err != nil {
			return nil, err
		}
		all = append(all, namedRule{e.name, r})
	}
	return all, nil
}

func (s *Scheduler) describeRule(name string, r *rule) Rule {
	return Rule{
		Name: name, Arn: s.ruleARN(name), State: r.State, ScheduleExpression: r.Expression, Description: r.Description, RoleArn: r.RoleArn,
		EventBusName: busDefault,
	}
}
