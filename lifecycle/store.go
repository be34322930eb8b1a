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

// Applied is what came of Apply.
type Applied struct {
	Version     int64          // of the definition, from 1
	Unchanged   bool           // it was so already
	Entities    map[string]int // under way, by their states
	Renamed     int            // of them: they are in states now that have taken the place of theirs
	Stuck       int            // of them: while the definition was applied they came to states that it does not have, and wait there to be moved
	Rescheduled int            // of them
	Full        []string       // of them, by name, the first 100: their items would be larger than an item may be, so they stay as they were
}

const fullMost = 100

// full notes that an entity cannot be changed, and reports whether that is what an error says.
func (a *Applied) full(id string, err error) bool {
	if !impossible(err) {
		return false
	}
	if len(a.Full) < fullMost && !slices.Contains(a.Full, id) {
		a.Full = append(a.Full, id)
	}
	return true
}

// ApplyOptions say what becomes of entities that are under way.
type ApplyOptions struct {
	// Reschedule finds the pending transition of each entity anew, from when it came to its state. Default: what is pending stays as it is, and the new definition holds from each
	// entity's next change on.
	Reschedule bool
}

// InUse says that a definition cannot take the place of another: entities are in states that it does not have, and that have no other name in it.
type InUse struct{ States map[string]int }

func (e *InUse) Error() string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(e.States)) {
		all = append(all, fmt.Sprintf("%q (%d)", name, e.States[name]))
	}
	return "entities are in states that the new definition lacks: " + strings.Join(all, ", ")
}

// Apply stores a definition, or puts it in the place of the one of its name. It is checked first; Faults, *InUse. Where others run the lifecycle, they go by it from the next
// transition on. Entities in a state that was renamed go on in the one that has taken its place: their pending transition stays where that has one to the same state, and is found
// anew otherwise.
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
		if err := l.cancelAll(ctx, d.Name, func(int) {}); err != nil { // that a deletion has left, because it was broken off
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

// file is a definition as it is stored: as YAML.
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

// fits counts the entities under way by their states. *InUse where a definition cannot be theirs.
func (l *Lifecycles) fits(ctx context.Context, p *plan, out *Applied) error {
	missing := map[string]int{}
	err := l.each(ctx, p.Name, func(e *entity) error {
		if e.ended != "" {
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

// settle makes entities follow a definition that has been stored: those in a renamed state, those that have come meanwhile to a state that it does not have, by the definition before, and
// those for which nothing could be found before. Whoever makes a transition by the definition before even now has its entity mended when it is due next.
func (l *Lifecycles) settle(ctx context.Context, p *plan, out *Applied) error {
	return l.each(ctx, p.Name, func(e *entity) error {
		if e.ended != "" || p.states[e.state] != nil && e.problem == "" {
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
			return c.told(), nil
		})
		switch {
		case errors.Is(err, ErrNoEntity), errors.Is(err, ErrEnded), errors.Is(err, errAsItWas):
			return nil // meanwhile
		case out.full(e.id, err):
			return nil // it does not hold up the others
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

// errAsItWas says that there is nothing to change.
var errAsItWas = errors.New("it is as it was")

// rescheduleAll finds what is pending anew, for all entities under way.
func (l *Lifecycles) rescheduleAll(ctx context.Context, lifecycle string, out *Applied) error {
	return l.each(ctx, lifecycle, func(e *entity) error {
		if e.ended != "" {
			return nil
		}
		_, err := l.change(ctx, lifecycle, e.id, func(p *plan, e *entity, now time.Time) (*change, error) {
			if err := alive(e); err != nil {
				return nil, err
			}
			c := following(p, e, KindRescheduled, now)
			c.event.Note = fmt.Sprintf("by version %d of the definition", p.version)
			c.wait(nil)
			return c.told(), nil
		})
		switch {
		case errors.Is(err, ErrNoEntity), errors.Is(err, ErrEnded):
			return nil // meanwhile
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

// definition is one as it is in the table.
type definition struct {
	version int64 // from 1; 0: there is none
	text    string
	deleted bool // what was deleted stays, with a version of its own: calls may be under way
}

// load reads a definition. ErrNoLifecycle where there never was one.
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

// store writes a definition, if the one that is there is the version before.
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

// plan gives a definition as it is in the table. ErrNoLifecycle, also where it was deleted.
func (l *Lifecycles) plan(ctx context.Context, name string) (*plan, error) {
	p, err := l.planOf(ctx, name)
	if err == nil && p.deleted {
		return nil, fmt.Errorf("%w: %q", ErrNoLifecycle, name)
	}
	return p, err
}

// planOf is plan, for a definition that was deleted as well.
func (l *Lifecycles) planOf(ctx context.Context, name string) (*plan, error) {
	if !constraint.IsName(name) {
		return nil, fmt.Errorf("%w: %q", ErrNoLifecycle, name)
	}
	is, err := l.load(ctx, name)
	if err != nil {
		return nil, err
	}
	l.plans.Lock()
	p := l.plans.byName[name]
	l.plans.Unlock()
	if p != nil && p.version == is.version {
		return p, nil
	}
	d, err := Read(strings.NewReader(is.text), nil) // whether there is a handler is seen when it is called
	if err != nil {
		return nil, fmt.Errorf("lifecycle %q cannot be read from its table: %w", name, err)
	}
	if p, err = d.plan(nil); err != nil {
		return nil, err
	}
	p.version, p.deleted = is.version, is.deleted
	l.keep(p)
	if l.o.Streams != nil && !p.deleted { // it may have been applied by somebody who does not know the handlers here
		for _, f := range FaultsOf(d.Check(l.handler)) {
			l.o.Logger.Warn("calls will become dead letters", "lifecycle", name, "version", p.version, "problem", f.Error())
		}
	}
	return p, nil
}

// latest is a definition as it is now; one that is gone counts as deleted.
func (l *Lifecycles) latest(ctx context.Context, p *plan) (*plan, error) {
	now, err := l.planOf(ctx, p.Name)
	if errors.Is(err, ErrNoLifecycle) {
		gone := *p
		gone.version, gone.deleted = 0, true
		return &gone, nil
	}
	return now, err
}

// known gives a definition as it was last read.
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

// Definition gives a definition as it is in the table, and its version.
func (l *Lifecycles) Definition(ctx context.Context, name string) (Definition, int64, error) {
	p, err := l.plan(ctx, name)
	if err != nil {
		return Definition{}, 0, err
	}
	return p.Definition, p.version, nil
}

// Names lists the lifecycles that are in the table.
func (l *Lifecycles) Names(ctx context.Context) ([]string, error) { return l.names(ctx, false) }

// names is Names, with those that were deleted where that is asked for.
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
