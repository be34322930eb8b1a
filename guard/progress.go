package guard

import (
	"slices"
	"sync"
	"time"
)

// Doing is something that takes a while.
type Doing string

// What Options.Progress is told of.
const (
	FirstScan    Doing = "first scan"   // the stream and schedule strategies learn of what was there before they followed the stream
	WholeScan    Doing = "scan"         // a pass of the scan strategy; or those two read the table once more, because records were lost
	CatchUp      Doing = "catch-up"     // the index strategy looks for what came due while nobody swept
	BoundingTime Doing = "clock bounds" // the endpoint's clock is asked again and again, until it is known well enough for removals at the instant
)

// Progress is how far this worker is with something. Of a table that several workers share, each tells of its own part.
type Progress struct {
	Doing Doing
	Done  int64  // units so far; of what was begun by another worker, or by this one before it was started again, only those since
	Total int64  // of how many, about: of items what the endpoint last counted, which at Amazon can be six hours ago. 0: nobody knows. Done can become more
	Unit  string // "items" that were read; "windows" that were asked for; "ms" of the uncertainty that were taken away
	Ended bool   // it is through
	Left  bool   // it is not, and this worker goes on with it no more: it is left to others, or there is no use in it at present

	Within time.Duration // of BoundingTime: what is still not known of the endpoint's clock
}

// tell tells whoever wants to know.
func (g *Guard) tell(p Progress) {
	if g.o.Progress != nil {
		g.o.Progress(p)
	}
}

// track adds up how far this worker is with parts of something, such as the segments of a scan.
type track struct {
	g     *Guard
	doing Doing
	until ending
	mu    struct {
		sync.Mutex
		parts []*trackPart
		left  int64 // units of this round that were done of parts which this worker has no more
		told  bool  // something of this round
	}
}

// ending says when what is tracked has ended.
type ending int

const (
	allThrough   ending = iota // when all parts have been gone through
	overIsTold                 // when over is called: parts may be others', or begin when others have ended
	roundByRound               // again and again, when each part has been gone through once more
)

// trackPart is a part of what is tracked.
type trackPart struct {
	t       *track
	total   int64 // windows of it; 0: it is of items
	of      int   // it is one of so many parts of the table, about equal; 0: how many items it has nobody knows
	done    int64 // units of this round
	ahead   int64 // and of the next, in which it is already
	through bool
}

// part is to be called when this worker begins with a part.
func (t *track) part(total int64, of int) *trackPart {
	p := &trackPart{t: t, total: total, of: of}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mu.parts = append(t.mu.parts, p)
	return p
}

// add notes what has been done.
func (p *trackPart) add(units int) {
	p.t.mu.Lock()
	defer p.t.mu.Unlock()
	if p.through {
		p.ahead += int64(units)
	} else {
		p.done += int64(units)
	}
	p.t.tellLocked(Progress{})
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
	if t.until == overIsTold || slices.ContainsFunc(t.mu.parts, func(other *trackPart) bool { return !other.through }) {
		return
	}
	t.tellLocked(Progress{Ended: true})
	t.mu.told, t.mu.left = false, 0
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
		return // it counts as long as there are others
	}
	if busy := slices.ContainsFunc(t.mu.parts, func(other *trackPart) bool { return other != p && !other.through }); t.mu.told && !busy {
		t.tellLocked(Progress{Left: true})
		t.mu.told = false
		if t.until == allThrough {
			t.mu.parts = nil
		}
	}
	t.mu.parts = slices.DeleteFunc(t.mu.parts, func(other *trackPart) bool { return other == p })
	if t.mu.left += p.done; len(t.mu.parts) == 0 && t.until != overIsTold {
		t.mu.left = 0
	}
}

// over notes that all parts have ended, whoever had them. A worker that had none tells nothing.
func (t *track) over() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.mu.parts) > 0 {
		t.tellLocked(Progress{Ended: true})
	}
}

// tellLocked tells the sum of the parts.
func (t *track) tellLocked(p Progress) {
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
	t.mu.told = true
	t.g.tell(p)
}
