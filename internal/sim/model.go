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

func newState(m image) *state {
	if m == nil {
		return nil
	}
	return &state{image: m, text: m.text(), deadline: m.deadline()}
}

// model is what the table holds, by the stream.
type model struct {
	parts map[string]map[key]*state // by partition key
}

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
	Episodes     int64 `json:"episodes"`
	Rounds       int64 `json:"rounds"`
	Requests     int64 `json:"requests"`
	Writes       int64 `json:"writes"`      // acknowledged
	Reads        int64 `json:"reads"`       // compared with the order of all changes
	Expirations  int64 `json:"expirations"` // each with its record
	Renewed      int64 `json:"renewed"`     // deadlines that moved or went before they came
	Overwritten  int64 `json:"overwritten"` // keys that were written right behind their expiry, mostly before the reaper came
	Crashes      int64 `json:"crashes"`
	Restarts     int64 `json:"restarts"`
	DiskErrors   int64 `json:"disk_errors"`
	Mishaps      int64 `json:"mishaps"` // of the network
	Unknown      int64 `json:"unknown"` // requests whose client cannot know the outcome
	Transactions int64 `json:"transactions"`
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
	ticks      []int64 // the milliseconds of each tick of the round; guarded by mu
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
	ms = time.Now().UnixMilli()
	l.ticks = append(l.ticks, ms)
	return 2 * (len(l.ticks) - 1), ms
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
