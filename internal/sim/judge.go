package sim

import (
	"cmp"
	"math"
	"slices"
	"sort"
)

// The laws, as findings name them. Available is none of the nine: it says that a call was refused
// without a reason.
const (
	neverEarly       = "NeverEarly"
	strictlyGone     = "StrictlyGone"
	renewedLives     = "RenewedLives"
	exactlyOneRecord = "ExactlyOneRecord"
	nothingLost      = "NothingLost"
	orderPerKey      = "OrderPerKey"
	idleIsFree       = "IdleIsFree"
	markBelowAll     = "MarkBelowAll"
	available        = "Available"
)

// step is a change, at its place in the order of all changes of a round.
type step struct {
	record
	write *write // nil: an expiry
	// the state before it and after it; nil: no item
	before, after *state
	est, lst      int // ticks between which it happened
}

// judge compares the answers of a round with the order of all changes.
//
// That order is the stream. A write must be in it, as often as it was executed, and each record must
// have a reason: a write, or a deadline that has come. The ticks of the calls bound when each step
// happened; a step cannot happen before those in front of it, nor after those behind it. If no
// instant is left for a step, the order contradicts the calls.
//
// A read happened between two steps: at a cut. It must agree with a cut that lies within its call,
// for all its keys at once. Then it bounds the steps on both sides as well.
type judge struct {
	*ledger
	model *model
	ops   []*op
	steps []*step
	byKey map[key][]int // steps
	drain int64         // the latest instant that the clock had shown when the stream was read, in ms
	up    int64         // the instant at which the server started that was read from, in ms

	expired *step // the last expiry
}

// round judges a round, and brings the model to its end.
func (l *ledger) round(m *model, ops []*op, records []record, up int64) {
	j := &judge{ledger: l, model: m, ops: ops, byKey: map[key][]int{}, up: up}
	l.tick()
	j.drain = l.peak
	j.clocks()
	j.explain(records)
	j.writes()
	j.propagate()
	j.reads()
	for i, s := range j.steps {
		if s.est > s.lst {
			j.broken(orderPerKey, "change %d of the round (%s of %v) cannot have happened: it is behind tick %d and before tick %d; %v", i, s.event, s.key, s.est, s.lst, s.write.reason())
			break
		}
	}
	for _, s := range j.steps {
		m.set(s.key, s.after)
		if m.floor = max(m.floor, s.created.UnixMilli()); s.service && s.before != nil {
			m.floor = max(m.floor, s.before.deadline)
		}
	}
}

// clocks bounds what the clock showed during each call. When a machine's clock has gone back before a
// restart, the database's clock goes on at the last instant on disk, which may be before the last
// one shown; but never before one that a client has seen it pass.
func (j *judge) clocks() {
	for _, o := range j.ops {
		for _, b := range j.backs {
			if o.inv <= b.tick && b.tick <= max(o.ret, o.end) {
				o.t0, o.t1 = min(o.t0, b.to), max(o.t1, b.from)
			}
		}
		o.t0 = max(o.t0, j.model.floor)
		o.t1 = max(o.t1, o.t0)
	}
}

// reason says what a step is due to.
func (w *write) reason() string {
	if w == nil {
		return "an expiry"
	}
	return w.op.String()
}

// explain finds the reason of each record.
func (j *judge) explain(records []record) {
	byVersion := map[string]*write{}
	removals := map[key][]*write{}
	for _, o := range j.ops {
		for _, w := range o.writes {
			if w.kind == remove {
				removals[w.key] = append(removals[w.key], w)
			} else {
				byVersion[w.item["v"]] = w
			}
		}
	}
	now := map[key]*state{} // the states of keys that have changed in this round
	for _, r := range records {
		before, changed := now[r.key]
		if !changed {
			before = j.model.get(r.key)
		}
		s := &step{record: r, before: before, after: j.model.newState(r.new), est: 0, lst: math.MaxInt}
		if text := r.old.text(); text != textOf(before) {
			j.broken(exactlyOneRecord, "%s of %v has the old image %q, but the record before left %q", r.event, r.key, text, textOf(before))
			before = j.model.newState(r.old)
			s.before = before
		}
		if want := eventOf(r); want != string(r.event) {
			j.broken(exactlyOneRecord, "record %s of %v is %s, want %s", r.seq, r.key, r.event, want)
		}
		j.cause(s, byVersion, removals[r.key])
		now[r.key] = s.after
		j.byKey[r.key] = append(j.byKey[r.key], len(j.steps))
		j.steps = append(j.steps, s)
	}
}

func textOf(s *state) string {
	if s == nil {
		return ""
	}
	return s.text
}

func eventOf(r record) string {
	switch {
	case r.old == nil:
		return "INSERT"
	case r.new == nil:
		return "REMOVE"
	}
	return "MODIFY"
}

// cause finds what a step is due to, and checks that it is what the reason makes of the state before.
func (j *judge) cause(s *step, byVersion map[string]*write, removals []*write) {
	created := s.created.UnixMilli() // rounded down to the second
	if created > j.drain {
		j.broken(orderPerKey, "a record of %v is of %v, which is still to come", s.key, s.created)
	}
	if s.service {
		j.expiry(s, created)
		return
	}
	var candidates []*write // any of them may be the reason
	if s.new == nil {
		s.write, candidates = j.removals(s, removals)
		if s.write == nil {
			j.broken(renewedLives, "%v was removed by nobody: %s", s.key, textOf(s.before))
			return
		}
	} else if s.write = byVersion[s.new["v"]]; s.write == nil {
		j.broken(exactlyOneRecord, "a record of %v has no reason in this round: %s", s.key, s.after.text)
		return
	} else {
		candidates = []*write{s.write}
	}
	w := s.write
	if x := j.expired; s.before == nil && x != nil && x.key == s.key && len(j.steps) > 0 && j.steps[len(j.steps)-1] == x {
		j.counts.Overwritten++
	}
	w.steps = append(w.steps, len(j.steps))
	t0, t1, open := int64(math.MaxInt64), int64(0), false
	s.est, s.lst = math.MaxInt, 0
	for _, c := range candidates {
		last := c.op.ret
		if c.op.mishap.again || c.op.outcome == unknown {
			last, open = c.op.end, true
		}
		s.est, s.lst = min(s.est, c.op.inv), max(s.lst, last)
		t0, t1 = min(t0, c.op.t0), max(t1, c.op.t1)
	}
	if s.before != nil && s.before.deadline <= t0 {
		j.broken(exactlyOneRecord, "%v changed %v, which had expired %d ms before, without its expiry: %s", w.op, s.key, t0-s.before.deadline, s.before.text)
	}
	var old image
	if s.before != nil {
		old = s.before.image
	}
	if want := w.apply(old).text(); want != textOf(s.after) {
		j.broken(nothingLost, "%v made %q of %q, want %q", w.op, textOf(s.after), textOf(s.before), want)
	}
	if w.condition == absent && old != nil || w.condition == present && old == nil {
		j.broken(strictlyGone, "%v was executed although its condition was false at %q", w.op, textOf(s.before))
	}
	if created < t0/1000*1000 || !open && created > t1 {
		j.broken(orderPerKey, "the record of %v is of %v, outside its call", w.op, s.created)
	}
}

// removals returns the removals by users that may be the reason of a step, and the one that is
// counted as its reason. A removal without a known answer may be the reason of any step, so it stays
// a candidate when it has been counted; but it is counted no more often than it may have happened.
func (j *judge) removals(s *step, all []*write) (reason *write, candidates []*write) {
	var spare *write
	for _, w := range all {
		o, most := w.op, 1
		if o.mishap.again {
			most = 2
		}
		mine := o.outcome == done && o.old.text() == textOf(s.before)
		switch {
		case o.outcome == failed || o.outcome == refused:
			continue
		case mine && len(w.steps) == 0:
			if reason == nil {
				reason = w
			}
		case o.outcome == unknown || o.mishap.again:
			if spare == nil && len(w.steps) < most {
				spare = w
			}
		default:
			continue // it has removed another state, or nothing
		}
		candidates = append(candidates, w)
	}
	return cmp.Or(reason, spare), candidates
}

// disputed reports whether another request was at one of a request's keys during its call.
func (j *judge) disputed(o *op) bool {
	if o.mishap.again {
		return true // with its copy
	}
	touches := func(p *op, k key) bool {
		return slices.Contains(p.keys, k) || slices.ContainsFunc(p.writes, func(w *write) bool { return w.key == k })
	}
	for _, p := range j.ops {
		if p == o || p.inv > o.ret || max(p.ret, p.end) < o.inv {
			continue
		}
		for _, w := range o.writes {
			if touches(p, w.key) {
				return true
			}
		}
		for _, k := range o.keys {
			if touches(p, k) {
				return true
			}
		}
	}
	return false
}

// expiry checks that an expiry was due.
func (j *judge) expiry(s *step, created int64) {
	if s.new != nil {
		j.broken(exactlyOneRecord, "an expiry of %v leaves %s", s.key, s.after.text)
		return
	}
	if s.before == nil {
		j.broken(exactlyOneRecord, "%v expired without being there", s.key)
		return
	}
	d := s.before.deadline
	switch {
	case d == never:
		j.broken(renewedLives, "%v expired without a deadline: %s", s.key, s.before.text)
		return
	case d > j.drain || created < d/1000*1000:
		j.broken(neverEarly, "%v expired at %d, before its deadline %d: %s", s.key, created, d, s.before.text)
	}
	if late := created - d; max(j.up, j.model.since) <= d && late > slack.Milliseconds() {
		j.broken(markBelowAll, "%v expired %d ms after its deadline %d, at a server that was up: %s", s.key, late, d, s.before.text)
	}
	j.counts.Expirations++
	j.expired = s
	// it happened behind all ticks before the deadline
	s.est = 2*sort.Search(len(j.ticks), func(i int) bool { return j.ticks[i] >= d }) - 1
}

// writes checks that each write is in the order as often as its answer says.
func (j *judge) writes() {
	for _, o := range j.ops {
		if o.err != nil {
			j.broken(available, "%v: %v", o, o.err)
		}
		most := 1
		if o.mishap.again && o.kind != transact { // the token of a transaction makes the second copy do nothing
			most = 2
		}
		if o.conflict && o.err == nil && !j.disputed(o) {
			j.broken(available, "%v was refused for a conflict, and no other request was at its keys", o)
		}
		for _, w := range o.writes {
			least := 0
			if o.outcome == done {
				j.counts.Writes++
				if least = 1; w.kind == remove && o.old == nil {
					least = 0
				}
			}
			if n := len(w.steps); n < least {
				j.broken(nothingLost, "%v of %v was acknowledged and has no record", o, w.key)
			} else if o.outcome == done && !o.mishap.again && n > least {
				j.broken(exactlyOneRecord, "%v of %v has %d records, want %d", o, w.key, n, least)
			} else if n > most {
				j.broken(exactlyOneRecord, "%v of %v has %d records", o, w.key, n)
			} else if (o.outcome == failed || o.outcome == refused) && n > 0 {
				j.broken(exactlyOneRecord, "%v of %v was refused and has a record", o, w.key)
			}
			if len(w.steps) == 1 && o.outcome == done {
				j.returned(o, j.steps[w.steps[0]])
			}
		}
		if o.kind == transact {
			j.atomic(o)
		}
	}
}

// returned checks what a write has returned.
func (j *judge) returned(o *op, s *step) {
	if o.kind == put || o.kind == remove {
		if o.mishap.again {
			return // the other copy may have got this answer
		}
		if got := o.old.text(); got != textOf(s.before) {
			j.broken(strictlyGone, "%v returned the old item %q, but it replaced %q", o, got, textOf(s.before))
		}
	}
	if o.kind == update && o.next.text() != textOf(s.after) && !o.mishap.again {
		j.broken(nothingLost, "%v returned %q, but it made %q", o, o.next.text(), textOf(s.after))
	}
}

// atomic checks that a transaction happened at one instant, or not at all.
func (j *judge) atomic(o *op) {
	first, last, own := math.MaxInt, -1, map[key]bool{}
	for _, w := range o.writes {
		own[w.key] = true
		if len(w.steps) != len(o.writes[0].steps) {
			j.broken(nothingLost, "%v: some of its writes were executed %d times, and others %d times", o, len(w.steps), len(o.writes[0].steps))
		}
		if len(w.steps) == 1 {
			first, last = min(first, w.steps[0]), max(last, w.steps[0])
		}
	}
	for i := first; i <= last; i++ {
		if !own[j.steps[i].key] {
			j.broken(orderPerKey, "%v did not happen at one instant: a change of %v is between its changes", o, j.steps[i].key)
		}
	}
}

// propagate makes no step happen before those in front of it, nor after those behind it.
func (j *judge) propagate() {
	for i := 1; i < len(j.steps); i++ {
		j.steps[i].est = max(j.steps[i].est, j.steps[i-1].est)
	}
	for i := len(j.steps) - 2; i >= 0; i-- {
		j.steps[i].lst = min(j.steps[i].lst, j.steps[i+1].lst)
	}
}

// reads judges all that clients have seen, in the order of the answers.
func (j *judge) reads() {
	ops := append([]*op(nil), j.ops...)
	sort.Slice(ops, func(a, b int) bool { return ops[a].ret < ops[b].ret })
	for _, o := range ops {
		switch {
		case o.outcome == failed:
			for k, got := range o.seen { // one key
				j.failed(o, k, got)
				j.read(o, []key{k}, "")
			}
		case o.outcome != done:
		case o.kind == batchGet:
			for _, k := range o.keys {
				j.read(o, []key{k}, "")
			}
		case o.kind == get || o.kind == transactGet:
			j.read(o, o.keys, "")
		case o.kind == query:
			j.read(o, j.universe(o.pk), "")
		case o.kind == index:
			j.read(o, j.universe(""), o.pk)
		case o.kind == scan:
			j.read(o, j.universe(""), "")
		case o.kind == count:
			j.count(o)
		case o.kind == remove && o.old == nil && !o.mishap.again:
			o.seen = map[key]image{}
			j.read(o, []key{o.writes[0].key}, "")
		}
	}
}

// failed checks that a condition failed for a reason.
func (j *judge) failed(o *op, k key, got image) {
	for _, w := range o.writes {
		if w.key == k && (w.condition == absent && got == nil || w.condition == present && got != nil || w.condition == always) {
			j.broken(strictlyGone, "%v failed by its condition at %q", o, got.text())
		}
	}
}

// universe returns all keys of a partition that a read may have seen, or of all partitions.
func (j *judge) universe(pk string) (keys []key) {
	add := func(part map[key]*state) {
		for k := range part {
			if len(j.byKey[k]) == 0 { // the others come below
				keys = append(keys, k)
			}
		}
	}
	if pk != "" {
		add(j.model.parts[pk])
	} else {
		for _, part := range j.model.parts {
			add(part)
		}
	}
	for k := range j.byKey {
		if pk == "" || k.pk == pk {
			keys = append(keys, k)
		}
	}
	return keys
}

// at returns the state of a key behind so many steps.
func (j *judge) at(k key, cut int) *state {
	steps := j.byKey[k]
	if i := sort.SearchInts(steps, cut); i > 0 {
		return j.steps[steps[i-1]].after
	}
	return j.model.get(k)
}

// cuts returns the first and last cut within a call.
func (j *judge) cuts(o *op) (first, last int) {
	first = sort.Search(len(j.steps), func(i int) bool { return j.steps[i].lst >= o.inv })
	last = sort.Search(len(j.steps), func(i int) bool { return j.steps[i].est > o.ret })
	return first, max(first, last)
}

// agrees reports whether a read returned the item of a key as it was at a state.
func agrees(o *op, k key, s *state, group string) bool {
	got, ok := o.seen[k]
	if ok && got == nil { // a failed condition without an item
		ok = false
	}
	if s == nil || group != "" && s.image["g"] != "S"+group {
		return !ok
	}
	if !ok {
		return s.deadline <= o.t1
	}
	return s.deadline > o.t0 && got.text() == s.text
}

// read judges what a read has seen of some keys, all at one instant. In an index it is those in a
// group.
func (j *judge) read(o *op, keys []key, group string) {
	j.counts.Reads++
	first, last := j.cuts(o)
	known, wrong := make(map[key]bool, len(keys)), 0
	for _, k := range keys {
		known[k] = true
		if !agrees(o, k, j.at(k, first), group) {
			wrong++
		}
	}
	if len(o.seen) > 0 && o.kind != batchGet && o.outcome == done {
		for k := range o.seen {
			if !known[k] {
				j.broken(nothingLost, "%v has seen %v, which was never there: %s", o, k, o.seen[k].text())
				return
			}
		}
	}
	from, to := -1, -1
	for cut := first; ; cut++ {
		if wrong == 0 && j.oneInstant(o, keys, group, cut) {
			if to = cut; from < 0 {
				from = cut
			}
		}
		if cut == last {
			break
		}
		if k := j.steps[cut].key; known[k] {
			if !agrees(o, k, j.at(k, cut), group) {
				wrong--
			}
			if !agrees(o, k, j.at(k, cut+1), group) {
				wrong++
			}
		}
	}
	if from < 0 {
		j.blame(o, keys, group, first, last)
		return
	}
	for _, k := range keys {
		if s := j.at(k, from); s != nil && s == j.at(k, to) && o.seen[k] == nil && (group == "" || s.image["g"] == "S"+group) {
			j.model.floor = max(j.model.floor, s.deadline) // hidden by the clock
		}
	}
	tightened := false
	if from > 0 && j.steps[from-1].lst > o.ret {
		j.steps[from-1].lst, tightened = o.ret, true
	}
	if to < len(j.steps) && j.steps[to].est < o.inv {
		j.steps[to].est, tightened = o.inv, true
	}
	if tightened {
		j.propagate()
	}
}

// oneInstant reports whether there is an instant that explains which items were hidden at a cut.
func (j *judge) oneInstant(o *op, keys []key, group string, cut int) bool {
	hidden, visible := int64(math.MinInt64), int64(math.MaxInt64)
	for _, k := range keys {
		s := j.at(k, cut)
		if s == nil || group != "" && s.image["g"] != "S"+group {
			continue
		}
		if got, ok := o.seen[k]; ok && got != nil {
			visible = min(visible, s.deadline)
		} else {
			hidden = max(hidden, s.deadline)
		}
	}
	return hidden < visible
}

// blame finds the law that a read has broken.
func (j *judge) blame(o *op, keys []key, group string, first, last int) {
	for _, k := range keys {
		law, alone := nothingLost, false
		got := o.seen[k].text()
		alive, was := true, ""
		for cut := first; cut <= last && !alone; cut++ {
			s := j.at(k, cut)
			alone = agrees(o, k, s, group)
			was = textOf(s)
			if s == nil || s.deadline <= o.t1 {
				alive = false
			}
			if got != "" && got == textOf(s) && s.deadline <= o.t0 {
				law = strictlyGone
			}
		}
		if alone {
			continue
		}
		if got == "" && alive && j.at(k, first).deadline != never {
			law = neverEarly // or it is lost
		}
		j.broken(law, "%v, called at %d and answered at %d, has %q of %v, which was %q (deadline %d)", o, o.t0, o.t1, got, k, was, deadlineOf(j.at(k, last)))
		return
	}
	j.broken(strictlyGone, "%v, called at %d and answered at %d, agrees with no single instant", o, o.t0, o.t1)
}

func deadlineOf(s *state) int64 {
	if s == nil {
		return 0
	}
	return s.deadline
}

// count judges a number of items.
func (j *judge) count(o *op) {
	j.counts.Reads++
	first, last := j.cuts(o)
	keys := j.universe(o.pk)
	for cut := first; cut <= last; cut++ {
		least, most := 0, 0
		for _, k := range keys {
			if s := j.at(k, cut); s != nil {
				if s.deadline > o.t0 {
					most++
				}
				if s.deadline > o.t1 {
					least++
				}
			}
		}
		if least <= o.counted && o.counted <= most {
			return
		}
	}
	j.broken(strictlyGone, "%v, called at %d and answered at %d, counts %d items", o, o.t0, o.t1, o.counted)
}
