package sim

import (
	"fmt"
	"hash"
	"hash/fnv"
	"sync"
	"time"
)

// state is an item as it is stored.
type state struct {
	image    image
	text     string
	deadline int64
}

func (m *model) newState(i image) *state {
	if i == nil {
		return nil
	}
	return &state{image: i, text: i.text(), deadline: i.deadline(m.ttl)}
}

// model is what the table holds, by the stream.
type model struct {
	parts map[string]map[key]*state // by partition key
	ttl   string                    // the attribute with the deadlines; empty: TTL is off
	since int64                     // when TTL was last changed, in ms
	extra bool                      // the table has its second index
	floor int64                     // the latest instant, in ms, that the clock has passed before the eyes of a client
}

func newModel() *model { return &model{parts: map[string]map[key]*state{}, ttl: ttlNames[0]} }

func (m *model) get(k key) *state { return m.parts[k.pk][k] }

func (m *model) set(k key, s *state) {
	part := m.parts[k.pk]
	if part == nil {
		part = map[key]*state{}
		m.parts[k.pk] = part
	}
	if s == nil {
		delete(part, k)
	} else {
		part[k] = s
	}
}

// Counts say how much a run has covered.
type Counts struct {
	Episodes      int64 `json:"episodes"`
	Rounds        int64 `json:"rounds"`
	Requests      int64 `json:"requests"`
	Writes        int64 `json:"writes"`      // acknowledged
	Reads         int64 `json:"reads"`       // compared with the order of all changes
	Expirations   int64 `json:"expirations"` // each with its record
	Renewed       int64 `json:"renewed"`     // deadlines that moved or went before they came
	Overwritten   int64 `json:"overwritten"` // keys that were written right behind their expiry, mostly before the reaper came
	Crashes       int64 `json:"crashes"`
	Restarts      int64 `json:"restarts"`
	TTLChanges    int64 `json:"ttl_changes"`
	Indexes       int64 `json:"indexes"`    // built while clients wrote
	ClockBack     int64 `json:"clock_back"` // starts at which the machine's clock had gone back
	Pauses        int64 `json:"pauses"`     // of the whole server
	PauseSecs     int64 `json:"pause_secs"` // the virtual time of these, in seconds
	DiskErrors    int64 `json:"disk_errors"`
	DiskFull      int64 `json:"disk_full"`      // episodes of a full disk
	Damages       int64 `json:"damages"`        // files that were damaged between two starts
	DamageRefused int64 `json:"damage_refused"` // starts that were refused for that
	Roomless      int64 `json:"roomless"`       // writes that were refused meanwhile
	Mishaps       int64 `json:"mishaps"`        // of the network
	Unknown       int64 `json:"unknown"`        // requests whose client cannot know the outcome
	Transactions  int64 `json:"transactions"`
}

// Violation is a broken law.
type Violation struct {
	Law  string `json:"law"`
	What string `json:"what"`
	At   string `json:"at"` // virtual time since the beginning of the episode
}

func (v Violation) String() string { return fmt.Sprintf("%s at %s: %s", v.Law, v.At, v.What) }

// ledger has what an episode has found, and its trace.
type ledger struct {
	mu         sync.Mutex
	began      time.Time
	millis     func() int64 // reads the clock that decides about deadlines. Nil: virtual time
	ticks      []int64      // the milliseconds of each tick of the round, or of an earlier one if that is later; guarded by mu
	peak       int64        // the latest instant that the clock has shown; guarded by mu
	backs      []back       // in the round; guarded by mu
	counts     Counts
	violations []Violation // guarded by mu
	trace      hash.Hash64
}

func newLedger() *ledger { return &ledger{began: time.Now(), trace: fnv.New64a()} }

// tick returns the next instant of the round's order of calls and answers, and its time. Ticks are
// even numbers, so that there is room between them.
func (l *ledger) tick() (tick int, ms int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ms = time.Now().UnixMilli(); l.millis != nil {
		ms = l.millis()
	}
	l.peak = max(l.peak, ms)
	latest := ms
	if n := len(l.ticks); n > 0 {
		latest = max(latest, l.ticks[n-1])
	}
	l.ticks = append(l.ticks, latest)
	return 2 * (len(l.ticks) - 1), ms
}

// back is a restart at which the database's clock went back: to an instant that no client had seen
// it pass.
type back struct {
	tick     int
	from, to int64 // ms
}

// wentBack notes a restart.
func (l *ledger) wentBack(from, to int64) {
	tick, _ := l.tick()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.backs = append(l.backs, back{tick, from, to})
}

// newRound forgets the ticks of the round before.
func (l *ledger) newRound() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ticks, l.backs = l.ticks[:0], l.backs[:0]
}

// most is how many violations an episode reports. More say nothing new.
const most = 20

func (l *ledger) broken(law, format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.violations) < most {
		l.violations = append(l.violations, Violation{law, fmt.Sprintf(format, args...), time.Since(l.began).String()})
	}
}

// isBroken reports whether a law is.
func (l *ledger) isBroken() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.violations) > 0
}

// note adds something that a client has seen to the trace.
func (l *ledger) note(format string, args ...any) { fmt.Fprintf(l.trace, format, args...) }
