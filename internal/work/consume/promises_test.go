package consume

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	streams "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

// Each test here checks one promise from inside: promises for which a mutation run showed that the
// tests from outside miss a violation.

func recordOf(sequence string, at time.Time, size int64) Record {
	return Record{Record: streams.Record{Dynamodb: &streams.StreamRecord{
		SequenceNumber: aws.String(sequence), SizeBytes: &size, ApproximateCreationDateTime: &at,
	}}}
}

// TestWindowCountsBytes: records that are done no longer count, and a window is full by its bytes
// too.
func TestWindowCountsBytes(t *testing.T) {
	r := &reading{Consumer: &Consumer{Window: 10}, window: newWindow()}
	place := r.add([]Record{recordOf("1", time.Time{}, windowBytes-1), recordOf("2", time.Time{}, 1)})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if n, err := r.waitForRoom(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("room for %d records in a window that is full by its bytes: %v", n, err)
	}
	r.done(place)
	if at := r.position(); at.bytes != 1 || at.held != 1 || at.low != "1" {
		t.Errorf("with one record of one byte left: %+v", at)
	}
	if n, err := r.waitForRoom(ctx); n != 9 || err != nil {
		t.Errorf("room for %d records, want 9: %v", n, err)
	}
}

// TestLatestKeepsItsSecond: the times of records are whole seconds, so all of the second in which a
// consumer begins are handed over.
func TestLatestKeepsItsSecond(t *testing.T) {
	second := time.Unix(1_900_000_000, 0)
	r := &reading{Consumer: &Consumer{}, window: newWindow(), since: second.Add(500 * time.Millisecond)}
	records := []Record{recordOf("1", second.Add(-time.Second), 1), recordOf("2", second, 1), recordOf("3", second.Add(time.Second), 1)}
	r.add(records)
	for i := range records {
		records[i].reading, records[i].place = r, int64(i)
	}
	if kept := r.passOver(records); len(kept) != 2 || kept[0].Sequence() != "2" {
		t.Errorf("%d records are handed over, want two", len(kept))
	}
}

// told records a consumer's reports about itself.
type told struct {
	Unregistered
	checkpoints, passed []string
}

func (p *told) Checkpoint(_, sequence string) { p.checkpoints = append(p.checkpoints, sequence) }
func (p *told) Passed(_, sequence string)     { p.passed = append(p.passed, sequence) }

// TestPassedIsNoCheckpoint: records that are done but not saved are passed, and do not let the
// database trim.
func TestPassedIsNoCheckpoint(t *testing.T) {
	p := &told{}
	k := &keeper{reading: &reading{window: newWindow(), progress: p}}
	k.done(k.add([]Record{recordOf("1", time.Time{}, 1)}))
	k.report()
	if !slices.Equal(p.passed, []string{"1"}) || len(p.checkpoints) > 0 {
		t.Errorf("passed %q, checkpoints %q", p.passed, p.checkpoints)
	}
	k.hasSaved("1")
	if !slices.Equal(p.checkpoints, []string{"1"}) {
		t.Errorf("checkpoints %q after one was saved", p.checkpoints)
	}
}
