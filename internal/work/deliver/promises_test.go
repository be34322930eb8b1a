package deliver

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
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

// TestWriterOrder: a write waits for one of its key, and for those that it must lie behind.
func TestWriterOrder(t *testing.T) {
	item := func(id string) map[string]types.AttributeValue {
		return map[string]types.AttributeValue{attrID: &types.AttributeValueMemberS{Value: id}}
	}
	w := newWriter(nil, nil)
	w.add(put("t", item("a"), nil), put("t", item("a"), nil))
	if n := len(w.take()); n != 1 {
		t.Errorf("a batch has %d writes of one key", n)
	}
	w = newWriter(nil, nil)
	w.addBehind([]write{put("t", item("part"), nil)}, put("t", item("whole"), nil))
	if n := len(w.take()); n != 1 {
		t.Errorf("a batch has %d writes, the second of which must lie behind the first", n)
	}
}

// TestEndedIsUnparked: a parcel that was parked in case its attempt does not end is removed when it
// has ended.
func TestEndedIsUnparked(t *testing.T) {
	d := &Courier{writer: newWriter(nil, nil), parked: RetriesTable}
	done := false
	d.unpark(&task{parcel: fullParcel(), secured: make(chan struct{})}, func() { done = true })
	if w := d.writer.mu.waiting; !done || len(w) != 1 || w[0].request.DeleteRequest == nil || w[0].at.id != fullParcel().Delivery.ID {
		t.Errorf("%+v is to be written; done: %t", w, done)
	}
}

// TestCarriesOn: a parked parcel that came before a crash is not delivered besides the one that
// followed from it, in the same attempt or a later one.
func TestCarriesOn(t *testing.T) {
	record := func(attempt int) *Record {
		j := fullParcel()
		j.Delivery.Attempt = attempt
		text, err := encodeParcel(&j)
		if err != nil {
			t.Fatal(err)
		}
		return &Record{Record: streams.Record{Dynamodb: &streams.StreamRecord{OldImage: map[string]streams.AttributeValue{
			attrParcel: &streams.AttributeValueMemberS{Value: text}, attrBody: &streams.AttributeValueMemberS{Value: "x"},
		}}}}
	}
	for later, want := range map[int]bool{2: false, 3: true, 4: true} {
		if got := carriesOn(record(3), record(later)); got != want {
			t.Errorf("attempt %d carries on attempt 3: %t", later, got)
		}
	}
}
