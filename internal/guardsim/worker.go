package guardsim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/mayflydb/mayfly/guard"
	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/sdk"
)

// worker is a process of the fleet: guard's code, a processor and a line to the endpoint.
type worker struct {
	s     *simulation
	guard *guard.Guard
	stop  context.CancelFunc
	over  chan struct{}
	err   error // of Run, once over is closed

	mu struct {
		sync.Mutex
		dice     *rand.Rand
		dead     bool
		until    time.Time     // end of a pause
		busy     time.Time     // the processor has work until then
		worked   time.Duration // in the measured time
		inFlight int           // removals
	}
	armed    int // most deadlines in memory, in the measured time
	inFlight int // most removals at once
}

// errDead is the error of a dead worker's requests.
var errDead = errors.New("the worker is dead")

func (s *simulation) newWorker(number int) (*worker, error) {
	w := &worker{s: s, over: make(chan struct{})}
	w.mu.dice = rand.New(rand.NewPCG(s.o.Seed, uint64(number)))
	db, streams, _ := sdk.InProcess(w, "us-east-1")
	o := guard.Options{
		DB: db, Streams: streams, Table: tableName, Strategy: guard.Strategy(s.o.Plan.Strategy), Owner: fmt.Sprintf("worker-%d", number), Lease: s.o.Plan.Lease, AuditRCU: -1,
		Partitions: s.partitions, AcceptOverdue: -1, Period: s.o.Load.Period,
	}
	if s.index != nil {
		o.IndexName, o.Shards, o.Partitions = indexName, len(s.index), 0
	}
	var err error
	w.guard, err = guard.New(o)
	return w, err
}

func (w *worker) start() {
	ctx, stop := context.WithCancel(context.Background())
	w.stop = stop
	go func() {
		defer close(w.over)
		w.err = w.guard.Run(ctx)
	}()
}

// kill ends the worker without a last word: no further request leaves it.
func (w *worker) kill() {
	w.mu.Lock()
	w.mu.dead = true
	w.mu.Unlock()
	w.stop()
}

func (w *worker) isDead() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.mu.dead
}

// pause lets the worker's requests stand still for a while. Its timers go on, and answers arrive: so it
// is a worker that cannot get through to the endpoint, rather than a machine that stops.
func (w *worker) pause(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.until = w.s.now().Add(d)
}

// RoundTrip sends a request to the endpoint: after the processor's work, a way there and a way back.
func (w *worker) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	operation := r.Header.Get("X-Amz-Target")
	operation = operation[strings.LastIndexByte(operation, '.')+1:]
	text := string(body)
	removal := operation == "DeleteItem" && strings.Contains(text, `"TableName":"`+tableName+`"`)
	if removal {
		w.flies(1)
		defer w.flies(-1)
	}
	if err := w.compute(r.Context(), w.s.cost(operation, text, removal)); err != nil {
		return nil, err
	}
	if err := w.travel(r.Context()); err != nil {
		return nil, err
	}
	date := w.s.now()
	out, err := w.s.serve(r, operation, text)
	if err != nil {
		return nil, err
	}
	out.Request = r
	if out.Header.Get("Date") == "" {
		out.Header.Set("Date", date.UTC().Format(http.TimeFormat))
	}
	if err := w.travel(r.Context()); err != nil {
		return nil, err
	}
	if removal && out.StatusCode == http.StatusOK {
		w.s.late(numberOf(text, keyPrefix, 0))
	}
	return out, nil
}

func (w *worker) flies(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.inFlight += n
	w.inFlight = max(w.inFlight, w.mu.inFlight)
}

// cost returns the work of a removal, or of a row for a record.
func (s *simulation) cost(operation, body string, removal bool) time.Duration {
	switch {
	case removal:
		return seconds(1 / s.o.limits.removals)
	case (operation == "PutItem" || operation == "DeleteItem") && strings.Contains(body, `"TableName":"`+guard.DeadlinesTable+`"`):
		return seconds(1 / s.o.limits.records)
	}
	return 0
}

// compute waits for the processor, which does one thing after another, and for the end of a pause.
func (w *worker) compute(ctx context.Context, cost time.Duration) error {
	w.mu.Lock()
	now := w.s.now()
	begin := now
	for _, at := range []time.Time{w.mu.busy, w.mu.until} {
		if at.After(begin) && (cost > 0 || at.Equal(w.mu.until)) {
			begin = at
		}
	}
	if cost > 0 {
		w.mu.busy = begin.Add(cost)
		if w.s.measures() {
			w.mu.worked += cost
		}
	}
	dead := w.mu.dead
	w.mu.Unlock()
	if dead {
		return errDead
	}
	return w.wait(ctx, begin.Add(cost).Sub(now))
}

// travel waits for half a round trip. Its distribution is lognormal, as measured ones nearly are: the
// mean is half the round trip of the load, and one of a hundred takes two and a half times as long. Of
// the round trips, sums of two, one of a hundred takes some twice as long.
func (w *worker) travel(ctx context.Context) error {
	const sigma, mean = 0.45, 0.9
	w.mu.Lock()
	half := w.s.o.Load.RoundTrip.Seconds() / 2 * mean * math.Exp(sigma*w.mu.dice.NormFloat64())
	w.mu.Unlock()
	step := max(w.s.o.Load.RoundTrip/20, 50*time.Microsecond) // events of one instant run on all cores
	return w.wait(ctx, max(seconds(half).Round(step), step))
}

func (w *worker) wait(ctx context.Context, d time.Duration) error {
	if d > 0 {
		clock.Pause(d, ctx.Done())
	}
	if w.isDead() {
		return errDead
	}
	return ctx.Err()
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
