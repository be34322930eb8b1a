package lifecycle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/mayflydb/mayfly/internal/work/ensure"
)

// Applied is the result of Apply.
type Applied struct {
	Version   int64          // of the definition, from 1
	Unchanged bool           // the stored definition was equal
	Entities  map[string]int // active entities by state
	Renamed   int            // entities whose state was renamed
	// entities that came meanwhile to a state that the definition dropped, and wait there for Move
	Stuck       int
	Rescheduled int // entities with a new pending transition
	// names of the first 100 unchanged entities: their items would be larger than an item may be
	Full []string
}

const fullMost = 100

// full records an entity that cannot be changed, if err says so, and reports whether it does.
func (a *Applied) full(id string, err error) bool {
	if !impossible(err) {
		return false
	}
	if len(a.Full) < fullMost && !slices.Contains(a.Full, id) {
		a.Full = append(a.Full, id)
	}
	return true
}

// ApplyOptions control the effect of Apply on active entities.
type ApplyOptions struct {
	// Reschedule recomputes the pending transition of each entity, from the instant at which it
	// came to its state. By default a pending transition stays, and the new definition applies from
	// the entity's next change on.
	Reschedule bool
}

// InUse is the error for a definition that drops states with entities in them. States has the
// number of entities in each.
type InUse struct{ States map[string]int }

func (e *InUse) Error() string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(e.States)) {
		all = append(all, fmt.Sprintf("%q (%d)", name, e.States[name]))
	}
	return "entities are in states that the new definition lacks: " + strings.Join(all, ", ")
}

// Apply stores a definition, or replaces the definition of its name. It returns Faults for an
// invalid definition, and *InUse if a dropped state has entities. Other processes use the new
// definition from their next transition on.
//
// Entities of a renamed state continue in the new one. A pending transition stays if the new state
// has one to the same target, and is recomputed otherwise.
func (l *Lifecycles) Apply(ctx context.Context, d Definition, o ApplyOptions) (Applied, error) {
	p, err := d.plan(l.handler)
	if err != nil {
		return Applied{}, err
	}
	file, err := d.file()
	if err != nil {
		return Applied{}, fmt.Errorf("lifecycle %q: %w", d.Name, err)
	}
	if _, err := ensure.Table(ctx, l.o.DB, definitionsSpec); err != nil {
		return Applied{}, err
	}
	old, err := l.load(ctx, d.Name)
	if err != nil && !errors.Is(err, ErrNoLifecycle) {
		return Applied{}, err
	}
	if old.deleted {
		// left by a deletion that was interrupted
		if err := l.cancelAll(ctx, d.Name, func(int) {}); err != nil {
			return Applied{}, err
		}
	}
	out := Applied{Version: old.version + 1, Entities: map[string]int{}}
	if old.version != 0 {
		if err := l.countEntities(ctx, p, &out); err != nil {
			return Applied{}, err
		}
	}
	if out.Unchanged = !old.deleted && old.text == file; out.Unchanged {
		out.Version = old.version
	} else if err := l.store(ctx, d.Name, definition{version: out.Version, text: file}); err != nil {
		return Applied{}, err
	}
	p.version = out.Version
	l.cachePlan(p)
	if _, err := ensure.Table(ctx, l.o.DB, entitiesSpec(d.Name)); err != nil {
		return out, err
	}
	if old.version != 0 {
		if err := l.migrate(ctx, p, &out); err != nil {
			return out, err
		}
	}
	if o.Reschedule {
		if err = l.rescheduleAll(ctx, d.Name, &out); err != nil {
			return out, err
		}
	}
	return out, l.runner.follow(ctx, d.Name)
}

// file returns the stored form of a definition: YAML.
func (d Definition) file() (string, error) {
	d.States = slices.Clone(d.States)
	for i := range d.States {
		s := &d.States[i]
		s.Next = slices.Clone(s.Next)
		for j := range s.Next {
			var err error
			if s.Next[j].Input, err = plainInput(s.Next[j].Input); err != nil {
				return "", err
			}
		}
	}
	file, err := yaml.Marshal(&d)
	if err != nil || readAs(file, file) == nil {
		return string(file), err
	}
	// The encoder indents a text of several lines wrongly if it begins with white space. Within
	// braces it writes quotation marks instead.
	braces, err := yaml.Marshal(struct {
		Braces *Definition `yaml:"d,flow"`
	}{&d})
	braces = bytes.TrimPrefix(braces, []byte("d: "))
	if err == nil {
		err = readAs(braces, file) // an attribute named "<<" stays unreadable
	}
	return string(braces), err
}

// readAs returns an error unless a stored definition is read as the one whose usual form is want.
func readAs(file, want []byte) error {
	var d Definition
	if err := yaml.Unmarshal(file, &d); err != nil {
		return err
	}
	got, err := yaml.Marshal(&d)
	if err == nil && !bytes.Equal(got, want) {
		err = errors.New("the definition has a text that YAML cannot store")
	}
	return err
}

// countEntities counts the active entities by state. It returns *InUse if the definition drops a
// state with entities.
func (l *Lifecycles) countEntities(ctx context.Context, p *plan, out *Applied) error {
	missing := map[string]int{}
	err := l.each(ctx, p.Name, func(e *entity) error {
		if e.end != "" {
			return nil
		}
		out.Entities[p.current(e.state)]++
		if p.stage(e.state) == nil {
			missing[e.state]++
		}
		return nil
	})
	if err == nil && len(missing) > 0 {
		return &InUse{missing}
	}
	return err
}

// migrate applies a stored definition to three kinds of entities: those in renamed states, those
// that came meanwhile to a dropped state, and those without a next transition so far. A concurrent
// transition by the earlier definition may bring another entity there; its next transition applies
// the new definition.
func (l *Lifecycles) migrate(ctx context.Context, p *plan, out *Applied) error {
	return l.each(ctx, p.Name, func(e *entity) error {
		if e.end != "" || p.states[e.state] != nil && e.problem == "" {
			return nil
		}
		var made *change
		_, err := l.alter(ctx, p.Name, e.id, func(p *plan, e *entity, now time.Time) (*change, error) {
			c := following(p, e, KindRescheduled, now)
			if c.after.state != e.state {
				c.event.Kind, c.event.From, c.event.Note = KindRenamed, e.state, fmt.Sprintf("by version %d of the definition", p.version)
			}
			if p.stepOf(e) == nil || e.problem != "" {
				c.setNext(nil)
			}
			if made = c; c.event.Kind == KindRescheduled && c.after.problem == e.problem {
				return nil, errNoEffect
			}
			return c.described(), nil
		})
		switch {
		case errors.Is(err, ErrNoEntity), errors.Is(err, ErrEnded), errors.Is(err, errNoEffect):
			return nil // changed meanwhile
		case out.full(e.id, err):
			return nil // this entity does not hold up the others
		case err != nil:
			return err
		}
		if made.event.Kind == KindRenamed {
			out.Renamed++
		}
		if made.after.problem != "" {
			out.Stuck++
		}
		return nil
	})
}

// errNoEffect is the error for a change without effect.
var errNoEffect = errors.New("it is as it was")

// rescheduleAll recomputes the pending transitions of all active entities.
func (l *Lifecycles) rescheduleAll(ctx context.Context, lifecycle string, out *Applied) error {
	return l.each(ctx, lifecycle, func(e *entity) error {
		if e.end != "" {
			return nil
		}
		_, err := l.alter(ctx, lifecycle, e.id, func(p *plan, e *entity, now time.Time) (*change, error) {
			c := following(p, e, KindRescheduled, now)
			c.event.Note = fmt.Sprintf("by version %d of the definition", p.version)
			c.setNext(nil)
			return c.described(), nil
		})
		switch {
		case errors.Is(err, ErrNoEntity), errors.Is(err, ErrEnded):
			return nil // changed meanwhile
		case out.full(e.id, err):
			return nil
		case err == nil:
			out.Rescheduled++
		}
		return err
	})
}
