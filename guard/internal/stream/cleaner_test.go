package stream

import "testing"

// The queue of rows to delete is bounded; beyond that the reader of the stream deletes them itself.
func TestCleanLater(t *testing.T) {
	s := &Strategy{cleaner: cleaner{wake: make(chan struct{}, 1)}}
	past := make([]*row, cleanMost-10)
	if now := s.cleanLater(past); len(now) > 0 {
		t.Errorf("%d of %d are to be deleted now", len(now), len(past))
	}
	if now := s.cleanLater(past[:30]); len(now) != 20 {
		t.Errorf("%d are to be deleted now, with room for 10 of 30", len(now))
	}
	s.clean(past[0]) // may not block, and has another bound
	if now := s.cleanLater(past[:30]); len(now) != 30 {
		t.Errorf("%d are to be deleted now, with no room for 30", len(now))
	}
	if n := len(s.toClean()); n != cleanMost+1 {
		t.Errorf("%d are to be deleted", n)
	}
	for range cleanAll + 10 {
		s.clean(past[0])
	}
	if n := len(s.toClean()); n != cleanAll {
		t.Errorf("%d are to be deleted", n)
	}
}
