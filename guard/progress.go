package guard

import (
	"slices"
	"sync"
	"time"
)

// Doing is something that takes a while.
type Doing string

// The kinds of long work.
const (
	// the stream and schedule strategies find the items from before they followed the stream
	FirstScan Doing = "first scan"
	// a pass of the scan strategy; or those two scan once more, because records were lost
	WholeScan Doing = "scan"
	// the index strategy finds the deadlines that came due while no worker swept
	CatchUp Doing = "catch-up"
	// guard probes the endpoint's clock until it is accurate enough for removals at the instant
	BoundingTime Doing = "clock bounds"
)

// Progress is how far this worker is with long work. Workers that share a table each report their
// own part.
type Progress struct {
	Doing Doing
	// units so far; if another worker, or this one before a restart, began the work: only those
	// since
	Done int64
	// estimate: for items the endpoint's last count, which at Amazon can be six hours old. 0:
	// unknown. Done may exceed it
	Total int64
	Unit  string // "items" read; "windows" queried; "ms" of uncertainty removed
	Ended bool   // it is through
	// this worker has stopped before the end: others continue, or continuing is useless at present
	Left bool

	Within time.Duration // of BoundingTime: the remaining uncertainty of the endpoint's clock
}

// report calls Options.Progress, if set.
func (g *Guard) report(p Progress) {
	if g.o.Progress != nil {
		g.o.Progress(p)
	}
}

// track adds up this worker's progress with parts of some work, for example the segments of a scan.
type track struct {
	g     *Guard
	doing Doing
	until ending
	mu    struct {
		sync.Mutex
		parts    []*trackPart
		left     int64 // units of this round that were done of parts which this worker has no more
		reported bool  // something of this round
	}
}

// ending is the condition for the end of tracked work.
type ending int

const (
	allThrough ending = iota // when all parts have been gone through
	// when over is called: parts may be others', or begin when others have ended
	overIsCalled
	roundByRound // again and again, when each part has been gone through once more
)

// trackPart is a part of tracked work.
type trackPart struct {
	t     *track
	total int64 // windows of it; 0: it is of items
	// it is one of so many equal parts of the table; 0: its number of items is unknown
	of      int
	done    int64 // units of this round
	ahead   int64 // and of the next, in which it is already
	through bool
}

// part is called when this worker begins a part.
func (t *track) part(total int64, of int) *trackPart {
	p := &trackPart{t: t, total: total, of: of}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mu.parts = append(t.mu.parts, p)
	return p
}

// add adds finished units.
func (p *trackPart) add(units int) {
	p.t.mu.Lock()
	defer p.t.mu.Unlock()
	if p.through {
		p.ahead += int64(units)
	} else {
		p.done += int64(units)
	}
	p.t.reportLocked(Progress{})
}

// end notes that the part has been gone through.
func (p *trackPart) end() {
	t := p.t
	t.mu.Lock()
	defer t.mu.Unlock()
	if p.through { // before the others were: they count
		p.ahead = 0
	}
	p.through = true
	if t.until == overIsCalled || slices.ContainsFunc(t.mu.parts, func(other *trackPart) bool { return !other.through }) {
		return
	}
	t.reportLocked(Progress{Ended: true})
	t.mu.reported, t.mu.left = false, 0
	if t.until == allThrough {
		t.mu.parts = nil
	}
	for _, other := range t.mu.parts {
		other.done, other.ahead, other.through = other.ahead, 0, false
	}
}

// leave notes that this worker has nothing more to do with the part.
func (p *trackPart) leave() {
	t := p.t
	t.mu.Lock()
	defer t.mu.Unlock()
	if p.through && t.until != roundByRound {
		return // it still counts while other parts are unfinished
	}
	if busy := slices.ContainsFunc(t.mu.parts, func(other *trackPart) bool { return other != p && !other.through }); t.mu.reported && !busy {
		t.reportLocked(Progress{Left: true})
		t.mu.reported = false
		if t.until == allThrough {
			t.mu.parts = nil
		}
	}
	t.mu.parts = slices.DeleteFunc(t.mu.parts, func(other *trackPart) bool { return other == p })
	if t.mu.left += p.done; len(t.mu.parts) == 0 && t.until != overIsCalled {
		t.mu.left = 0
	}
}

// over is called when all parts have ended, in any worker. A worker without parts reports nothing.
func (t *track) over() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.mu.parts) > 0 {
		t.reportLocked(Progress{Ended: true})
	}
}

// reportLocked reports the sum of the parts.
func (t *track) reportLocked(p Progress) {
	p.Doing, p.Unit, p.Done = t.doing, "items", t.mu.left
	known := true
	for _, part := range t.mu.parts {
		p.Done += part.done
		if part.of > 0 {
			p.Total += t.g.items.Load() / int64(part.of)
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
	t.g.report(p)
}
