package engine

import (
	"context"
	"math"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/mayflydb/mayfly/internal/invariant"
	"github.com/mayflydb/mayfly/internal/store/kv"
)

// Hold is a consumer of a stream in the database's own process. What it says of itself does two things:
//
//   - No record is trimmed that lies behind its checkpoint, however old, nor is a shard or a disabled stream that has such records. Until it has
//     said anything of a shard, that is all of the shard.
//   - An advance of the clock moves on only when it has passed every record of the stream, or rests.
//
// Nothing of it is on disk: a consumer registers anew at every start, and Engine.HoldAll keeps everything until it has.
//
// Shards are read parents first, so whatever is said of a shard says also that all before it in its line are done. A consumer that begins at the
// end of a stream thereby need not speak of shards that closed before. What is said of a shard that is gone means nothing.
type Hold struct {
	e        *Engine
	s        *stream
	consumer string
	since    Instant

	// Guarded by e.consumers.
	durable map[uint32]uint64 // by shard: the checkpoint
	passed  map[uint32]uint64 // by shard: it is done with the records up to here
	taken   map[uint32]uint64 // by shard: it has taken in the records up to here
	rest    Instant           // 0: it does not
	closed  bool
}

// wholeShard is a position behind every record.
const wholeShard = math.MaxUint64

// consumers is who holds what.
type consumers struct {
	sync.Mutex
	of       map[uint32][]*Hold // by stream
	starting int                // HoldAlls that are not released
	changes  uint64             // raised by whatever may make a consumer busy that was not
	moved    chan struct{}      // closed when a consumer may no longer be busy; nil while nobody waits for that

	tips sync.Mutex // guards stream.tips of all streams; taken before the other lock
}

// Hold registers a consumer of a stream. It can be called before Run. ErrStreamNotFound.
func (e *Engine) Hold(consumer string, streamID uint32) (*Hold, error) {
	e.consumers.Lock()
	defer e.consumers.Unlock()
	s := e.streamByID(streamID)
	if s == nil {
		return nil, ErrStreamNotFound
	}
	h := &Hold{e: e, s: s, consumer: consumer, since: e.Now(), durable: map[uint32]uint64{}, passed: map[uint32]uint64{}, taken: map[uint32]uint64{}}
	e.consumers.of[streamID] = append(e.consumers.of[streamID], h)
	e.consumers.changes++
	return h, nil
}

// HasConsumer reports whether a consumer has registered with a stream.
func (e *Engine) HasConsumer(streamID uint32) bool {
	e.consumers.Lock()
	defer e.consumers.Unlock()
	return len(e.consumers.of[streamID]) > 0
}

// HoldAll keeps every record of every stream, and every advance of the clock waiting, until release is called: for as long as consumers are yet
// to register. Called between Open and Run it leaves no moment at which a record that one of them needs could be trimmed.
func (e *Engine) HoldAll() (release func()) {
	e.consumers.Lock()
	defer e.consumers.Unlock()
	e.consumers.starting++
	e.consumers.changes++
	return sync.OnceFunc(func() {
		e.consumers.Lock()
		defer e.consumers.Unlock()
		e.consumers.starting--
		e.consumers.tellLocked()
		e.wakeTrimmers()
	})
}

// Checkpoint says that the consumer would go on behind seq after a crash: its checkpoint there is durable. It is done with those records then.
func (h *Hold) Checkpoint(shard uint32, seq uint64) {
	h.e.consumers.Lock()
	defer h.e.consumers.Unlock()
	h.reachLocked(h.durable, shard, seq)
	h.reachLocked(h.passed, shard, seq)
	h.e.consumers.tellLocked()
	h.s.letTrim()
}

// Passed says that the consumer is done with the shard's records up to seq: whatever they ask for has been done, or is an item with a deadline.
func (h *Hold) Passed(shard uint32, seq uint64) {
	h.e.consumers.Lock()
	defer h.e.consumers.Unlock()
	h.reachLocked(h.passed, shard, seq)
	h.e.consumers.tellLocked()
}

// Taken says that the consumer has taken in the shard's records up to seq, so that Rest speaks of them too.
func (h *Hold) Taken(shard uint32, seq uint64) {
	h.e.consumers.Lock()
	defer h.e.consumers.Unlock()
	h.reachLocked(h.taken, shard, seq)
	h.e.consumers.tellLocked()
}

// reachLocked raises a position, and ends the shards before it in its line.
func (h *Hold) reachLocked(positions map[uint32]uint64, shard uint32, seq uint64) {
	d := h.s.desc.Load()
	sh := d.shard(shard)
	if sh == nil {
		return
	}
	was, known := positions[shard]
	positions[shard] = max(was, seq)
	if known {
		return
	}
	for sh = d.shard(sh.Parent); sh != nil && positions[sh.No] != wholeShard; sh = d.shard(sh.Parent) {
		positions[sh.No] = wholeShard
	}
}

// Rest says that whatever of what it has taken in it has not passed waits for an instant: a batching window that ends then. Until then the consumer
// is busy only while there are records that it could take in and has not, and an advance stops there. 0 says that it waits no longer, before it begins to
// work; an instant that has come is as good as that, and so is Never.
func (h *Hold) Rest(until Instant) {
	h.e.consumers.Lock()
	defer h.e.consumers.Unlock()
	if until == Never {
		until = 0
	}
	h.rest = until
	h.e.consumers.changes++
	h.e.consumers.tellLocked()
}

// Close ends the registration: the consumer holds nothing any more.
func (h *Hold) Close() {
	h.e.consumers.Lock()
	defer h.e.consumers.Unlock()
	if h.closed {
		return
	}
	h.closed = true
	id := h.s.desc.Load().ID
	h.e.consumers.of[id] = slices.DeleteFunc(h.e.consumers.of[id], func(other *Hold) bool { return other == h })
	if len(h.e.consumers.of[id]) == 0 {
		delete(h.e.consumers.of, id)
	}
	h.e.consumers.tellLocked()
	h.s.letTrim()
}

// tellLocked lets those look again who wait for consumers.
func (cs *consumers) tellLocked() {
	if cs.moved != nil {
		close(cs.moved)
		cs.moved = nil
	}
}

// untilLocked is the instant before which nothing of a stream is trimmed: somebody is to register yet, or has only just and is given a moment to
// say where its checkpoint is. In the past: there is none.
func (cs *consumers) untilLocked(stream uint32, moment Instant) Instant {
	if invariant.Injected(invariant.TrimHeld) {
		return minInstant
	}
	if cs.starting > 0 {
		return Never
	}
	until := minInstant
	for _, h := range cs.of[stream] {
		if len(h.passed) == 0 {
			until = max(until, h.since+moment)
		}
	}
	return until
}

// floorLocked is how far a shard can be trimmed, and the consumer that is the furthest behind there; nil: none holds it.
func (cs *consumers) floorLocked(stream, shard uint32) (uint64, *Hold) {
	floor, last := uint64(wholeShard), (*Hold)(nil)
	if invariant.Injected(invariant.TrimHeld) {
		return floor, last
	}
	for _, h := range cs.of[stream] {
		if at := h.durable[shard]; at < floor {
			floor, last = at, h
		}
	}
	return floor, last
}

// forgetLocked drops what is known of a shard that is gone.
func (cs *consumers) forgetLocked(stream, shard uint32) {
	for _, h := range cs.of[stream] {
		delete(h.durable, shard)
		delete(h.passed, shard)
		delete(h.taken, shard)
	}
}

// nextRest is the first instant to come for which a consumer rests; Never: none does.
func (e *Engine) nextRest(now Instant) Instant {
	e.consumers.Lock()
	defer e.consumers.Unlock()
	next := Never
	for _, hs := range e.consumers.of {
		for _, h := range hs {
			if h.rest > now {
				next = min(next, h.rest)
			}
		}
	}
	return next
}

// stood is a moment at which no consumer was busy.
type stood struct {
	changes uint64
	tips    map[*stream]uint64
}

// stands says whether no consumer can have become busy since.
func (e *Engine) stands(at stood) bool {
	if invariant.Injected(invariant.LeaveBehind) {
		return true
	}
	e.consumers.Lock()
	defer e.consumers.Unlock()
	for s, tip := range at.tips {
		if s.tip.Load() != tip {
			return false
		}
	}
	return e.consumers.changes == at.changes
}

// consumersIdle waits until every registered consumer has passed every record of its stream, or rests.
func (e *Engine) consumersIdle(ctx context.Context) (stood, error) {
	for {
		moved := e.consumerMoves()
		at, busy, err := e.busyConsumers()
		if err != nil || len(busy) == 0 {
			return at, err
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return at, ctx.Err()
		}
	}
}

// consumerMoves gives a channel that is closed when a consumer says anything.
func (e *Engine) consumerMoves() <-chan struct{} {
	e.consumers.Lock()
	defer e.consumers.Unlock()
	if e.consumers.moved == nil {
		e.consumers.moved = make(chan struct{})
	}
	return e.consumers.moved
}

// busyConsumers names the consumers that have something to do at this moment. Where there are none, all of them had nothing to do at once: no
// record was written while they were looked at.
func (e *Engine) busyConsumers() (at stood, busy []string, err error) {
	for {
		at, busy, err = e.lookAtConsumers()
		if err != nil || len(busy) > 0 || e.stands(at) {
			return at, busy, err
		}
	}
}

func (e *Engine) lookAtConsumers() (at stood, busy []string, err error) {
	if invariant.Injected(invariant.LeaveBehind) {
		return at, nil, nil
	}
	if err := e.enter(); err != nil {
		return at, nil, err
	}
	defer e.leave()
	now := e.Now()
	e.consumers.tips.Lock()
	defer e.consumers.tips.Unlock()
	at.tips = map[*stream]uint64{}
	e.consumers.Lock()
	at.changes = e.consumers.changes
	if e.consumers.starting > 0 {
		busy = append(busy, "consumers that are yet to register")
	}
	for _, hs := range e.consumers.of {
		at.tips[hs[0].s] = 0
	}
	e.consumers.Unlock()
	for s := range at.tips {
		if at.tips[s], err = s.readTips(); err != nil { // outside of the lock: it may have to read
			return at, nil, err
		}
	}
	e.consumers.Lock()
	defer e.consumers.Unlock()
	for s, tip := range at.tips {
		for _, h := range e.consumers.of[s.desc.Load().ID] {
			if h.busyLocked(now, tip) {
				busy = append(busy, h.consumer)
			}
		}
	}
	return at, busy, nil
}

// busyLocked says whether the consumer has something to do, when the stream's last record is tip.
func (h *Hold) busyLocked(now Instant, tip uint64) bool {
	if h.s.tips.of != tip { // the last records were not durable when they were looked for: it will have
		return true
	}
	d := h.s.desc.Load()
	for shard, last := range h.s.tips.last {
		sh := d.shard(shard)
		switch {
		case h.doneLocked(sh):
		case now < h.rest && (last <= h.taken[shard] || h.waitsLocked(d, sh)):
		default:
			return true
		}
	}
	return false
}

// doneLocked says whether the consumer has passed all of a shard.
func (h *Hold) doneLocked(sh *ShardDesc) bool {
	return sh == nil || h.s.tips.last[sh.No] <= max(sh.Trimmed, h.passed[sh.No])
}

// waitsLocked says whether a shard before this one is to be done first: then its own records cannot be taken in.
func (h *Hold) waitsLocked(d *StreamDesc, sh *ShardDesc) bool {
	for p := d.shard(sh.Parent); p != nil; p = d.shard(p.Parent) {
		if !h.doneLocked(p) {
			return true
		}
	}
	return false
}

// tips are the last records of a stream's shards.
type tips struct {
	of   uint64            // what stream.tip was when they were read
	last map[uint32]uint64 // by shard; one without records is missing
}

// readTips brings s.tips up to date, and gives the last sequence number of them all. It costs a look at every shard where something was written
// since the last time, and nothing otherwise. With records that are not durable yet it leaves them as they are. consumers.tips is held.
func (s *stream) readTips() (uint64, error) {
	tip := s.tip.Load()
	if tip > s.e.durable.seq.Load() || s.tips.last != nil && tip == s.tips.of {
		return tip, nil
	}
	d := s.desc.Load()
	last := make(map[uint32]uint64, len(d.Shards))
	for i := range d.Shards {
		seq, err := s.e.lastRecord(d.ID, d.Shards[i].No)
		if err != nil {
			return tip, err
		}
		if seq != 0 {
			last[d.Shards[i].No] = seq
		}
	}
	s.tips.of, s.tips.last = tip, last
	return tip, nil
}

// kept is what a stream keeps beyond the retention because a consumer has not got there, as of the last look at it.
type kept struct {
	parts map[uint32]keptPart // by shard; touched by the trimmer only
	told  Instant             // when the log was told, by the trimmer; 0: not since it began

	mu      sync.Mutex // guards the fields below
	stream  HeldStream
	waits   bool    // the trimmer has stopped short for a consumer, and is to be woken when one moves
	nextRun Instant // not before this
}

// keptPart is a shard's part of it.
type keptPart struct {
	counted        uint64 // what lies beyond the retention is counted up to this sequence number
	bytes, records int64
}

// add counts the record that the iterator is at.
func (p *keptPart) add(it *kv.Iter) {
	p.records++
	p.bytes += int64(len(it.Key()) + len(it.Value()))
}

// without takes off what has been trimmed.
func (k *kept) without(cuts []cut) {
	for _, c := range cuts {
		p := k.parts[c.shard]
		p.records -= c.counted.records
		p.bytes -= c.counted.bytes
		if k.parts[c.shard] = p; c.whole || p.records == 0 {
			delete(k.parts, c.shard)
		}
	}
}

// HeldStream is a stream that keeps records beyond the retention, because a consumer in this process has not got there.
type HeldStream struct {
	Namespace, Table, Label string
	Consumer                string // the one that is the furthest behind
	Bytes, Records          int64
	Oldest                  Instant // when the oldest of them was written
}

// Held gives the streams that keep records beyond the retention. What it says is as old as the last look, a minute at most while records age.
func (e *Engine) Held() []HeldStream {
	var out []HeldStream
	e.streams.mu.RLock()
	defer e.streams.mu.RUnlock()
	for _, s := range e.streams.byID {
		s.kept.mu.Lock()
		if s.kept.stream.Records > 0 {
			out = append(out, s.kept.stream)
		}
		s.kept.mu.Unlock()
	}
	sort.Slice(out, func(i, j int) bool {
		a, b := &out[i], &out[j]
		return slices.Compare([]string{a.Namespace, a.Table, a.Label}, []string{b.Namespace, b.Table, b.Label}) < 0
	})
	return out
}

// HoldsFull says whether the streams keep Options.HoldBytes or more beyond the retention. Whoever can take on less work then should. Nothing is
// dropped for it, at whatever size: the next bound is the disk, and on a full disk writes that grow data are refused.
func (e *Engine) HoldsFull() bool { return e.heldBytes.Load() >= e.opts.HoldBytes }

// tellEvery is how often the log hears that a stream keeps records beyond the retention, in milliseconds of the database's clock.
const tellEvery = Instant(time.Hour / time.Millisecond)

// keep takes over what a look at the stream's records has found, and tells the log where it is time to.
func (s *stream) keep(f *found) {
	d := s.desc.Load()
	is := HeldStream{Namespace: d.Namespace, Table: d.Table, Label: d.Label, Oldest: f.oldest}
	if f.behind != nil {
		is.Consumer = f.behind.consumer
	}
	for _, p := range s.kept.parts {
		is.Bytes += p.bytes
		is.Records += p.records
	}
	s.kept.mu.Lock()
	more := is.Bytes - s.kept.stream.Bytes
	s.kept.stream = is
	s.kept.waits = f.behind != nil
	s.kept.mu.Unlock()

	switch {
	case is.Records == 0:
		s.kept.told = 0
	case s.kept.told == 0 || f.now >= s.kept.told+tellEvery:
		s.kept.told = max(f.now, 1)
		s.e.log.Warn("stream records are kept beyond the retention, as a consumer has not read them", "table", is.Table, "stream", is.Label,
			"consumer", is.Consumer, "bytes", is.Bytes, "records", is.Records, "age", time.Duration(f.now-is.Oldest)*time.Millisecond)
	}
	total, bound := s.e.heldBytes.Add(more), s.e.opts.HoldBytes
	if total >= bound && total-more < bound {
		s.e.log.Warn("stream records kept for consumers have reached their limit; nothing is dropped, but new schedules are refused",
			"bytes", total, "bound", bound)
	}
}

// letTrim wakes the trimmer if it waits for a consumer.
func (s *stream) letTrim() {
	s.kept.mu.Lock()
	waits, at := s.kept.waits, s.kept.nextRun
	s.kept.mu.Unlock()
	if waits {
		s.due.Wake(int64(at))
	}
}

// wakeTrimmers lets every trimmer look again.
func (e *Engine) wakeTrimmers() {
	e.streams.mu.RLock()
	defer e.streams.mu.RUnlock()
	for _, s := range e.streams.byID {
		s.due.Wake(int64(minInstant))
	}
}
