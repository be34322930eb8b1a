package program

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/scheduler/types"

	"github.com/mayflydb/mayfly/conformance"
)

// TestKillNineFiring kills a real server again and again while schedules are made, fire, and are delivered to a webhook that fails now and then. Every
// acknowledged one-time schedule must have fired in the end, every occurrence of the recurring ones too, none early, and what arrives twice must
// have the same id.
func TestKillNineFiring(t *testing.T) {
	t.Parallel()
	rounds, load := 4, time.Second
	if testing.Short() {
		rounds, load = 1, 500*time.Millisecond
	}
	hook := newFiringHook(t)
	targets := filepath.Join(t.TempDir(), "targets.yaml")
	text := fmt.Sprintf("targets:\n  - arn: %q\n    webhook: {url: %q, mode: structured}\n", hookARN, hook.server.URL)
	if err := os.WriteFile(targets, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	s := serveDir(t, dir, "--targets", targets)
	every := makeRecurring(t, s)
	made := map[string]time.Time{} // acknowledged one-time schedules and their instants
	for round := range rounds {
		n := len(made)
		killWhileFiring(t, s, round, load, made)
		s = serveDir(t, dir, "--targets", targets)
		t.Logf("round %d: %d schedules were acknowledged before the kill", round, len(made)-n)
	}
	hook.await(t, s, hook.recurredLocked(every, time.Now())) // a schedule that is deleted while it lags behind has few occurrences
	for _, name := range every {
		if _, err := s.schedules().DeleteSchedule(t.Context(), &scheduler.DeleteScheduleInput{Name: &name}); err != nil {
			t.Fatal(err)
		}
	}
	hook.await(t, s, hook.missingLocked(made, every))
	hook.judge(t, made)
}

const (
	hookARN        = "arn:aws:lambda:us-east-1:000000000000:function:hook"
	recurringEvery = 200 * time.Millisecond
	firingAwait    = 60 * time.Second
)

// schedules is a client of the scheduler's API.
func (s *served) schedules() *scheduler.Client {
	return scheduler.New(scheduler.Options{
		Region: "us-east-1", BaseEndpoint: &s.url, Credentials: credentials.NewStaticCredentialsProvider("any", "any", ""),
		HTTPClient: conformance.HTTPClient(), Retryer: aws.NopRetryer{},
	})
}

func scheduleInput(name, expression string) *scheduler.CreateScheduleInput {
	return &scheduler.CreateScheduleInput{
		Name: &name, ScheduleExpression: &expression,
		FlexibleTimeWindow: &types.FlexibleTimeWindow{Mode: types.FlexibleTimeWindowModeOff},
		Target: &types.Target{
			Arn: aws.String(hookARN), RoleArn: aws.String("arn:aws:iam::000000000000:role/any"), Input: aws.String(`{"schedule":"` + name + `"}`),
		},
	}
}

// makeRecurring makes schedules that fire all the time.
func makeRecurring(t *testing.T, s *served) (names []string) {
	t.Helper()
	for i := range 3 {
		name := fmt.Sprintf("every-%d", i)
		in := scheduleInput(name, fmt.Sprintf("every(%d milliseconds)", recurringEvery.Milliseconds()))
		if _, err := s.schedules().CreateSchedule(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	return names
}

// killWhileFiring makes one-time schedules that are due within two seconds, deletes them when they have fired, and kills the server.
func killWhileFiring(t *testing.T, s *served, round int, load time.Duration, made map[string]time.Time) {
	t.Helper()
	api := s.schedules()
	var mu sync.Mutex
	var running sync.WaitGroup
	for w := range 8 {
		running.Go(func() {
			for n := 0; ; n++ {
				name := fmt.Sprintf("once-%d-%d-%d", round, w, n)
				at := time.Now().UTC().Add(time.Duration(rand.IntN(2000)) * time.Millisecond).Truncate(time.Millisecond)
				in := scheduleInput(name, "instant("+at.Format("2006-01-02T15:04:05.000")+")")
				if n%2 == 0 {
					in.ActionAfterCompletion = types.ActionAfterCompletionDelete
				}
				if _, err := api.CreateSchedule(t.Context(), in); err != nil {
					return
				}
				mu.Lock()
				made[name] = at
				mu.Unlock()
			}
		})
	}
	time.Sleep(load)
	if code, err := s.stop(syscall.SIGKILL); err != nil || code != "killed" {
		t.Fatalf("the server ended by itself: %s, %v\n%s", code, err, s.logged())
	}
	running.Wait()
}

// firingHook is a webhook that notes what arrives. It refuses a twentieth of it, so that retries are under way at every kill.
type firingHook struct {
	server *httptest.Server

	mu      sync.Mutex                              // guards what follows
	arrived map[string]map[time.Time]map[string]int // schedule, instant, id: how often
	early   []string
	wrong   []string
}

func newFiringHook(t *testing.T) *firingHook {
	h := &firingHook{arrived: map[string]map[time.Time]map[string]int{}}
	h.server = httptest.NewServer(h)
	t.Cleanup(h.server.Close)
	return h
}

func (h *firingHook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	now := time.Now()
	if rand.IntN(20) == 0 {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	var event struct {
		ID   string
		Time time.Time
		Data struct{ Schedule string }
	}
	err := json.NewDecoder(r.Body).Decode(&event)
	if err == nil && (event.ID == "" || event.Data.Schedule == "" || event.Time.IsZero()) {
		err = errors.New("it lacks something")
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if err != nil {
		h.wrong = append(h.wrong, fmt.Sprintf("%v: %+v", err, event))
		return
	}
	if now.Before(event.Time) {
		h.early = append(h.early, fmt.Sprintf("%s of %s at %s", event.Data.Schedule, event.Time, now))
	}
	of := h.arrived[event.Data.Schedule]
	if of == nil {
		of = map[time.Time]map[string]int{}
		h.arrived[event.Data.Schedule] = of
	}
	if of[event.Time.UTC()] == nil {
		of[event.Time.UTC()] = map[string]int{}
	}
	of[event.Time.UTC()][event.ID]++
}

// await waits until a function, which is called with the lock held, no longer returns anything missing.
func (h *firingHook) await(t *testing.T, s *served, missingLocked func() []string) {
	t.Helper()
	var missing []string
	for limit := time.Now().Add(firingAwait); time.Now().Before(limit); time.Sleep(50 * time.Millisecond) {
		h.mu.Lock()
		missing = missingLocked()
		h.mu.Unlock()
		if len(missing) == 0 {
			return
		}
	}
	slices.Sort(missing)
	t.Fatalf("%d firings have not arrived: %s\n%s", len(missing), strings.Join(missing[:min(len(missing), 20)], ", "), s.logged())
}

// recurredLocked returns a function that returns the recurring schedules without an occurrence after since, or with fewer than five in all.
func (h *firingHook) recurredLocked(every []string, since time.Time) func() []string {
	return func() (missing []string) {
		for _, name := range every {
			instants := slices.SortedFunc(maps.Keys(h.arrived[name]), time.Time.Compare)
			if len(instants) < 5 || !instants[len(instants)-1].After(since) {
				missing = append(missing, name)
			}
		}
		return missing
	}
}

// missingLocked returns a function that returns the one-time schedules that have not arrived, and the occurrences of the recurring ones that have
// not, between the first and the last.
func (h *firingHook) missingLocked(made map[string]time.Time, every []string) func() []string {
	return func() (missing []string) {
		for name := range made {
			if h.arrived[name] == nil {
				missing = append(missing, name)
			}
		}
		for _, name := range every {
			instants := slices.SortedFunc(maps.Keys(h.arrived[name]), time.Time.Compare)
			for at := instants[0]; at.Before(instants[len(instants)-1]); at = at.Add(recurringEvery) {
				if h.arrived[name][at] == nil {
					missing = append(missing, name+" of "+at.String())
				}
			}
		}
		return missing
	}
}

// judge looks at everything that has arrived.
func (h *firingHook) judge(t *testing.T, made map[string]time.Time) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range append(h.early, h.wrong...) {
		t.Errorf("early or wrong: %s", e)
	}
	twice := 0
	for name, instants := range h.arrived {
		for at, ids := range instants {
			if len(ids) != 1 {
				t.Errorf("%s of %s came with %d ids", name, at, len(ids))
			}
			for _, times := range ids {
				twice += times - 1
			}
		}
		at, once := made[name]
		if _, fired := instants[at]; once && (!fired || len(instants) != 1) {
			t.Errorf("%s was to fire at %s, and fired at %v", name, at, slices.Collect(maps.Keys(instants)))
		}
	}
	t.Logf("%d schedules, of which %d deliveries came again with the same id", len(h.arrived), twice)
}
