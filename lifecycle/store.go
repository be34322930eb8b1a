package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"gopkg.in/yaml.v3"

	"github.com/mayflydb/mayfly/internal/constraint"
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
		if err := l.fits(ctx, p, &out); err != nil {
			return Applied{}, err
		}
	}
	if out.Unchanged = !old.deleted && old.text == file; out.Unchanged {
		out.Version = old.version
	} else if err := l.store(ctx, d.Name, definition{version: out.Version, text: file}); err != nil {
		return Applied{}, err
	}
	p.version = out.Version
	l.keep(p)
	if _, err := ensure.Table(ctx, l.o.DB, entitiesSpec(d.Name)); err != nil {
		return out, err
	}
	if old.version != 0 {
		if err := l.settle(ctx, p, &out); err != nil {
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
	return string(file), err
}

// fits counts the active entities by state. It returns *InUse if the definition drops a state with
// entities.
func (l *Lifecycles) fits(ctx context.Context, p *plan, out *Applied) error {
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

// settle applies a stored definition to three kinds of entities: those in renamed states, those
// that came meanwhile to a dropped state, and those without a next transition so far. A concurrent
// transition by the earlier definition may escape settle; the entity's next transition mends it.
func (l *Lifecycles) settle(ctx context.Context, p *plan, out *Applied) error {
	return l.each(ctx, p.Name, func(e *entity) error {
		if e.end != "" || p.states[e.state] != nil && e.problem == "" {
			return nil
		}
		var made *change
		_, err := l.change(ctx, p.Name, e.id, func(p *plan, e *entity, now time.Time) (*change, error) {
			if err := alive(e); err != nil {
				return nil, err
			}
			c := following(p, e, KindRescheduled, now)
			if c.after.state != e.state {
				c.event.Kind, c.event.From, c.event.Note = KindRenamed, e.state, fmt.Sprintf("by version %d of the definition", p.version)
			}
			if p.stepOf(e) == nil || e.problem != "" {
				c.wait(nil)
			}
			if made = c; c.event.Kind == KindRescheduled && c.after.problem == e.problem {
				return nil, errAsItWas
			}
			return c.described(), nil
		})
		switch {
		case errors.Is(err, ErrNoEntity), errors.Is(err, ErrEnded), errors.Is(err, errAsItWas):
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

// errAsItWas is the error for a change without effect.
var errAsItWas = errors.New("it is as it was")

// rescheduleAll recomputes the pending transitions of all active entities.
func (l *Lifecycles) rescheduleAll(ctx context.Context, lifecycle string, out *Applied) error {
	return l.each(ctx, lifecycle, func(e *entity) error {
		if e.end != "" {
			return nil
		}
		_, err := l.change(ctx, lifecycle, e.id, func(p *plan, e *entity, now time.Time) (*change, error) {
			if err := alive(e); err != nil {
				return nil, err
			}
			c := following(p, e, KindRescheduled, now)
			c.event.Note = fmt.Sprintf("by version %d of the definition", p.version)
			c.wait(nil)
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

// each calls f for every entity of a lifecycle.
func (l *Lifecycles) each(ctx context.Context, lifecycle string, f func(*entity) error) error {
	pages := dynamodb.NewScanPaginator(l.o.DB, &dynamodb.ScanInput{
		TableName: aws.String(EntityTable(lifecycle)), ConsistentRead: aws.Bool(true), FilterExpression: aws.String("#part = :entity"),
		ExpressionAttributeNames: map[string]string{"#part": attrPart}, ExpressionAttributeValues: Item{":entity": text(partEntity)},
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if ensure.Missing(err) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, it := range page.Items {
			if err := f(readEntity(it)); err != nil {
				return err
			}
		}
	}
	return nil
}

// definition is a stored definition.
type definition struct {
	version int64 // from 1; 0: never stored
	text    string
	deleted bool // a deleted definition keeps a version, since calls may be under way
}

// load reads a definition. It returns ErrNoLifecycle if none was ever stored.
func (l *Lifecycles) load(ctx context.Context, name string) (d definition, err error) {
	out, err := l.o.DB.GetItem(ctx, &dynamodb.GetItemInput{TableName: aws.String(TableName), Key: Item{attrName: text(name)}, ConsistentRead: aws.Bool(true)})
	if ensure.Missing(err) || err == nil && out.Item == nil {
		return d, fmt.Errorf("%w: %q", ErrNoLifecycle, name)
	}
	if err != nil {
		return d, err
	}
	return definition{numberOf(out.Item[attrVersion]), textOf(out.Item[attrText]), out.Item[attrDeleted] != nil}, nil
}

// store writes a definition if the stored version is the one before.
func (l *Lifecycles) store(ctx context.Context, name string, d definition) error {
	it := Item{attrName: text(name), attrVersion: number(d.version), attrText: text(d.text)}
	if d.deleted {
		it[attrDeleted] = millis(l.now())
	}
	in := &dynamodb.PutItemInput{
		TableName: aws.String(TableName), Item: it, ConditionExpression: aws.String("attribute_not_exists(#v)"), ExpressionAttributeNames: map[string]string{"#v": attrVersion},
	}
	if d.version > 1 {
		in.ConditionExpression, in.ExpressionAttributeValues = aws.String("#v = :v"), Item{":v": number(d.version - 1)}
	}
	_, err := l.o.DB.PutItem(ctx, in)
	var failed *types.ConditionalCheckFailedException
	if errors.As(err, &failed) {
		return fmt.Errorf("lifecycle %q was changed at the same time by another process; try again", name)
	}
	return err
}

// plan returns the compiled definition in the table. It returns ErrNoLifecycle if the definition
// does not exist or was deleted.
func (l *Lifecycles) plan(ctx context.Context, name string) (*plan, error) {
	p, err := l.planOf(ctx, name)
	if err == nil && p.deleted {
		return nil, fmt.Errorf("%w: %q", ErrNoLifecycle, name)
	}
	return p, err
}

// planOf is like plan, and also returns a deleted definition.
func (l *Lifecycles) planOf(ctx context.Context, name string) (*plan, error) {
	if !constraint.IsName(name) {
		return nil, fmt.Errorf("%w: %q", ErrNoLifecycle, name)
	}
	stored, err := l.load(ctx, name)
	if err != nil {
		return nil, err
	}
	l.plans.Lock()
	p := l.plans.byName[name]
	l.plans.Unlock()
	if p != nil && p.version == stored.version {
		return p, nil
	}
	// an unknown handler is reported when it is called
	d, err := Read(strings.NewReader(stored.text), nil)
	if err != nil {
		return nil, fmt.Errorf("lifecycle %q cannot be read from its table: %w", name, err)
	}
	if p, err = d.plan(nil); err != nil {
		return nil, err
	}
	p.version, p.deleted = stored.version, stored.deleted
	l.keep(p)
	// a process without these handlers may have applied the definition
	if l.o.Streams != nil && !p.deleted {
		for _, f := range FaultsOf(d.Check(l.handler)) {
			l.o.Logger.Warn("calls will become dead letters", "lifecycle", name, "version", p.version, "problem", f.Error())
		}
	}
	return p, nil
}

// latest reads a definition again. A missing one counts as deleted.
func (l *Lifecycles) latest(ctx context.Context, p *plan) (*plan, error) {
	now, err := l.planOf(ctx, p.Name)
	if errors.Is(err, ErrNoLifecycle) {
		gone := *p
		gone.version, gone.deleted = 0, true
		return &gone, nil
	}
	return now, err
}

// known returns the cached definition, and reads it if there is none.
func (l *Lifecycles) known(ctx context.Context, name string) (*plan, error) {
	l.plans.Lock()
	p := l.plans.byName[name]
	l.plans.Unlock()
	if p != nil {
		return p, nil
	}
	return l.planOf(ctx, name)
}

func (l *Lifecycles) keep(p *plan) {
	l.plans.Lock()
	defer l.plans.Unlock()
	l.plans.byName[p.Name] = p
}

// Definition returns the stored definition of a lifecycle and its version.
func (l *Lifecycles) Definition(ctx context.Context, name string) (Definition, int64, error) {
	p, err := l.plan(ctx, name)
	if err != nil {
		return Definition{}, 0, err
	}
	return p.Definition, p.version, nil
}

// Names returns the names of the stored lifecycles.
func (l *Lifecycles) Names(ctx context.Context) ([]string, error) { return l.names(ctx, false) }

// names is like Names. It includes deleted lifecycles if deleted is set.
func (l *Lifecycles) names(ctx context.Context, deleted bool) (names []string, err error) {
	pages := dynamodb.NewScanPaginator(l.o.DB, &dynamodb.ScanInput{
		TableName: aws.String(TableName), ConsistentRead: aws.Bool(true), ProjectionExpression: aws.String("#name, #deleted"),
		ExpressionAttributeNames: map[string]string{"#name": attrName, "#deleted": attrDeleted},
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if ensure.Missing(err) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		for _, it := range page.Items {
			if deleted || it[attrDeleted] == nil {
				names = append(names, textOf(it[attrName]))
			}
		}
	}
	slices.Sort(names)
	return names, nil
}
