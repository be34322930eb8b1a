package consume_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
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

// tally counts calls. It makes the pages of a stream's description small, and can leave the filter of
// a description out, as an endpoint does that ignores it, or refuse it.
type tally struct {
	to               dynamodb.HTTPClient
	ignores, refuses bool
	older            bool // rows are written without an origin, as by an older version

	lists, filtered, saves atomic.Int64
}

const pageOfTally = 4 // shards

func (c *tally) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	switch {
	case operation == "DescribeStream":
		c.lists.Add(1)
		var in map[string]any
		if err := json.Unmarshal(body, &in); err != nil {
			return nil, err
		}
		if in["ShardFilter"] != nil {
			c.filtered.Add(1)
			if c.refuses {
				return &http.Response{
					StatusCode: http.StatusBadRequest, Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}}, Request: r,
					Body: io.NopCloser(strings.NewReader(`{"__type":"com.amazon.coral.validate#ValidationException","message":"unknown parameter"}`)),
				}, nil
			}
			if c.ignores {
				delete(in, "ShardFilter")
			}
		}
		in["Limit"] = pageOfTally
		if body, err = json.Marshal(in); err != nil {
			return nil, err
		}
	case operation == "PutItem" && bytes.Contains(body, []byte(`"beat"`)):
		if bytes.Contains(body, []byte(`"checkpoint"`)) {
			c.saves.Add(1)
		}
		if c.older {
			var in map[string]any
			if err := json.Unmarshal(body, &in); err != nil {
				return nil, err
			}
			delete(in["Item"].(map[string]any), "origin")
			if body, err = json.Marshal(in); err != nil {
				return nil, err
			}
		}
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return c.to.Do(r)
}

// counted returns the endpoint with clients whose calls are counted.
func (e *endpoint) counted(c *tally) *endpoint {
	db, streams := e.db.Options(), e.streams.Options()
	c.to = db.HTTPClient
	db.HTTPClient, streams.HTTPClient = c, c
	return &endpoint{e.DB, dynamodb.New(db), dynamodbstreams.New(streams)}
}

// A fleet learns at once of the child of a shard that has ended, although it lists all shards seldom:
// with one call a second, however many workers and shards there are. At endpoints that do not list
// the children of a shard alone, it lists all shards after each end.
func TestFleetListsSeldom(t *testing.T) {
	for _, c := range []struct {
		name  string
		calls *tally
	}{{"filter", &tally{}}, {"filter ignored", &tally{ignores: true}}, {"filter refused", &tally{refuses: true}}} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { testFleetLists(t, c.calls) })
		})
	}
}

func testFleetLists(t *testing.T, calls *tally) {
	e := open(t, "", mayfly.Options{Shards: 4, ShardBytes: 4 << 10})
	e.table(t, "events")
	const old, minutes, workers = 1000, 3, 8
	e.put(t, "events", "old", 0, old)
	all, s := e.counted(calls), newSeen()
	for i := range workers {
		defer all.join(t, fmt.Sprint("w", i), s).stop()
		time.Sleep(time.Second)
	}
	time.Sleep(time.Minute)
	if s.count() != old {
		t.Fatalf("%d of %d records have come", s.count(), old)
	}
	lists, finished := calls.lists.Load(), e.finished(t)
	for i := range 60 * minutes {
		e.put(t, "events", "new", i, i+1)
		time.Sleep(time.Second)
		if want := old + i + 1; s.count() < want-1 {
			t.Fatalf("%d of %d records have come", s.count(), want)
		}
	}
	time.Sleep(time.Second)
	s.once(t, old+60*minutes)
	lists, finished = calls.lists.Load()-lists, e.finished(t)-finished
	pages := (finished + old/20) / pageOfTally
	t.Logf("%d shards ended; %d calls in %d minutes, for at least %d pages; %d with a filter", finished, lists, minutes, pages, calls.filtered.Load())
	switch most := int64(60*minutes*4/3 + 2*pages + 2*finished); {
	case finished < 5 || pages < 10:
		t.Error("too few shards for the test")
	case !calls.ignores && !calls.refuses && lists > most:
		t.Errorf("the fleet has listed shards with %d calls, want at most %d", lists, most)
	case (calls.ignores || calls.refuses) && calls.filtered.Load() > workers:
		t.Errorf("%d calls with a filter that the endpoint does not apply", calls.filtered.Load())
	}
}

// Of the workers of a new fleet that begin together, one lists all shards. If it cannot, others do.
func TestFleetBeginsTogether(t *testing.T) {
	for _, cut := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			e := open(t, "", mayfly.Options{Shards: 4, ShardBytes: 4 << 10})
			e.table(t, "events")
			e.put(t, "events", "old", 0, 1000)
			calls := tally{}
			all, s := e.counted(&calls), newSeen()
			const workers, pages = 8, 14
			if cut {
				first := all.join(t, "first", s)
				defer first.stop()
				time.Sleep(100 * time.Millisecond)
				first.cut.Store(true)
			}
			for i := range workers {
				defer all.join(t, fmt.Sprint("w", i), s).stop()
			}
			time.Sleep(5 * time.Second)
			if lists := calls.lists.Load() - calls.filtered.Load(); lists > workers+2*pages {
				t.Errorf("%d calls list %d pages", lists, pages)
			}
			time.Sleep(time.Minute)
			s.once(t, 1000)
		})
	}
}

// Workers share the shards with workers of an older version, which write no origins, and replace them.
func TestFleetOfTwoVersions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := open(t, "", mayfly.Options{Shards: 4, ShardBytes: 4 << 10})
		e.table(t, "events")
		s, n := newSeen(), 0
		write := func(seconds int) {
			t.Helper()
			for range seconds {
				e.put(t, "events", "a", n, n+5)
				n += 5
				time.Sleep(time.Second)
			}
			time.Sleep(15 * time.Second) // a listing
			s.once(t, n)
		}
		older, newer := e.counted(&tally{older: true}), e.counted(&tally{})
		a := older.join(t, "a", s)
		write(20)
		b, c := older.join(t, "b", s), newer.join(t, "c", s)
		write(20)
		a.stop()
		d := newer.join(t, "d", s)
		write(20)
		b.stop()
		write(20)
		b = older.join(t, "b", s) // the update is undone
		c.stop()
		d.stop()
		write(20)
		b.stop()
	})
}

// A worker does not take a shard again that was trimmed since its last listing, and whose row another
// worker has deleted: nothing counts as lost.
func TestFleetOldList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := open(t, "", mayfly.Options{Shards: 1, ShardBytes: 4 << 10, StreamRetention: time.Hour, Frozen: true})
		e.table(t, "events")
		e.put(t, "events", "old", 0, 1000)
		calls := tally{}
		all, s, lost := e.counted(&calls), newSeen(), lostOf{}
		c := all.consumer(t, "events", s)
		c.Leases, c.Lost = lease.Options{}, lost.call
		stop := run(t, c.Run)
		time.Sleep(30 * time.Second)
		for before := calls.lists.Load(); calls.lists.Load() == before; {
			time.Sleep(time.Second)
		}
		time.Sleep(5 * time.Second) // the list is complete
		before := calls.lists.Load()
		_, err := e.Clock().Advance(t.Context(), 2*time.Hour)
		must(t, err)
		leases := lease.New(e.db, "test", lease.Options{})
		for _, row := range e.rows(t) {
			if row.Checkpoint == "end" {
				must(t, leases.Forget(t.Context(), row))
			}
		}
		time.Sleep(5 * time.Second)
		if calls.lists.Load() != before {
			t.Error("the list is not old")
		}
		time.Sleep(time.Minute)
		stop()
		s.once(t, 1000)
		if n := lost.calls(); n != 0 {
			t.Errorf("Lost was called %d times", n)
		}
	})
}

// The checkpoints of all shards have one partition key. However many shards are busy, their workers
// write at most 500 a second in all, and all of them in the end.
func TestCheckpointsArePaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := open(t, "", mayfly.Options{Shards: 64})
		e.table(t, "events")
		calls := tally{}
		all, s := e.counted(&calls), newSeen()
		for i := range 3 {
			defer all.join(t, fmt.Sprint("w", i), s).stop()
		}
		time.Sleep(20 * time.Second) // the shares are fair
		before := calls.saves.Load()
		const seconds, each = 2, 300
		for i := range 25 * seconds {
			e.put(t, "events", "a", each*i, each*(i+1))
			time.Sleep(40 * time.Millisecond)
		}
		saves := calls.saves.Load() - before
		t.Logf("%d checkpoints in %d seconds", saves, seconds)
		if saves > 500*seconds+64 || saves < 250*seconds {
			t.Errorf("%d checkpoints in %d seconds, want some 500 a second", saves, seconds)
		}
		time.Sleep(time.Second)
		s.mu.Lock()
		defer s.mu.Unlock()
		for shard, row := range e.rows(t) {
			if order := s.order[shard]; consume.IsShard(shard) && row.Checkpoint != order[len(order)-1] {
				t.Errorf("the last checkpoint of %s is missing", shard)
			}
		}
	})
}

// finished returns the number of finished shards.
func (e *endpoint) finished(t *testing.T) (n int) {
	for _, r := range e.rows(t) {
		if r.Checkpoint == "end" {
			n++
		}
	}
	return n
}
