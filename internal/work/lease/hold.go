package lease

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/work/retry"
)

// Done is the checkpoint of a lease that needs nothing more: Hold leaves it alone.
const Done = "done"

const (
	lookParts  = 4 // looks at the leases in the duration of one, with each of which the worker says that it is there
	beatParts  = 2 // where nothing has come of those looks for so large a part of it, leases are renewed one by one
	againFirst = 50 * time.Millisecond
	leaveLimit = 5 * time.Second // for what is written when a lease is given up

	retakePause = time.Second // before a worker that is alone runs again what has ended by itself
)

var errLeave = errors.New("the lease is left to another worker")

// Hold keeps this worker's fair share of the leases with the given names, and calls run with each one that it has: in a goroutine of its own, with a context that is
// done when the lease is lost or to be given up. Hold beats meanwhile, and releases the lease when run has returned. It blocks until ctx is done, or all the leases
// have the checkpoint Done, and returns nil then; run has returned for all of them.
//
// The context of a worker that was paused ends late: what must not be written without the lease is written with Save, or while the lease is Held.
//
// An error of run ends everything and is returned, unless it is ErrLost or the context of run was done. Where run returns nil and the checkpoint is not Done, the
// lease is to be had again, and may come back to this worker with the next look. A table that cannot be read is asked again, unless the error is Fatal.
//
// Each worker makes four writes in the duration of the leases, and four queries of all rows, so there should be tens of leases rather than thousands: who has more to share puts
// several under one name.
func Hold(ctx context.Context, leases *Leases, names []string, run func(ctx context.Context, l *Lease) error) error {
	return HoldListed(ctx, leases, func(context.Context, map[string]Row) ([]string, error) { return names, nil }, run)
}

// HoldListed is Hold where the names change, as those of a stream's shards do: list is asked for them at each look, with all the rows as they were read just before. An error of it is one
// of the table's. What it names no longer is not taken anew; run goes on with what it has.
func HoldListed(ctx context.Context, leases *Leases, list func(ctx context.Context, rows map[string]Row) ([]string, error), run func(ctx context.Context, l *Lease) error) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	h := &holder{leases: leases, crew: NewCrew(leases), list: list, run: run, end: end, again: make(chan struct{}, 1)}
	h.mu.held = map[string]*holding{}
	err := h.hold(ctx)
	end(nil)
	h.runs.Wait()
	h.depart(ctx)
	var wrong *failure
	if errors.As(context.Cause(ctx), &wrong) {
		return wrong.err
	}
	return err
}

// holder is one call of Hold.
type holder struct {
	leases  *Leases
	crew    *Crew
	list    func(ctx context.Context, rows map[string]Row) ([]string, error)
	run     func(ctx context.Context, l *Lease) error
	end     context.CancelCauseFunc
	again   chan struct{} // has an element when the leases should be looked at again
	workers []string      // as the last look had found them
	changed bool          // a lease was not as the last look had read it
	runs    sync.WaitGroup
	mu      struct {
		sync.Mutex
		held map[string]*holding // by name: those that run has
	}
}

// holding is a lease that run has.
type holding struct {
	stop    context.CancelCauseFunc // of run's context
	leaving bool
}

// failure is an error of run, as the cause that ended everything.
type failure struct{ err error }

func (f *failure) Error() string { return f.err.Error() }

// hold looks at the leases until ctx is done or there is nothing more to do: that is nil.
func (h *holder) hold(ctx context.Context) error {
	for pauses := (retry.Policy{First: againFirst, Most: h.leases.Duration() / lookParts}).Start(); ; {
		left, next, err := h.look(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && h.leases.o.Fatal(err):
			return fmt.Errorf("look at the leases of %q: %w", h.leases.consumer, err)
		case err != nil:
			h.leases.o.Logger.Warn("reading leases failed; trying again", "consumer", h.leases.consumer, "error", err, "after", pauses.Next())
			pauses.Wait(ctx)
		case left == 0:
			return nil
		default:
			pauses.Reset()
			h.wait(ctx, next)
		}
	}
}

// wait waits until the leases should be looked at again. A worker that is alone does so when one of its own has ended, and when a lease was not as it had been read: a run
// before it had begun to write that, and it came through only now.
func (h *holder) wait(ctx context.Context, next time.Duration) {
	if h.changed {
		next = min(next, againFirst)
	}
	if h.changed || !h.leases.Exclusive() {
		timer := clock.AfterFunc(next, h.lookAgain)
		defer timer.Stop()
	}
	select {
	case <-h.again:
	case <-ctx.Done():
	}
}

func (h *holder) lookAgain() {
	select {
	case h.again <- struct{}{}:
	default:
	}
}

// look takes what is free, up to this worker's share, and leaves what is beyond it. It gives how many leases are not done, and when to look again.
func (h *holder) look(ctx context.Context) (left int, next time.Duration, err error) {
	all, err := h.leases.Rows(ctx)
	if err != nil {
		return 0, 0, err
	}
	names, err := h.list(ctx, all)
	if err != nil {
		return 0, 0, err
	}
	var rows []Row
	for _, name := range names {
		row := all[name]
		row.Shard = name
		if row.Checkpoint != Done || h.holds(name) {
			rows = append(rows, row)
		}
	}
	workers, err := h.crew.Meet(ctx, all)
	if err != nil {
		return 0, 0, err
	}
	if !slices.Equal(workers, h.workers) {
		h.workers = workers
		h.leases.o.CrewChanged()
	}
	share := Share(len(rows), workers, h.leases.Owner())
	mine := h.own(share)
	h.changed = false
	for _, row := range Shuffled(rows, h.leases.Owner()) {
		if row.Checkpoint == Done || h.holds(row.Shard) || !h.leases.Free(row) {
			continue // one that is done was held a moment ago
		}
		if mine >= share {
			if row.Owner == h.leases.Owner() {
				if err := h.leases.Disown(ctx, row); err != nil {
					return 0, 0, err
				}
			}
			continue
		}
		taken, err := h.take(ctx, row)
		if err != nil {
			return 0, 0, err
		}
		if taken {
			mine++
		}
		h.changed = h.changed || !taken && h.leases.Exclusive() // others look often enough
	}
	return len(rows), h.leases.nextFree(rows), nil
}

// nextFree is in how long one of the rows may have become free, but no longer than from one look to the next.
func (l *Leases) nextFree(rows []Row) time.Duration {
	next := l.o.Duration / lookParts
	now := l.o.Elapsed()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range rows {
		if silent, ok := l.silentLocked(r); ok && r.Owner != "" && r.Owner != l.o.Owner {
			if in := l.mu.looked - silent + l.o.Duration - now; in > 0 {
				next = min(next, in)
			}
		}
	}
	return next
}

func (h *holder) holds(name string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.mu.held[name] != nil
}

// own gives how many leases this worker has and means to keep, after stopping those beyond its share.
func (h *holder) own(share int) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	var staying []string
	for name, one := range h.mu.held {
		if !one.leaving {
			staying = append(staying, name)
		}
	}
	if h.leases.Exclusive() {
		return len(staying)
	}
	slices.Sort(staying)
	for _, name := range staying[min(share, len(staying)):] {
		one := h.mu.held[name]
		one.leaving = true
		one.stop(errLeave)
	}
	return min(share, len(staying))
}

// take takes a lease and calls run with it.
func (h *holder) take(ctx context.Context, row Row) (bool, error) {
	l, err := h.leases.Take(ctx, row)
	if errors.Is(err, ErrLost) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	runs, stop := context.WithCancelCause(ctx)
	h.mu.Lock()
	h.mu.held[row.Shard] = &holding{stop: stop}
	h.mu.Unlock()
	h.runs.Go(func() {
		defer stop(nil)
		h.one(runs, stop, l)
		h.mu.Lock()
		delete(h.mu.held, row.Shard)
		h.mu.Unlock()
		if h.leases.Exclusive() && l.Checkpoint() != Done {
			clock.Pause(retakePause, ctx.Done())
		}
		if h.leases.Exclusive() || l.Checkpoint() == Done { // else there are looks all the time
			h.lookAgain()
		}
	})
	return true, nil
}

// one runs run with a lease, keeps the lease meanwhile, and releases it.
func (h *holder) one(ctx context.Context, stop context.CancelCauseFunc, l *Lease) {
	keeps, end := context.WithCancel(context.WithoutCancel(ctx))
	kept := make(chan struct{})
	go func() {
		defer close(kept)
		h.keep(keeps, stop, l)
	}()
	err := h.run(ctx, l)
	if err != nil && !errors.Is(err, ErrLost) && ctx.Err() == nil {
		h.end(&failure{err})
	}
	end()
	<-kept
	if h.leases.Exclusive() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveLimit)
	defer cancel()
	if err := l.Release(ctx); err != nil {
		h.leases.o.Logger.Warn("a lease was not released; other workers wait until it ends", "lease", l.Shard(), "error", err)
	}
}

// keep renews the lease until ctx is done, where the worker's own row does not, and stops run when the lease is lost, or may be.
func (h *holder) keep(ctx context.Context, stop context.CancelCauseFunc, l *Lease) {
	if h.leases.Exclusive() {
		return
	}
	part := h.leases.Duration() / beatParts
	for wait := part; ; {
		clock.Pause(wait, ctx.Done())
		if ctx.Err() != nil {
			return
		}
		if wait = part - l.Age(); wait > 0 {
			continue // it was renewed meanwhile
		}
		call, cancel := context.WithTimeout(context.WithoutCancel(ctx), h.leases.Duration()/lookParts) // what has begun is not left open
		err := l.Beat(call)
		cancel()
		switch {
		case errors.Is(err, ErrLost), err != nil && !l.Held():
			stop(ErrLost)
			return
		case err != nil && ctx.Err() == nil:
			h.leases.o.Logger.Warn("renewing a lease failed; trying again", "lease", l.Shard(), "error", err)
			wait = min(againFirst, part)
		default:
			wait = part
		}
	}
}

// depart tells the other workers that this one ends.
func (h *holder) depart(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveLimit)
	defer cancel()
	h.crew.Leave(ctx)
}

// Held reports whether the lease is surely this worker's: it was renewed within its duration. That of a worker that is alone is until it knows better.
func (h *Lease) Held() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.mu.lost && !h.mu.given && (h.leases.o.Exclusive || h.leases.o.Elapsed()-h.leases.renewed(h.mu.renewed) < h.leases.o.Duration)
}
