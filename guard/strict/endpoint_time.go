package strict

import (
	"context"
	"sync"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/skew"
)

// An item is hidden by the endpoint's clock, as far as the Date headers of answers show it: by its
// earliest possible time. Hiding a live item would lose it for readers and conditions. Showing an
// expired item for a moment longer is no worse than the endpoint itself.

// endpointTime is the knowledge about the endpoint's clock.
type endpointTime struct {
	local   *clock.Clock // monotonic
	bounds  skew.Bounds
	first   sync.Mutex // held during the first request to the endpoint
	mu      sync.Mutex
	asked   bool // guarded by mu
	answers int  // with a Date; guarded by mu
}

func newEndpointTime() *endpointTime { return &endpointTime{local: clock.NewAt(clock.New().Now())} }

// watch returns inner with the Date of each answer recorded.
func (t *endpointTime) watch(inner send) send {
	return func(ctx context.Context, operation string, body []byte) (answer, error) {
		sent := t.local.Millis()
		a, err := inner(ctx, operation, body)
		if date := a.header.Get(headerDate); err == nil && date != "" {
			t.bounds.Saw(date, sent, t.local.Millis())
			t.mu.Lock()
			t.answers++
			t.mu.Unlock()
		}
		return a, err
	}
}

// firstAsk is the first request, if the endpoint's clock is unknown. Any answer has a Date, even an
// error.
const firstAsk = "DescribeEndpoints"

// now returns the instant at which a request is judged: the time of Rules.Now, or without it the
// endpoint's earliest possible time. It may send a request to learn that. It returns this machine's
// time if no answer has had a Date, and the earlier of both after a single one.
func (r *rewriter) now(ctx context.Context, send send) moment {
	here := momentOf(r.rules.Now())
	if !r.rules.bounded {
		return here
	}
	t := r.time
	t.ask(ctx, send)
	local := t.local.Millis()
	low, _, known := t.bounds.At(local)
	t.mu.Lock()
	defer t.mu.Unlock()
	there := moment(local + low)
	switch {
	case !known:
		return here
	case t.answers == 1: // its Date may come from another machine with a wrong clock
		return min(here, there)
	}
	return there
}

// ask requests the endpoint's time, once, before it is used for the first time.
func (t *endpointTime) ask(ctx context.Context, send send) {
	t.first.Lock()
	defer t.first.Unlock()
	t.mu.Lock()
	done := t.asked || t.answers > 0
	t.asked = true
	t.mu.Unlock()
	if !done {
		_, _ = send(ctx, firstAsk, []byte("{}")) // without an answer, the machine's clock counts
	}
}
