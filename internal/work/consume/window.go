package consume

import (
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/mayflydb/mayfly/internal/invariant"
)

// window has the records of a shard that were read, from the first that is not done. Its low-water
// mark is the last record up to which all are done.
type window struct {
	mu struct {
		sync.Mutex
		entries []entry // from the first that is not done
		first   int64   // place of entries[0]
		bytes   int64   // size of the records from entries[0] on
		low     string  // sequence number of the last record before entries[0]; "": none yet
		past    int64   // place after the record of low
		last    string  // sequence number of the last record; "": none yet
		ended   bool    // no more records will be added
	}
	moved chan struct{} // has an element when the low-water mark has moved or the end was reached
	room  chan struct{} // has an element when there may be room again
}

type entry struct {
	sequence string
	bytes    int64
	done     bool
}

func newWindow() *window {
	return &window{moved: make(chan struct{}, 1), room: make(chan struct{}, 1)}
}

// add appends records and returns the place of the first.
func (w *window) add(records []Record) int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	place := w.mu.first + int64(len(w.mu.entries))
	for i := range records {
		e := entry{sequence: records[i].Sequence()}
		if r := records[i].Dynamodb; r != nil {
			e.bytes = aws.ToInt64(r.SizeBytes)
		}
		w.mu.entries = append(w.mu.entries, e)
		w.mu.bytes += e.bytes
		w.mu.last = e.sequence
	}
	return place
}

// done marks the record at a place as done.
func (w *window) done(place int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := place - w.mu.first
	if at < 0 || at >= int64(len(w.mu.entries)) {
		return
	}
	w.mu.entries[at].done = true
	if at > 0 {
		if invariant.Injected(invariant.JumpMark) {
			w.mu.low, w.mu.past = w.mu.entries[at].sequence, place+1
			nudge(w.moved)
		}
		return
	}
	n := 0
	for n < len(w.mu.entries) && w.mu.entries[n].done {
		w.mu.bytes -= w.mu.entries[n].bytes
		n++
	}
	w.mu.low = w.mu.entries[n-1].sequence
	clear(w.mu.entries[:n])
	w.mu.entries = w.mu.entries[n:]
	w.mu.first += int64(n)
	w.mu.past = w.mu.first
	nudge(w.moved)
	nudge(w.room)
}

// end reports that no more records will be added.
func (w *window) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.ended = true
	nudge(w.moved)
}

// position is the state of a window.
type position struct {
	low   string // low-water mark; "": no record is done
	held  int    // number of records after the mark
	bytes int64  // size of those records
	over  bool   // all records are done and no more will be added
}

func (w *window) position() position {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.checkMarkLocked()
	held := len(w.mu.entries)
	return position{w.mu.low, held, w.mu.bytes, w.mu.ended && held == 0}
}

// checkMarkLocked checks that the low-water mark passes no record that is not done. It compares
// places, since an endpoint may repeat records with their sequence numbers.
func (w *window) checkMarkLocked() {
	if !invariant.Enabled {
		return
	}
	invariant.CheckUnless(w.mu.past <= w.mu.first, []invariant.Fault{invariant.JumpMark},
		"the mark %q passes %d records, of which the first is not done", w.mu.low, w.mu.past-w.mu.first)
}

// last returns the sequence number of the last record added, or "".
func (w *window) last() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.mu.last
}

// nudge wakes the receiver of a channel with room for one element.
func nudge(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
