package scheduler

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/items"
)

// armLost arms recurring schedules again whose firing was due before an instant and was lost, for
// example because its table had no stream. It puts the firing again, long overdue, so catching up
// decides about it as after a downtime. The firing has the same ID, in case it was delivered.
//
// It cannot find a lost firing that is the last of its schedule.
func (s *Scheduler) armLost(ctx context.Context, p place, before time.Time) error {
	in := &dynamodb.ScanInput{
		TableName: &p.table, FilterExpression: aws.String("#part = :definition AND #next <= :before"),
		ExpressionAttributeNames:  map[string]string{"#part": attrPart, "#next": attrNext},
		ExpressionAttributeValues: item{":definition": attr.S(partDefinition), ":before": attr.Seconds(before)},
	}
	armed := 0
	for it, err := range items.Scan(ctx, s.o.DB, in) {
		if err != nil {
			return fmt.Errorf("look for lost firings: %w", err)
		}
		found, err := s.armAgain(ctx, p, it)
		if err != nil {
			return fmt.Errorf("arm a firing that was lost: %w", err)
		}
		if found {
			armed++
		}
	}
	if armed > 0 {
		s.o.Logger.Warn("stream records of firings were lost; the firings are armed again", "table", p.table, "schedules", armed)
	}
	return nil
}

// armAgain puts the last armed firing of a definition if its item is missing and another firing
// follows.
func (s *Scheduler) armAgain(ctx context.Context, p place, definition item) (bool, error) {
	e, t, err := s.readTimed(p, definition)
	if err != nil {
		s.o.Logger.Error("a definition cannot be read and is skipped", "group", p.group, "error", err)
		return false, nil
	}
	f := &firing{edition: e.edition, number: e.armed, deadline: e.next, armed: e.modified}
	f.occurrence = e.next.Add(-t.deadline(e.next, e.incarnation, e.armed).Sub(e.next))
	if _, more := t.after(f.occurrence); !more {
		return false, nil
	}
	it := f.item()
	if least := s.now().Add(-pastMost); f.deadline.Before(least) {
		it[attrDue] = attr.Seconds(least)
	}
	r, err := s.transact(ctx, []action{
		items.Check(p.table, key(e.name, partDefinition), e.unchanged()), items.Put(p.table, it, absent()),
	})
	return err == nil && r == nil, err
}

// readTimed reads a definition and its timing.
func (s *Scheduler) readTimed(p place, definition item) (e *entry, t timing, err error) {
	if e, err = readEntry(definition); err != nil {
		return nil, t, err
	}
	if p.rules {
		_, t, err = readRule(e.document)
	} else {
		_, t, err = s.readDocument(e.document, e.input)
	}
	return e, t, err
}
