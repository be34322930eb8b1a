package engine

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// AdvanceReport is the result of an advance of the clock.
type AdvanceReport struct {
	From, To   Instant
	Steps      int  // due instants that the clock stopped at
	Unfinished bool // the real-time limit ended the advance at To; due work may be left
	// of an unfinished advance: the stream consumers that it waited for, in no order
	Busy []string
}

// Advance moves the clock forward by d and stops at every due instant on the way, including the
// instants that consumers rest until. It leaves an instant when the reaper has removed everything
// due, every registered consumer has passed its stream's last record or rests, and nothing is in
// flight. The outcome is therefore the same as if the time had passed.
//
// After realLimit (0: none) Advance stops where it is and reports so. Run must be running. Advance
// returns an error if the engine closes or the store stops meanwhile.
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

// settle returns when everything due now is done and nothing is in flight.
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
		// A consumer may have written an item that is due, and a removal may have made another
		// consumer busy. Only this order of the checks proves one moment at which nothing was left.
		if e.queue.IsSettled(int64(now)) && e.activity.Count() == 0 && e.stillIdle(at) {
			e.checkIdle(at)
			return nil
		}
	}
}

// advanced completes the report. An advance that reaches the real-time limit has a result, not an
// error.
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
