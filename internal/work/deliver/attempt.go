package deliver

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/target"
)

// Codes of failures that the target did not report itself.
const (
	codePanic   = "TargetPanicked"
	codeTimeout = "TargetTimeout"
	codeAnswer  = "TargetAnswer" // not one result for each delivery
	codeHangs   = "TargetHangs"  // too many calls have not returned after their timeout
)

const (
	// time for a target to answer after its context ends; at most its timeout
	answerGrace = time.Second
	// calls that may hang for each concurrent call; beyond that no call is made
	hangsPerSlot = 4
)

// attempt makes one call of the target and handles its results.
func (l *lane) attempt(tasks []*task) {
	if turn := tasks[0].turn; turn != nil {
		turn()
		return
	}
	deliveries := make([]target.Delivery, len(tasks))
	for i, t := range tasks {
		deliveries[i] = l.delivery(t)
		l.observe(t, Attempted, "")
	}
	for i, err := range l.call(deliveries) {
		l.result(tasks[i], err)
	}
}

// result handles the result of one delivery.
func (l *lane) result(t *task, err error) {
	switch {
	case err == nil:
		l.observe(t, Delivered, "")
	case l.attempts.ctx.Err() != nil: // the courier ended the call: no fault of the target
		return
	default:
		l.observeFailure(t, err)
	}
	l.mu.Lock()
	t.state = over
	l.mu.Unlock()
	if t.secured != nil {
		<-t.secured // the parked item is queued first, so this result overwrites it
	}
	if err != nil {
		l.failed(t, err)
		return
	}
	if t.parcel.deadLetter {
		l.observe(t, DeadLetterSent, "")
	}
	l.ended(t, Ended{Delivered: true})
}

// call calls the target and returns a result for each delivery, even if the target panics, hangs or
// omits results.
func (l *lane) call(deliveries []target.Delivery) []error {
	return l.guard(len(deliveries), func(ctx context.Context) []error { return l.target.Deliver(ctx, deliveries) })
}

// guard makes a call of the target and returns n results, even if the target panics, hangs or omits
// results.
func (l *lane) guard(n int, call func(ctx context.Context) []error) []error {
	all := func(code, message string) []error {
		return fill(make([]error, n), &target.Error{Code: code, Message: message})
	}
	if calls := l.calls.Load(); calls >= int64(hangsPerSlot*l.limits.Concurrency) {
		return all(codeHangs, fmt.Sprintf("%d calls have not returned after their timeout", calls))
	}
	ctx, cancel := context.WithTimeout(l.attempts.ctx, l.limits.Timeout)
	defer cancel()
	answered := make(chan []error, 1)
	l.calls.Add(1)
	go func() {
		defer l.calls.Add(-1)
		defer func() {
			if p := recover(); p != nil {
				answered <- all(codePanic, fmt.Sprint(p))
			}
		}()
		answered <- call(ctx)
	}()
	results, ok := l.answer(ctx, answered)
	late := "no answer within " + l.limits.Timeout.String()
	switch {
	case !ok:
		return all(codeTimeout, late)
	case len(results) != n:
		return all(codeAnswer, fmt.Sprintf("%d results for %d deliveries", len(results), n))
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
func (l *lane) answer(ctx context.Context, answered <-chan []error) (results []error, ok bool) {
	select {
	case results = <-answered:
		return results, true
	case <-ctx.Done():
	}
	late := make(chan struct{})
	timer := clock.AfterFunc(min(answerGrace, l.limits.Timeout), func() { close(late) })
	defer timer.Stop()
	select {
	case results = <-answered:
		return results, true
	case <-late:
		return nil, false
	}
}

// delivery returns the delivery for this attempt.
func (d *Courier) delivery(t *task) target.Delivery {
	if o := d.origins[t.parcel.Origin.Kind]; o != nil && o.attempt != nil {
		return o.attempt(t.parcel)
	}
	return t.parcel.Delivery
}

func fill(results []error, err error) []error {
	for i := range results {
		results[i] = err
	}
	return results
}
