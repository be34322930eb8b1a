package strategy

import (
	"slices"
	"sync"
)

// Progress is how far this worker is with long work: guard's Progress describes the fields.
type Progress struct {
	Doing       string
	Done, Total int64
	Unit        string
	Ended, Left bool
}

// The kinds of long work.
const (
	FirstScan = "first scan"
	WholeScan = "scan"
	CatchUp   = "catch-up"
)

// Track adds up this worker's progress with parts of some work, for example the segments of a scan.
type Track struct {
	*Env
	Doing string
	Until Ending
	mu    struct {
		sync.Mutex
		parts    []*Part
		left     int64 // units of this round that were done in parts which this worker has left
		reported bool  // there was a report in this round
	}
}

// Ending is the condition for the end of tracked work.
type Ending int

const (
	// AllThrough: when all parts have been gone through.
	AllThrough Ending = iota
	// OverIsCalled: when Over is called, since parts may be other workers', or begin when others
	// have ended.
	OverIsCalled
	// RoundByRound: again and again, when each part has been gone through once more.
	RoundByRound
)

// Part is a part of tracked work.
type Part struct {
	t     *Track
	total int64 // its number of windows; 0: it is measured in items
	// it is one of so many equal parts of the table; 0: its number of items is unknown
	parts   int
	done    int64 // units of this round
	ahead   int64 // and of the next, in which it is already
	through bool
}

// Part adds a part that this worker begins. total is its number of windows; 0 if it is measured in
// items. Then it is one of so many equal parts of the table; 0 if its share is unknown.
func (t *Track) Part(total int64, parts int) *Part {
	p := &Part{t: t, total: total, parts: parts}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mu.parts = append(t.mu.parts, p)
	return p
}

// Add adds finished units.
func (p *Part) Add(units int) {
	p.t.mu.Lock()
	defer p.t.mu.Unlock()
	if p.through {
		p.ahead += int64(units)
	} else {
		p.done += int64(units)
	}
	p.t.reportLocked(Progress{})
}

// End notes that the part has been gone through.
func (p *Part) End() {
	t := p.t
	t.mu.Lock()
	defer t.mu.Unlock()
	if p.through { // before the others were: they count
		p.ahead = 0
	}
	p.through = true
	if t.Until == OverIsCalled || slices.ContainsFunc(t.mu.parts, func(other *Part) bool { return !other.through }) {
		return
	}
	t.reportLocked(Progress{Ended: true})
	t.mu.reported, t.mu.left = false, 0
	if t.Until == AllThrough {
		t.mu.parts = nil
	}
	for _, other := range t.mu.parts {
		other.done, other.ahead, other.through = other.ahead, 0, false
	}
}

// Leave notes that this worker has nothing more to do with the part.
func (p *Part) Leave() {
	t := p.t
	t.mu.Lock()
	defer t.mu.Unlock()
	if p.through && t.Until != RoundByRound {
		return // it still counts while other parts are unfinished
	}
	if busy := slices.ContainsFunc(t.mu.parts, func(other *Part) bool { return other != p && !other.through }); t.mu.reported && !busy {
		t.reportLocked(Progress{Left: true})
		t.mu.reported = false
		if t.Until == AllThrough {
			t.mu.parts = nil
		}
	}
	t.mu.parts = slices.DeleteFunc(t.mu.parts, func(other *Part) bool { return other == p })
	if t.mu.left += p.done; len(t.mu.parts) == 0 && t.Until != OverIsCalled {
		t.mu.left = 0
	}
}

// Over is called when all parts have ended, in any worker. A worker without parts reports nothing.
func (t *Track) Over() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.mu.parts) > 0 {
		t.reportLocked(Progress{Ended: true})
	}
}

// reportLocked reports the sum of the parts.
func (t *Track) reportLocked(p Progress) {
	p.Doing, p.Unit, p.Done = t.Doing, "items", t.mu.left
	known := true
	for _, part := range t.mu.parts {
		p.Done += part.done
		if part.parts > 0 {
			p.Total += t.Items() / int64(part.parts)
		} else {
			p.Total += part.total
			known = known && part.total > 0
		}
		if part.total > 0 {
			p.Unit = "windows"
		}
	}
	if !known {
		p.Total = 0
	}
	t.mu.reported = true
	t.Progress(p)
}
