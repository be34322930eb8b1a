package strict

import (
	"context"
	"sync"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/skew"
)

// An item is hidden by the endpoint's clock, as far as that is known from the Date headers of its answers: by the least that it can be. To hide what lives would be to lose it for whoever
// reads, and for every condition; to show for a moment more what has expired is what the endpoint does anyway.

// endpointTime is what is known of the endpoint's clock.
type endpointTime struct {
	local   *clock.Clock // monotonic
	bounds  skew.Bounds
	first   sync.Mutex // held while the endpoint is asked for the first time
	mu      sync.Mutex
	asked   bool // guarded by mu
	answers int  // with a Date; guarded by mu
}

func newEndpointTime() *endpointTime { return &endpointTime{local: clock.NewAt(clock.New().Now())} }

// watch is a send that looks at the Date of each answer.
func (t *endpointTime) watch(over send) send {
	return func(ctx context.Context, operation string, body []byte) (answer, error) {
		sent := t.local.Millis()
		a, err := over(ctx, operation, body)
		if date := a.header.Get(headerDate); err == nil && date != "" {
			t.bounds.Saw(date, sent, t.local.Millis())
			t.mu.Lock()
			t.answers++
			t.mu.Unlock()
		}
		return a, err
	}
}

// firstAsk is what the endpoint is asked when nothing is known of its clock. Any answer tells, a refusal, too.
const firstAsk = "DescribeEndpoints"

// now is the instant at which a request is judged.
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
	case t.answers == 1: // which may be that of a wrong clock on the way
		return min(here, there)
	}
	return there
}

// ask asks the endpoint for its time, once, before anything is judged by that.
func (t *endpointTime) ask(ctx context.Context, send send) {
	t.first.Lock()
	defer t.first.Unlock()
	t.mu.Lock()
	done := t.asked || t.answers > 0
	t.asked = true
	t.mu.Unlock()
	if !done {
		_, _ = send(ctx, firstAsk, []byte("{}")) // without an answer the machine's clock counts
	}
}
