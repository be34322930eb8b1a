package deliver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/target"
)

// gate admits calls of one target: a limited number at once, and deliveries at a limited rate.
// Groups of callers take turns at both limits.
type gate struct {
	*Courier
	name    string
	target  target.Target
	limits  target.Limits
	places  *turns
	limiter *rate.Limiter // nil: no limit
	pacing  *turns        // its only place is for the caller that waits for the rate
	calls   atomic.Int64  // calls of the target that have not returned
}

const (
	concurrencyDefault, concurrencyMax = 16, 1000
	batchMax                           = 1000
	timeoutDefault                     = 30 * time.Second
	timeoutMin, timeoutMax             = 10 * time.Millisecond, 15 * time.Minute

	// time for a target to answer after its context ends; at most its timeout
	answerGrace = time.Second
	// calls that may hang for each concurrent call; beyond that no call is made
	hangsPerPlace = 4
)

// Codes of failures that the target did not report itself.
const (
	codePanic   = "TargetPanicked"
	codeTimeout = "TargetTimeout"
	codeAnswer  = "TargetAnswer" // not one result for each delivery
	codeHangs   = "TargetHangs"  // too many calls have not returned after their timeout
)

func newGate(d *Courier, l Lane) *gate {
	l.Limits.Concurrency = cmp.Or(max(l.Limits.Concurrency, 0), concurrencyDefault)
	l.Limits.Timeout = cmp.Or(max(l.Limits.Timeout, 0), timeoutDefault)
	l.Limits.Concurrency = min(l.Limits.Concurrency, concurrencyMax)
	l.Limits.Batch = min(max(l.Limits.Batch, 1), batchMax)
	l.Limits.Timeout = min(max(l.Limits.Timeout, timeoutMin), timeoutMax)
	made := &gate{Courier: d, name: l.Name, target: l.Target, limits: l.Limits, places: newTurns(l.Limits.Concurrency), pacing: newTurns(1)}
	if perSecond := l.Limits.PerSecond; perSecond > 0 && !math.IsInf(perSecond, 0) {
		const burst = 0.05 // in seconds: shorter waits are below the resolution of timers
		made.limiter = rate.NewLimiter(rate.Limit(perSecond), max(l.Limits.Batch, int(perSecond*burst)))
	}
	return made
}

// enter waits until a group's call of n deliveries is admitted. The caller must leave after the call.
// It returns an error if ctx is done first, or the courier ends.
func (g *gate) enter(ctx context.Context, group string, n int) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(g.attempts.open, cancel)()
	select {
	case <-g.ready:
	case <-ctx.Done():
		return ctx.Err()
	}
	awaitRate := func() int {
		g.pace(n, ctx.Done())
		if ctx.Err() != nil {
			return 0
		}
		return n
	}
	if !g.admit(ctx, turn{group: group, weight: 1}, awaitRate) {
		return ctx.Err()
	}
	if ctx.Err() != nil || !g.begin() {
		g.places.free()
		return cmp.Or(ctx.Err(), context.Canceled)
	}
	return nil
}

func (g *gate) leave() {
	g.attempts.running.Done()
	g.places.free()
}

// admit waits for a place, and then calls begin, which waits for the rate and returns the number of
// deliveries that begin. admit counts them. It returns false, and the caller has no place, if ctx is
// done before.
func (g *gate) admit(ctx context.Context, next turn, begin func() int) bool {
	if g.limiter != nil { // the turn at the rate comes first, and needs no place
		if next.placed {
			g.places.free()
			next.placed = false
		}
		if !g.pacing.take(ctx, next) {
			return false
		}
		defer g.pacing.free()
	}
	if !g.places.take(ctx, next) {
		return false
	}
	n := begin()
	if g.limiter != nil {
		g.limiter.ReserveN(g.now(), n)
	}
	return true
}

// pace waits until the rate admits n deliveries, or stop is closed. Only the caller whose turn at the
// rate it is calls pace, so no other delivery is counted meanwhile.
func (g *gate) pace(n int, stop <-chan struct{}) {
	if g.limiter == nil {
		return
	}
	const most = 1e9 // seconds: more may not fit a duration
	missing := float64(n) - g.limiter.TokensAt(g.now())
	if seconds := missing / float64(g.limiter.Limit()); seconds > 0 {
		clock.Pause(time.Duration(min(seconds, most)*float64(time.Second)), stop)
	}
}

// now returns the time of the limiter.
func (g *gate) now() time.Time { return time.Time{}.Add(g.elapsed()) }

// call calls a method of the target and returns a result for each delivery, even if the target panics,
// hangs or omits results.
func (g *gate) call(deliveries []target.Delivery, deliver func(context.Context, []target.Delivery) []error) []error {
	all := func(code, message string) []error {
		return fill(make([]error, len(deliveries)), &target.Error{Code: code, Message: message})
	}
	if calls := g.calls.Load(); calls >= int64(hangsPerPlace*g.limits.Concurrency) {
		return all(codeHangs, fmt.Sprintf("%d calls have not returned after their timeout", calls))
	}
	ctx, cancel := context.WithTimeout(g.attempts.ctx, g.limits.Timeout)
	defer cancel()
	answered := make(chan []error, 1)
	g.calls.Add(1)
	go func() {
		defer g.calls.Add(-1)
		defer func() {
			if p := recover(); p != nil {
				answered <- all(codePanic, fmt.Sprint(p))
			}
		}()
		answered <- deliver(ctx, deliveries)
	}()
	results, ok := g.answer(ctx, answered)
	late := "no answer within " + g.limits.Timeout.String()
	switch {
	case !ok:
		return all(codeTimeout, late)
	case len(results) != len(deliveries):
		return all(codeAnswer, fmt.Sprintf("%d results for %d deliveries", len(results), len(deliveries)))
	}
	for i, err := range results {
		if ctx.Err() != nil && (errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)) {
			results[i] = &target.Error{Code: codeTimeout, Message: late, Err: err}
		}
	}
	return results
}

// answer waits for the results, and for a grace period once ctx is done: some deliveries may have
// arrived.
func (g *gate) answer(ctx context.Context, answered <-chan []error) (results []error, ok bool) {
	select {
	case results = <-answered:
		return results, true
	case <-ctx.Done():
	}
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), min(answerGrace, g.limits.Timeout))
	defer cancel()
	select {
	case results = <-answered:
		return results, true
	case <-late.Done():
		return nil, false
	}
}

func fill(results []error, err error) []error {
	for i := range results {
		results[i] = err
	}
	return results
}
