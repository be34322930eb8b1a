package engine

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/mayflydb/mayfly/internal/invariant"
	"github.com/mayflydb/mayfly/internal/store/due"
	"github.com/mayflydb/mayfly/internal/store/kv"
)

// Hold is the registration of a stream consumer in the database's own process. The positions that
// the consumer reports have two effects:
//
//   - The trimmer keeps every record behind its checkpoint, however old, and every shard or disabled stream with such records. Before the first report about a shard it keeps the whole shard.
//   - An advance of the clock waits until the consumer has passed every record of the stream, or rests.
//
// A Hold is not on disk: a consumer registers at every start, and Engine.HoldAll keeps everything
// until then.
//
// Consumers read parents before children, so a report about a shard implies that its ancestors are
// done. A consumer that begins at the end of a stream therefore need not report shards that closed
// before. A report about a missing shard has no effect.
type Hold struct {
	e        *Engine
	s        *stream
	consumer string
	since    Instant

	// Guarded by e.consumers.
	durable map[uint32]uint64 // by shard: the checkpoint
	passed  map[uint32]uint64 // by shard: records up to here are done
	taken   map[uint32]uint64 // by shard: records up to here have been taken in
	rest    Instant           // 0: the consumer does not rest
	closed  bool
}

// wholeShard is a position behind every record.
const wholeShard = math.MaxUint64

// consumers holds every registration.
type consumers struct {
	sync.Mutex
	byStream map[uint32][]*Hold
	starting int              // calls of HoldAll that are not released
	changes  uint64           // raised by every event that may make an idle consumer busy
	moved    due.Announcement // a consumer may no longer be busy

	tips sync.Mutex // guards stream.tips of all streams; taken before the other lock
}

// Hold registers a consumer of a stream. It may be called before Run. It returns ErrStreamNotFound
// if the stream does not exist.
func (e *Engine) Hold(consumer string, streamID uint32) (*Hold, error) {
	e.consumers.Lock()
	defer e.consumers.Unlock()
	s := e.streamByID(streamID)
	if s == nil {
		return nil, ErrStreamNotFound
	}
	h := &Hold{e: e, s: s, consumer: consumer, since: e.Now(), durable: map[uint32]uint64{}, passed: map[uint32]uint64{}, taken: map[uint32]uint64{}}
	e.consumers.byStream[streamID] = append(e.consumers.byStream[streamID], h)
	e.consumers.changes++
	return h, nil
}

// HasConsumer reports whether a consumer has registered with a stream.
func (e *Engine) HasConsumer(streamID uint32) bool {
	e.consumers.Lock()
	defer e.consumers.Unlock()
	return len(e.consumers.byStream[streamID]) > 0
}

// HoldAll keeps every record of every stream, and delays every advance of the clock, until release
// is called. Call it between Open and Run, before the consumers have registered, and before a feed
// begins: then no record that one of them needs can be trimmed.
func (e *Engine) HoldAll() (release func()) {
	e.consumers.Lock()
	defer e.consumers.Unlock()
	e.consumers.starting++
	e.consumers.changes++
	return sync.OnceFunc(func() {
		e.consumers.Lock()
		defer e.consumers.Unlock()
		e.consumers.starting--
		e.consumers.moved.Announce()
		e.wakeTrimmers()
	})
}

// Checkpoint reports that the consumer's durable checkpoint is at seq: after a crash it continues
// behind it. The consumer is also done with those records.
func (h *Hold) Checkpoint(shard uint32, seq uint64) {
	h.report(shard, seq, h.durable, h.passed)
	h.s.wakeTrimmer()
}

// Passed reports that the consumer is done with the shard's records up to seq: their work is
// finished, or stored as an item with a deadline.
func (h *Hold) Passed(shard uint32, seq uint64) { h.report(shard, seq, h.passed) }

// Taken reports that the consumer has taken in the shard's records up to seq, so that Rest covers
// them.
func (h *Hold) Taken(shard uint32, seq uint64) { h.report(shard, seq, h.taken) }

// report raises some of the consumer's positions.
func (h *Hold) report(shard uint32, seq uint64, positions ...map[uint32]uint64) {
	h.e.consumers.Lock()
	defer h.e.consumers.Unlock()
	for _, p := range positions {
		h.reachLocked(p, shard, seq)
	}
	h.e.consumers.moved.Announce()
}

// reachLocked raises a position in a shard. The first report about a shard also puts the positions
// in its ancestors behind every record, since consumers read parents first.
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

// Rest reports that all records taken in but not passed wait for an instant, the end of a batching
// window. Until then only records that it has not taken in keep the consumer busy, and an advance
// stops at that instant. Call Rest with 0 before the work begins; an instant that has passed, or
// Never, has the same effect.
func (h *Hold) Rest(until Instant) {
	h.e.consumers.Lock()
	defer h.e.consumers.Unlock()
	if until == Never {
		until = 0
	}
	h.rest = until
	h.e.consumers.changes++
	h.e.consumers.moved.Announce()
}

// Close ends the registration.
func (h *Hold) Close() {
	h.e.consumers.Lock()
	defer h.e.consumers.Unlock()
	if h.closed {
		return
	}
	h.closed = true
	id := h.s.desc.Load().ID
	h.e.consumers.byStream[id] = slices.DeleteFunc(h.e.consumers.byStream[id], func(other *Hold) bool { return other == h })
	if len(h.e.consumers.byStream[id]) == 0 {
		delete(h.e.consumers.byStream, id)
	}
	h.e.consumers.moved.Announce()
	h.s.wakeTrimmer()
}

// untilLocked returns the instant before which no record of a stream is trimmed. It lies in the
// future while a HoldAll is open, or a consumer has just registered and may still report its
// checkpoint. An instant in the past sets no limit.
func (cs *consumers) untilLocked(stream uint32, moment Instant) Instant {
	if invariant.Injected(invariant.TrimHeld) {
		return minInstant
	}
	if cs.starting > 0 {
		return Never
	}
	until := minInstant
	for _, h := range cs.byStream[stream] {
		if len(h.passed) == 0 {
			until = max(until, h.since+moment)
		}
	}
	return until
}

// floorLocked returns the sequence number up to which a shard may be trimmed, and the consumer
// furthest behind there, or nil.
func (cs *consumers) floorLocked(stream, shard uint32) (uint64, *Hold) {
	floor, last := uint64(wholeShard), (*Hold)(nil)
	if invariant.Injected(invariant.TrimHeld) {
		return floor, last
	}
	for _, h := range cs.byStream[stream] {
		if at := h.durable[shard]; at < floor {
			floor, last = at, h
		}
	}
	return floor, last
}

// forgetLocked drops the positions of a removed shard.
func (cs *consumers) forgetLocked(stream, shard uint32) {
	for _, h := range cs.byStream[stream] {
		delete(h.durable, shard)
		delete(h.passed, shard)
		delete(h.taken, shard)
	}
}

// nextRest returns the next instant that a consumer rests until; Never: no consumer rests.
func (e *Engine) nextRest(now Instant) Instant {
	e.consumers.Lock()
	defer e.consumers.Unlock()
	next := Never
	for _, hs := range e.consumers.byStream {
		for _, h := range hs {
			if h.rest > now {
				next = min(next, h.rest)
			}
		}
	}
	return next
}

// idleMoment identifies a state of all consumers in which none was busy: the count of their
// changes, and the last record of each stream that they read.
type idleMoment struct {
	changes uint64
	tips    map[*stream]uint64
}

// stillIdle reports whether no consumer can have become busy since: none has registered or begun to
// work, and no stream has a new record.
func (e *Engine) stillIdle(at idleMoment) bool {
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

// consumersIdle waits until every registered consumer has passed every record of its stream, or
// rests.
func (e *Engine) consumersIdle(ctx context.Context) (idleMoment, error) {
	for {
		moved := e.consumers.moved.Next()
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

// busyConsumers returns the names of the consumers that have work at this moment. An empty result
// proves that all were idle at once: no record was written during the check.
func (e *Engine) busyConsumers() (at idleMoment, busy []string, err error) {
	for {
		at, busy, err = e.askConsumers()
		if err != nil || len(busy) > 0 || e.stillIdle(at) {
			return at, busy, err
		}
	}
}

// askConsumers returns the consumers that are busy, and the state that it found. Records may be
// written while it reads; only stillIdle shows that none was.
func (e *Engine) askConsumers() (at idleMoment, busy []string, err error) {
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
	for _, hs := range e.consumers.byStream {
		at.tips[hs[0].s] = 0
	}
	e.consumers.Unlock()
	for s := range at.tips {
		// outside of the lock, since it may read from disk
		if at.tips[s], err = s.readTips(); err != nil {
			return at, nil, err
		}
	}
	e.consumers.Lock()
	defer e.consumers.Unlock()
	for s, tip := range at.tips {
		for _, h := range e.consumers.byStream[s.desc.Load().ID] {
			if h.busyLocked(now, tip) {
				busy = append(busy, h.consumer)
			}
		}
	}
	return at, busy, nil
}

// busyLocked reports whether the consumer has work. tip is the sequence number of the stream's last
// record.
func (h *Hold) busyLocked(now Instant, tip uint64) bool {
	// the last records were not yet durable when they were read, so work follows
	if h.s.tips.tip != tip {
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

// doneLocked reports whether the consumer has passed all of a shard.
func (h *Hold) doneLocked(sh *ShardDesc) bool {
	return sh == nil || h.s.tips.last[sh.No] <= max(sh.Trimmed, h.passed[sh.No])
}

// waitsLocked reports whether an ancestor of this shard is not done, so that the shard's records
// cannot be taken in.
func (h *Hold) waitsLocked(d *StreamDesc, sh *ShardDesc) bool {
	for p := d.shard(sh.Parent); p != nil; p = d.shard(p.Parent) {
		if !h.doneLocked(p) {
			return true
		}
	}
	return false
}

// tips holds the last sequence number of each shard of a stream.
type tips struct {
	tip  uint64            // stream.tip at the time of the read
	last map[uint32]uint64 // by shard; one without records is missing
}

// readTips updates s.tips and returns their greatest sequence number. It reads every shard if
// records were written since the last call, and otherwise nothing. While records are not durable it
// leaves the tips unchanged. The caller holds consumers.tips.
func (s *stream) readTips() (uint64, error) {
	tip := s.tip.Load()
	if tip > s.e.durable.seq.Load() || s.tips.last != nil && tip == s.tips.tip {
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
	s.tips.tip, s.tips.last = tip, last
	return tip, nil
}

// surplus describes the records beyond the retention that a stream keeps for a consumer, as of the
// trimmer's last pass.
type surplus struct {
	parts  map[uint32]surplusPart // by shard; touched by the trimmer only
	logged Instant                // when the trimmer last logged it; 0: not since it began

	mu      sync.Mutex // guards the fields below
	stream  HeldStream
	waits   bool    // the trimmer waits for a consumer and must be woken by its next report
	nextRun Instant // the earliest next pass
}

// surplusPart counts the kept records of one shard.
type surplusPart struct {
	counted        uint64 // the records beyond the retention are counted up to this sequence number
	bytes, records int64
}

// add counts the iterator's present record.
func (p *surplusPart) add(it *kv.Iter) {
	p.records++
	p.bytes += int64(len(it.Key()) + len(it.Value()))
}

// subtract removes trimmed records from the counts.
func (k *surplus) subtract(cuts []cut) {
	for _, c := range cuts {
		p := k.parts[c.shard]
		p.records -= c.counted.records
		p.bytes -= c.counted.bytes
		if k.parts[c.shard] = p; c.whole || p.records == 0 {
			delete(k.parts, c.shard)
		}
	}
}

// HeldStream is a stream that keeps records beyond the retention for a slow consumer in this
// process.
type HeldStream struct {
	Namespace, Table, Label string
	Consumer                string // the consumer furthest behind
	Bytes, Records          int64
	Oldest                  Instant // when the oldest of the records was written
}

// Held returns the streams that keep records beyond the retention, as of the trimmer's last pass.
// While records age that is a minute ago at most.
func (e *Engine) Held() []HeldStream {
	var out []HeldStream
	e.streams.mu.RLock()
	defer e.streams.mu.RUnlock()
	for _, s := range e.streams.byID {
		s.surplus.mu.Lock()
		if s.surplus.stream.Records > 0 {
			out = append(out, s.surplus.stream)
		}
		s.surplus.mu.Unlock()
	}
	sort.Slice(out, func(i, j int) bool {
		a, b := &out[i], &out[j]
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Table, b.Table), cmp.Compare(a.Label, b.Label)) < 0
	})
	return out
}

// HoldsFull reports whether the streams keep Options.HoldBytes or more beyond the retention, so
// that callers should accept less work. The engine never drops kept records: the next limit is a
// full disk, which refuses writes that grow data.
func (e *Engine) HoldsFull() bool { return e.heldBytes.Load() >= e.opts.HoldBytes }

// logEvery is the pause between two log lines about a stream that keeps records beyond the
// retention, in milliseconds of the database's clock.
const logEvery = Instant(time.Hour / time.Millisecond)

// setSurplus stores the result of a pass over the stream's records, and logs it if the pause is
// over.
func (s *stream) setSurplus(f *found) {
	d := s.desc.Load()
	held := HeldStream{Namespace: d.Namespace, Table: d.Table, Label: d.Label, Oldest: f.oldest}
	if f.behind != nil {
		held.Consumer = f.behind.consumer
	}
	for _, p := range s.surplus.parts {
		held.Bytes += p.bytes
		held.Records += p.records
	}
	s.surplus.mu.Lock()
	more := held.Bytes - s.surplus.stream.Bytes
	s.surplus.stream = held
	s.surplus.waits = f.behind != nil
	s.surplus.mu.Unlock()

	switch {
	case held.Records == 0:
		s.surplus.logged = 0
	case s.surplus.logged == 0 || f.now >= s.surplus.logged+logEvery:
		s.surplus.logged = max(f.now, 1)
		s.e.log.Warn("stream records are kept beyond the retention, as a consumer has not read them", "table", held.Table, "stream", held.Label,
			"consumer", held.Consumer, "bytes", held.Bytes, "records", held.Records, "age", time.Duration(f.now-held.Oldest)*time.Millisecond)
	}
	total, bound := s.e.heldBytes.Add(more), s.e.opts.HoldBytes
	if total >= bound && total-more < bound {
		s.e.log.Warn("stream records kept for consumers have reached their limit; nothing is dropped, but new schedules are refused",
			"bytes", total, "bound", bound)
	}
}

// wakeTrimmer wakes the trimmer if it waits for a consumer.
func (s *stream) wakeTrimmer() {
	s.surplus.mu.Lock()
	waits, at := s.surplus.waits, s.surplus.nextRun
	s.surplus.mu.Unlock()
	if waits {
		s.due.Wake(int64(at))
	}
}

// wakeTrimmers starts a pass of every trimmer.
func (e *Engine) wakeTrimmers() {
	e.streams.mu.RLock()
	defer e.streams.mu.RUnlock()
	for _, s := range e.streams.byID {
		s.due.Wake(int64(minInstant))
	}
}
