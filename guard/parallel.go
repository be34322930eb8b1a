package guard

import (
	"context"
	"sync"
)

// inParallel calls do with 0 to n-1, up to parallel at a time. It returns the first error.
func inParallel(n int, do func(i int) error) (err error) {
	if n == 1 {
		return do(0)
	}
	var mu sync.Mutex
	next := 0
	var all sync.WaitGroup
	for range min(n, parallel) {
		all.Go(func() {
			for {
				mu.Lock()
				i := next
				next++
				over := i >= n || err != nil
				mu.Unlock()
				if over {
					return
				}
				if failed := do(i); failed != nil {
					mu.Lock()
					if err == nil {
						err = failed
					}
					mu.Unlock()
				}
			}
		})
	}
	all.Wait()
	return err
}

// sideBySide calls do with 0 to n-1, up to Options.Concurrency at a time. It returns the first
// error.
func (g *Guard) sideBySide(ctx context.Context, n int, do func(i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan int)
	var workers sync.WaitGroup
	for range min(n, g.o.Concurrency) {
		workers.Go(func() {
			for i := range next {
				if err := do(i); err != nil {
					cancel(err)
					return
				}
			}
		})
	}
feed:
	for i := range n {
		select {
		case next <- i:
		case <-ctx.Done():
			break feed
		}
	}
	close(next)
	workers.Wait()
	return context.Cause(ctx)
}

const parallel = 16 // calls at the deadline table at once, for each shard that is read
