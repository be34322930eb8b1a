package lifecycle

import (
	"fmt"
	"strings"
	"time"

	"github.com/mayflydb/mayfly/internal/work/template"
)

// plan is a checked and compiled definition. It is immutable.
type plan struct {
	Definition
	version   int64 // of the definition in the table
	deleted   bool  // no transition happens any longer; calls under way continue
	zone      *time.Location
	states    map[string]*stage
	tolerance time.Duration
	history   time.Duration
	age       time.Duration
}

// stage is a compiled state.
type stage struct {
	*State
	next []*step
	keep time.Duration // 0: for ever
}

// step is a compiled transition.
type step struct {
	*Transition
	index    int // in the state
	calendar *calendar
	after    span
	attr     string // the attribute that After names
	wall     *wallRule
	guard    *guard // nil: no condition
	late     string
	input    *template.Template // nil: no input
}

// current returns the present name of a state.
func (p *plan) current(state string) string {
	if now, renamed := p.Renamed[state]; renamed && p.states[state] == nil {
		return now
	}
	return state
}

// stage returns the stage of a state under its present or an earlier name, or nil.
func (p *plan) stage(state string) *stage { return p.states[p.current(state)] }

// noState returns the problem of an entity in an unknown state.
func (p *plan) noState(state string) error {
	return fmt.Errorf("version %d of the definition has no state %q; move the entity to another state", p.version, state)
}

// final reports whether the state has no transitions.
func (s *stage) final() bool { return len(s.next) == 0 }

// due returns the instant of a transition for an entity that came to the state at base. The instant
// is never before base.
func (s *step) due(base time.Time, attributes Item) (time.Time, error) {
	t := base
	if s.From != "" {
		v := attributes[s.From]
		if v == nil {
			return t, fmt.Errorf("attribute %q, the time of the transition, is missing", s.From)
		}
		var err error
		if t, err = instantOf(v); err != nil {
			return t, fmt.Errorf("attribute %q: %w", s.From, err)
		}
	}
	after := s.after
	if s.attr != "" {
		v := attributes[s.attr]
		if v == nil {
			return t, fmt.Errorf("attribute %q, the time to wait, is missing", s.attr)
		}
		var err error
		if after, err = spanOf(v); err != nil {
			return t, fmt.Errorf("attribute %q: %w", s.attr, err)
		}
		if after.business() && s.Calendar == "" {
			return t, fmt.Errorf("attribute %q: business time needs a calendar", s.attr)
		}
	}
	t = s.calendar.add(t, after)
	if s.wall != nil {
		t = s.calendar.next(t, *s.wall, s.From == "" && s.After == "")
		// business time may end at the close of a day
	} else if s.Calendar != "" && (after.businessTime == 0 || after.exact != 0) {
		t, _ = s.calendar.open(t)
	}
	if t.Before(base) {
		t = base
	}
	if t.After(latest) {
		return t, fmt.Errorf("the time would be after the year 9999")
	}
	return ceil(t), nil
}

// pauses reports whether the transition always takes some time. Such a transition may be part of a
// cycle.
func (s *step) pauses() bool {
	if !s.timed() {
		return true // a client must call Move
	}
	if s.From != "" {
		return false // the instant may have passed, and has at the second round
	}
	return s.attr != "" || s.After != "" && !s.after.zero() && !s.after.negative || s.wall != nil && s.After == ""
}

// anchored reports whether a transition is bound to a calendar instant. A pause does not delay such
// a transition.
func (s *step) anchored() bool { return s.From != "" || s.wall != nil }

// candidate is a transition with its instant.
type candidate struct {
	*step
	at time.Time
}

// before reports whether c comes before o: by instant, then by place in the definition.
func (c candidate) before(o candidate) bool {
	if !c.at.Equal(o.at) {
		return c.at.Before(o.at)
	}
	return c.index < o.index
}

// first returns the earliest candidate of a state, or nil; with after, the earliest one that comes
// after it. It skips transitions whose instants cannot be computed, and returns the reason as
// problem. If after was rescheduled, the candidates that it delayed count as well.
func (p *plan) first(s *stage, base time.Time, attributes Item, after *candidate) (first *candidate, problem error) {
	var from candidate // the place of after by the definition, without Reschedule
	if after != nil {
		from = *after
		if at, err := after.due(base, attributes); err == nil && at.Before(from.at) {
			from.at = at
		}
	}
	for _, step := range s.next {
		if !step.timed() || after != nil && step.index == after.index {
			continue
		}
		at, err := step.due(base, attributes)
		if err != nil {
			if problem == nil {
				problem = fmt.Errorf("state %q, transition to %q: %w", s.Name, step.To, err)
			}
			continue
		}
		c := candidate{step, at}
		if after != nil {
			if !from.before(c) {
				continue
			}
			c.at = later(c.at, after.at)
		}
		if first == nil || c.before(*first) {
			first = &c
		}
	}
	return first, problem
}

// checkItem returns the fault of an entity's attributes, or nil.
func (p *plan) checkItem(attributes Item) error {
	for name, kind := range p.Attributes {
		kind, optional := strings.CutSuffix(kind, "?")
		switch v := attributes[name]; {
		case v == nil && optional:
		case v == nil:
			return fmt.Errorf("attribute %q (%s) is missing", name, kind)
		case kindOf(v) != kind:
			return fmt.Errorf("attribute %q has the type %s and must have %s", name, kindOf(v), kind)
		}
	}
	for name := range attributes {
		if reserved(name) {
			return fmt.Errorf("attribute %q: the names entity, part and due, and names that begin with _, are reserved", name)
		}
	}
	return nil
}
