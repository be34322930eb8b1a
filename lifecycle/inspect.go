package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/ensure"
	"github.com/mayflydb/mayfly/internal/work/items"
	"github.com/mayflydb/mayfly/internal/work/lease"
)

// Entity is the present state of an entity.
type Entity struct {
	ID         string
	State      string
	Since      time.Time // the instant at which it came to the state
	Generation int64     // the number of its changes, including its creation
	// the instant of the pending transition; zero for none. During a pause: the instant without the
	// pause
	Next   time.Time
	NextTo string    // the state after the pending transition
	Paused time.Time // the start of the pause; zero if it is not paused
	Ended  string    // "end" or "cancelled"; empty while its lifecycle continues
	// the reason for a missing or unintended pending transition; empty if all is well
	Problem    string
	Attributes Item
}

// public returns the exported form of an entity, with the state names of a definition; p may be
// nil.
func (e *entity) public(p *plan) Entity {
	out := Entity{
		ID: e.id, State: e.state, Since: e.since, Generation: e.generation, Paused: e.paused, Ended: e.end, Problem: e.problem, Attributes: e.own,
	}
	if e.next != nil {
		out.Next, out.NextTo = e.next.at, e.next.to
	}
	if p == nil || e.end != "" {
		return out
	}
	out.NextTo = p.current(out.NextTo)
	if out.State = p.current(e.state); p.states[out.State] == nil && out.Problem == "" {
		out.Problem = p.noState(out.State).Error()
	}
	return out
}

// Get returns the present state of an entity, or ErrNoEntity.
func (l *Lifecycles) Get(ctx context.Context, lifecycle, id string) (Entity, error) {
	p, err := l.planIfAny(ctx, lifecycle)
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

// Each calls f for every entity of a lifecycle, in no order, until f returns an error.
func (l *Lifecycles) Each(ctx context.Context, lifecycle string, f func(Entity) error) error {
	p, err := l.planIfAny(ctx, lifecycle)
	if err != nil {
		return err
	}
	return l.each(ctx, lifecycle, func(e *entity) error { return f(e.public(p)) })
}

// planIfAny returns a definition, or nil if it does not exist: its entities may remain.
func (l *Lifecycles) planIfAny(ctx context.Context, lifecycle string) (*plan, error) {
	p, err := l.plan(ctx, lifecycle)
	if errors.Is(err, ErrNoLifecycle) {
		return nil, nil
	}
	return p, err
}

// History returns the kept events of an entity, oldest first. It includes removed entities and
// earlier entities of the same name.
func (l *Lifecycles) History(ctx context.Context, lifecycle, id string) (all []Event, err error) {
	found := items.Query(ctx, l.o.DB, &dynamodb.QueryInput{
		TableName: aws.String(EntityTable(lifecycle)), KeyConditionExpression: aws.String("#entity = :entity AND begins_with(#part, :history)"),
		ExpressionAttributeNames:  map[string]string{"#entity": attrEntity, "#part": attrPart},
		ExpressionAttributeValues: Item{":entity": attr.S(id), ":history": attr.S(partHistory)},
	})
	for it, err := range found {
		if err != nil {
			return nil, err
		}
		all = append(all, readEvent(it))
	}
	sort.SliceStable(all, func(i, j int) bool { return all[i].place() < all[j].place() })
	return all, nil
}

// place returns a text that orders events as they happened.
func (e *Event) place() string { return numbered(partHistory, e.incarnation, e.Generation) }

// Ahead is an expected transition, if no client changes the entity.
type Ahead struct {
	At      time.Time
	To      string
	When    string // its condition, which may fail at that time
	Handler string // the handler that is called; "" for none
	Input   string // the handler's input with the present attributes; "": the Call
}

// Ahead returns the expected transitions of an entity with their instants, at most most of them. It
// evaluates conditions and inputs with the present attributes.
func (l *Lifecycles) Ahead(ctx context.Context, lifecycle, id string, most int) (all []Ahead, err error) {
	p, err := l.plan(ctx, lifecycle)
	if err != nil {
		return nil, err
	}
	e, err := l.read(ctx, lifecycle, id)
	if e == nil || err != nil {
		return nil, err
	}
	for e.end == "" && e.paused.IsZero() && e.next != nil && len(all) < most {
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

// Runs reports whether a Run in any process reads, or has read, the lifecycle's stream.
func (l *Lifecycles) Runs(ctx context.Context, lifecycle string) (bool, error) {
	rows, err := lease.New(l.o.DB, consumerOf(lifecycle), lease.Options{}).Rows(ctx)
	if ensure.Missing(err) {
		return false, nil
	}
	return len(rows) > 0, err
}
