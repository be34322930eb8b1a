package consume_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
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
	trimmed          bool          // shards that calls name are gone: a parent always, the last of a page sometimes
	late             time.Duration // after which a shard with a parent is listed
	onePage          bool          // all shards fit into a page
	older            bool          // as by an older version, rows have no origins, and none are written for others
	onFilter         func()        // called before a description with a filter; nil: nothing

	lists, filtered, saves atomic.Int64

	mu    sync.Mutex
	first map[string]time.Time // by shard: when it was described first
}

const pageOfTally = 4 // shards

// refusal returns an error of the endpoint.
func refusal(r *http.Request, code, message string) *http.Response {
	return answer(r, http.StatusBadRequest, fmt.Sprintf(`{"__type":"com.amazonaws.dynamodb.v20120810#%s","message":%q}`, code, message))
}

func answer(r *http.Request, status int, body string) *http.Response {
	return &http.Response{
		StatusCode: status, Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}}, Request: r, Body: io.NopCloser(strings.NewReader(body)),
	}
}

// describe leaves the shards out that are not listed yet.
func (c *tally) describe(r *http.Request) (*http.Response, error) {
	answer, err := c.to.Do(r)
	if err != nil || answer.StatusCode != http.StatusOK {
		return answer, err
	}
	var out struct{ StreamDescription map[string]any }
	err = errors.Join(json.NewDecoder(answer.Body).Decode(&out), answer.Body.Close())
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	listed := []any{}
	shards, _ := out.StreamDescription["Shards"].([]any)
	for _, one := range shards {
		shard, _ := one.(map[string]any)
		id, _ := shard["ShardId"].(string)
		if c.first[id].IsZero() {
			c.first[id] = time.Now()
		}
		if shard["ParentShardId"] == nil || time.Since(c.first[id]) >= c.late {
			listed = append(listed, one)
		}
	}
	out.StreamDescription["Shards"] = listed
	body, err := json.Marshal(out)
	if err != nil {
		return nil, err
	}
	answer.Header.Del("X-Amz-Crc32")
	answer.Header.Set("Content-Length", fmt.Sprint(len(body)))
	answer.Body, answer.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return answer, nil
}

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
			if c.onFilter != nil {
				c.onFilter()
			}
			if c.refuses {
				return refusal(r, "ValidationException", "unknown parameter"), nil
			}
			if c.ignores {
				delete(in, "ShardFilter")
			}
		}
		if c.trimmed && (in["ShardFilter"] != nil || in["ExclusiveStartShardId"] != nil && c.lists.Load()%40 == 10) {
			return refusal(r, "ResourceNotFoundException", "Requested resource not found: Shard does not exist"), nil
		}
		if !c.onePage {
			in["Limit"] = pageOfTally
		}
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
			row := in["Item"].(map[string]any)
			if row["owner"] == nil && row["origin"] != nil {
				return answer(r, http.StatusOK, "{}"), nil
			}
			delete(row, "origin")
			if body, err = json.Marshal(in); err != nil {
				return nil, err
			}
		}
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	if operation == "DescribeStream" && c.late > 0 {
		return c.describe(r)
	}
	return c.to.Do(r)
}

// counted returns the endpoint with clients whose calls are counted.
func (e *endpoint) counted(c *tally) *endpoint {
	db, streams := e.db.Options(), e.streams.Options()
	c.to, c.first = db.HTTPClient, map[string]time.Time{}
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

// A worker that asks for the children of a shard that was trimmed meanwhile, or for the shards after
// it, learns that it is gone: the stream is not. The worker reads all that comes.
func TestListsAfterTrimming(t *testing.T) {
	for _, exclusive := range []bool{false, true} {
		t.Run(fmt.Sprint("exclusive ", exclusive), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := open(t, "", mayfly.Options{Shards: 4, ShardBytes: 4 << 10})
				e.table(t, "events")
				const old, seconds = 1000, 120
				e.put(t, "events", "old", 0, old)
				calls, s := tally{trimmed: true}, newSeen()
				c := e.counted(&calls).consumer(t, "events", s)
				c.Leases.Exclusive = exclusive
				defer run(t, c.Run)()
				time.Sleep(time.Minute)
				for i := range seconds {
					e.put(t, "events", "new", i, i+1)
					time.Sleep(time.Second)
				}
				time.Sleep(30 * time.Second)
				s.once(t, old+seconds)
				if calls.filtered.Load() == 0 {
					t.Error("no children were asked for")
				}
			})
		})
	}
}

// A worker that dies when it has finished a shard, and before others know the shard's children, leaves
// the children unread for not much longer than its other shards.
func TestFinisherDies(t *testing.T) {
	for range 4 {
		synctest.Test(t, func(t *testing.T) {
			e := open(t, "", mayfly.Options{Shards: 4, ShardBytes: 4 << 10})
			e.table(t, "events")
			const old = 3000 // in so many shards that all are listed every two minutes
			e.put(t, "events", "old", 0, old)
			s := newSeen()
			var died atomic.Bool
			members := [3]*member{}
			for i := range members {
				calls := &tally{}
				defer func() { members[i].stop() }()
				members[i] = e.counted(calls).join(t, fmt.Sprint("w", i), s)
				time.Sleep(2 * time.Minute)
				calls.onFilter = func() {
					if died.CompareAndSwap(false, true) {
						members[i].cut.Store(true)
					}
				}
			}
			s.once(t, old)
			n := 0
			for ; !died.Load(); n++ {
				e.put(t, "events", "new", n, n+1)
				time.Sleep(100 * time.Millisecond)
			}
			e.put(t, "events", "new", n, n+5)
			time.Sleep(24 * time.Second) // two leases, and the calls of a listing
			s.once(t, old+n+5)
		})
	}
}

// A shard that is listed some seconds after its parent's end is read then, without another event.
func TestListsLateChildren(t *testing.T) {
	for _, exclusive := range []bool{false, true} {
		for _, onePage := range []bool{false, true} {
			t.Run(fmt.Sprint("exclusive ", exclusive, ", one page ", onePage), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { listsLateChildren(t, exclusive, onePage) })
			})
		}
	}
}

func listsLateChildren(t *testing.T, exclusive, onePage bool) {
	e := open(t, "", mayfly.Options{Shards: 4, ShardBytes: 4 << 10})
	e.table(t, "events")
	s := newSeen()
	c := e.counted(&tally{late: 3 * time.Second, onePage: onePage}).consumer(t, "events", s)
	c.Leases.Exclusive = exclusive
	defer run(t, c.Run)()
	time.Sleep(30 * time.Second)
	n := 0
	for ; e.shards(t) == 4; n++ { // so that the other shards stay open, and nothing else happens
		e.put(t, "events", "a", n, n+1)
	}
	e.put(t, "events", "a", n, n+8)
	time.Sleep(8 * time.Second) // less than between two listings
	s.once(t, n+8)
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
		older, newer := e.counted(&tally{older: true, refuses: true}), e.counted(&tally{})
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

// A worker that still reads a stream keeps the rows of a newer one of the table, and deletes those of
// an older one, whose records are lost.
func TestKeepsRowsOfNewerStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := open(t, "", mayfly.Options{})
		e.table(t, "events")
		s, lost := newSeen(), lostOf{}
		leases := lease.New(e.db, "test", lease.Options{})
		c := e.consumer(t, "events", s)
		c.Leases, c.Lost = lease.Options{}, lost.call
		defer run(t, c.Run)()
		time.Sleep(10 * time.Second)
		note := func(row lease.Row) {
			t.Helper()
			_, err := leases.Create(t.Context(), row)
			must(t, err)
			time.Sleep(2 * time.Minute)
		}
		note(lease.Row{Shard: "newer", Origin: "2999-01-01T00:00:00.000 1"})
		if !e.rows(t)["newer"].Exists() || lost.calls() > 0 {
			t.Errorf("the row of the newer stream: %+v; losses: %d", e.rows(t)["newer"], lost.calls())
		}
		note(lease.Row{Shard: "older", Origin: "1999-01-01T00:00:00.000 1"})
		if e.rows(t)["older"].Exists() || lost.calls() != 1 {
			t.Errorf("the row of the older stream: %+v; losses: %d", e.rows(t)["older"], lost.calls())
		}
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

// shards returns the number of the stream's shards.
func (e *endpoint) shards(t *testing.T) (n int) {
	d, err := e.db.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String("events")})
	must(t, err)
	in := &dynamodbstreams.DescribeStreamInput{StreamArn: d.Table.LatestStreamArn}
	for {
		out, err := e.streams.DescribeStream(t.Context(), in)
		must(t, err)
		n += len(out.StreamDescription.Shards)
		if in.ExclusiveStartShardId = out.StreamDescription.LastEvaluatedShardId; in.ExclusiveStartShardId == nil {
			return n
		}
	}
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
