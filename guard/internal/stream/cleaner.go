package stream

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/mayflydb/mayfly/guard/internal/armed"
	"github.com/mayflydb/mayfly/guard/internal/strategy"
	"github.com/mayflydb/mayfly/internal/clock"
)

var errUnprocessed = errors.New("the endpoint left part of a batch unprocessed")

const (
	cleanLimit = 5 * time.Second
	// waiting rows; beyond that the reader of the stream deletes rows itself, and falls behind
	cleanMost = 50_000
	// with the rows of removals; further ones stay in the table for now, as if the cleaner had
	// failed
	cleanAll     = 4 * cleanMost
	cleanPatient = 10 * time.Second
	cleanPause   = 20 * time.Millisecond
)

// clean deletes a row soon, if the table still has the same one. It does not block.
func (s *Strategy) clean(e *row) {
	s.cleaner.mu.Lock()
	if len(s.cleaner.mu.all) < cleanAll {
		s.cleaner.mu.all = append(s.cleaner.mu.all, e)
		e.awaitCleaning()
	}
	s.cleaner.mu.Unlock()
	strategy.Nudge(s.cleaner.wake)
}

// awaitCleaning records that a finished row waits for the cleaner.
func (e *row) awaitCleaning() {
	if e.p == nil {
		return
	}
	e.p.mu.Lock()
	defer e.p.mu.Unlock()
	e.p.mu.cleaning[armed.Entry{Key: e.key, At: e.at}] = e.tag
}

// cleaned records that the cleaner has tried to delete the row. If it has failed, the owner finds
// the row again.
func (e *row) cleaned() {
	if e.p == nil {
		return
	}
	e.p.mu.Lock()
	defer e.p.mu.Unlock()
	delete(e.p.mu.cleaning, armed.Entry{Key: e.key, At: e.at})
}

// cleanLater deletes past rows soon, and returns the rows that do not fit into the queue. In a
// burst there are as many as removals, and nothing depends on them.
func (s *Strategy) cleanLater(past []*row) (now []*row) {
	s.cleaner.mu.Lock()
	n := min(max(cleanMost-len(s.cleaner.mu.all), 0), len(past))
	s.cleaner.mu.all = append(s.cleaner.mu.all, past[:n]...)
	s.cleaner.mu.Unlock()
	strategy.Nudge(s.cleaner.wake)
	return past[n:]
}

func (s *Strategy) toClean() []*row {
	s.cleaner.mu.Lock()
	defer s.cleaner.mu.Unlock()
	rows := s.cleaner.mu.all
	s.cleaner.mu.all = nil
	return rows
}

// cleans deletes rows until ctx is done, and then the remaining rows within a time limit.
func (s *Strategy) cleans(ctx context.Context) {
	all, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	defer context.AfterFunc(ctx, func() { clock.AfterFunc(cleanLimit, end) })()
	patient := cleanPatient
	if !s.alone { // the owner leaves a claimed row for the duration of a lease, or longer
		patient = min(patient, s.Leases.Duration/2)
	}
	for {
		select {
		case <-s.cleaner.wake:
		case <-ctx.Done():
		}
		for waited := time.Duration(0); s.Armed.Next() <= s.Now() && waited < patient && ctx.Err() == nil; waited += cleanPause {
			clock.Pause(cleanPause, ctx.Done())
		}
		rows := s.toClean()
		for len(rows) > 0 {
			n := min(len(rows), cleanChunk)
			work, cancel := context.WithTimeout(all, cleanLimit)
			err := s.dropAll(work, rows[:n])
			cancel()
			if err != nil {
				s.Log.Warn("finished deadlines were not deleted; guard will try again later", "error", err)
				if ctx.Err() != nil {
					break
				}
			}
			rows = rows[n:]
		}
		if ctx.Err() != nil {
			return
		}
	}
}

// dropAll deletes rows, and returns the last error. One failure keeps no other row from its deletion.
func (s *Strategy) dropAll(ctx context.Context, rows []*row) error {
	var mu sync.Mutex
	var failure, err error
	for first, rest := distinct(rows); err == nil && len(first) > 0; first, rest = distinct(rest) {
		err = s.eachTogether(ctx, nil, first, func(ctx context.Context, _, drops []*row) error {
			_, drops, _ = s.store.changeTogether(ctx, nil, drops) // what it leaves shows its errors singly
			for _, e := range drops {
				if err := s.store.drop(ctx, e); err != nil {
					mu.Lock()
					failure = err
					mu.Unlock()
				}
			}
			return nil
		})
	}
	for _, e := range rows {
		e.cleaned()
	}
	return cmp.Or(failure, err)
}

const cleanChunk = 1000 // within a limit of time
