package guard

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/guard/internal/index"
)

// A single sweep removes all due items and ends; the next one continues at its position.
func TestOneSweep(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withWindows)
	tap := w.tapped()
	for i := range int64(100) {
		w.putWindowed(fmt.Sprint(i), w.in(i*60))
	}
	sweep := func(ctx context.Context) (complete bool) {
		t.Helper()
		o := w.indexOptions()
		o.Concurrency = 1 // so that something is left when the time is over
		g, err := New(o)
		must(t, err)
		must(t, g.prepare(ctx))
		must(t, g.work(ctx, once(func(ctx context.Context) (err error) {
			complete, err = index.Once(ctx, g.env(), g.indexOptions(), g.now())
			return err
		})))
		return complete
	}
	w.advance(49 * time.Minute)
	if complete := sweep(t.Context()); !complete || w.count() != 50 {
		t.Errorf("complete: %v, %d items are left", complete, w.count())
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
	if complete := sweep(ctx); complete || w.count() == 0 {
		t.Errorf("a run whose time is over: complete: %v, %d items are left", complete, w.count())
	}
	tap.do(nil)
	if complete := sweep(t.Context()); !complete || w.count() != 0 {
		t.Errorf("complete: %v, %d items are left", complete, w.count())
	}
}
