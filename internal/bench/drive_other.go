//go:build !linux

package bench

import (
	"context"
	"sync"
	"time"
)

// drive makes the calls of all workers until end, each in a goroutine.
func drive(ctx context.Context, workers []*worker, end time.Time) error {
	var running sync.WaitGroup
	for _, w := range workers {
		running.Go(func() { w.run(ctx, end) })
	}
	running.Wait()
	return nil
}

func (w *worker) run(ctx context.Context, end time.Time) {
	w.conn.net.SetDeadline(end.Add(answerTime))
	for now := time.Now(); now.Before(end) && w.calls+w.errors < callsMax; {
		request := w.caller.next()
		if request == nil {
			return
		}
		a, err := w.conn.call(request)
		then := time.Now()
		if err == nil {
			w.judge(a, then.Sub(now))
		} else {
			w.lost(err)
		}
		if err != nil || a.closes {
			if w.redial(ctx); w.conn == nil {
				return
			}
			w.conn.net.SetDeadline(end.Add(answerTime))
			then = time.Now()
		}
		now = then
	}
}
