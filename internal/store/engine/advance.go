package engine

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// AdvanceReport says what happened while the clock was advanced.
type AdvanceReport struct {
	From, To   Instant
	Steps      int      // due instants that the clock stopped at
	Unfinished bool     // the real-time limit ended the advance: To is where the clock stands, and work due then may remain
	Busy       []string // of an unfinished one: the consumers of streams that it waited for, in no order
}

// Advance moves the clock forward by d. It walks from due instant to due instant, those that consumers rest for among them, and moves on only when
// everything due there has been reaped, every registered consumer has passed every record of its stream or rests, and nothing is in flight; so what
// happens is the same as if the time had passed. After realLimit (0: none) it stops where it is and says so. Run must be running; where the
// engine closes or the store stops meanwhile, that is the error.
func (e *Engine) Advance(ctx context.Context, d, realLimit time.Duration) (AdvanceReport, error) {
	if d < 0 {
		return AdvanceReport{}, fmt.Errorf("advance by %s: the clock only goes forward", d)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(e.life, cancel)()
	if realLimit > 0 {
		ctx, cancel = context.WithTimeout(ctx, realLimit)
		defer cancel()
	}
	r := AdvanceReport{From: e.Now()}
	target := r.From + Instant(d.Milliseconds())
	for {
		if err := e.settle(ctx); err != nil {
			return e.advanced(r, err)
		}
		now := e.Now()
		head := min(Instant(e.queue.Head()), e.nextRest(now), target)
		if now < head {
			if err := e.clock.Advance(time.Duration(head-now) * time.Millisecond); err != nil {
				return e.advanced(r, err)
			}
			r.Steps++
			continue
		}
		if now >= target {
			return e.advanced(r, nil)
		}
	}
}

// settle waits until everything due now is done and nothing is in flight.
func (e *Engine) settle(ctx context.Context) error {
	for {
		now := e.Now()
		if err := e.queue.Settled(ctx, int64(now)); err != nil {
			return err
		}
		if err := e.activity.Idle(ctx); err != nil {
			return err
		}
		at, err := e.consumersIdle(ctx)
		if err != nil {
			return err
		}
		// What a consumer has written meanwhile may be due, and what was due then may have made another consumer busy. Looked at in this
		// order, nothing was left at one and the same moment.
		if e.queue.IsSettled(int64(now)) && e.activity.Count() == 0 && e.stands(at) {
			return nil
		}
	}
}

// advanced completes the report. Running into the real-time limit is a result and not an error.
func (e *Engine) advanced(r AdvanceReport, err error) (AdvanceReport, error) {
	r.To = e.Now()
	switch stopped := e.ready(); {
	case err == nil:
	case stopped != nil:
		err = stopped
	case errors.Is(err, context.DeadlineExceeded):
		r.Unfinished, err = true, nil
		_, r.Busy, _ = e.busyConsumers()
	}
	return r, err
}
