package guard

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/guard/internal/armed"
)

// If the endpoint rejects the removal of an item, guard retries it with growing pauses and logs it
// once; others go on time. When it can be removed, it goes.
func TestGivesUpForAWhile(t *testing.T) {
	t.Parallel()
	inAll(t, func(t *testing.T, strategy Strategy) {
		s := newSite(t, strategy)
		var attempts atomic.Int64
		s.line.set(func(r *request) (*http.Response, error) {
			if r.operation == "DeleteItem" && r.table() == worldTable && strings.Contains(r.body, "poison") {
				attempts.Add(1)
				return r.refuse(400, "ValidationException")
			}
			return s.pass(r)
		})
		s.start()
		s.put("poison", s.in(1), windowed(s.in(1), time.Minute))
		s.advance(5 * time.Second) // if a sweep came before the item, the next one is five seconds later
		s.running.awaitCount(Failed, 1)
		for range 30 {
			s.advance(20 * time.Second)
			s.works()
		}
		// at 0, 1, 3, 7 and 15 minutes
		if n := attempts.Load(); n > 6 || n > 1 && strategy == Schedule {
			t.Errorf("%d attempts within ten minutes", n)
		}
		if n := s.log.count("cannot be removed"); n != 1 {
			t.Errorf("logged %d times", n)
		}
		st := s.running.Stats()
		if st.GivenUp != 1 || st.Counts[Failed] != attempts.Load() || int64(len(s.events.of(Failed))) != attempts.Load() {
			t.Errorf("%d were rejected, and %d attempts have failed", st.GivenUp, st.Counts[Failed])
		}
		if strategy == Schedule { // it finds an item only once, by its record
			return
		}
		s.line.set(s.pass)
		s.running.await("it goes in the end", func() bool {
			s.advance(30 * time.Second)
			return !s.has("poison")
		})
		await(t, "it is forgotten", func() bool { return s.running.Stats().GivenUp == 0 })
	})
}

// A worker that is alone never polls, but retries rejected removals, including those that were
// overdue when it found them.
func TestGivesUpForAWhileAlone(t *testing.T) {
	t.Parallel()
	s := newSite(t, Stream)
	s.options.Alone = true
	s.line.set(func(r *request) (*http.Response, error) {
		if r.operation == "DeleteItem" && r.table() == worldTable {
			return r.refuse(400, "ValidationException")
		}
		return s.pass(r)
	})
	s.put("overdue", s.in(-5))
	s.start()
	s.running.awaitCount(Failed, 1)
	s.line.set(s.pass)
	s.running.await("it goes in the end", func() bool {
		s.advance(10 * time.Minute)
		return !s.has("overdue")
	})
}

// A transient failure of many removals is logged once a minute.
func TestTransientFailuresAreLoggedOncePerMinute(t *testing.T) {
	t.Parallel()
	s := newSite(t, Scan)
	s.line.set(func(r *request) (*http.Response, error) {
		if r.operation == "DeleteItem" {
			return r.refuse(500, "InternalServerError")
		}
		return s.pass(r)
	})
	s.fill("x", 10, s.in(0))
	s.start()
	s.running.awaitCount(Retried, 15)
	if n := s.log.count("cannot be removed for now"); n != 1 {
		t.Errorf("logged %d times", n)
	}
	s.line.set(s.pass)
	s.running.awaitCount(Removed, 1)
}

// Values that are no epoch seconds are reported once for a while, however often they are read.
func TestBadValuesOnceForAllPasses(t *testing.T) {
	for _, strategy := range []Strategy{Index, Scan} {
		t.Run(string(strategy), func(t *testing.T) {
			t.Parallel()
			s := newSite(t, strategy)
			for i := range 20 {
				s.put(fmt.Sprint("ms", i), s.in(int64(i))+"000", text(windowAttribute, "a window"))
			}
			s.put("keeps", s.in(1e9), windowed(s.in(1e9), time.Minute))
			s.start()
			s.running.await("all are reported", func() bool {
				s.advance(10 * time.Minute) // the patrol of an index is slow
				return s.running.Stats().Counts[BadValue] >= 20
			})
			reads := func() int { return s.sent()["Scan "+worldTable] }
			for range 3 {
				before := reads()
				s.running.await("all are read again", func() bool {
					s.advance(10 * time.Minute)
					return reads() >= before+4
				})
			}
			if n := s.running.Stats().Counts[BadValue]; n != 20 || s.log.count("not epoch seconds") != 20 {
				t.Errorf("%d reports", n)
			}
			if s.count() != 21 {
				t.Error("some are gone")
			}
		})
	}
}

// messageFilter remembers messages for at least half a day, up to a limit. Beyond that it rejects
// new ones, instead of accepting all of them repeatedly.
func TestMessageFilter(t *testing.T) {
	t.Parallel()
	filter := newMessageFilter()
	filter.most = 10
	half := (filterFor / 2).Milliseconds()
	round := func(at int64, from, to int) (n, last int) {
		for i := from; i < to; i++ {
			first, isLast := filter.first(fmt.Sprint(i), at)
			if first {
				n++
			}
			if isLast {
				last++
			}
		}
		return n, last
	}
	for i, c := range []struct {
		at             int64
		from, to       int
		wantN, wantEnd int
	}{
		{0, 0, 5, 5, 0}, {1, 0, 5, 0, 0}, {half - 1, 0, 30, 5, 1}, {half - 1, 0, 30, 0, 0},
		{half, 0, 10, 0, 0}, {half, 10, 30, 10, 1}, // ten more half a day later
		// and the messages of the first half day again
		{2 * half, 0, 10, 10, 1}, {2 * half, 10, 20, 0, 0},
		{half, 0, 10, 0, 0}, // a clock that goes back
	} {
		if n, last := round(c.at, c.from, c.to); n != c.wantN || last != c.wantEnd {
			t.Errorf("step %d: accepted %d, and the last one %d times", i, n, last)
		}
		if len(filter.mu.now) > filter.most || len(filter.mu.before) > filter.most {
			t.Errorf("step %d: more is remembered than allowed", i)
		}
	}
}

// A rejected removal rests twice as long each time, up to half an hour; another deadline of the
// item does not. The memory is bounded.
func TestGivenUp(t *testing.T) {
	t.Parallel()
	g := newGivenUp()
	g.most = 3
	a, now := armed.Entry{Key: "a", At: 1000}, int64(0)
	for i, minutes := range []int64{1, 2, 4, 8, 16, 30, 30} {
		g.add(a, now)
		if end := now + minutes*60_000; !g.rests(a, end-1) || g.rests(a, end) {
			t.Errorf("after attempt %d it does not rest for %d minutes", i+1, minutes)
		} else {
			now = end
		}
	}
	if g.add(a, now); g.rests(armed.Entry{Key: "a", At: 2000}, now) || g.rests(armed.Entry{Key: "a", At: 1000, Version: `{"N":"1"}`}, now) || !g.rests(armed.Entry{Key: "a", At: 1000, Value: "1"}, now) {
		t.Error("the wrong ones rest")
	}
	for i := range 5 {
		g.add(armed.Entry{Key: armed.Key(fmt.Sprint("b", i))}, now)
	}
	if len(g.mu.all) != 3 || g.count(now) != 3 {
		t.Errorf("%d are remembered, %d counted", len(g.mu.all), g.count(now))
	}
	later := now + 2*time.Hour.Milliseconds()
	if g.add(a, later); g.count(later) != 1 {
		t.Errorf("%d are counted that were not tried for long", g.count(later))
	}
	g.add(armed.Entry{Key: "c"}, later)
	if g.end(a); g.rests(a, later) || len(g.mu.all) != 1 {
		t.Errorf("%d are remembered of the past", len(g.mu.all))
	}
}

// Adding removals beyond the limit does not visit all of the remembered ones each time.
func TestGivenUpBeyondTheBound(t *testing.T) {
	t.Parallel()
	g := newGivenUp()
	for i := range g.most {
		g.mu.all[uint64(i)] = setback{until: 0, pause: givenUpFirst}
	}
	now := givenUpMost.Milliseconds()
	g.add(armed.Entry{Key: "beyond"}, now)
	swept := g.mu.swept
	for range 100 {
		now += 500
		g.add(armed.Entry{Key: "beyond"}, now)
	}
	if g.mu.swept != swept || len(g.mu.all) != g.most {
		t.Error("all were looked at within a minute")
	}
	if now += 10_000; true {
		g.add(armed.Entry{Key: "beyond"}, now)
	}
	if g.mu.swept != now || len(g.mu.all) != 1 {
		t.Errorf("%d are remembered of the past", len(g.mu.all))
	}
}

// oncePerMinute accepts a cause once a minute, and its memory is bounded.
func TestOncePerMinute(t *testing.T) {
	t.Parallel()
	var s oncePerMinute
	for i, c := range []struct {
		what string
		at   int64
		want bool
	}{{"a", 0, true}, {"a", 59_999, false}, {"b", 1, true}, {"a", 60_000, true}, {"a", 0, true}} {
		if got := s.now(c.what, c.at); got != c.want {
			t.Errorf("step %d: %v", i, got)
		}
	}
	for i := range 3 * causesMost {
		s.now(fmt.Sprint(i), 0)
	}
	if len(s.mu.at) > causesMost {
		t.Errorf("%d causes are remembered", len(s.mu.at))
	}
}

// If the table's own TTL has another attribute than Options, guard logs that, and uses the one in
// Options.
func TestAnotherAttributeThanTheTables(t *testing.T) {
	t.Parallel()
	s := newSite(t, Scan)
	s.disableTTL()
	s.enableTTL("expires")
	s.put("theirs", "", map[string]types.AttributeValue{"expires": &types.AttributeValueMemberN{Value: s.in(-100)}})
	s.start()
	s.works()
	if s.log.count("another attribute") != 1 || !s.has("theirs") {
		t.Error("it is not said, or the wrong attribute counts")
	}
}
