package guard

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// silent holds requests without a response, or with a response that does not end.
type silent struct {
	mu      sync.Mutex
	held    int           // requests that were cancelled; guarded by mu, as are all
	longest time.Duration // that one was held, beyond the wait that it asked for
	waits   time.Duration // the longest that one has asked for
}

// hold keeps a request until its client cancels it.
func (s *silent) hold(r *request) (*http.Response, error) {
	began := time.Now()
	end := func() {
		<-r.Context().Done()
		wait := waitOf(r.Header.Get(headerWait))
		s.mu.Lock()
		defer s.mu.Unlock()
		s.held, s.longest, s.waits = s.held+1, max(s.longest, time.Since(began)-wait), max(s.waits, wait)
	}
	if s.inBody() {
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, ContentLength: -1, Body: &unending{end}, Request: r.Request}, nil
	}
	end()
	return nil, r.Context().Err()
}

// inBody has every other answer begin.
func (s *silent) inBody() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held%2 == 1
}

// unending is a body without data or end.
type unending struct{ end func() }

func (b *unending) Read([]byte) (int, error) { b.end(); return 0, io.ErrUnexpectedEOF }
func (b *unending) Close() error             { return nil }

// An endpoint that falls silent while guard runs delays no call beyond its limit. guard retries
// rarely and logs little; items that came due meanwhile go soon after it has returned.
func TestSilence(t *testing.T) {
	t.Parallel()
	for _, strategy := range allStrategies {
		t.Run(string(strategy), func(t *testing.T) {
			bubbled(t, func(t *testing.T, w *world) {
				put := func(name string, seconds int) {
					ttl := fmt.Sprint(time.Now().Unix() + int64(seconds))
					w.put(name, ttl, windowed(ttl, time.Minute))
				}
				put("before", 20)
				put("during", 90)
				log := &logged{t: t}
				l := newLine(nil)
				o := Options{
					DB: w.db, Streams: w.streams, Table: worldTable, Attribute: "ttl", Strategy: strategy, Alone: true, LocalClock: true, Segments: 2, MaxRCU: 1000,
					Period: 5 * time.Second, Logger: slog.New(slog.NewTextHandler(log, nil)),
				}
				if strategy == Schedule {
					o.Scheduler, o.Role = w.Scheduler(), testRole
				}
				g, err := New(l.lay(o))
				must(t, err)
				r := w.run(g, nil)
				time.Sleep(time.Minute)
				if w.has("before") || !w.has("during") {
					t.Fatal("guard does not work")
				}
				s := &silent{}
				l.set(s.hold)
				before := l.requests()
				put("written", 30)
				const lasts = 10 * time.Minute
				time.Sleep(lasts)
				if n := l.requests() - before; n < 10 || n > 2000 {
					t.Errorf("%d requests in %v", n, lasts)
				}
				s.mu.Lock()
				if s.held == 0 || s.longest != answerLimit || s.waits > 15*time.Minute {
					t.Errorf("%d requests were cancelled, at the latest after %v beyond their waits, which were up to %v", s.held, s.longest, s.waits)
				}
				s.mu.Unlock()
				if n := log.count("WARN"); n == 0 || n > 400 {
					t.Errorf("there are %d warnings", n)
				}
				l.set(nil)
				time.Sleep(2 * time.Minute)
				if names := w.names(); strings.Contains(names, "during") {
					t.Errorf("when it has come back %q stay", names)
				}
				put("after", 5)
				time.Sleep(2 * time.Minute)
				if names := w.names(); names != "" && strategy != Scan {
					t.Errorf("long after it has come back %q stay", names)
				}
				must(t, r.stop())
			})
		})
	}
}

// guard asks for a short wait at first, and for a longer one if it is granted: only then is there a
// meaningful limit. An endpoint on a network grants 20 seconds.
func TestSilenceOfWaits(t *testing.T) {
	t.Parallel()
	for _, most := range []time.Duration{0, 20 * time.Second, time.Hour} {
		t.Run(fmt.Sprint("granted ", most), func(t *testing.T) {
			bubbled(t, func(t *testing.T, w *world) {
				var mu sync.Mutex
				var asked []time.Duration
				l := newLine(func(r *request) (*http.Response, error) {
					if r.operation != "GetRecords" || r.Header.Get(headerWait) == "" {
						return r.pass()
					}
					wait := waitOf(r.Header.Get(headerWait))
					mu.Lock()
					asked = append(asked, wait)
					mu.Unlock()
					if most == 0 {
						r.Header.Del(headerWait)
					} else if wait > most {
						r.Header.Set(headerWait, fmt.Sprint(most.Milliseconds()))
					}
					return r.pass()
				})
				o := Options{DB: w.db, Streams: w.streams, Table: worldTable, Attribute: "ttl", Strategy: Stream, Alone: true, LocalClock: true}
				g, err := New(l.lay(o))
				must(t, err)
				r := w.run(g, nil)
				time.Sleep(time.Hour)
				must(t, r.stop())
				mu.Lock()
				defer mu.Unlock()
				last := asked[len(asked)-1]
				if asked[0] != waitFirst || most <= waitFirst && last > 2*waitFirst || most > waitFirst && last < 10*time.Minute {
					t.Errorf("asked for %v at first, and for %v at last", asked[0], last)
				}
			})
		})
	}
}

// Silence is a transient failure, and a problem at the start, as with other unreachable endpoints.
func TestSilenceAtStart(t *testing.T) {
	t.Parallel()
	bubbled(t, func(t *testing.T, w *world) {
		g, err := New(newLine((&silent{}).hold).lay(Options{DB: w.db, Streams: w.streams, Table: worldTable, Attribute: "ttl", Strategy: Scan, MaxRCU: 1000}))
		must(t, err)
		began := time.Now()
		var p *Problem
		if err := g.Run(t.Context()); !errors.As(err, &p) || p.Code != Unavailable {
			t.Errorf("guard ends with %v", err)
		}
		if took := time.Since(began); took > prepareLimit {
			t.Errorf("only after %v", took)
		}
	})
}
