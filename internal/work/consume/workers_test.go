package consume_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/work/consume"
	"github.com/mayflydb/mayfly/internal/work/lease"
)

// member is one of several workers.
type member struct {
	name string
	cut  atomic.Bool // its network is gone
	stop func()
	mu   sync.Mutex
	got  map[string]int // shards from which it has got records
}

var errCut = errors.New("network is unreachable")

type cuttable struct {
	to  dynamodb.HTTPClient
	cut *atomic.Bool
}

func (c cuttable) Do(r *http.Request) (*http.Response, error) {
	if c.cut.Load() {
		return nil, errCut
	}
	response, err := c.to.Do(r)
	if c.cut.Load() {
		return nil, errCut
	}
	return response, err
}

// join starts a worker of the consumer "test".
func (e *endpoint) join(t *testing.T, name string, s *seen) *member {
	m := &member{name: name, got: map[string]int{}}
	db, streams := e.db.Options(), e.streams.Options()
	db.HTTPClient, streams.HTTPClient = cuttable{db.HTTPClient, &m.cut}, cuttable{streams.HTTPClient, &m.cut}
	c := &consume.Consumer{
		Name: "test", Table: "events", DB: dynamodb.New(db), Streams: dynamodbstreams.New(streams), Now: e.Clock().Now, Leases: lease.Options{Owner: name},
		Handle: func(ctx context.Context, shard string, records []consume.Record) error {
			m.mu.Lock()
			m.got[shard] += len(records)
			m.mu.Unlock()
			return s.handle(ctx, shard, records)
		},
	}
	ctx, cancel := context.WithCancel(context.Background())
	var ran sync.WaitGroup
	ran.Go(func() { _ = c.Run(ctx) })
	m.stop = func() { cancel(); ran.Wait() }
	return m
}

// owners counts the shards of each owner.
func (e *endpoint) owners(t *testing.T) string {
	n := map[string]int{}
	for shard, r := range e.rows(t) {
		if !strings.HasPrefix(shard, "worker/") && r.Checkpoint != "end" {
			n[r.Owner]++
		}
	}
	var parts []string
	for _, owner := range slices.Sorted(maps.Keys(n)) {
		parts = append(parts, fmt.Sprintf("%s:%d", owner, n[owner]))
	}
	return strings.Join(parts, " ")
}

// Workers that come and go share the shards fairly. A worker that is cut off is replaced within
// about the duration of a lease. Nothing is lost or, without failures, delivered twice.
func TestWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := open(t, "", mayfly.Options{Shards: 6})
		e.table(t, "events")
		s := newSeen()
		written := 0
		write := func() {
			t.Helper()
			e.put(t, "events", "a", written, written+60)
			written += 60
			for range 100 {
				time.Sleep(10 * time.Millisecond)
				if s.count() == written {
					return
				}
			}
			t.Fatalf("%d of %d records have come", s.count(), written)
		}
		want := func(owners string, within time.Duration) {
			t.Helper()
			began := time.Now()
			for e.owners(t) != owners {
				if time.Since(began) > within {
					t.Fatalf("after %s the owners are %s, want %s", within, e.owners(t), owners)
				}
				time.Sleep(100 * time.Millisecond)
			}
		}
		a := e.join(t, "a", s)
		want("a:6", time.Second)
		write()
		b := e.join(t, "b", s)
		want("a:3 b:3", 8*time.Second)
		write()
		c, d := e.join(t, "c", s), e.join(t, "d", s)
		want("a:2 b:2 c:1 d:1", 8*time.Second)
		write()
		time.Sleep(time.Minute) // and it stays like that
		want("a:2 b:2 c:1 d:1", 0)
		b.stop()
		want("a:2 c:2 d:2", 8*time.Second)
		write()
		s.once(t, written)

		a.cut.Store(true)
		e.put(t, "events", "a", written, written+60)
		written += 60
		want("c:3 d:3", 16*time.Second)
		for range 100 {
			time.Sleep(10 * time.Millisecond)
		}
		if s.count() != written {
			t.Errorf("%d of %d records have come", s.count(), written)
		}
		a.cut.Store(false) // back it comes
		want("a:2 c:2 d:2", 30*time.Second)
		write()
		for _, m := range []*member{a, c, d} {
			m.stop()
		}
		if got := e.owners(t); got != ":6" {
			t.Errorf("after all have ended the owners are %s", got)
		}
		for shard := range e.rows(t) {
			if strings.HasPrefix(shard, "worker/") {
				t.Errorf("%s is still there", shard)
			}
		}
	})
}

// A worker with records under way waits for them before it leaves a shard, so that they do not come
// twice.
func TestLeaveAtPagesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := open(t, "", mayfly.Options{Shards: 2})
		e.table(t, "events")
		s := newSeen()
		s.hold = true
		a := e.join(t, "a", s)
		e.put(t, "events", "a", 0, 100)
		time.Sleep(time.Second)
		b := e.join(t, "b", s)
		time.Sleep(6 * time.Second)
		if got := e.owners(t); got != "a:2" {
			t.Errorf("with records under way the owners are %s", got)
		}
		s.mu.Lock()
		for _, r := range s.held {
			r.Done()
		}
		s.hold = false
		s.mu.Unlock()
		time.Sleep(4 * time.Second)
		if got := e.owners(t); got != "a:1 b:1" {
			t.Errorf("then the owners are %s", got)
		}
		e.put(t, "events", "a", 100, 200)
		time.Sleep(time.Second)
		s.once(t, 200)
		a.stop()
		b.stop()
	})
}
