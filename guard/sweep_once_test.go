package guard

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// A single sweep removes all due items and ends; the next one continues at its position.
func TestOneSweep(t *testing.T) {
	w := newWorld(t, withWindows)
	tap := w.tapped()
	for i := range int64(100) {
		w.putWindowed(fmt.Sprint(i), w.in(i*60))
	}
	sweep := func(ctx context.Context) *oneSweep {
		t.Helper()
		o := w.indexOptions()
		o.Concurrency = 1 // so that something is left when the time is over
		g, err := New(o)
		must(t, err)
		must(t, g.prepare(ctx))
		s := &oneSweep{indexing: newIndexing(g), at: g.now()}
		must(t, g.work(ctx, s))
		return s
	}
	w.advance(49 * time.Minute)
	if s := sweep(t.Context()); !s.complete || w.count() != 50 {
		t.Errorf("complete: %v, %d items are left", s.complete, w.count())
	}
	if mark := w.watermark(1); mark != w.now().UnixMilli() {
		t.Errorf("the watermark is %d", mark)
	}
	w.advance(200 * time.Minute)
	ctx, cancel := context.WithCancel(t.Context())
	tap.do(func(_ context.Context, operation string, _ any) error {
		if operation == "DeleteItem" {
			cancel()
		}
		return nil
	})
	if s := sweep(ctx); s.complete || w.count() == 0 {
		t.Errorf("a run whose time is over: complete: %v, %d items are left", s.complete, w.count())
	}
	tap.do(nil)
	if s := sweep(t.Context()); !s.complete || w.count() != 0 {
		t.Errorf("complete: %v, %d items are left", s.complete, w.count())
	}
}
