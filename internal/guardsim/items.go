package guardsim

import (
	"math/bits"
	"sort"
	"strconv"
	"time"
)

// items are the items of the guarded table. The first ones are due in the measured window or shortly
// before it, evenly spread, and are written a lead before. The others are written in the window, and are due a lead later.
// A real item of ten billion lives for a day; guard treats a deadline alike from the moment on that it
// is beyond the next poll of its owner, so the lead only has to be longer than that. Items that would
// be due between the two are left out: they would only wait in memory.
//
// The key of an item is its number, so everything about it follows from its key. Only whether it is
// removed is stored: a bit.
type items struct {
	first   time.Time // when the first one is due
	rate    float64   // a second
	lead    time.Duration
	whole   bool
	due     int           // how many are due by the end of the window
	gap     time.Duration // between the deadlines in the window and the others
	count   int
	removed []uint64 // bits
}

func newItems(first time.Time, rate float64, window, lead time.Duration, whole bool) *items {
	x := &items{first: first, rate: rate, lead: lead, whole: whole, due: int(rate * window.Seconds()), gap: max(lead-window, 0)}
	x.count = x.due + int(rate*min(window, lead).Seconds())
	x.removed = make([]uint64, (x.count+63)/64)
	return x
}

// exact returns the deadline of an item before it is rounded, in ms.
func (x *items) exact(i int) int64 {
	at := x.first.UnixMilli() + int64(float64(i)*1000/x.rate)
	if i >= x.due {
		at += x.gap.Milliseconds()
	}
	return at
}

// at returns the deadline of an item, in ms.
func (x *items) at(i int) int64 {
	at := x.exact(i)
	if x.whole {
		at = (at + 999) / 1000 * 1000
	}
	return at
}

// made returns the instant at which an item is written, in ms.
func (x *items) made(i int) int64 { return x.exact(i) - x.lead.Milliseconds() }

// text returns the deadline of an item as its TTL attribute has it.
func (x *items) text(i int) string {
	at := x.at(i)
	if at%1000 == 0 {
		return strconv.FormatInt(at/1000, 10)
	}
	return strconv.FormatInt(at/1000, 10) + "." + strconv.FormatInt(1000+at%1000, 10)[1:]
}

// from returns the number of the first item that is due at an instant in ms or later.
func (x *items) from(at int64) int {
	return sort.Search(x.count, func(i int) bool { return x.at(i) >= at })
}

func (x *items) has(i int, now int64) bool {
	return i >= 0 && i < x.count && x.made(i) <= now && x.removed[i/64]&(1<<(i%64)) == 0
}

func (x *items) remove(i int) { x.removed[i/64] |= 1 << (i % 64) }

// left returns how many of the items that are due by the end of the window are not removed.
func (x *items) left() int {
	n := x.due
	for i := range x.due {
		if x.removed[i/64]&(1<<(i%64)) != 0 {
			n--
		}
	}
	return n
}

// mix spreads the numbers of items over partitions.
func mix(i int) uint64 {
	h := (uint64(i) + 0x9e3779b97f4a7c15) * 0xbf58476d1ce4e5b9
	return bits.RotateLeft64(h^h>>29, 17) * 0x94d049bb133111eb
}

const keyPrefix = "i-"

func keyText(i int) string { return keyPrefix + strconv.Itoa(i) }
