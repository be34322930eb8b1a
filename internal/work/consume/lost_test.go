package consume_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/work/consume"
	"github.com/mayflydb/mayfly/internal/work/lease"
)

// Records that were trimmed before they could be read are lost; the consumer reports it and
// continues with the remaining ones.
func TestTrimmed(t *testing.T) {
	e := open(t, "", mayfly.Options{Shards: 1, StreamRetention: time.Minute, Frozen: true})
	e.table(t, "events")
	s := newSeen()
	stop := run(t, e.consumer(t, "events", s).Run)
	e.put(t, "events", "a", 0, 10)
	await(t, "the first have come", func() bool { return s.count() == 10 })
	stop()
	e.put(t, "events", "b", 0, 10)
	_, err := e.Clock().Advance(t.Context(), 10*time.Minute)
	must(t, err)
	e.put(t, "events", "c", 0, 10)
	lost := lostOf{}
	c := e.consumer(t, "events", s)
	c.Lost = lost.call
	run(t, c.Run)
	await(t, "what there is has come", func() bool { return s.of("insert c9") == 1 })
	await(t, "the loss is made up for", func() bool { return e.row(t, "lost").Term == 0 })
	if lost.calls() != 1 || s.of("insert b0") != 0 {
		t.Errorf("told %d times of lost records; came: %v", lost.calls(), slices.Sorted(maps.Keys(s.times)))
	}
}

// A loss is also noticed if no worker has a checkpoint, and the first records of a shard are gone,
// or a whole shard.
func TestTrimmedBegin(t *testing.T) {
	for _, exclusive := range []bool{true, false} {
		for _, whole := range []bool{false, true} {
			t.Run(fmt.Sprint(exclusive, whole), func(t *testing.T) {
				e := open(t, "", mayfly.Options{Shards: 1, ShardBytes: 4 << 10, StreamRetention: time.Hour, Frozen: true})
				e.table(t, "events")
				if whole {
					e.trimShard(t, "events", "a")
				} else {
					e.put(t, "events", "a", 0, 1)
					_, err := e.Clock().Advance(t.Context(), 2*time.Hour)
					must(t, err)
				}
				e.put(t, "events", "b", 0, 100)
				lost, s := lostOf{}, newSeen()
				c := e.consumer(t, "events", s)
				c.Leases, c.Lost = lease.Options{Exclusive: exclusive, Duration: time.Second}, lost.call
				run(t, c.Run)
				await(t, "what there is has come", func() bool { return s.of("insert b99") == 1 })
				await(t, "the loss is made up for", func() bool { return lost.calls() > 0 && e.row(t, "lost").Term == 0 })
				if lost.calls() != 1 || s.of("insert a0") != 0 {
					t.Errorf("told %d times of lost records; came: %v", lost.calls(), slices.Sorted(maps.Keys(s.times)))
				}
			})
		}
	}
}

// Lost is called until it succeeds: again after an error, by the next worker if this one ends, and
// once more if more records were lost while it was under way.
func TestLostIsKept(t *testing.T) {
	for _, exclusive := range []bool{true, false} {
		t.Run(fmt.Sprint(exclusive), func(t *testing.T) {
			e := open(t, "", mayfly.Options{Shards: 1, StreamRetention: time.Minute, Frozen: true})
			e.table(t, "events")
			s := newSeen()
			consumer := func(lost func(context.Context) error) *consume.Consumer {
				c := e.consumer(t, "events", s)
				c.Leases, c.Lost = lease.Options{Exclusive: exclusive, Duration: time.Second}, lost
				return c
			}
			lose := func(some string) {
				e.put(t, "events", some, 0, 10)
				_, err := e.Clock().Advance(t.Context(), 10*time.Minute)
				must(t, err)
			}
			lose("a")
			begun := make(chan struct{})
			stop := run(t, consumer(func(ctx context.Context) error {
				close(begun)
				<-ctx.Done()
				return ctx.Err()
			}).Run)
			receive(t, begun)
			e.put(t, "events", "b", 0, 10)
			await(t, "records come beside the call", func() bool { return s.of("insert b9") == 1 })
			stop()
			if e.row(t, "lost").Term == 0 {
				t.Fatal("the loss was forgotten with the worker")
			}
			lose("c")
			calls := 0
			begun = make(chan struct{})
			goOn := make(chan struct{})
			c := consumer(func(context.Context) error {
				if calls++; calls == 1 {
					close(begun)
					<-goOn
				}
				if calls < 3 {
					return errors.New("not now")
				}
				return nil
			})
			run(t, c.Run)
			receive(t, begun)
			await(t, "the second loss is noted", func() bool { return e.row(t, "lost").Owner == "" })
			close(goOn)
			await(t, "the losses are made up for", func() bool { return e.row(t, "lost").Term == 0 })
			if calls != 4 { // two failures, one for the first loss, one for the second
				t.Errorf("Lost was called %d times", calls)
			}
		})
	}
}

// lostOf counts the calls of Lost.
type lostOf struct{ n atomic.Int64 }

func (l *lostOf) call(context.Context) error {
	l.n.Add(1)
	return nil
}

func (l *lostOf) calls() int64 { return l.n.Load() }

// If an unfinished shard was trimmed as a whole, the consumer reports once that its records are
// lost, and forgets it.
func TestTrimmedShard(t *testing.T) {
	for _, exclusive := range []bool{true, false} {
		e := open(t, "", mayfly.Options{Shards: 1, ShardBytes: 4 << 10, StreamRetention: time.Hour, Frozen: true})
		e.table(t, "events")
		s := newSeen()
		consumer := func() *consume.Consumer {
			c := e.consumer(t, "events", s)
			c.Leases = lease.Options{Exclusive: exclusive, Duration: time.Second}
			return c
		}
		stop := run(t, consumer().Run)
		e.put(t, "events", "a", 0, 10)
		await(t, "the first have come", func() bool { return s.count() == 10 })
		stop()
		if len(e.rows(t)) != 1 {
			t.Fatalf("the rows are %v", e.rows(t))
		}
		for shard := range e.rows(t) {
			e.trimShard(t, "events", "b")
			e.put(t, "events", "c", 0, 100)
			lost := lostOf{}
			c := consumer()
			c.Lost = lost.call
			stop = run(t, c.Run)
			await(t, "the shard is forgotten", func() bool { return e.rows(t)[shard].Term == 0 })
			await(t, "what there is has come", func() bool { return s.of("insert c99") == 1 })
			await(t, "the loss is made up for", func() bool { return e.row(t, "lost").Term == 0 })
			stop()
			if n := lost.calls(); n != 1 {
				t.Errorf("exclusive %v: Lost was called %d times", exclusive, n)
			}
		}
	}
}

// If Handle fails, each reading finds the same loss. Lost is called once, and once more when more
// records have been trimmed.
func TestLostOnceWhileHandleFails(t *testing.T) {
	e := open(t, "", mayfly.Options{Shards: 1, StreamRetention: time.Hour, Frozen: true})
	e.table(t, "events")
	var handled, down atomic.Int64
	down.Store(1)
	var first atomic.Value
	lost, s := lostOf{}, newSeen()
	c := e.consumer(t, "events", s)
	c.Lost = lost.call
	c.Handle = func(ctx context.Context, shard string, records []consume.Record) error {
		if down.Load() == 0 {
			return s.handle(ctx, shard, records)
		}
		first.Store(keyOf(records[0]))
		handled.Add(1)
		return errors.New("the target is down")
	}
	begin := func(key string) { // the record that readings begin with
		t.Helper()
		await(t, key+" comes", func() bool { return first.Load() == key })
		before := handled.Load()
		await(t, "readings are repeated", func() bool { return handled.Load() >= before+2 })
	}
	age := func() {
		t.Helper()
		_, err := e.Clock().Advance(t.Context(), 2*time.Hour)
		must(t, err)
	}
	e.put(t, "events", "a", 0, 1)
	age()
	e.put(t, "events", "b", 0, 1)
	run(t, c.Run)
	begin("b0")
	if n := lost.calls(); n != 1 {
		t.Errorf("Lost was called %d times for one loss", n)
	}
	age()
	e.put(t, "events", "c", 0, 1)
	begin("c0")
	await(t, "Lost is called again", func() bool { return lost.calls() == 2 })
	down.Store(0)
	await(t, "the rest is read", func() bool { return s.of("insert c0") == 1 })
	if n := lost.calls(); n != 2 {
		t.Errorf("Lost was called %d times for two losses", n)
	}
}

// Lost may need a table that only Restore brings back. So it ends with its stream, and is called
// again beside the next one.
func TestLostEndsWithStream(t *testing.T) {
	for _, exclusive := range []bool{true, false} {
		t.Run(fmt.Sprint(exclusive), func(t *testing.T) {
			e := open(t, "", mayfly.Options{Shards: 1, StreamRetention: time.Hour, Frozen: true})
			e.table(t, "events")
			e.put(t, "events", "a", 0, 1)
			_, err := e.Clock().Advance(t.Context(), 2*time.Hour)
			must(t, err)
			s := newSeen()
			c := e.consumer(t, "events", s)
			c.Leases = lease.Options{Exclusive: exclusive, Duration: time.Second}
			var restored atomic.Bool
			c.Lost = func(ctx context.Context) error {
				if !restored.Load() {
					<-ctx.Done()
				}
				return ctx.Err()
			}
			c.Restore = func(context.Context) (bool, error) {
				e.table(t, "events")
				restored.Store(true)
				return true, nil
			}
			run(t, c.Run)
			await(t, "Lost is called", func() bool { return e.row(t, "lost").Owner != "" })
			_, err = e.db.DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: aws.String("events")})
			must(t, err)
			await(t, "the table is back", restored.Load)
			e.put(t, "events", "b", 0, 1)
			await(t, "the new stream is read", func() bool { return s.of("insert b0") == 1 })
			await(t, "the loss is made up for", func() bool { return !e.row(t, "lost").Exists() })
		})
	}
}

// A loss counts even if somebody has damaged its row.
func TestLostOfDamagedRow(t *testing.T) {
	e := open(t, "", mayfly.Options{Shards: 1})
	e.table(t, "events")
	s := newSeen()
	stop := run(t, e.consumer(t, "events", s).Run)
	e.put(t, "events", "a", 0, 1)
	await(t, "there are rows", func() bool { return len(e.rows(t)) > 0 })
	stop()
	_, err := e.db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String(lease.TableName), Item: map[string]types.AttributeValue{
		"consumer": &types.AttributeValueMemberS{Value: "test"}, "shard": &types.AttributeValueMemberS{Value: "lost"},
		"term": &types.AttributeValueMemberS{Value: "one"},
	}})
	must(t, err)
	lost := lostOf{}
	c := e.consumer(t, "events", s)
	c.Lost = lost.call
	run(t, c.Run)
	await(t, "the loss is made up for", func() bool { return !e.row(t, "lost").Exists() })
	if n := lost.calls(); n != 1 {
		t.Errorf("Lost was called %d times", n)
	}
}

// Where only the instant of the start is stored, records that are trimmed within a day of it may be
// from before it. What is trimmed later counts.
func TestLostSinceInstant(t *testing.T) {
	for later, want := range map[time.Duration]int64{0: 0, 30 * time.Hour: 1} {
		t.Run(later.String(), func(t *testing.T) {
			e := open(t, "", mayfly.Options{Shards: 1, ShardBytes: 4 << 10, StreamRetention: time.Hour, Frozen: true})
			e.streams = plain(e.streams)
			e.table(t, "events")
			lost, s := lostOf{}, newSeen()
			consumer := func() *consume.Consumer {
				c := e.consumer(t, "events", s)
				c.Start, c.Lost = consume.Latest, lost.call
				return c
			}
			stop := run(t, consumer().Run)
			await(t, "the start is stored", func() bool { return strings.HasPrefix(e.row(t, "start").Checkpoint, "since:") })
			stop()
			for shard, row := range e.rows(t) { // as if the worker had ended before it took the shard
				if shard != "start" {
					must(t, lease.New(e.db, "test", lease.Options{}).Forget(t.Context(), row))
				}
			}
			e.trimShard(t, "events", "a")
			_, err := e.Clock().Advance(t.Context(), later)
			must(t, err)
			e.put(t, "events", "b", 0, 1)
			run(t, consumer().Run)
			await(t, "the rest is read", func() bool { return s.of("insert b0") == 1 })
			await(t, "losses are made up for", func() bool { return lost.calls() >= want && !e.row(t, "lost").Exists() })
			if n := lost.calls(); n != want {
				t.Errorf("Lost was called %d times, want %d", n, want)
			}
		})
	}
}
