package guard

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/guard/internal/armed"
	"github.com/mayflydb/mayfly/guard/journal"
	"github.com/mayflydb/mayfly/internal/work/retry"
)

// With Options.Undo each attempt at a removal has an image in the journal, which is durable before
// the delete, and an outcome, which follows without a wait. The outcome belongs to the attempt: if
// the endpoint's answer to a delete is lost, that image has no outcome, although the next attempt
// finds no item. PutBack then takes the item for removed.

// saved is an image in the journal that has no outcome yet.
type saved struct {
	entry journal.Entry
	image map[string]types.AttributeValue
}

// journalError is a failure of the journal, not of the endpoint. It does not unwrap, so that nothing
// takes a bucket's error for one about the table.
type journalError struct{ cause error }

func (e *journalError) Error() string { return "undo: " + e.cause.Error() }

// checkJournal returns a problem if the journal cannot be used.
func (g *Guard) checkJournal(ctx context.Context) error {
	if g.undo == nil || g.o.DryRun {
		return nil
	}
	if err := g.o.Undo.Check(ctx); err != nil {
		return noJournal(err)
	}
	return nil
}

func noJournal(err error) *Problem {
	return &Problem{Code: NoJournal, Message: "the journal of removed items cannot be written, so nothing is removed", Next: "check that the directory or bucket exists, is writable and has room (--undo)", Err: err}
}

// wrote raises or settles the problem with the journal after a write. The first dropped outcome is
// logged.
func (g *Guard) wrote(err error) {
	if g.undo.Dropped() > 0 && !g.outcomesDropped {
		g.outcomesDropped = true
		g.log.Warn("the journal was not written for too long, so it will lack outcomes of removals; guard undo takes such items for removed if their keys are free, and calls them not confirmed", "table", g.o.Table, "error", err)
	}
	if err != nil {
		g.raise(noJournal(err))
		return
	}
	g.settle(NoJournal)
}

// save writes the image of an item to the journal.
func (g *Guard) save(ctx context.Context, f armed.Removal, item map[string]types.AttributeValue) (*saved, error) {
	if g.undo == nil {
		return nil, nil
	}
	image := g.withoutMark(item)
	text, err := attributevalue.MarshalMapJSON(image)
	if err != nil {
		return nil, fmt.Errorf("item: %w", err)
	}
	s := &saved{image: image, entry: journal.Entry{
		Kind: journal.Image, ID: g.undo.NewID(), At: time.UnixMilli(g.now()).UTC(), Table: g.table.Label(), Key: []byte(g.table.KeyJSON(f.Key)),
		Attribute: g.o.Attribute, Deadline: time.UnixMilli(f.At).UTC(), Item: text,
	}}
	if err := g.undo.Write(ctx, s.entry); err != nil {
		g.undo.Note(g.outcome(s, journal.Kept)) // the entry may be durable all the same
		return nil, &journalError{err}
	}
	return s, nil
}

// outcome returns the entry for the end of an attempt.
func (g *Guard) outcome(s *saved, kind journal.Kind) journal.Entry {
	return journal.Entry{Kind: kind, ID: s.entry.ID, At: time.UnixMilli(g.now()).UTC(), Table: s.entry.Table, Key: s.entry.Key}
}

// kept records that an attempt has certainly not removed the item.
func (g *Guard) kept(s *saved, err error) {
	if s != nil && certain(err) {
		g.undo.Note(g.outcome(s, journal.Kept))
	}
}

// certain reports whether a failed delete has certainly removed nothing. A failed condition is a
// permanent error. After a server error, or without an answer, the item may be gone.
func certain(err error) bool {
	return errors.Is(err, errDoubt) || throttling(err) || conflict(err) || permanent(err)
}

// recordRemoval records a removal. If the item had changed since its image, its last state is written too,
// until that succeeds, since the endpoint no longer has it. ctx ends soon after the end of guard.
func (g *Guard) recordRemoval(ctx context.Context, f armed.Removal, s *saved, out *dynamodb.DeleteItemOutput) {
	if s == nil {
		return
	}
	last := g.withoutMark(out.Attributes)
	if out.Attributes == nil || reflect.DeepEqual(s.image, last) {
		g.undo.Note(g.outcome(s, journal.Removed))
		return
	}
	e := g.outcome(s, journal.Removed)
	e.Attribute, e.Deadline = s.entry.Attribute, s.entry.Deadline
	var err error
	if e.Item, err = attributevalue.MarshalMapJSON(last); err == nil {
		err = retry.Until(ctx, nil, retry.Calls, "", func() error { return g.undo.Write(ctx, e) })
	}
	if err != nil {
		g.log.Error("an item changed just before its removal, and the journal lacks the change", "table", g.o.Table, "key", g.table.KeyJSON(f.Key), "error", err)
	}
}

// withoutMark returns an item without the mark, which would make a later deletion of a restored item
// look like an expiry.
func (g *Guard) withoutMark(item map[string]types.AttributeValue) map[string]types.AttributeValue {
	if g.o.Mark == "" {
		return item
	}
	item = maps.Clone(item)
	delete(item, g.o.Mark)
	return item
}
