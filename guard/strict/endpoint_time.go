package strict

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/skew"
	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// An item is hidden once it has expired by both clocks: this machine's, and the endpoint's as far as
// the Date headers of answers show it, by its earliest possible time. Hiding a live item would lose
// it for readers and conditions. Showing an expired item for a moment longer is no worse than the
// endpoint itself.
//
// If the clocks differ by more than the limit, one of them is wrong, and requests for guarded tables
// are refused until they agree again. Probes find that out.

// probePause is the least time between two probes while the endpoint's clock is in doubt.
const probePause = 250 * time.Millisecond

// endpointTime is the knowledge about the endpoint's clock.
type endpointTime struct {
	*skew.Clock
	limit   time.Duration
	wall    *clock.Clock
	local   *clock.Clock // monotonic
	asking  sync.Mutex   // held during a probe
	elapsed clock.Elapsed
	asked   time.Duration // when the last probe began, by elapsed; 0: none has. Guarded by asking
	// is called when a doubt begins, with its error, and with nil when it ends
	changed func(error)
}

func newEndpointTime(limit time.Duration) *endpointTime {
	wall := clock.New()
	local := clock.NewAt(wall.Now())
	return &endpointTime{
		Clock: skew.NewClock(limit.Milliseconds(), local.Millis(), wall.Millis()), limit: limit, wall: wall, local: local, elapsed: clock.Stopwatch(),
		changed: func(error) {},
	}
}

// watch returns inner with the Date of each answer recorded.
func (t *endpointTime) watch(inner send) send {
	return func(ctx context.Context, operation string, body []byte) (answer, error) {
		sent := t.local.Millis()
		a, err := inner(ctx, operation, body)
		if err != nil {
			return a, err
		}
		switch s := t.Saw(a.header.Get(headerDate), sent, t.local.Millis(), t.wall.Millis()); {
		case s.Began:
			t.changed(t.doubt())
		case s.Ended:
			t.changed(nil)
		}
		return a, nil
	}
}

// probe is the request that asks for the endpoint's time. Any answer has a Date, even an error.
const probe = "DescribeEndpoints"

// now returns the instant at which a request is judged: the time of Rules.Now, or without it the
// earlier of this machine's time and the endpoint's earliest possible time. It may send a request to
// learn that. Without any Date, it returns this machine's time. The error refuses requests for
// guarded tables: the endpoint's clock is in doubt.
func (r *rewriter) now(ctx context.Context, send send) (moment, error) {
	if !r.rules.bounded {
		return momentOf(r.rules.Now()), nil
	}
	t := r.time
	t.ask(ctx, send)
	local := t.local.Millis()
	at := t.Machine(local)
	if low, _, known := t.At(local); known {
		at = min(at, local+low)
	}
	return moment(at), t.doubt()
}

// doubt returns an error while the endpoint's clock is in doubt.
func (t *endpointTime) doubt() error {
	d, open := t.Doubt()
	if !open {
		return nil
	}
	by := time.Duration(d.By) * time.Millisecond
	why := fmt.Sprintf("the endpoint's clock is %v ahead of this machine's", by)
	switch {
	case d.Set:
		why = fmt.Sprintf("this machine's clock was set by %v", by)
	case by < 0:
		why = fmt.Sprintf("the endpoint's clock is %v behind this machine's", -by)
	}
	return &dynamo.Error{Code: dynamo.CodeInternal, Message: fmt.Sprintf("strict reads: %s; the limit is %v. Requests for guarded tables fail until the clocks agree: correct the wrong one (NTP), or raise the limit", why, t.limit)}
}

// ask sends a probe if there has been none, or if the endpoint's clock is in doubt and the last one
// was a while ago.
func (t *endpointTime) ask(ctx context.Context, send send) {
	if _, _, known := t.At(t.local.Millis()); known && t.doubt() == nil {
		return
	}
	t.asking.Lock()
	defer t.asking.Unlock()
	now := t.elapsed()
	_, open := t.Doubt()
	if t.asked > 0 && (!open || now-t.asked < probePause) {
		return
	}
	t.asked = max(now, 1)
	_, _ = send(ctx, probe, []byte("{}")) // without an answer, this machine's clock counts
}
