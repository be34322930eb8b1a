package guard

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/mayflydb/mayfly/internal/clock"
)

var errUnprocessed = errors.New("the endpoint left part of a batch unprocessed")

// cleaner deletes what is not needed any more from the deadline table: what was refused, what was in an inbox, and among several workers what has been removed. It gives way to
// removals. Where it fails, or dies, a deadline that is left is tried once more, refused, and deleted some minutes later.
type cleaner struct {
	wake chan struct{} // has an element when there is something to do
	mu   struct {
		sync.Mutex
		all []*row
	}
}

const (
	cleanLimit   = 5 * time.Second
	cleanMost    = 50_000        // deadlines that wait; the reader of the stream deletes what is beyond that itself, and falls behind
	cleanAll     = 4 * cleanMost // with those of removals; what is beyond that is left in the table for now, as where the cleaner fails
	cleanPatient = 10 * time.Second
	cleanPause   = 20 * time.Millisecond
)

// clean has a deadline deleted from the table before long, if it is still the one that was armed. It does not block.
func (s *stream) clean(e *row) {
	s.cleaner.mu.Lock()
	if len(s.cleaner.mu.all) < cleanAll {
		s.cleaner.mu.all = append(s.cleaner.mu.all, e)
	}
	s.cleaner.mu.Unlock()
	s.cleaner.look()
}

// cleanLater has deadlines deleted that are past, and gives those for which there is no room. In a burst they are as many calls as the removals, and nothing depends on them.
func (s *stream) cleanLater(past []*row) (now []*row) {
	s.cleaner.mu.Lock()
	n := min(max(cleanMost-len(s.cleaner.mu.all), 0), len(past))
	s.cleaner.mu.all = append(s.cleaner.mu.all, past[:n]...)
	s.cleaner.mu.Unlock()
	s.cleaner.look()
	return past[n:]
}

func (c *cleaner) look() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (s *stream) toClean() []*row {
	s.cleaner.mu.Lock()
	defer s.cleaner.mu.Unlock()
	some := s.cleaner.mu.all
	s.cleaner.mu.all = nil
	return some
}

// cleans deletes until ctx is done, and then what is left, as far as it comes within a limit.
func (s *stream) cleans(ctx context.Context) {
	all, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	defer context.AfterFunc(ctx, func() { clock.AfterFunc(cleanLimit, end) })()
	for {
		select {
		case <-s.cleaner.wake:
		case <-ctx.Done():
		}
		for waited := time.Duration(0); s.g.armed.next() <= s.g.now() && waited < cleanPatient && ctx.Err() == nil; waited += cleanPause {
			clock.Pause(cleanPause, ctx.Done())
		}
		some := s.toClean()
		for len(some) > 0 {
			n := min(len(some), cleanChunk)
			work, cancel := context.WithTimeout(all, cleanLimit)
			err := inParallel(n, func(i int) error { return s.store.drop(work, some[i]) })
			cancel()
			if err != nil {
				s.g.log.Warn("finished deadlines were not deleted; guard will try again later", "error", err)
				if ctx.Err() != nil {
					break
				}
			}
			some = some[n:]
		}
		if ctx.Err() != nil {
			return
		}
	}
}

const cleanChunk = 1000 // within a limit of time
