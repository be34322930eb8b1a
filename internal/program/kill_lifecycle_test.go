package program

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/lifecycle"
)

// hurried is a lifecycle that goes round in a second.
const hurried = `
lifecycle: hurried
states:
  - {name: a, next: [{to: b, after: 300ms, handler: hook}]}
  - {name: b, next: [{to: c, after: 200ms}]}
  - {name: c, next: [{to: a, after: 500ms, handler: hook}]}
`

// TestKillNineLifecycle kills a real server again and again while entities go round and are created, and their calls go to a webhook that fails now and then. Every acknowledged entity must
// be there; each of its transitions must have happened once, in order, for its instant and not before it; and each call must have arrived, with one id.
func TestKillNineLifecycle(t *testing.T) {
	t.Parallel()
	kills, load := 3, 700*time.Millisecond
	if testing.Short() {
		kills = 1
	}
	hook := &lifecycleHook{arrived: map[string]lifecycle.Call{}}
	hook.server = httptest.NewServer(hook)
	t.Cleanup(hook.server.Close)
	targets := filepath.Join(t.TempDir(), "targets.yaml")
	text := fmt.Sprintf("targets:\n  - arn: %q\n    name: hook\n    webhook: {url: %q, mode: structured}\n", hookARN, hook.server.URL)
	if err := os.WriteFile(targets, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	s := serveDir(t, dir, "--targets", targets)
	d, err := lifecycle.Read(strings.NewReader(hurried), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.lifecycles(t).Apply(t.Context(), *d, lifecycle.ApplyOptions{}); err != nil {
		t.Fatal(err)
	}
	created := map[string]time.Time{} // that were acknowledged
	for kill := range kills {
		createUntilKilled(t, s, kill, load, created)
		s = serveDir(t, dir, "--targets", targets)
		t.Logf("kill %d: %d entities were acknowledged", kill, len(created))
	}
	l := s.lifecycles(t)
	for id := range created { // or they would go round for ever
		if _, err := l.Cancel(t.Context(), "hurried", id); err != nil {
			t.Fatalf("%v\n%s", err, s.logged())
		}
	}
	hook.check(t, s, l, created)
}

// lifecycles returns the lifecycles of a server that runs their transitions itself.
func (s *served) lifecycles(t *testing.T) *lifecycle.Lifecycles {
	t.Helper()
	api, _ := s.clients()
	l, err := lifecycle.New(lifecycle.Options{DB: api, Now: time.Now, Unmapped: true})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// createUntilKilled creates entities for a while, and kills the server meanwhile.
func createUntilKilled(t *testing.T, s *served, kill int, load time.Duration, created map[string]time.Time) {
	t.Helper()
	l := s.lifecycles(t)
	var mu sync.Mutex
	var running sync.WaitGroup
	for w := range 4 {
		running.Go(func() {
			for n := range 8 {
				id := fmt.Sprintf("%d-%d-%d", kill, w, n)
				e, err := l.Create(t.Context(), "hurried", id, nil)
				if err != nil {
					return
				}
				mu.Lock()
				created[id] = e.At
				mu.Unlock()
				time.Sleep(time.Duration(rand.IntN(120)) * time.Millisecond)
			}
		})
	}
	time.Sleep(load)
	if code, err := s.stop(syscall.SIGKILL); err != nil || code != "killed" {
		t.Fatalf("the server ended by itself: %s, %v\n%s", code, err, s.logged())
	}
	running.Wait()
}

// lifecycleHook is a webhook that notes what arrives. It refuses a twentieth of it.
type lifecycleHook struct {
	server *httptest.Server

	mu      sync.Mutex // guards what follows
	arrived map[string]lifecycle.Call
	again   int
	wrong   []string
}

func (h *lifecycleHook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	now := time.Now()
	if rand.IntN(20) == 0 {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	var event struct {
		ID   string
		Data lifecycle.Call
	}
	err := json.NewDecoder(r.Body).Decode(&event)
	h.mu.Lock()
	defer h.mu.Unlock()
	c := event.Data
	if err != nil || event.ID == "" || event.ID != c.ID || now.Before(c.Due) {
		h.wrong = append(h.wrong, fmt.Sprintf("%v at %s: %+v", err, now, event))
	}
	if before, twice := h.arrived[c.ID]; twice {
		if h.again++; before.Entity != c.Entity || before.Generation != c.Generation {
			h.wrong = append(h.wrong, fmt.Sprintf("%+v has the id of %+v", c, before))
		}
	}
	h.arrived[c.ID] = c
}

// check compares the histories of all entities with the definition, and the deliveries with the
// histories.
func (h *lifecycleHook) check(t *testing.T, s *served, l *lifecycle.Lifecycles, created map[string]time.Time) {
	t.Helper()
	next := map[string]struct {
		to    string
		after time.Duration
	}{"a": {"b", 300 * time.Millisecond}, "b": {"c", 200 * time.Millisecond}, "c": {"a", 500 * time.Millisecond}}
	transitions, late := 0, time.Duration(0)
	for id, at := range created {
		events, err := l.History(t.Context(), "hurried", id)
		if err != nil {
			t.Fatalf("%v\n%s", err, s.logged())
		}
		if len(events) < 2 || !events[0].At.Equal(at) || events[len(events)-1].Kind != lifecycle.KindCancelled {
			t.Fatalf("%s, created at %s: %+v", id, at, events)
		}
		state, due := "a", at
		for i, e := range events {
			if e.Generation != int64(i+1) {
				t.Errorf("%s: %+v is not generation %d", id, e, i+1)
			}
			if e.Kind != lifecycle.KindTransition {
				continue
			}
			transitions++
			due = due.Add(next[state].after)
			if e.From != state || e.To != next[state].to || !e.Due.Equal(due) || e.At.Before(due) {
				t.Errorf("%s: %+v, and was to go from %s at %s", id, e, state, due)
			}
			state, late = e.To, max(late, e.Lateness())
			if e.ID != "" {
				h.await(t, s, id, e)
			}
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, w := range h.wrong {
		t.Error(w)
	}
	t.Logf("%d transitions, at most %s late; %d calls, of which %d came again", transitions, late, len(h.arrived), h.again)
}

// await waits until the call of an event has arrived.
func (h *lifecycleHook) await(t *testing.T, s *served, id string, e lifecycle.Event) {
	t.Helper()
	for limit := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		h.mu.Lock()
		c, is := h.arrived[e.ID]
		h.mu.Unlock()
		if is {
			if c.Entity != id || c.Generation != e.Generation || c.From != e.From || c.To != e.To || !c.Due.Equal(e.Due) {
				t.Errorf("%s: %+v has the call %+v", id, e, c)
			}
			return
		}
		if time.Now().After(limit) {
			t.Fatalf("%s: the call of %+v has never arrived\n%s", id, e, s.logged())
		}
	}
}
