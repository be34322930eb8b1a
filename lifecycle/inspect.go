package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/mayflydb/mayfly/internal/work/ensure"
	"github.com/mayflydb/mayfly/internal/work/lease"
)

// Entity is one as it is.
type Entity struct {
	ID         string
	State      string
	Since      time.Time // when it came to the state
	Generation int64     // how often it was changed, its creation counted
	Next       time.Time // when the pending transition is due; zero where none is. While it is paused: when it would have been
	NextTo     string    // where that leads
	Paused     time.Time // since when it is paused; zero where it is not
	Ended      string    // "end" or "cancelled"; empty while its lifecycle goes on
	Problem    string    // why there is no pending transition, or not the one that is meant; empty where all is well
	Attributes Item
}

// public is an entity as others see it, by a definition; nil: there is none any more.
func (e *entity) public(p *plan) Entity {
	out := Entity{
		ID: e.id, State: e.state, Since: e.since, Generation: e.generation, Paused: e.paused, Ended: e.ended, Problem: e.problem, Attributes: e.own,
	}
	if e.next != nil {
		out.Next, out.NextTo = e.next.at, e.next.to
	}
	if p == nil || e.ended != "" {
		return out
	}
	out.NextTo = p.current(out.NextTo)
	if out.State = p.current(e.state); p.states[out.State] == nil && out.Problem == "" {
		out.Problem = p.noState(out.State).Error()
	}
	return out
}

// Get gives an entity as it is. ErrNoEntity.
func (l *Lifecycles) Get(ctx context.Context, lifecycle, id string) (Entity, error) {
	p, err := l.perhaps(ctx, lifecycle)
	if err != nil {
		return Entity{}, err
	}
	e, err := l.read(ctx, lifecycle, id)
	if err == nil && e == nil {
		err = ErrNoEntity
	}
	if err != nil {
		return Entity{}, fmt.Errorf("%s %q: %w", lifecycle, id, err)
	}
	return e.public(p), nil
}

// Each calls f for every entity of a lifecycle, in no order, until f fails.
func (l *Lifecycles) Each(ctx context.Context, lifecycle string, f func(Entity) error) error {
	p, err := l.perhaps(ctx, lifecycle)
	if err != nil {
		return err
	}
	return l.each(ctx, lifecycle, func(e *entity) error { return f(e.public(p)) })
}

// perhaps is a definition, or nil where there is none: its entities may still be there.
func (l *Lifecycles) perhaps(ctx context.Context, lifecycle string) (*plan, error) {
	p, err := l.plan(ctx, lifecycle)
	if errors.Is(err, ErrNoLifecycle) {
		return nil, nil
	}
	return p, err
}

// History gives what has happened to an entity, oldest first, as far as it is kept: also of one that is removed, and of those before it that had its name.
func (l *Lifecycles) History(ctx context.Context, lifecycle, id string) (all []Event, err error) {
	pages := dynamodb.NewQueryPaginator(l.o.DB, &dynamodb.QueryInput{
		TableName: aws.String(EntityTable(lifecycle)), ConsistentRead: aws.Bool(true), KeyConditionExpression: aws.String("#entity = :entity AND begins_with(#part, :history)"),
		ExpressionAttributeNames:  map[string]string{"#entity": attrEntity, "#part": attrPart},
		ExpressionAttributeValues: Item{":entity": text(id), ":history": text(partHistory)},
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
			all = append(all, readEvent(it))
		}
	}
	slices.SortStableFunc(all, func(a, b Event) int { return strings.Compare(a.place(), b.place()) })
	return all, nil
}

// place orders events as they happened.
func (e *Event) place() string { return numbered(partHistory, e.incarnation, e.Generation) }

// Ahead is a transition that is to come, should nobody interfere.
type Ahead struct {
	At      time.Time
	To      string
	When    string // its condition, which may not hold then
	Handler string // who is called; "": nobody
	Input   string // what the handler gets, as the attributes are now; "": the Call
}

// Ahead gives what is to come for an entity: for each transition its instant, up to a number of them or an end. Conditions and inputs go by its attributes as they are now.
func (l *Lifecycles) Ahead(ctx context.Context, lifecycle, id string, most int) (all []Ahead, err error) {
	p, err := l.plan(ctx, lifecycle)
	if err != nil {
		return nil, err
	}
	e, err := l.read(ctx, lifecycle, id)
	if e == nil || err != nil {
		return nil, err
	}
	for e.ended == "" && e.paused.IsZero() && e.next != nil && len(all) < most {
		c, err := p.due(e, e.next.at)
		if err != nil {
			return all, err
		}
		if c.event.Kind == KindTransition {
			a := Ahead{At: c.event.Due, To: c.event.To, Handler: c.event.Handler}
			if c.event.shape != "" {
				input, _ := inputOf(c.event.body, c.event.shape)
				a.Input = string(input)
			}
			if c.guard != nil {
				a.When = c.guard.text
			}
			all = append(all, a)
		}
		if c.after == nil {
			break
		}
		e = c.after
	}
	return all, nil
}

// Runs reports whether somebody makes, or has made, the transitions of a lifecycle: its stream is read by a Run, in whatever process.
func (l *Lifecycles) Runs(ctx context.Context, lifecycle string) (bool, error) {
	rows, err := lease.New(l.o.DB, consumerOf(lifecycle), lease.Options{}).Rows(ctx)
	if ensure.Missing(err) {
		return false, nil
	}
	return len(rows) > 0, err
}
