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

// Done is the checkpoint of a finished lease: Hold ignores it.
const Done = "done"

const (
	// polls of the leases in the duration of a lease; each one shows that the worker is alive
	lookParts = 4
	// if the polls have failed for this part of the duration, each lease is renewed by itself
	beatParts  = 2
	againFirst = 50 * time.Millisecond
	leaveLimit = 5 * time.Second // for the writes that release a lease

	retakePause = time.Second // before an exclusive worker repeats a run that has ended
)

var errLeave = errors.New("the lease is left to another worker")

// Hold keeps this worker's fair share of the named leases. It calls run for each
// lease that it holds, in a goroutine of its own, with a context that is done when the lease is
// lost or must be released. Hold beats meanwhile, and releases the lease when run has returned. It
// blocks until ctx is done, or all leases have the checkpoint Done, and then returns nil; all calls
// of run have returned by then.
//
// After a pause of the worker the context ends late. Writes that require the lease must use Save,
// or happen while the lease is Held.
//
// An error of run ends everything and is returned, unless it is ErrLost or the context of run was
// done. If run returns nil without the checkpoint Done, the lease is free again, and may come back
// to this worker at the next poll. A failed read of the table is repeated, unless the error is
// Fatal.
//
// Each worker makes four writes in the duration of the leases, and four queries of all rows. So
// there should be tens of leases rather than thousands; put several shares under one name.
func Hold(ctx context.Context, leases *Leases, names []string, run func(ctx context.Context, l *Lease) error) error {
	return HoldListed(ctx, leases, func(context.Context, map[string]Row) ([]string, error) { return names, nil }, run)
}

// HoldListed is like Hold for names that change, such as a stream's shards. It calls list at each
// poll, with all rows read just before. An error of list counts as one of the table. Names that are
// no longer listed are not taken again; run continues for leases that this worker holds.
func HoldListed(ctx context.Context, leases *Leases, list func(ctx context.Context, rows map[string]Row) ([]string, error), run func(ctx context.Context, l *Lease) error) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	h := &holder{leases: leases, crew: NewCrew(leases), list: list, run: run, end: end, again: make(chan struct{}, 1)}
	h.mu.held = map[string]*holding{}
	err := h.hold(ctx)
	end(nil)
	h.runs.Wait()
	h.depart(ctx)
	if wrong, ok := errors.AsType[*failure](context.Cause(ctx)); ok {
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
	again   chan struct{} // has an element when the leases should be checked again
	workers []string      // workers at the last check
	changed bool          // a lease differed from the row that was read
	runs    sync.WaitGroup
	mu      struct {
		sync.Mutex
		held map[string]*holding // by name: the leases with a running run
	}
}

// holding is a lease with a running run.
type holding struct {
	stop    context.CancelCauseFunc // cancels run's context
	leaving bool
}

// failure is an error of run, as the cause of the end.
type failure struct{ err error }

func (f *failure) Error() string { return f.err.Error() }

// hold checks the leases until ctx is done or all are finished; then it returns nil.
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

// wait waits until the leases should be checked again. An exclusive worker checks when a run has
// ended, and when a lease differed from the row that was read: an earlier run's write had arrived
// late.
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

// look takes free leases up to this worker's share, and stops those beyond it. It returns the
// number of unfinished leases and the time until the next check.
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
		h.leases.o.CrewChanged(workers)
	}
	share := Share(len(rows), workers, h.leases.Owner())
	mine := h.own(share)
	h.changed = false
	for _, row := range mixed(Shuffled(rows, h.leases.Owner()), func(r Row) string { return r.Shard }) {
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
		h.changed = h.changed || !taken && h.leases.Exclusive() // other workers check often enough
	}
	return len(rows), h.leases.nextFree(rows), nil
}

// nextFree returns the time until one of the rows may be free, at most the interval of checks.
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

// own stops the leases beyond the share, and returns the number of leases that this worker keeps.
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
	staying = mixed(staying, func(name string) string { return name })
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

// one calls run with a lease, renews the lease meanwhile, and releases it.
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

// keep renews the lease until ctx is done, unless the worker's own row does. It stops run when the
// lease is, or may be, lost.
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
		// a begun write is always completed
		call, cancel := context.WithTimeout(context.WithoutCancel(ctx), h.leases.Duration()/lookParts)
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

// depart deletes this worker's own lease.
func (h *holder) depart(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveLimit)
	defer cancel()
	h.crew.Leave(ctx)
}

// Held reports whether this worker surely has the lease: it was renewed within its duration. An
// exclusive worker has it until it learns otherwise.
func (h *Lease) Held() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.mu.lost && !h.mu.given && (h.leases.o.Exclusive || h.leases.o.Elapsed()-h.leases.renewed(h.mu.renewed) < h.leases.o.Duration)
}
