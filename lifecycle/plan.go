package lifecycle

import (
	"fmt"
	"strings"
	"time"

	"github.com/mayflydb/mayfly/internal/work/template"
)

// plan is a definition that was checked, in the form in which it is followed. It does not change.
type plan struct {
	Definition
	version   int64 // of the definition in the table
	deleted   bool  // nothing happens any more; but for what is under way
	zone      *time.Location
	states    map[string]*stage
	tolerance time.Duration
	history   time.Duration
	age       time.Duration
}

// stage is a state.
type stage struct {
	*State
	next []*step
	keep time.Duration // 0: for ever
}

// step is a transition.
type step struct {
	*Transition
	index    int // in the state
	calendar *calendar
	after    span
	attr     string // where After names an attribute
	wall     *wallRule
	guard    *guard // nil: there is none
	late     string
	input    *template.Template // nil: there is none
}

// current is the name under which a state goes now.
func (p *plan) current(state string) string {
	if now, renamed := p.Renamed[state]; renamed && p.states[state] == nil {
		return now
	}
	return state
}

// stage is a state of an entity, whichever name it has there; nil: there is none.
func (p *plan) stage(state string) *stage { return p.states[p.current(state)] }

// noState is the problem of an entity in a state that there is not.
func (p *plan) noState(state string) error {
	return fmt.Errorf("version %d of the definition has no state %q; move the entity to another state", p.version, state)
}

// final reports whether nothing follows a state.
func (s *stage) final() bool { return len(s.next) == 0 }

// due is when a transition is due for an entity that came to the state at base. It is never before that.
func (s *step) due(base time.Time, of Item) (time.Time, error) {
	t := base
	if s.From != "" {
		v := of[s.From]
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
		v := of[s.attr]
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
	} else if s.Calendar != "" && (after.businessTime == 0 || after.exact != 0) { // business time may end with the business of a day
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

// pauses reports whether some time passes for certain before a transition happens: then a cycle may lead through it.
func (s *step) pauses() bool {
	if !s.timed() {
		return true // somebody moves it
	}
	if s.From != "" {
		return false // the instant may be past, the second time for certain
	}
	return s.attr != "" || s.After != "" && !s.after.zero() && !s.after.negative || s.wall != nil && s.After == ""
}

// anchored reports whether a transition is tied to an instant of the calendar: a pause does not put it off.
func (s *step) anchored() bool { return s.From != "" || s.wall != nil }

// candidate is a transition with its instant.
type candidate struct {
	*step
	at time.Time
}

// before is the order in which candidates are looked at: by their instants, and by their places in the definition.
func (c candidate) before(o candidate) bool {
	if !c.at.Equal(o.at) {
		return c.at.Before(o.at)
	}
	return c.index < o.index
}

// first is the candidate of a state that comes first behind another one; nil: there is none. Transitions whose instants cannot be told are left out, and are the problem. Where the other one
// was put off, those that it has kept waiting come with it.
func (p *plan) first(s *stage, base time.Time, of Item, behind *candidate) (first *candidate, problem error) {
	var from candidate // the place of the other one, by the definition
	if behind != nil {
		from = *behind
		if at, err := behind.due(base, of); err == nil && at.Before(from.at) {
			from.at = at
		}
	}
	for _, step := range s.next {
		if !step.timed() || behind != nil && step.index == behind.index {
			continue
		}
		at, err := step.due(base, of)
		if err != nil {
			if problem == nil {
				problem = fmt.Errorf("state %q, transition to %q: %w", s.Name, step.To, err)
			}
			continue
		}
		c := candidate{step, at}
		if behind != nil {
			if !from.before(c) {
				continue
			}
			c.at = later(c.at, behind.at)
		}
		if first == nil || c.before(*first) {
			first = &c
		}
	}
	return first, problem
}

// checkItem reports what is wrong with an entity's attributes.
func (p *plan) checkItem(of Item) error {
	for name, kind := range p.Attributes {
		kind, optional := strings.CutSuffix(kind, "?")
		switch v := of[name]; {
		case v == nil && optional:
		case v == nil:
			return fmt.Errorf("attribute %q (%s) is missing", name, kind)
		case kindOf(v) != kind:
			return fmt.Errorf("attribute %q has the type %s and must have %s", name, kindOf(v), kind)
		}
	}
	for name := range of {
		if reserved(name) {
			return fmt.Errorf("attribute %q: the names entity, part and due, and names that begin with _, are reserved", name)
		}
	}
	return nil
}

func reserved(name string) bool {
	return name == attrEntity || name == attrPart || name == attrDue || strings.HasPrefix(name, "_")
}

// own are the attributes of an entity's item that are its own.
func own(it Item) Item {
	out := make(Item, len(it))
	for name, v := range it {
		if !reserved(name) {
			out[name] = v
		}
	}
	return out
}
