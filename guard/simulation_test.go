package guard

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/guard/internal/table"
	"github.com/mayflydb/mayfly/internal/clock"
)

// A simulation is a fleet of workers, a database and its users in one bubble of virtual time. The
// workers' clocks are wrong and run at wrong speeds. Their requests are late, refused or lose their
// responses. They die and come back. The events follow from the seed, except for the order in which
// goroutines run at one instant.
//
//	go test ./guard -run Simulation -seeds 100 [-seed 17] [-stops 5000]

var (
	seedCount = flag.Int("seeds", 1, "how many seeds a simulation is run with")
	seedFirst = flag.Uint64("seed", 1, "the first of them")
)

// simulation is one run.
type simulation struct {
	t        *testing.T
	w        *world
	strategy Strategy
	// for the actions of users and machines; only the test's goroutine uses it
	plot    *rand.Rand
	window  time.Duration // the length of the index's windows
	mu      sync.Mutex
	dice    *rand.Rand    // of the network; guarded by mu
	mood    mood          // guarded by mu
	inside  int           // requests at the endpoint; guarded by mu
	landed  chan struct{} // closed but for the time of a leap; guarded by mu
	members []*member
	items   map[string]*simItem
	checks  []check // by instant
	made    int
	writes  int
	checked int
	account account
	over    bool // something has gone wrong, and there is no sense in going on
}

// account counts the outcomes of deadlines.
type account struct {
	written int // deadlines that users have written
	putOff  int // that an item had no longer when they came
	due     int // that came
	gone    int // items that were seen to be gone after their deadline
	// items that a user has written or deleted after their deadline, before they were seen to be
	// gone
	late int
}

// mood has the probabilities of faults of requests at present, in percent.
type mood struct{ throttled, broken, lost, unsent int }

// member is a place in the fleet, with a machine's clock.
type member struct {
	name  string
	clock *clock.Clock
	line  *line
	guard atomic.Pointer[Guard]
	stop  context.CancelFunc
	over  chan struct{}
	err   error
	old   []*member // that are about to end
}

// simItem is the users' knowledge of an item.
type simItem struct {
	at  int64 // its deadline in ms; 0: none
	gen int   // number of the write
	due bool  // its deadline has come
}

// check is an instant at which an item has to be there, if its deadline is the same still.
type check struct {
	at   time.Time
	name string
	gen  int
}

const (
	simBound = 2 * time.Minute // after the last fault, for all that is due
)

// simBusy is the maximum number of requests per second of an idle fleet, with leases of five
// seconds. See TestIdleStreamFleet.
var simBusy = map[Strategy]int{Stream: 20, Index: 15, Schedule: 15, Scan: 15}

// now is the database's clock.
func (s *simulation) now() time.Time { return s.w.now() }

// choose returns a number below n, for the plot.
func (s *simulation) choose(n int) int { return s.plot.IntN(n) }

// chooseTime returns a duration of at least a millisecond, and at most most.
func (s *simulation) chooseTime(most time.Duration) time.Duration {
	return time.Duration(1+s.plot.Int64N(most.Milliseconds())) * time.Millisecond
}

func (s *simulation) roll(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dice.IntN(n)
}

func (s *simulation) feels() mood {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mood
}

func (s *simulation) feel(m mood) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mood = m
}

// anyMood returns one of the possible moods.
func (s *simulation) anyMood() mood {
	return []mood{{}, {throttled: 50}, {lost: 20, unsent: 10}, {broken: 40}, {throttled: 95}, {unsent: 90}}[s.choose(6)]
}

// send is how the requests of workers go: slowly, and not always well.
func (s *simulation) send(r *request) (*http.Response, error) {
	if err := s.travel(r.Context()); err != nil {
		return nil, err
	}
	m, luck := s.feels(), s.roll(100)
	var answer *http.Response
	var err error
	switch {
	case luck < m.throttled:
		answer, err = r.throttle()
	case luck < m.throttled+m.broken:
		answer, err = r.refuse(http.StatusInternalServerError, "InternalServerError")
	case luck < m.throttled+m.broken+m.lost:
		answer, err = s.atEndpoint(r, r.lose)
	case luck < m.throttled+m.broken+m.lost+m.unsent:
		return nil, errors.New("the connection was refused")
	default:
		answer, err = s.atEndpoint(r, r.pass)
	}
	if err != nil {
		return nil, err
	}
	return answer, s.travel(r.Context())
}

// atEndpoint sends a request between leaps. Reading a stream waits for records over any number of
// leaps, so its response does not show the time.
func (s *simulation) atEndpoint(r *request, send func() (*http.Response, error)) (*http.Response, error) {
	if r.operation == "GetRecords" {
		answer, err := send()
		if err == nil {
			answer.Header.Del("Date")
		}
		return answer, err
	}
	for !s.enter() {
		<-s.landing()
	}
	defer s.leave()
	return send()
}

func (s *simulation) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !closed(s.landed) {
		return false
	}
	s.inside++
	return true
}

func (s *simulation) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inside--
}

func (s *simulation) landing() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.landed
}

// leap advances the clocks of the database and the workers, as if nothing had happened in that
// time. The errors of workers' clocks change with their drift, but are limited, as by a time
// service.
func (s *simulation) leap(by time.Duration) {
	if by <= 0 {
		return
	}
	s.mu.Lock()
	landed := make(chan struct{})
	s.landed = landed
	s.mu.Unlock()
	for inside := 1; inside > 0; time.Sleep(time.Millisecond) {
		s.mu.Lock()
		inside = s.inside
		s.mu.Unlock()
	}
	before := s.now()
	_, err := s.w.Clock().Advance(context.Background(), by)
	must(s.t, err)
	by = s.now().Sub(before)
	for _, m := range s.members {
		const most, ppm = 3 * time.Second, 1_000_000
		ahead := m.clock.Now().Sub(before)
		after := ahead + by/ppm*time.Duration(s.choose(300)-150)
		must(s.t, m.clock.Advance(max(by+min(max(after, min(ahead, -most)), max(ahead, most))-ahead, 0)))
	}
	close(landed)
}

func (s *simulation) travel(ctx context.Context) error {
	select {
	case <-time.After(time.Duration(1+s.roll(30)) * time.Millisecond):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// begin runs a worker at a member's place.
func (s *simulation) begin(m *member, change func(*Options)) {
	o := Options{
		DB: s.w.db, Streams: s.w.streams, Table: worldTable, Attribute: "ttl", Strategy: s.strategy, Lease: 5 * time.Second, MaxRCU: 1000,
		Granularity: s.window, Owner: fmt.Sprintf("%s-%d", m.name, len(m.old)),
	}
	if s.strategy == Schedule {
		o.Scheduler, o.Role = s.w.Scheduler(), testRole
	}
	if change != nil {
		change(&o)
	}
	o.clock = m.clock
	m.line = newLine(s.send)
	g, err := New(m.line.lay(o))
	must(s.t, err)
	m.guard.Store(g)
	ctx, stop := context.WithCancel(context.Background())
	m.stop, m.over, m.err = stop, make(chan struct{}), nil
	over, l := m.over, m.line
	go func() {
		defer close(over)
		for ctx.Err() == nil { // the operator starts it again if it could not begin
			err := g.Run(ctx)
			var p *Problem
			if errors.As(err, &p) && p.Code == Unavailable {
				time.Sleep(time.Second)
				if g, err = New(l.lay(o)); err != nil {
					return
				}
				m.guard.Store(g)
				continue
			}
			if err != nil {
				s.t.Errorf("worker %s ended with %v", m.name, err)
			}
			return
		}
	}()
}

// crash lets a member's worker die.
func (s *simulation) crash(m *member) {
	if m.stop == nil {
		return
	}
	m.line.kill()
	m.stop()
	m.old = append(m.old, &member{over: m.over, line: m.line})
	m.stop = nil
}

func (s *simulation) requests() (n int) {
	for _, m := range s.members {
		if m.stop != nil {
			n += m.line.requests()
		}
	}
	return n
}

// act is something that a user does.
func (s *simulation) act(longest time.Duration) {
	name := fmt.Sprint("item", s.choose(1+s.made))
	life := s.chooseTime(longest)
	switch s.choose(10) {
	case 0, 1, 2, 3, 4:
		s.write(s.fresh(), life)
	case 5, 6, 7:
		s.write(name, life) // renewed, or written anew
	case 8:
		s.w.put(name, "")
		s.note(name, 0)
	case 9:
		s.w.remove(name)
		s.ends(name)
	}
}

// fresh is the name of an item that there was never before.
func (s *simulation) fresh() string {
	s.made++
	return fmt.Sprint("item", s.made-1)
}

// write sets an item's deadline. The index strategy's writers use whole seconds.
func (s *simulation) write(name string, life time.Duration) {
	at := s.now().Add(life).UnixMilli()
	ttl := fmt.Sprintf("%d.%03d", at/1000, at%1000)
	if s.strategy == Index || s.choose(2) == 0 {
		at -= at % 1000
		ttl = fmt.Sprint(at / 1000)
	}
	s.w.put(name, ttl, text(windowAttribute, Window(table.WholeSeconds(at), s.window)))
	s.note(name, at)
}

// ends removes an item from the users' knowledge.
func (s *simulation) ends(name string) {
	item := s.items[name]
	delete(s.items, name)
	switch {
	case item == nil || item.at == 0:
	case item.due:
		s.account.late++
	default:
		s.account.putOff++
	}
}

func (s *simulation) note(name string, at int64) {
	s.ends(name)
	s.writes++
	item := &simItem{at: at, gen: s.writes}
	s.items[name] = item
	due := time.UnixMilli(at - 1)
	if at == 0 {
		due = s.now().Add(time.Minute)
	} else {
		s.account.written++
	}
	if due.Before(s.now()) {
		s.comesDue(item)
		return
	}
	i, _ := slices.BinarySearchFunc(s.checks, due, func(c check, t time.Time) int { return c.at.Compare(t) })
	s.checks = slices.Insert(s.checks, i, check{due, name, s.writes})
}

func (s *simulation) comesDue(item *simItem) {
	item.due = true
	s.account.due++
}

// pass advances the clock to an instant, and checks on the way that existing items are there.
func (s *simulation) pass(until time.Time) {
	for len(s.checks) > 0 && !s.checks[0].at.After(until) {
		c := s.checks[0]
		s.checks = s.checks[1:]
		time.Sleep(c.at.Sub(s.now()))
		synctest.Wait()
		item := s.items[c.name]
		if item == nil || item.gen != c.gen {
			continue
		}
		s.checked++
		if !s.w.has(c.name) {
			s.t.Errorf("%s, deadline %d, is gone at %v", c.name, item.at, s.now().UnixMilli())
		}
		if item.at != 0 {
			s.comesDue(item)
		}
	}
	time.Sleep(until.Sub(s.now()))
}

// overdue are the items that are there although their deadline is past.
func (s *simulation) overdue() (all []string) {
	now := s.now().UnixMilli()
	for name, item := range s.items {
		if item.at == 0 || item.at > now {
			continue
		}
		if s.w.has(name) {
			all = append(all, name)
			continue
		}
		delete(s.items, name)
		s.account.gone++
	}
	return all
}

// simulate opens a world in a bubble, has something happen in it, and ends it.
func simulate(t *testing.T, strategy Strategy, happen func(s *simulation)) {
	for seed := *seedFirst; seed < *seedFirst+uint64(*seedCount); seed++ {
		t.Run(fmt.Sprintf("%s seed %d", strategy, seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &world{t: t}
				withWindows(w)
				db, err := mayfly.Open("", mayfly.Options{Expiry: mayfly.ExpiryAWS, ExpiryDelay: "fixed:8784h"})
				must(t, err)
				w.DB, w.db, w.streams = db, db.DynamoDB(), db.Streams()
				w.createTable(worldTable)
				s := &simulation{
					t: t, w: w, strategy: strategy, plot: rand.New(rand.NewPCG(seed, 6)), window: time.Minute, dice: rand.New(rand.NewPCG(seed, 5)), landed: make(chan struct{}),
					items: map[string]*simItem{},
				}
				close(s.landed)
				for i := range 3 {
					m := &member{name: fmt.Sprint("worker", i), clock: clock.NewAt(time.Now().Add(time.Duration(s.choose(6000)-3000) * time.Millisecond))}
					// of the machine, for any process on it
					must(t, m.clock.SetRate(1+float64(s.choose(300)-150)/1e6))
					s.members = append(s.members, m)
				}
				time.Sleep(s.chooseTime(time.Second))
				happen(s)
				for _, m := range s.members {
					s.crash(m)
					for _, o := range m.old {
						<-o.over
					}
				}
				t.Logf("%d items, looked at %d times; %+v; seed %d", s.made, s.checked, s.account, seed)
				must(t, db.Close())
			})
		})
	}
}

// TestSimulation: a fleet in bad times, and then good ones. Nothing goes early or after a renewal,
// and all due items go soon after the last fault; then the fleet is idle, and makes few requests.
func TestSimulation(t *testing.T) {
	t.Parallel()
	for _, strategy := range allStrategies {
		simulate(t, strategy, func(s *simulation) {
			const bad, longest = 2 * time.Minute, time.Minute
			for range 20 {
				s.act(longest)
			}
			for _, m := range s.members {
				s.begin(m, nil)
			}
			end, change := s.now().Add(bad), s.now()
			for s.now().Before(end) {
				s.pass(s.now().Add(s.chooseTime(2 * time.Second)))
				s.act(longest)
				if s.now().Before(change) {
					continue
				}
				change = s.now().Add(time.Duration(5+s.choose(30)) * time.Second)
				s.feel(s.anyMood())
				m := s.members[s.choose(len(s.members))]
				if s.crash(m); s.choose(4) > 0 {
					s.begin(m, nil)
				}
			}
			s.feel(mood{})
			if s.members[0].stop == nil {
				s.begin(s.members[0], nil)
			}
			s.pass(s.now().Add(simBound))
			if left := s.overdue(); len(left) > 0 {
				s.t.Errorf("%d items are there %v after the last fault: %v", len(left), simBound, left)
			}
			if a := s.account; a.due < 40 || a.gone < 30 || a.putOff < 20 {
				s.t.Errorf("too mild: %+v", a)
			}
			before := s.requests()
			const idle = time.Minute
			s.pass(s.now().Add(idle))
			if n := s.requests() - before; n > simBusy[strategy]*int(idle/time.Second) {
				s.t.Errorf("%d requests in %v without anything to do", n, idle)
				for _, m := range s.members {
					if m.stop != nil {
						s.t.Logf("%s: since it began: %v", m.name, m.line.sent)
					}
				}
			} else {
				s.t.Logf("%.1f requests a second without anything to do", float64(n)/idle.Seconds())
			}
		})
	}
}
