package deliver

import (
	"context"
	"log/slog"

	"github.com/mayflydb/mayfly/internal/work/retry"
)

// endedMax is the largest batch of ends.
const endedMax = 1000

func newOrigin(log *slog.Logger) *origin { return &origin{log: log, wake: make(chan struct{}, 1)} }

// ended reports the end of a task's parcel to its origin, and finishes the task when the origin has
// accepted it.
func (d *Courier) ended(t *task, e Ended) {
	o := d.origins[t.parcel.Origin.Kind]
	if o == nil || o.end == nil {
		d.finish(t)
		return
	}
	e.Delivery, e.Group, e.Origin = t.parcel.Delivery, t.parcel.Group, t.parcel.Origin
	o.mu.Lock()
	defer o.mu.Unlock()
	o.mu.waiting = append(o.mu.waiting, ending{e, func() { d.finish(t) }})
	nudge(o.wake)
}

// run reports ends in batches. The next batch gathers while one is reported.
func (o *origin) run(ctx context.Context) {
	for {
		batch := o.take()
		if len(batch) == 0 {
			select {
			case <-o.wake:
				continue
			case <-ctx.Done():
				return
			}
		}
		ended := make([]Ended, len(batch))
		for i := range batch {
			ended[i] = batch[i].Ended
		}
		if err := retry.Until(ctx, o.log, retry.Calls, "report the end of deliveries", func() error { return o.end(ctx, ended) }); err != nil {
			return
		}
		for i := range batch {
			batch[i].told()
		}
	}
}

// take returns the next batch of ends.
func (o *origin) take() []ending {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := min(len(o.mu.waiting), endedMax)
	batch := o.mu.waiting[:n:n]
	o.mu.waiting = o.mu.waiting[n:]
	o.mu.busy = n > 0
	return batch
}

// idle reports whether no ends wait.
func (o *origin) idle() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.mu.waiting) == 0 && !o.mu.busy
}
