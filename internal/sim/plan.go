package sim

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// The hot keys are few, so that requests meet on them. Each round also writes keys of its own in a
// partition of its own: the bulk of all expirations.
const (
	hotParts = 3
	hotSort  = 8
	groups   = 3
)

// plan is what the clients do in a round.
type plan struct {
	ops []*op
	end ending
	// the server's end comes at this time, or so many operations of the disk later
	endAt  time.Duration
	endOps int64
	down   time.Duration // until it is up again
	alters bool          // the second index is added or removed
	altsAt time.Duration // at this time
	free   int64         // bytes on a full disk
	rate   int           // of the machine's clock until then. It is set right while the server is down
}

// ending is how the server's life ends in a round.
type ending int

const (
	lives ending = iota
	crashes
	diskFails // all syncs fail, and some time later it crashes
	restarts  // it is stopped cleanly, between two rounds
	pauses    // it does not end, but stands still for as long as it would be down
	fills     // its disk is full for as long as it would be down, and in half of the cases it then crashes
)

// planner draws the requests of a round.
type planner struct {
	*rand.Rand
	round  int
	now    int64 // the beginning, in ms
	length time.Duration
	bad    int // percent of requests with a mishap
	ops    []*op
	seed   uint64
	shaky  bool // the second index may be missing
}

// planRound draws a round: a function of the seed, the round's number, the beginning and the model.
func planRound(seed uint64, round int, now int64, m *model, bulk int) *plan {
	r := dice(seed, "round", uint64(round))
	p := &planner{Rand: r, round: round, now: now, length: 200*time.Millisecond + upTo(r, 2*time.Second), seed: seed, bad: []int{0, 0, 15, 50}[r.IntN(4)]}
	change := dice(seed, "index", uint64(round))
	alters, altsAt := percent(change, 20), upTo(change, p.length)
	p.shaky = alters || !m.extra
	for range 2 + r.IntN(5) { // requests meet if they begin at one instant, since only waiting takes time
		at := upTo(r, p.length)
		for range 1 + r.IntN(8) {
			p.any(at)
		}
	}
	p.atDeadlines(m)
	p.bulk(bulk)
	slices.SortStableFunc(p.ops, func(a, b *op) int { return cmp.Compare(a.at, b.at) })
	out := &plan{ops: p.ops, alters: alters, altsAt: altsAt, endAt: upTo(r, p.length), down: upTo(r, 20*time.Millisecond)}
	if percent(r, 50) {
		out.endOps = 1 + r.Int64N(40)
	}
	if percent(r, 5) {
		out.down = upTo(r, 10*time.Second) // deadlines pass meanwhile
	} else if percent(r, 3) {
		out.down = upTo(r, 3*time.Minute)
	}
	switch n := r.IntN(100); {
	case n < 35:
		out.end = crashes
	case n < 40:
		out.end = diskFails
	case n < 48:
		out.end = restarts
	case n < 54:
		out.end, out.down = pauses, time.Second+upTo(r, []time.Duration{5 * time.Second, 5 * time.Minute}[r.IntN(2)])
	}
	full := dice(seed, "full", uint64(round))
	if out.end == lives && percent(full, 12) {
		out.end, out.free = fills, full.Int64N(int64(1)<<full.IntN(18))
		out.down = 100*time.Millisecond + upTo(full, []time.Duration{3 * time.Second, 40 * time.Second}[full.IntN(2)])
	}
	if out.end != lives && out.end != pauses && out.end != fills && percent(r, 20) {
		out.rate = 2 + r.IntN(4)
	}
	return out
}

// add plans a request.
func (p *planner) add(at time.Duration, k kind) *op {
	o := &op{name: fmt.Sprintf("r%do%d", p.round, len(p.ops)), kind: k, at: at}
	o.mishap = drawMishap(dice(p.seed, "network", uint64(p.round), uint64(len(p.ops))), p.bad)
	p.ops = append(p.ops, o)
	return o
}

func (p *planner) hot() key {
	return key{fmt.Sprint("hot", p.IntN(hotParts)), fmt.Sprint(p.IntN(hotSort))}
}

// some returns different hot keys.
func (p *planner) some(n int) (keys []key) {
	for len(keys) < n {
		if k := p.hot(); !slices.Contains(keys, k) {
			keys = append(keys, k)
		}
	}
	return keys
}

// any plans one request of any kind.
func (p *planner) any(at time.Duration) {
	switch p.IntN(12) {
	case 0, 1, 2:
		p.writing(at, p.hot())
	case 3, 4:
		p.renewing(at, p.hot())
	case 5:
		w := p.writeTo(p.add(at, remove), p.hot(), remove)
		w.condition = []condition{always, always, present}[p.IntN(3)]
	default:
		p.reading(at, p.hot())
	}
}

// reading plans a request that reads a key, and others.
func (p *planner) reading(at time.Duration, k key) {
	switch p.IntN(11) {
	case 0, 1, 2:
		p.add(at, get).keys = []key{k}
	case 3, 4:
		p.add(at, query).pk = k.pk
	case 5, 6:
		o := p.add(at, index)
		o.pk, o.index = fmt.Sprint("g", p.IntN(groups)), []string{indexName, extraName}[p.IntN(2)]
		o.moot = o.index == extraName && p.shaky
	case 7:
		p.add(at, count).pk = k.pk
	case 8:
		p.add(at, batchGet).keys = p.some(4)
	case 9:
		keys := p.some(3)
		if !slices.Contains(keys, k) {
			keys = append(keys, k)
		}
		p.add(at, transactGet).keys = keys
	case 10:
		if percent(p.Rand, 20) {
			p.add(at, scan)
			return
		}
		p.add(at, query).pk = k.pk
	}
}

// writing plans a request that puts a key.
func (p *planner) writing(at time.Duration, k key) {
	if percent(p.Rand, 25) {
		p.transacting(at, k)
		return
	}
	w := p.writeTo(p.add(at, put), k, put)
	w.condition = []condition{always, always, absent, present}[p.IntN(4)]
}

// renewing plans a request that moves a key's deadline, or removes it.
func (p *planner) renewing(at time.Duration, k key) {
	if percent(p.Rand, 15) {
		p.transacting(at, k)
		return
	}
	w := p.writeTo(p.add(at, update), k, update)
	w.condition = []condition{always, present, present}[p.IntN(3)]
}

func (p *planner) transacting(at time.Duration, k key) {
	o := p.add(at, transact)
	keys := p.some(2)
	if !slices.Contains(keys, k) {
		keys = append(keys, k)
	}
	for _, k := range keys {
		w := p.writeTo(o, k, []kind{put, update}[p.IntN(2)])
		w.condition = []condition{always, always, always, present, absent}[p.IntN(5)]
	}
}

// writeTo adds a change of a key to a request.
func (p *planner) writeTo(o *op, k key, kind kind) *write {
	w := &write{op: o, key: k, kind: kind}
	version := "S" + o.name
	if o.kind == transact || o.kind == batchPut {
		version += fmt.Sprint(".", len(o.writes))
	}
	at := p.now + o.at.Milliseconds()
	switch kind {
	case put:
		w.item = k.image().with(image{"v": version})
		for _, name := range ttlNames {
			if ttl := p.ttl(at); ttl != "" {
				w.item[name] = ttl
			}
		}
		if percent(p.Rand, 80) {
			w.item["g"], w.item["h"] = fmt.Sprint("Sg", p.IntN(groups)), fmt.Sprint("N", p.IntN(100))
		}
		if percent(p.Rand, 30) {
			w.item["pad"] = "S" + padding[:p.IntN(len(padding))]
		}
	case update:
		w.item = image{"v": version, ttlNames[0]: p.ttl(at), ttlNames[1]: p.ttl(at)}
		if percent(p.Rand, 30) {
			w.item["g"], w.item["h"] = fmt.Sprint("Sg", p.IntN(groups)), fmt.Sprint("N", p.IntN(100))
		}
	}
	o.writes = append(o.writes, w)
	return w
}

var padding = strings.Repeat("x", 600)

// ttl draws the TTL of an item that is written at an instant: mostly soon, some never.
func (p *planner) ttl(at int64) string {
	switch n := p.IntN(100); {
	case n < 8:
		return ""
	case n < 11:
		return "Ssoon" // not a number
	case n < 13:
		return fmt.Sprint("N", at/1000-10*365*24*3600) // too old to count
	case n < 18:
		return fmt.Sprint("N", at/1000-p.Int64N(100)) // past, perhaps by a part of this second
	case n < 23:
		return fmt.Sprint("N", at/1000+3600)
	case n < 60:
		return fmt.Sprint("N", at/1000+1+p.Int64N(5))
	default:
		return p.fraction(at + 1 + p.Int64N(4000))
	}
}

// fraction returns a TTL with a fraction, of at most this instant and more than a millisecond before.
func (p *planner) fraction(ms int64) string {
	if percent(p.Rand, 20) {
		return fmt.Sprintf("N%d.%03d%d", ms/1000, ms%1000, 1+p.IntN(9)) // rounded up
	}
	if ms%1000 == 0 {
		return fmt.Sprint("N", ms/1000)
	}
	for digits := fmt.Sprintf("%03d", ms%1000); ; digits = digits[:len(digits)-1] {
		if digits[len(digits)-1] != '0' { // numbers lose their last zeros
			return fmt.Sprintf("N%d.%s", ms/1000, digits)
		}
	}
}

// atDeadlines plans requests around the instants at which hot items expire in this round.
func (p *planner) atDeadlines(m *model) {
	var due []*state
	for part := range hotParts {
		for _, s := range m.parts[fmt.Sprint("hot", part)] {
			if s.deadline >= p.now && s.deadline < p.now+p.length.Milliseconds() {
				due = append(due, s)
			}
		}
	}
	slices.SortFunc(due, func(a, b *state) int { return cmp.Compare(a.text, b.text) })
	for _, s := range due {
		for range p.IntN(4) {
			at := time.Duration(s.deadline-p.now)*time.Millisecond + []time.Duration{-1, 0, 0, 0, 0, 1, 5}[p.IntN(7)]*time.Millisecond
			k := s.image.key()
			switch p.IntN(6) {
			case 0, 1:
				p.renewing(max(at, 0), k)
			case 2:
				p.writing(max(at, 0), k)
			default:
				p.reading(max(at, 0), k)
			}
		}
	}
}

// bulk plans items that are left alone until they expire.
func (p *planner) bulk(n int) {
	pk := fmt.Sprint("bulk", p.round)
	for i := 0; i < n; i += 25 {
		o := p.add(upTo(p.Rand, p.length), batchPut)
		at := p.now + o.at.Milliseconds()
		for range min(25, n-i) {
			k := key{pk, fmt.Sprint(i + len(o.writes))}
			w := &write{op: o, key: k, kind: put, item: k.image().with(image{"v": fmt.Sprintf("S%s.%d", o.name, len(o.writes))})}
			for _, name := range ttlNames {
				if w.item[name] = fmt.Sprint("N", at/1000+1+p.Int64N(6)); percent(p.Rand, 20) {
					w.item[name] = p.fraction(at + 1 + p.Int64N(6000))
				}
			}
			if percent(p.Rand, 5) {
				w.item["g"], w.item["h"] = fmt.Sprint("Sg", p.IntN(groups)), "N0"
			}
			o.writes = append(o.writes, w)
		}
	}
}
