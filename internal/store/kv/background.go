package kv

import (
	"context"
	"sync"
)

// background is the work of a store outside of calls.
type background struct {
	ctx    context.Context // done when the store is closed
	cancel context.CancelFunc
	mu     sync.Mutex // prevents a start after stop
	work   sync.WaitGroup
}

func (b *background) init() { b.ctx, b.cancel = context.WithCancel(context.Background()) }

// start runs work in a goroutine of its own, unless the store is closed.
func (b *background) start(work func(context.Context)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ctx.Err() == nil {
		b.work.Go(func() { work(b.ctx) })
	}
}

// stop ends the work and waits for it.
func (b *background) stop() {
	b.mu.Lock()
	b.cancel()
	b.mu.Unlock()
	b.work.Wait()
}
