// Package retry repeats work that fails for a while, and classifies the errors of AWS APIs.
//
//	Doubling:  pauses are First, 2·First, 4·First, … and never longer than Most
//	Reset:     after Reset the next pause is First again
//	Jitter:    a jittered pause is at least half of the pause without jitter, and never longer
//	Final:     Until returns at once for a final error, for a context that is done, and for success
//	Patience:  work with a limit is not repeated once the limit has passed
//	Disjoint:  an error is throttled, permanent or passing, and only one of them
//
// Pauses are real time, regardless of the database clock: an endpoint's trouble is real.
package retry

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/mayflydb/mayfly/internal/clock"
)

// Policy says how long to pause between attempts.
type Policy struct {
	First time.Duration // the first pause; each further one is twice as long
	Most  time.Duration // the longest pause
	// shortens each pause at random, so that many callers do not return together
	Jitter bool
	For    time.Duration // no attempt begins later than this after the first. Default: no limit
}

// Calls is the policy of calls to an endpoint that fails.
var Calls = Policy{First: 50 * time.Millisecond, Most: 10 * time.Second}

// Pause returns the n-th pause, from 1 on, without jitter. It is never longer than Most, not even the
// first.
func (p Policy) Pause(n int) time.Duration {
	pause := min(p.First, p.Most)
	for ; n > 1 && pause < p.Most; n-- {
		pause += min(pause, p.Most-pause) // twice as long, without overflow
	}
	return pause
}

// Start returns the pauses of the policy from the first one on.
func (p Policy) Start() *Backoff {
	return &Backoff{policy: p, next: p.First, elapsed: clock.Stopwatch()}
}

// Backoff is a growing pause, for loops that need more than Until. It is not safe for concurrent
// use.
type Backoff struct {
	policy  Policy
	next    time.Duration
	elapsed clock.Elapsed
}

// Next returns the length of the next pause, before jitter.
func (b *Backoff) Next() time.Duration { return b.next }

// Wait pauses, and reports whether to try again. It returns early once ctx is done, and at once
// after the policy's limit; then there is no further attempt.
func (b *Backoff) Wait(ctx context.Context) bool {
	if b.policy.For > 0 && b.elapsed() >= b.policy.For {
		return false
	}
	clock.Pause(b.step(), ctx.Done())
	return ctx.Err() == nil
}

// step returns the next pause, with jitter, and doubles the one after it.
func (b *Backoff) step() time.Duration {
	pause := b.next
	b.next = min(2*b.next, max(b.policy.First, b.policy.Most))
	if b.policy.Jitter && pause > 1 {
		pause = pause/2 + rand.N(pause/2+1)
	}
	if b.policy.For > 0 {
		pause = min(pause, b.policy.For)
	}
	return pause
}

// Reset begins anew: the work has succeeded.
func (b *Backoff) Reset() { *b = *b.policy.Start() }

// Ease begins the limit anew and undoes one doubling: the work has progressed, but failed again.
func (b *Backoff) Ease() { b.next, b.elapsed = max(b.next/2, b.policy.First), clock.Stopwatch() }

// final is an error that ends Until.
type final struct{ error }

func (f *final) Unwrap() error { return f.error }

// Final marks an error that another attempt cannot mend. Until returns the error without the mark.
func Final(err error) error { return &final{err} }

// Until calls f until it succeeds, and logs each failure with what f does; a nil log stays silent.
// It returns ctx's error once ctx is done, a final error of f, and any error after the policy's
// limit.
func Until(ctx context.Context, log *slog.Logger, policy Policy, what string, f func() error) error {
	for again := policy.Start(); ; {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := f()
		var last *final
		switch {
		case err == nil:
			return nil
		case errors.As(err, &last):
			return last.error
		case ctx.Err() != nil:
			return ctx.Err()
		}
		if log != nil {
			log.Warn("failed; trying again", "what", what, "error", err, "after", again.Next())
		}
		if !again.Wait(ctx) && ctx.Err() == nil {
			return err
		}
	}
}
