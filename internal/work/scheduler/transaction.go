package scheduler

import (
	"context"
	"errors"
	"time"

	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/items"
	"github.com/mayflydb/mayfly/internal/work/retry"
	"github.com/mayflydb/mayfly/internal/work/timer"
)

// action is one action of a transaction.
type action = items.Action

// absent returns the condition that the item does not exist.
func absent() *items.Condition { return items.Absent(attrName) }

// fenced returns the condition that an item is in a state.
func fenced(f timer.Fence) *items.Condition {
	text, names, values := f.Condition()
	return &items.Condition{Text: text, Names: names, Values: values}
}

// current returns the state of a definition that is neither updated, nor deleted and created again.
// It may have fired.
func current(incarnation string, version int64) timer.Fence {
	return timer.Fence{attrIncarnation: attr.S(incarnation), attrVersion: attr.Int(version)}
}

// unchanged returns the condition that a definition is as it was read, so it has not fired either.
func (e *entry) unchanged() *items.Condition {
	f := current(e.incarnation, e.version)
	f[attrArmed] = attr.Int(e.armed)
	if r := e.tail; r.pending() {
		f[attrRemains], f[attrRemained] = attr.Int(r.version), attr.Int(r.armed)
	}
	return fenced(f)
}

// waiting returns the condition that a firing's item is the one that was armed last.
func (e *entry) waiting() *items.Condition {
	f := current(e.incarnation, e.version)
	f[attrOccurrence] = attr.Int(e.armed)
	return fenced(f)
}

func (s *Scheduler) transact(ctx context.Context, actions []action) (items.Refusal, error) {
	return items.Transact(ctx, s.o.DB, actions)
}

func (s *Scheduler) get(ctx context.Context, table string, k item) (item, error) {
	return items.Get(ctx, s.o.DB, table, k)
}

// entry returns a definition; nil if there is none.
func (s *Scheduler) entry(ctx context.Context, table, name string) (*entry, error) {
	it, err := s.get(ctx, table, key(name, partDefinition))
	if it == nil || err != nil {
		return nil, err
	}
	return readEntry(it)
}

// errChanged means that an item has changed since it was read, so the change must be computed
// again.
var errChanged = errors.New("changed meanwhile")

// Attempts of a change that conflicts with a firing or another change, or whose due firing has not
// expired yet, as the expiry may take a moment: 2 s in all.
const changeTries = 13

var changes = retry.Policy{First: time.Millisecond, Most: time.Second}

// retryChange calls f until it no longer conflicts with a concurrent change; the second call is at
// once. From the second call on missing is true: then a client has deleted a firing that is missing
// although it is not due, and f replaces it. Before, it may be a change that f has not read.
func (s *Scheduler) retryChange(ctx context.Context, name string, f func(missing bool) error) error {
	pauses := changes.Start()
	for try := range changeTries {
		if try > 1 && !pauses.Wait(ctx) {
			return ctx.Err()
		}
		if err := f(try > 0); !errors.Is(err, errChanged) {
			return err
		}
	}
	return conflict(name + " is changed or fires at this moment. Try again.")
}

// batchFirings is the number of firings in a transaction, which has two actions for each.
const batchFirings = 50
