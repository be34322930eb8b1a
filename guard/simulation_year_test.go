package guard

import (
	"flag"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/testkit"
)

var yearStops = flag.Int("stops", 0, "how often users and machines do something in a simulated year; 0: as often as takes some seconds")

// yearly is the number of deadlines in a year. Stream's fleets poll their partitions all the time,
// which takes most of the time.
var yearly = testkit.Size(map[Strategy]int{Stream: 10, Index: 20, Schedule: 15, Scan: 30}, map[Strategy]int{Stream: 30, Index: 60, Schedule: 25, Scan: 100})

const year = 365 * 24 * time.Hour

// TestSimulationYear: a year of deadlines, and a fleet that lives through all of it, with crashes,
// throttles, wrong clocks, and weeks without a worker. Time advances from one deadline to the next,
// since nothing happens in between. In the end each deadline is accounted for.
//
//	go test ./guard -run SimulationYear -seed 17 [-seeds 10] [-stops 5000] -timeout 1h
func TestSimulationYear(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("a year takes long with -race, and does nothing that TestSimulation does not")
	}
	for _, strategy := range allStrategies {
		simulate(t, strategy, func(s *simulation) {
			s.window = time.Hour
			stops := yearly[strategy]
			if *yearStops > 0 {
				stops = *yearStops
			}
			s.year(stops)
		})
	}
}

// year lets a year pass.
func (s *simulation) year(stops int) {
	for _, m := range s.members {
		s.begin(m, nil)
	}
	end := s.now().Add(year)
	for s.now().Before(end) && !s.over {
		for range s.choose(4) {
			s.act([]time.Duration{year / 6, year / 50, 24 * time.Hour, time.Minute}[s.choose(4)])
		}
		// some that are due about together
		for life := s.chooseTime(year / 3); s.choose(10) > 0; life += s.chooseTime(time.Second) {
			s.write(s.fresh(), life)
		}
		s.machines()
		s.reach(min(s.now().Add(s.chooseTime(2*year/time.Duration(stops))).UnixMilli(), end.UnixMilli()))
	}
	s.feel(mood{})
	for _, m := range s.members {
		if m.stop == nil {
			s.begin(m, nil)
		}
	}
	if s.settle(); !s.over {
		s.balance()
	}
}

// machines has something happen to the fleet, or the network.
func (s *simulation) machines() {
	switch s.choose(8) {
	case 0, 1:
		s.feel(s.anyMood())
	case 2:
		s.feel(mood{})
	case 3:
		s.crash(s.members[s.choose(len(s.members))])
	case 4: // and it is not noticed for a while
		for _, m := range s.members {
			s.crash(m)
		}
	default:
		if m := s.members[s.choose(len(s.members))]; m.stop == nil {
			s.begin(m, nil)
		}
	}
}

// reach lets time pass until an instant, from one deadline to the next.
func (s *simulation) reach(until int64) {
	for s.now().UnixMilli() < until && !s.over {
		next := time.UnixMilli(until)
		if len(s.checks) > 0 && s.checks[0].at.Before(next) {
			next = s.checks[0].at
		}
		if gap := next.Sub(s.now()); gap > 10*time.Second {
			s.leap(gap - s.chooseTime(3*time.Second)) // the deadline is near when they wake up
		}
		s.pass(next.Add(time.Millisecond))
		if s.able() {
			s.settle()
		}
	}
}

// able reports whether there is a worker that nothing keeps from its work.
func (s *simulation) able() bool {
	if s.feels() != (mood{}) {
		return false
	}
	for _, m := range s.members {
		if m.stop != nil {
			return true
		}
	}
	return false
}

// settle waits until all is gone that is due.
func (s *simulation) settle() {
	const look = 200 * time.Millisecond
	began := s.now()
	for {
		left := s.overdue()
		if len(left) == 0 {
			return
		}
		if s.now().Sub(began) > simBound {
			s.t.Errorf("%d items are there %v after all was well, at %v: %v", len(left), simBound, s.now(), left)
			for _, name := range left[:1] {
				s.t.Log(name, s.items[name].at, s.w.get(name))
			}
			for _, m := range s.members {
				if m.stop != nil {
					s.t.Logf("%s is %v off; since it began: %v; %+v", m.name, m.clock.Now().Sub(s.now()), m.line.sent, m.guard.Load().Stats())
				}
			}
			s.t.Logf("leases: %+v", s.w.leased())
			s.over = true
			return
		}
		s.pass(s.now().Add(look))
	}
}

// balance closes the account.
func (s *simulation) balance() {
	pending := 0
	for name, item := range s.items {
		if !s.w.has(name) {
			s.t.Errorf("%s, deadline %d, is gone at the end of the year", name, item.at)
		}
		if item.at != 0 {
			pending++
		}
	}
	a := s.account
	if a.due != a.gone+a.late || a.written != a.due+a.putOff+pending || a.due < s.made/2 {
		s.t.Errorf("%+v, and %d deadlines of later years: that does not add up", a, pending)
	}
	requests := 0
	for _, m := range s.members {
		requests += m.line.requests()
		for _, o := range m.old {
			requests += o.line.requests()
		}
	}
	s.t.Logf("%d deadlines came due in the year, %d were put off before, %d are of later years; %d requests", a.due, a.putOff, pending, requests)
}
