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

	"github.com/mayflydb/mayfly/internal/ensure"
)

// Applied is what came of Apply.
type Applied struct {
	Version     int64          // of the definition, from 1
	Unchanged   bool           // it was so already
	Entities    map[string]int // under way, by their states
	Rescheduled int            // of them
}

// ApplyOptions say what becomes of entities that are under way.
type ApplyOptions struct {
	// Reschedule finds the pending transition of each entity anew, from when it came to its state. Default: what is pending stays as it is, and the new definition holds from each
	// entity's next change on.
	Reschedule bool
}

// InUse says that a definition cannot take the place of another: entities are in states that it does not have.
type InUse struct{ States map[string]int }

func (e *InUse) Error() string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(e.States)) {
		all = append(all, fmt.Sprintf("%q (%d)", name, e.States[name]))
	}
	return "entities are in states that the definition does not have: " + strings.Join(all, ", ")
}

// Apply stores a definition, or puts it in the place of the one of its name. It is checked first; Faults, *InUse. Where others run the lifecycle, they go by it from the next
// transition on.
func (l *Lifecycles) Apply(ctx context.Context, d Definition, o ApplyOptions) (Applied, error) {
	p, err := d.plan(l.handler)
	if err != nil {
		return Applied{}, err
	}
	file, err := yaml.Marshal(&d)
	if err != nil {
		return Applied{}, fmt.Errorf("lifecycle %q: %w", d.Name, err)
	}
	if _, err := ensure.Table(ctx, l.o.DB, definitionsSpec); err != nil {
		return Applied{}, err
	}
	old, oldText, err := l.load(ctx, d.Name)
	if err != nil && !errors.Is(err, ErrNoLifecycle) {
		return Applied{}, err
	}
	out := Applied{Version: 1, Entities: map[string]int{}}
	condition, names, values := "attribute_not_exists(#v)", map[string]string{"#v": attrVersion}, Item(nil)
	if old != 0 {
		out.Version = old + 1
		condition, values = "#v = :v", Item{":v": number(old)}
		missing := map[string]int{}
		err := l.each(ctx, d.Name, func(e *entity) error {
			if e.ended != "" {
				return nil
			}
			out.Entities[e.state]++
			if p.states[e.state] == nil {
				missing[e.state]++
			}
			return nil
		})
		if err != nil {
			return Applied{}, err
		}
		if len(missing) > 0 {
			return Applied{}, &InUse{missing}
		}
	}
	if out.Unchanged = old != 0 && oldText == string(file); out.Unchanged {
		out.Version = old
	} else {
		_, err = l.o.DB.PutItem(ctx, &dynamodb.PutItemInput{
			TableName: aws.String(TableName), Item: Item{attrName: text(d.Name), attrVersion: number(out.Version), attrText: text(string(file))},
			ConditionExpression: &condition, ExpressionAttributeNames: names, ExpressionAttributeValues: values,
		})
		var failed *types.ConditionalCheckFailedException
		if errors.As(err, &failed) {
			return Applied{}, fmt.Errorf("lifecycle %q: somebody else has changed it at the same time", d.Name)
		}
		if err != nil {
			return Applied{}, err
		}
	}
	p.version = out.Version
	l.keep(p)
	if _, err := ensure.Table(ctx, l.o.DB, entitiesSpec(d.Name)); err != nil {
		return out, err
	}
	if o.Reschedule {
		if out.Rescheduled, err = l.rescheduleAll(ctx, d.Name); err != nil {
			return out, err
		}
	}
	return out, l.runner.follow(ctx, d.Name)
}

// rescheduleAll finds what is pending anew, for all entities under way.
func (l *Lifecycles) rescheduleAll(ctx context.Context, lifecycle string) (n int, err error) {
	err = l.each(ctx, lifecycle, func(e *entity) error {
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
		if errors.Is(err, ErrNoEntity) || errors.Is(err, ErrEnded) {
			return nil // meanwhile
		}
		if err == nil {
			n++
		}
		return err
	})
	return n, err
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

// load reads a definition's version and text.
func (l *Lifecycles) load(ctx context.Context, name string) (version int64, file string, err error) {
	out, err := l.o.DB.GetItem(ctx, &dynamodb.GetItemInput{TableName: aws.String(TableName), Key: Item{attrName: text(name)}, ConsistentRead: aws.Bool(true)})
	if ensure.Missing(err) || err == nil && out.Item == nil {
		return 0, "", fmt.Errorf("%w: %q", ErrNoLifecycle, name)
	}
	if err != nil {
		return 0, "", err
	}
	return numberOf(out.Item[attrVersion]), textOf(out.Item[attrText]), nil
}

// plan gives a definition as it is in the table.
func (l *Lifecycles) plan(ctx context.Context, name string) (*plan, error) {
	if !nameForm.MatchString(name) {
		return nil, fmt.Errorf("%w: %q", ErrNoLifecycle, name)
	}
	version, file, err := l.load(ctx, name)
	if err != nil {
		return nil, err
	}
	l.plans.Lock()
	p := l.plans.byName[name]
	l.plans.Unlock()
	if p != nil && p.version == version {
		return p, nil
	}
	d, err := Read(strings.NewReader(file), nil) // whether there is a handler is seen when it is called
	if err != nil {
		return nil, fmt.Errorf("lifecycle %q cannot be read, as it is in the table: %w", name, err)
	}
	if p, err = d.plan(nil); err != nil {
		return nil, err
	}
	p.version = version
	l.keep(p)
	return p, nil
}

// known gives a definition as it was last read.
func (l *Lifecycles) known(ctx context.Context, name string) (*plan, error) {
	l.plans.Lock()
	p := l.plans.byName[name]
	l.plans.Unlock()
	if p != nil {
		return p, nil
	}
	return l.plan(ctx, name)
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
func (l *Lifecycles) Names(ctx context.Context) (names []string, err error) {
	pages := dynamodb.NewScanPaginator(l.o.DB, &dynamodb.ScanInput{
		TableName: aws.String(TableName), ConsistentRead: aws.Bool(true), ProjectionExpression: aws.String("#name"), ExpressionAttributeNames: map[string]string{"#name": attrName},
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
			names = append(names, textOf(it[attrName]))
		}
	}
	slices.Sort(names)
	return names, nil
}
