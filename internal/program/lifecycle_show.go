package program

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mayflydb/mayfly/internal/when"
	"github.com/mayflydb/mayfly/lifecycle"
)

type lifecycleListCommand struct {
	JSON bool `name:"json" help:"Print JSON lines."`
	endpointFlags
}

func (lifecycleListCommand) Help() string {
	return `Example:

    mayfly lifecycle list`
}

// Run lists lifecycles.
func (c lifecycleListCommand) Run(ctx context.Context, s streams) error {
	e, l, err := c.lifecycles(ctx)
	if err != nil {
		return err
	}
	names, err := l.Names(ctx)
	if err != nil {
		return e.adviseLifecycle(err)
	}
	heading := []string{"Lifecycle", "Version", "State", "Entities", "Paused", "Cancelled", "Next (UTC)"}
	shown := listing{table: table{heading: heading}, plural: "lifecycles", json: c.JSON}
	for _, name := range names {
		d, version, err := l.Definition(ctx, name)
		if err != nil {
			return e.adviseLifecycle(err)
		}
		states := make([]string, len(d.States))
		for i := range d.States {
			states[i] = d.States[i].Name
		}
		counts := newStateCounts()
		err = l.Each(ctx, name, func(en lifecycle.Entity) error {
			if !slices.Contains(states, en.State) {
				states = append(states, en.State) // a state of an earlier version
			}
			counts.add(en)
			return nil
		})
		if err != nil {
			return e.adviseLifecycle(err)
		}
		if c.JSON {
			if err := writeJSON(s.out, map[string]any{"lifecycle": name, "version": version, "entities": counts.entities, "paused": counts.paused, "cancelled": counts.cancelled}); err != nil {
				return err
			}
			continue
		}
		for _, state := range states {
			at := ""
			if t := counts.next[state]; !t.IsZero() {
				at = when.UTC(t)
			}
			shown.add(name, fmt.Sprint(version), state, fmt.Sprint(counts.entities[state]), countText(counts.paused[state]), countText(counts.cancelled[state]), at)
		}
	}
	return shown.end(s)
}

// stateCounts counts the entities of a lifecycle by state.
type stateCounts struct {
	entities  map[string]int // all but the cancelled ones
	paused    map[string]int // of paused entities
	cancelled map[string]int
	next      map[string]time.Time // the earliest next transition
}

func newStateCounts() stateCounts {
	return stateCounts{map[string]int{}, map[string]int{}, map[string]int{}, map[string]time.Time{}}
}

func (c stateCounts) add(en lifecycle.Entity) {
	if en.Ended == lifecycle.KindCancelled {
		c.cancelled[en.State]++
		return
	}
	c.entities[en.State]++
	if !en.Paused.IsZero() {
		c.paused[en.State]++
	} else if at := c.next[en.State]; !en.Next.IsZero() && (at.IsZero() || en.Next.Before(at)) {
		c.next[en.State] = en.Next
	}
}

// countText returns a count, or nothing for 0.
func countText(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

type lifecycleShowCommand struct {
	Lifecycle string `arg:"" help:"Name of the lifecycle."`
	Entity    string `arg:"" optional:"" help:"Name of the entity. Default: show the definition and the next entities."`
	Limit     int    `help:"Most events (the latest) and entities to show, 1 to 10000." default:"100"`
	JSON      bool   `name:"json" help:"Print JSON lines."`
	endpointFlags
}

const aheadMost = 10

func (lifecycleShowCommand) Help() string {
	return `Example:

    mayfly lifecycle show trial ada
    mayfly lifecycle show trial --limit 20`
}

// Run shows an entity, or a lifecycle.
func (c lifecycleShowCommand) Run(ctx context.Context, s streams) error {
	if err := checkLimit(c.Limit); err != nil {
		return err
	}
	e, l, err := c.lifecycles(ctx)
	if err != nil {
		return err
	}
	if c.Entity == "" {
		return e.adviseLifecycle(c.showAll(ctx, s, l), c.Lifecycle)
	}
	en, err := l.Get(ctx, c.Lifecycle, c.Entity)
	gone := errors.Is(err, lifecycle.ErrNoEntity)
	if err != nil && !gone {
		return e.adviseLifecycle(err, c.Lifecycle, c.Entity)
	}
	events, err := l.History(ctx, c.Lifecycle, c.Entity)
	if err != nil {
		return e.adviseLifecycle(err, c.Lifecycle, c.Entity)
	}
	if gone && len(events) == 0 {
		return e.adviseLifecycle(fmt.Errorf("%s %q: %w", c.Lifecycle, c.Entity, lifecycle.ErrNoEntity), c.Lifecycle, c.Entity)
	}
	events = events[max(0, len(events)-c.Limit):]
	if c.JSON {
		for _, ev := range events {
			if err := writeJSON(s.out, eventJSON(c.Entity, ev)); err != nil {
				return err
			}
		}
		if gone {
			return nil
		}
		return c.nowJSON(ctx, s, e, l, en)
	}
	shown := table{heading: []string{"Time (UTC)", "Event", "State", "Late", "Calls", "Note"}}
	for _, ev := range events {
		state, late, calls := ev.To, "", ev.Handler
		if ev.From != ev.To && ev.From != "" {
			state = ev.From + " → " + ev.To
		}
		if d := ev.Lateness(); d > 0 {
			late = span(d).String()
		}
		if ev.Handler != "" {
			calls += ": " + cmp.Or(ev.Outcome, "under way")
		}
		shown.add(when.UTC(ev.At), ev.Kind, state, late, calls, ev.Note)
	}
	if err := shown.write(s.out); err != nil {
		return err
	}
	if gone {
		_, err = fmt.Fprintln(s.out, "\nit is gone")
		return err
	}
	return c.showNow(ctx, s, e, l, en)
}

// showNow prints an entity's present state and its next transition.
func (c lifecycleShowCommand) showNow(ctx context.Context, s streams, e *endpoint, l *lifecycle.Lifecycles, en lifecycle.Entity) error {
	now := e.now(ctx)
	fmt.Fprintf(s.out, "\nstate %s since %s\n", en.State, when.UTC(en.Since))
	if en.Problem != "" {
		fmt.Fprintf(s.out, "it has a problem: %s\n", oneLine(en.Problem))
		fmt.Fprintf(s.out, "next: move it with mayfly lifecycle move %[1]s %[2]s STATE, or change its attributes with mayfly lifecycle set; mayfly lifecycle show %[1]s lists the states\n", c.Lifecycle, en.ID)
	}
	switch {
	case en.Ended != "":
		fmt.Fprintf(s.out, "its lifecycle has ended (%s)\n", en.Ended)
		return nil
	case !en.Paused.IsZero():
		fmt.Fprintf(s.out, "paused since %s, with %s left until %s\n", when.UTC(en.Paused), when.Until(en.Next.Sub(en.Paused)), cmp.Or(en.NextTo, "nothing"))
		return nil
	case en.Next.IsZero():
		if en.Problem == "" {
			fmt.Fprintln(s.out, "no next transition: it waits for mayfly lifecycle move")
		}
		return nil
	}
	ahead, err := l.Ahead(ctx, c.Lifecycle, c.Entity, aheadMost)
	if err != nil {
		return e.adviseLifecycle(err, c.Lifecycle, c.Entity)
	}
	shown := table{heading: []string{"Next (UTC)", "In", "State", "If", "Calls"}}
	for _, a := range ahead {
		calls := a.Handler
		if a.Input != "" {
			calls += " with " + shortened(a.Input, inputWide)
		}
		shown.add(when.UTC(a.At), when.Until(a.At.Sub(now).Round(time.Millisecond)), a.To, a.When, calls)
	}
	return shown.write(s.out)
}

const inputWide = 60 // maximum number of letters of an input

// nowJSON prints the same as showNow in JSON, after the lines of events.
func (c lifecycleShowCommand) nowJSON(ctx context.Context, s streams, e *endpoint, l *lifecycle.Lifecycles, en lifecycle.Entity) error {
	line := entityJSON(en)
	ahead, err := l.Ahead(ctx, c.Lifecycle, c.Entity, aheadMost)
	if err != nil && !errors.Is(err, lifecycle.ErrNoLifecycle) {
		return e.adviseLifecycle(err, c.Lifecycle, c.Entity)
	}
	all := make([]map[string]any, len(ahead))
	for i, a := range ahead {
		all[i] = map[string]any{"at": wireTimeOf(a.At), "to": a.To}
		addTexts(all[i], map[string]string{"if": a.When, "handler": a.Handler, "input": a.Input})
	}
	line["ahead"] = all
	return writeJSON(s.out, line)
}

// entityJSON returns the JSON object of an entity.
func entityJSON(en lifecycle.Entity) map[string]any {
	line := map[string]any{"entity": en.ID, "state": en.State, "since": wireTimeOf(en.Since), "generation": en.Generation}
	addTimes(line, map[string]time.Time{"next": en.Next, "paused": en.Paused})
	addTexts(line, map[string]string{"nextTo": en.NextTo, "ended": en.Ended, "problem": en.Problem})
	return line
}

// addTimes adds the times that are set to a JSON object.
func addTimes(line map[string]any, times map[string]time.Time) {
	for name, t := range times {
		if !t.IsZero() {
			line[name] = wireTimeOf(t)
		}
	}
}

// addTexts adds the texts that are not empty to a JSON object.
func addTexts(line map[string]any, texts map[string]string) {
	for name, text := range texts {
		if text != "" {
			line[name] = text
		}
	}
}

// showAll draws the definition and lists the entities with the next transitions.
func (c lifecycleShowCommand) showAll(ctx context.Context, s streams, l *lifecycle.Lifecycles) error {
	d, version, err := l.Definition(ctx, c.Lifecycle)
	if err != nil {
		return err
	}
	first := firstRows[lifecycle.Entity]{limit: c.Limit, before: func(a, b *lifecycle.Entity) bool {
		if a.Next.IsZero() != b.Next.IsZero() {
			return b.Next.IsZero()
		}
		return cmp.Or(a.Next.Compare(b.Next), strings.Compare(a.ID, b.ID)) < 0
	}}
	err = l.Each(ctx, c.Lifecycle, func(en lifecycle.Entity) error {
		first.add(en)
		return nil
	})
	if err != nil {
		return err
	}
	if !c.JSON {
		fmt.Fprintf(s.out, "%s\nversion %d\n\n", strings.TrimRight(d.Text(), "\n"), version)
	}
	heading := []string{"Entity", "State", "Since (UTC)", "Next", "When (UTC)", ""}
	shown := listing{table: table{heading: heading}, json: c.JSON}
	for _, en := range first.sorted() {
		at, mark := "", cmp.Or(en.Ended, en.Problem)
		if !en.Next.IsZero() {
			at = when.UTC(en.Next)
		}
		if !en.Paused.IsZero() {
			mark = "paused"
		}
		if err := shown.show(s, entityJSON(en), en.ID, en.State, when.UTC(en.Since), en.NextTo, at, mark); err != nil {
			return err
		}
	}
	return shown.end(s)
}

// eventJSON returns the JSON object of an event.
func eventJSON(id string, ev lifecycle.Event) map[string]any {
	line := map[string]any{"entity": id, "generation": ev.Generation, "event": ev.Kind, "from": ev.From, "to": ev.To, "at": wireTimeOf(ev.At)}
	addTimes(line, map[string]time.Time{"due": ev.Due, "next": ev.Next})
	addTexts(line, map[string]string{"nextTo": ev.NextTo, "handler": ev.Handler, "id": ev.ID, "outcome": ev.Outcome, "note": ev.Note})
	return line
}
