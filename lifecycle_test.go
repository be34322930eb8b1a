package mayfly

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/store/kv"
	"github.com/mayflydb/mayfly/lifecycle"
)

var (
	lifecycleSeed = flag.Uint64("lifecycle-seed", 0, "of TestLifecyclesSurviveThePower; 0: a new one")
	lifecycleCuts = flag.Int("lifecycle-cuts", 12, "of its power")
)

// rounds is a lifecycle with a cycle of three hours.
const rounds = `
lifecycle: rounds
states:
  - {name: a, next: [{to: b, after: 1h, handler: note}]}
  - {name: b, next: [{to: c, after: 30m, handler: note}]}
  - {name: c, next: [{to: a, after: 90m}]}
`

// roundsNext returns the next state and the time until then.
var roundsNext = map[string]struct {
	to    string
	after time.Duration
}{"a": {"b", time.Hour}, "b": {"c", 30 * time.Minute}, "c": {"a", 90 * time.Minute}}

// The power is cut at random operations of the disk while entities change, are created, moved and
// rescheduled. A part of the unsynced data survives, or none. Acknowledged changes stay. Every
// transition happens once, in order, for its instant. Every call is made, with one id, and none for
// a transition that did not happen.
func TestLifecyclesSurviveThePower(t *testing.T) {
	seed := *lifecycleSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("-lifecycle-seed %d", seed)
	cuts, most := *lifecycleCuts, 400
	if testing.Short() {
		cuts = 4
	}
	h := &cutLives{t: t, random: rand.New(rand.NewPCG(seed, 1)), acknowledged: map[string]lifecycle.Event{}}
	disk := kv.NewCrashFS()
	for range cuts {
		disk.KeepUnsynced(50*h.random.IntN(3), h.random.Uint64())
		disk.CutAfter(int64(30 + h.random.IntN(most)))
		h.live(disk)
		disk = disk.AfterCrash()
	}
	db := open(t, "data", cutOptions(disk))
	l, stop := h.run(db)
	if _, err := l.Apply(t.Context(), h.definition(), lifecycle.ApplyOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Create(t.Context(), "rounds", "last", nil); err != nil {
		t.Fatal(err)
	}
	advance(t, db, 10*time.Hour)
	h.check(db, l)
	stop()
}

// cutLives are entities in a database whose power is cut.
type cutLives struct {
	t            *testing.T
	random       *rand.Rand
	acknowledged map[string]lifecycle.Event // creations
	created      int                        // including unacknowledged ones
	mu           sync.Mutex
	calls        []lifecycle.Call
}

func cutOptions(disk *kv.CrashFS) Options {
	return Options{fs: disk, Start: lawStart, Frozen: true, ClockControl: ClockControlOn}
}

func (h *cutLives) definition() lifecycle.Definition {
	h.t.Helper()
	d, err := lifecycle.Read(strings.NewReader(rounds), nil)
	if err != nil {
		h.t.Fatal(err)
	}
	return *d
}

// run makes the transitions of a database until stop is called.
func (h *cutLives) run(db *DB) (l *lifecycle.Lifecycles, stop func()) {
	h.t.Helper()
	l, err := lifecycle.New(lifecycle.Options{
		DB: db.DynamoDB(), Streams: db.Streams(), Now: db.Clock().Now, Registry: db.Registry(), Alone: true,
		Handlers: map[string]lifecycle.Handler{"note": func(_ context.Context, c lifecycle.Call) error {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.calls = append(h.calls, c)
			return nil
		}},
	})
	if err != nil {
		h.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- l.Run(ctx) }()
	select {
	case <-l.Ready():
	case <-db.Failed():
	case <-time.After(time.Minute):
		h.t.Fatal("the lifecycles do not get ready")
	}
	return l, func() {
		cancel()
		<-ran // the disk may have failed
	}
}

// live opens the database and lets entities change until the power is cut.
func (h *cutLives) live(disk *kv.CrashFS) {
	db, err := Open("data", cutOptions(disk))
	if err != nil {
		return // it was cut already
	}
	l, stop := h.run(db)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	go func() {
		select {
		case <-db.Failed():
			cancel()
		case <-ctx.Done():
		}
	}()
	if _, err := l.Apply(ctx, h.definition(), lifecycle.ApplyOptions{}); err == nil {
		for ctx.Err() == nil {
			h.step(ctx, db, l)
		}
	}
	if !disk.WasCut() {
		h.t.Error("the power was not cut")
	}
	stop()
	_ = db.Close() // the disk has failed
}

// step makes a random change, and lets time pass.
func (h *cutLives) step(ctx context.Context, db *DB, l *lifecycle.Lifecycles) {
	for range h.random.IntN(3) {
		h.created++
		id := fmt.Sprint("e", h.created)
		if e, err := l.Create(ctx, "rounds", id, nil); err == nil {
			h.acknowledged[id] = e
		}
	}
	if h.created > 0 {
		id := fmt.Sprint("e", 1+h.random.IntN(h.created))
		switch h.random.IntN(4) {
		case 0:
			_, _ = l.Reschedule(ctx, "rounds", id, db.Clock().Now().Add(time.Duration(h.random.IntN(3600))*time.Second))
		case 1:
			_, _ = l.Move(ctx, "rounds", id, []string{"a", "b", "c"}[h.random.IntN(3)])
		}
	}
	_, _ = db.Clock().Advance(ctx, time.Duration(h.random.IntN(40))*time.Minute)
}

// check compares the transitions with the expected ones.
func (h *cutLives) check(db *DB, l *lifecycle.Lifecycles) {
	t := h.t
	t.Helper()
	made := map[string]int{} // calls by their ids
	for _, c := range h.calls {
		made[c.ID]++
	}
	transitions, late, again := 0, 0, len(h.calls)-len(made)
	found := map[string]bool{}
	err := l.Each(t.Context(), "rounds", func(e lifecycle.Entity) error {
		found[e.ID] = true
		events, err := l.History(t.Context(), "rounds", e.ID)
		if err != nil {
			return err
		}
		if len(events) == 0 || events[0].Kind != lifecycle.KindCreated || len(events) != int(e.Generation) {
			t.Errorf("%s: generation %d, and %+v", e.ID, e.Generation, events)
			return nil
		}
		if known, is := h.acknowledged[e.ID]; is && !known.At.Equal(events[0].At) {
			t.Errorf("%s: created at %s, and that at %s", e.ID, events[0].At, known.At)
		}
		state, next := "a", events[0].At.Add(time.Hour)
		for i, ev := range events {
			if ev.Generation != int64(i+1) || i > 0 && ev.From != state {
				t.Errorf("%s: %+v after %s", e.ID, ev, state)
			}
			switch ev.Kind {
			case lifecycle.KindTransition:
				if !ev.Due.Equal(next) || ev.At.Before(next) || ev.To != roundsNext[state].to {
					t.Errorf("%s: %+v, due %s", e.ID, ev, next)
				}
				transitions++
				if ev.Lateness() > 0 {
					late++
				}
				state, next = ev.To, ev.Due.Add(roundsNext[ev.To].after)
			case lifecycle.KindMoved:
				state, next = ev.To, ev.At.Add(roundsNext[ev.To].after)
			case lifecycle.KindRescheduled:
				next = ev.Next
			}
			if ev.Handler != "" {
				if made[ev.ID] == 0 || ev.Outcome != "delivered" {
					t.Errorf("%s: the call of %+v was made %d times", e.ID, ev, made[ev.ID])
				}
				delete(made, ev.ID)
			}
		}
		if e.State != state || !e.Next.Equal(next) || !next.After(db.Clock().Now()) {
			t.Errorf("%s is %s, %s next, and was to be %s, %s", e.ID, e.State, e.Next, state, next)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	for id := range h.acknowledged {
		if !found[id] {
			t.Errorf("%s was created, and is not there", id)
		}
	}
	if len(made) > 0 {
		t.Errorf("%d calls were made that nothing stands for", len(made))
	}
	if len(found) < 2 || transitions == 0 {
		t.Error("nothing has happened")
	}
	t.Logf("%d entities, %d transitions, %d of them late; %d calls came again", len(found), transitions, late, again)
}
