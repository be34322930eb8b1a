package trigger

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/mayflydb/mayfly/internal/work/deliver"
	"github.com/mayflydb/mayfly/target"
)

// part is a contiguous piece of a batch, whose records are tried together.
type part struct {
	entries  []entry
	failed   int // attempts that count against the retries
	invoked  int // all attempts
	last     *target.Error
	again    time.Time             // of a record by itself: it pauses until then
	after    time.Duration         // the least pause that the target asked for
	function *target.FunctionError // of the last attempt; nil if the function did not run
	// the failed records in the answer of the last attempt, if it succeeded
	named []int
}

// note records the outcome of an attempt.
func (p *part) note(err error, named []int) {
	p.last, p.function, p.named = target.AsError(err), nil, named
	_ = errors.As(err, &p.function)
}

// hand delivers a batch, and ensures that all of its records become done, now or later. It returns
// early only if ctx is done.
func (l *lane) hand(ctx context.Context, batch []entry) {
	switch {
	case !l.ordered:
		l.handUnordered(ctx, batch)
	case l.single:
		l.handSingles(ctx, batch)
	default:
		l.handBatch(ctx, batch)
	}
}

// handBatch delivers records together. A failing part is split, or tried again in its place.
func (l *lane) handBatch(ctx context.Context, batch []entry) {
	// the remaining records in their order; the first part is next
	parts := []part{{entries: batch}}
	for len(parts) > 0 && ctx.Err() == nil {
		p := parts[0]
		parts = parts[1:]
		if l.dropExpired(ctx, &p); len(p.entries) > 0 {
			parts = append(l.try(ctx, p), parts...)
		}
	}
}

// dropExpired abandons records that are too old. A record's instant is known to the second only, so
// it counts as written at the end of that second.
func (l *lane) dropExpired(ctx context.Context, p *part) {
	if l.age == 0 {
		return
	}
	n := slices.IndexFunc(p.entries, func(e entry) bool { return !l.expired(e) })
	if n < 0 {
		n = len(p.entries)
	}
	if n > 0 {
		old := *p
		old.entries, p.entries = p.entries[:n], p.entries[n:]
		l.giveUp(ctx, &old, conditionAge)
	}
}

// expired reports whether a record is too old.
func (l *lane) expired(e entry) bool {
	return l.age > 0 && l.o.Clock.Now().Sub(e.written) >= l.age+time.Second
}

// try makes one attempt for a part, and returns the parts that remain.
func (l *lane) try(ctx context.Context, p part) []part {
	p.invoked++
	done, err := l.attempt(ctx, &p)
	finish(p.entries[:done])
	left := p.entries[done:]
	switch {
	case err == nil && len(left) == 0:
		l.failures = 0
		l.result(ctx, resultOK)
		return nil
	case ctx.Err() != nil:
		return nil
	case done > 0: // the first remaining record had no attempt of its own before this one
		l.failures = 0
		p.entries, p.failed, p.invoked = left, 0, 1
	}
	return l.afterFailure(ctx, p, err)
}

// attempt delivers a part. It returns the number of records at its start that succeeded; the others
// must be tried again.
func (l *lane) attempt(ctx context.Context, p *part) (done int, err error) {
	answer, err := l.o.Courier.Invoke(ctx, deliver.Parcel{Delivery: l.delivery(p.entries, p.invoked), Group: l.group()})
	var named []int
	if err == nil && l.partial {
		named = failures(answer, p.entries)
	}
	p.note(err, named)
	switch {
	case err != nil:
		return 0, err
	case len(named) > 0:
		return named[0], nil
	}
	return len(p.entries), nil
}

// afterFailure returns the parts to try after a failed attempt, in which the first record may have
// failed.
func (l *lane) afterFailure(ctx context.Context, p part, err error) []part {
	f := l.judge(&p, err)
	l.result(ctx, f.result)
	switch {
	case l.bisect && len(p.entries) > 1 && (f.counts || f.hopeless): // a split is no retry
		first, second := p, p
		middle := len(p.entries) / 2
		first.entries, second.entries = p.entries[:middle], p.entries[middle:]
		l.pause(ctx, 0)
		return []part{first, second}
	case f.counts:
		p.failed++
	}
	if f.hopeless || l.exhausted(&p) {
		l.giveUp(ctx, &p, conditionRetries)
		return nil
	}
	l.pause(ctx, f.after)
	return []part{p}
}

// failure is the meaning of a failed attempt.
type failure struct {
	counts   bool          // uses up a retry: the function failed, or a target of another kind
	hopeless bool          // another attempt would fail too
	after    time.Duration // the pause that the target asks for
	result   string
}

// judge returns the meaning of a failed attempt; err is nil if the answer named records. As at
// Lambda, a throttled target and a function that did not run use up no retry. Nor does a missing
// target: it delays the lane until a client creates it, since the records are not at fault.
func (l *lane) judge(p *part, err error) failure {
	if err == nil {
		return failure{counts: true, result: resultProblem}
	}
	if missingTarget(err) {
		return failure{result: resultNoTarget}
	}
	e := target.AsError(err)
	return failure{
		counts: p.function != nil || !e.Throttled && !l.isFunction(), hopeless: e.Permanent, after: e.After, result: resultProblem,
	}
}

// exhausted reports whether a part has no attempts left.
func (l *lane) exhausted(p *part) bool { return l.retries != infinite && p.failed > l.retries }

// missingTarget reports whether the target's ARN leads nowhere.
func missingTarget(err error) bool {
	e := target.AsError(err)
	return errors.Is(err, deliver.ErrUnmapped) || e.Permanent && e.Code == codeNotFound
}

// isFunction reports whether the target is a function, which may fail before it runs.
func (l *lane) isFunction() bool {
	to, err := l.o.Resolver.Resolve(l.target)
	if err != nil {
		return false
	}
	_, invoker := to.Target.(target.Invoker)
	return invoker
}

func finish(entries []entry) {
	for _, e := range entries {
		e.done()
	}
}

// handUnordered makes one attempt for a batch, and leaves failed records to the courier, one by
// one. Records that are delivered singly go to the courier at once.
func (l *lane) handUnordered(ctx context.Context, batch []entry) {
	p := part{entries: batch, invoked: 1}
	l.dropExpired(ctx, &p)
	left := p.entries
	if !l.single && len(left) > 0 {
		done, err := l.attempt(ctx, &p)
		if ctx.Err() != nil && err != nil {
			return
		}
		finish(left[:done])
		left = left[done:]
		if err != nil {
			l.log.Warn("a batch failed; its records are tried one by one", "records", len(left), "error", err)
		}
	}
	for _, e := range left {
		if !l.parking.enter(ctx) {
			return
		}
		l.o.Courier.Deliver(ctx, l.parcel(e), func() {
			l.parking.leave()
			e.done()
		})
	}
}

// gate limits the number of holders.
type gate chan struct{}

// enter waits for a place. It returns false if ctx is done.
func (g gate) enter(ctx context.Context) bool {
	select {
	case g <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (g gate) leave() { <-g }
