package lifecycle

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mayflydb/mayfly/internal/constraint"
	"github.com/mayflydb/mayfly/internal/work/cron"
)

// Fault is one fault of a definition.
type Fault struct {
	Path         string // "states[1].next[0].after"; empty for a fault of the whole definition
	Line, Column int    // in the file, from 1; 0 if unknown
	Text         string
}

func (f *Fault) Error() string {
	where := f.Path
	if f.Line > 0 {
		where = fmt.Sprintf("line %d, column %d: %s", f.Line, f.Column, f.Path)
	}
	if where == "" {
		return f.Text
	}
	return strings.TrimSuffix(where, ": ") + ": " + f.Text
}

// Faults are all faults of a definition, in its order.
type Faults []*Fault

func (all Faults) Error() string {
	lines := make([]string, len(all))
	for i, f := range all {
		lines[i] = f.Error()
	}
	return strings.Join(lines, "\n")
}

const (
	statesMost     = 200
	nextMost       = 32 // transitions of a state
	attributesMost = 100
	calendarsMost  = 32
	handlerMost    = 2048
	retriesMost    = 185

	toleranceDefault = time.Minute
	historyDefault   = 90 * 24 * time.Hour
	day              = 24 * time.Hour
)

// Check returns all faults of a definition, as Faults. known returns an error for a handler's name
// or ARN that does not exist; nil accepts every handler.
func (d *Definition) Check(known func(handler string) error) error {
	_, err := d.plan(known)
	return err
}

// checker collects the faults of a definition.
type checker struct {
	*plan
	faults    Faults
	calendars map[string]*calendar
	known     func(string) error
}

func (c *checker) complain(bad bool, path, format string, args ...any) {
	if bad {
		c.faults = append(c.faults, &Fault{Path: path, Text: fmt.Sprintf(format, args...)})
	}
}

// plan checks a definition and compiles it.
func (d *Definition) plan(known func(string) error) (*plan, error) {
	if known == nil {
		known = func(string) error { return nil }
	}
	c := &checker{plan: &plan{Definition: *d, states: map[string]*stage{}}, calendars: map[string]*calendar{}, known: known}
	c.settings()
	c.readCalendars()
	c.names()
	for i := range c.States {
		c.state(fmt.Sprintf("states[%d]", i), &c.States[i])
	}
	if len(c.faults) == 0 {
		c.graph()
	}
	if len(c.faults) > 0 {
		return nil, c.faults
	}
	return c.plan, nil
}

// settings checks the settings of the whole definition.
func (c *checker) settings() {
	c.complain(!constraint.IsName(c.Name), "lifecycle", `%q is not 1 to 64 letters, digits, "-", "_" and "."`, c.Name)
	c.zone = time.UTC
	if c.Zone != "" {
		zone, err := cron.Zone(c.Zone)
		c.complain(err != nil, "zone", "%v", err)
		if err == nil {
			c.zone = zone
		}
	}
	c.complain(len(c.Attributes) > attributesMost, "attributes", "%d are too many; the limit is %d", len(c.Attributes), attributesMost)
	for _, name := range slices.Sorted(maps.Keys(c.Attributes)) {
		kind := strings.TrimSuffix(c.Attributes[name], "?")
		c.complain(!slices.Contains(kinds, kind), "attributes."+name, `%q is not one of the types %s, with or without a "?"`, c.Attributes[name], strings.Join(kinds, ", "))
		c.complain(name == "" || len(name) > 255 || reserved(name), "attributes."+name, "the names entity, part and due, and names that begin with _, are reserved")
	}
	for _, name := range slices.Sorted(maps.Keys(c.Values)) {
		_, err := Value(c.Values[name])
		c.complain(err != nil, "values."+name, "%v", err)
	}
	c.late("late", c.Late)
	read := func(into *time.Duration, path, text string, otherwise, least, most time.Duration) {
		d, err := fixed(text, otherwise, least, most)
		c.complain(err != nil, path, "%v", err)
		*into = d
	}
	read(&c.tolerance, "tolerance", c.Tolerance, toleranceDefault, time.Second, 30*day)
	read(&c.history, "history", c.History, historyDefault, 2*day, 3660*day)
	read(&c.age, "age", c.Age, day, time.Minute, day)
	if c.Retries != nil {
		c.complain(*c.Retries < 0 || *c.Retries > retriesMost, "retries", "%d is not between 0 and %d", *c.Retries, retriesMost)
	}
	c.handler("onFailure", c.OnFailure)
}

func (c *checker) late(path, late string) {
	c.complain(late != "" && late != LateAll && late != LateLast && late != LateSkip, path, "%q is not one of %s, %s, %s", late, LateAll, LateLast, LateSkip)
}

func (c *checker) handler(path, handler string) {
	if handler == "" {
		return
	}
	if len(handler) > handlerMost {
		c.complain(true, path, "%d bytes are too many; the limit is %d", len(handler), handlerMost)
		return
	}
	err := c.known(handler)
	c.complain(err != nil, path, "handler %q is unknown: %v", handler, err)
}

func (c *checker) readCalendars() {
	c.complain(len(c.Calendars) > calendarsMost, "calendars", "%d are too many; the limit is %d", len(c.Calendars), calendarsMost)
	for _, name := range slices.Sorted(maps.Keys(c.Calendars)) {
		cal := c.Calendars[name]
		c.calendars[name] = cal.read(c.zone, func(where, format string, args ...any) { c.complain(true, "calendars."+name+where, format, args...) })
	}
}

// names checks that each state has a unique name, and creates the stages.
func (c *checker) names() {
	c.complain(len(c.States) == 0, "states", "missing")
	c.complain(len(c.States) > statesMost, "states", "%d are too many; the limit is %d", len(c.States), statesMost)
	for i := range c.States {
		s, path := &c.States[i], fmt.Sprintf("states[%d].name", i)
		c.complain(!constraint.IsName(s.Name), path, `%q is not 1 to 64 letters, digits, "-", "_" and "."`, s.Name)
		c.complain(c.states[s.Name] != nil, path, "duplicate state %q", s.Name)
		c.states[s.Name] = &stage{State: s}
	}
	c.complain(c.Start != "" && c.states[c.Start] == nil, "start", "unknown state %q", c.Start)
	c.complain(len(c.Renamed) > statesMost, "renamed", "%d are too many; the limit is %d", len(c.Renamed), statesMost)
	for _, old := range slices.Sorted(maps.Keys(c.Renamed)) {
		c.complain(!constraint.IsName(old), "renamed."+old, `%q is not 1 to 64 letters, digits, "-", "_" and "."`, old)
		c.complain(c.states[old] != nil, "renamed."+old, "state %q still exists; only a removed state can be renamed", old)
		c.complain(c.states[c.Renamed[old]] == nil, "renamed."+old, "unknown state %q", c.Renamed[old])
	}
}

// state checks a state and its transitions.
func (c *checker) state(path string, s *State) {
	stage := c.states[s.Name]
	if stage.State != s {
		return // a duplicate name, already reported
	}
	c.complain(s.Remove && len(s.Next) > 0, path+".remove", "this state removes the item, so no transition can follow")
	c.complain(s.Keep != "" && (len(s.Next) > 0 || s.Remove), path+".keep", "only an end state without remove can be kept")
	c.complain(s.Remove && s.Name == c.StartState(), path+".remove", "entities begin in this state")
	keep, err := fixed(s.Keep, 0, time.Second, 3660*day)
	c.complain(err != nil, path+".keep", "%v", err)
	stage.keep = keep
	c.complain(len(s.Next) > nextMost, path+".next", "%d are too many; the limit is %d", len(s.Next), nextMost)
	for i := range s.Next {
		stage.next = append(stage.next, c.transition(fmt.Sprintf("%s.next[%d]", path, i), i, &s.Next[i]))
	}
}

func (c *checker) transition(path string, index int, t *Transition) *step {
	s := &step{Transition: t, index: index, calendar: plainCalendar(c.zone), late: t.Late}
	s.late = cmp.Or(s.late, c.Late)
	c.complain(c.states[t.To] == nil, path+".to", "unknown state %q", t.To)
	c.late(path+".late", t.Late)
	if t.Calendar != "" {
		if cal := c.calendars[t.Calendar]; cal != nil {
			s.calendar = cal
		} else {
			c.complain(true, path+".calendar", "unknown calendar %q", t.Calendar)
		}
	}
	c.attribute(path+".from", t.From)
	if name, named := strings.CutPrefix(t.After, "$"); named {
		s.attr = name
		c.attribute(path+".after", name)
		c.complain(name == "", path+".after", "$ must be followed by the name of an attribute")
	} else if t.After != "" {
		var err error
		s.after, err = parseSpan(t.After)
		c.complain(err != nil, path+".after", "%v", err)
		c.complain(err == nil && s.after.business() && t.Calendar == "", path+".after", "business time needs a calendar")
		c.complain(s.after.negative && t.From == "", path+".after", "a negative time needs from, to count back from")
		c.complain(s.after.negative && s.after.business(), path+".after", "business time cannot be negative")
	}
	if t.At != "" {
		w, err := parseWall(t.At)
		c.complain(err != nil, path+".at", "%v", err)
		s.wall = &w
		if err == nil && t.Calendar != "" && s.calendar != nil {
			never := true
			for i, on := range w.days {
				never = never && !(on && s.calendar.weekdays[i])
			}
			c.complain(never, path+".at", "calendar %q has none of these weekdays", t.Calendar)
		}
	}
	c.complain(t.Calendar != "" && !t.timed(), path+".calendar", "needs one of from, after and at")
	if t.When != "" {
		var err error
		s.guard, err = c.newGuard(t.When)
		c.complain(err != nil, path+".when", "%v", err)
	}
	c.handler(path+".handler", t.Handler)
	if t.Input != nil {
		c.complain(t.Handler == "", path+".input", "needs a handler")
		s.input = readInput(t.Input, func(where, problem string) { c.complain(true, path+".input"+where, "%s", problem) })
	}
	return s
}

// attribute checks the name of an attribute that holds an instant or a duration. Entities have only
// declared attributes.
func (c *checker) attribute(path, name string) {
	if name == "" {
		return
	}
	kind, declared := c.Attributes[name]
	c.complain(!declared, path, "attribute %q is not declared in attributes", name)
	kind = strings.TrimSuffix(kind, "?")
	c.complain(declared && kind != "S" && kind != "N", path, "attribute %q is declared %s, but a time must be S or N", name, kind)
}

// graph checks the states together: each can be reached, and no cycle has zero total delay.
func (c *checker) graph() {
	reached := map[string]bool{}
	var reach func(name string)
	reach = func(name string) {
		if reached[name] {
			return
		}
		reached[name] = true
		for _, s := range c.states[name].next {
			reach(s.To)
		}
	}
	reach(c.StartState())
	for i := range c.States {
		c.complain(!reached[c.States[i].Name], fmt.Sprintf("states[%d]", i), "state %q is unreachable: no transition leads to it from %q", c.States[i].Name, c.StartState())
	}
	c.cycles()
}

// cycles finds cycles with zero total delay. Meeting a state that is still on the path closes a
// cycle.
func (c *checker) cycles() {
	const fresh, underWay, done = 0, 1, 2
	mark, place := map[string]int{}, map[string]int{}
	for i := range c.States {
		place[c.States[i].Name] = i
	}
	var path []string
	var visit func(name string)
	visit = func(name string) {
		mark[name] = underWay
		path = append(path, name)
		for i, s := range c.states[name].next {
			if s.pauses() {
				continue
			}
			switch mark[s.To] {
			case underWay:
				round := append(slices.Clone(path[slices.Index(path, s.To):]), s.To)
				c.complain(true, fmt.Sprintf("states[%d].next[%d]", place[name], i), "the cycle %s has no delay: give one of its transitions an after above 0, or an at without from", strings.Join(round, " → "))
			case fresh:
				visit(s.To)
			}
		}
		path = path[:len(path)-1]
		mark[name] = done
	}
	for i := range c.States {
		if mark[c.States[i].Name] == fresh {
			visit(c.States[i].Name)
		}
	}
}

// FaultsOf returns the faults that an error of Check, Read or Apply consists of; nil for any other
// error.
func FaultsOf(err error) Faults {
	var all Faults
	errors.As(err, &all)
	return all
}
