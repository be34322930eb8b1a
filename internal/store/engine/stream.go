package engine

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mayflydb/mayfly/internal/invariant"
	"github.com/mayflydb/mayfly/internal/store/due"
	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/kv"
)

// StreamDesc describes a stream: one enabling of change data for a table. A published description
// is never edited.
type StreamDesc struct {
	ID        uint32
	Namespace string
	Table     string
	TableID   uint32
	Label     string // when it was enabled: UTC, milliseconds, no zone
	ViewType  string
	Key       KeySchema
	Created   Instant
	Disabled  Instant     // 0: enabled
	Shards    []ShardDesc // ascending by number
	NextShard uint32
	Slots     int            // the number of open shards that share the records
	Policy    ResourcePolicy `json:",omitzero"` // carried for the API, until the stream is gone
	// of a feed: the destination that the records are for, and the precision of their times there
	Destination string `json:",omitzero"`
	Precision   string `json:",omitzero"`
	Finished    bool   `json:",omitzero"` // its reader is done with it
}

// ShardDesc describes a shard of a stream.
type ShardDesc struct {
	No      uint32 // from 1; a child has a higher number than its parent
	Parent  uint32 // 0: none
	Slot    int    // its part of the partition keys' hashes
	Created Instant
	Closed  Instant // 0: open
	First   uint64  // no record of the shard has a lower sequence number
	Last    uint64  // of a closed shard: no record has a higher one
	Trimmed uint64  // records up to this number are gone
}

// Open reports whether the shard still receives records.
func (s ShardDesc) Open() bool { return s.Closed == 0 }

// labelLayout is the form of a stream label (docs/spec/streams.md §3).
const labelLayout = "2006-01-02T15:04:05.000"

// streamKind is one of the two kinds of streams: a table's own, or its feed. The value is the suffix
// of the labels, so that a label of the API never names a feed.
type streamKind string

const (
	ownStream  streamKind = ""
	feedStream streamKind = "-feed"
)

func (d *StreamDesc) kind() streamKind {
	if d.Feed() {
		return feedStream
	}
	return ownStream
}

// label returns the label of a stream that is enabled at the instant.
func (k streamKind) label(at Instant) string { return at.Time().Format(labelLayout) + string(k) }

// streams holds every readable stream.
type streams struct {
	mu     sync.RWMutex
	byID   map[uint32]*stream
	commit atomic.Uint64 // the last commit that changed a description
}

// stream is an open stream.
type stream struct {
	e    *Engine
	desc atomic.Pointer[StreamDesc] // replaced inside the commit section, never edited
	due  *due.Handle                // runs the trimmer

	open []openShard // by slot; guarded by the commit section
	// the sequence number of the last record; set inside the commit section, before the apply
	tip     atomic.Uint64
	tips    tips // guarded by Engine.consumers.tips
	surplus surplus

	filling atomic.Int32     // slices of the reaper whose records are not durable yet
	waiting atomic.Int32     // readers that wait for records
	changed due.Announcement // records have become durable, or the description has changed
}

func newStream(e *Engine) *stream {
	return &stream{e: e, surplus: surplus{parts: map[uint32]surplusPart{}}}
}

// openShard is the shard that receives a slot's records.
type openShard struct {
	no    uint32
	bytes int64 // keys and values written since it was opened
}

// startStream creates the stream or the feed that d asks for. The caller is inside the commit
// section.
func (e *Engine) startStream(b *kv.Batch, kind streamKind, d *TableDesc, id uint32, now Instant) {
	// A label is unique for its table, even if the stream goes off and on within one millisecond of
	// a frozen clock.
	for e.findStream(kind, d.Namespace, d.Name, kind.label(now)) != nil {
		now++
	}
	st := newStream(e)
	// before the stream is visible and its trimmer can be woken
	st.due = e.queue.Add(&trimmer{s: st})
	e.publishStream(b, st, d.newStream(kind, id, now, e.order.lastSeq, e.opts.StreamShards))
}

// newStream makes a table write to a new stream or feed, whose records follow the sequence number
// last. It has slots shards, unless the table's description says otherwise.
func (d *TableDesc) newStream(kind streamKind, id uint32, now Instant, last uint64, slots int) *StreamDesc {
	s := &StreamDesc{
		ID: id, Namespace: d.Namespace, Table: d.Name, TableID: d.ID, Label: kind.label(now), ViewType: d.Stream.ViewType,
		Key: d.Key, Created: now, NextShard: 1, Slots: cmp.Or(d.Stream.Shards, slots),
	}
	if kind == feedStream {
		s.ViewType, s.Destination, s.Precision = feedView, d.Feed.Destination, d.Feed.Precision
		d.Feed.ID, d.Feed.Label = id, s.Label
	} else {
		d.Stream.ID, d.Stream.Label = id, s.Label
	}
	for slot := range s.Slots {
		s.addShard(slot, 0, last+1, now)
	}
	return s
}

// writesTo reports whether a stream is the enabled one of a kind that the table writes to.
func (d *TableDesc) writesTo(kind streamKind, s *StreamDesc) bool {
	if s.TableID != d.ID || s.Disabled != 0 {
		return false
	}
	if kind == feedStream {
		return s.ID == d.Feed.ID && s.Label == d.Feed.Label && s.Destination == d.Feed.Destination
	}
	return s.ID == d.Stream.ID && s.Label == d.Stream.Label && s.ViewType == d.Stream.ViewType
}

// addShard opens a shard. It edits a description that is not published yet.
func (d *StreamDesc) addShard(slot int, parent uint32, first uint64, now Instant) {
	d.Shards = append(d.Shards, ShardDesc{No: d.NextShard, Parent: parent, Slot: slot, Created: now, First: first})
	d.NextShard++
}

// publishStream writes a description and makes it current. The caller is inside the commit section.
func (e *Engine) publishStream(b *kv.Batch, st *stream, d *StreamDesc) {
	setJSON(b, idKey(catStream, d.ID), d)
	// before d is visible: a call that sees it waits for this commit
	e.streams.commit.Store(e.lastCommit.Load() + 1)
	st.adopt(d)
	e.streams.mu.Lock()
	e.streams.byID[d.ID] = st
	e.streams.mu.Unlock()
}

// adopt makes d the current description, and finds the open shard of each slot. Open shards keep
// their counts of bytes.
func (s *stream) adopt(d *StreamDesc) {
	sizes := map[uint32]int64{}
	for _, o := range s.open {
		sizes[o.no] = o.bytes
	}
	s.open = make([]openShard, d.Slots)
	for _, sh := range d.Shards {
		if sh.Open() {
			s.open[sh.Slot] = openShard{no: sh.No, bytes: sizes[sh.No]}
		}
	}
	s.desc.Store(d)
}

// clone returns a copy that may be edited.
func (d *StreamDesc) clone() *StreamDesc {
	c := *d
	c.Shards = slices.Clone(d.Shards)
	return &c
}

// shard returns a shard by number, or nil.
func (d *StreamDesc) shard(no uint32) *ShardDesc {
	i, ok := slices.BinarySearchFunc(d.Shards, no, func(s ShardDesc, no uint32) int { return int(int64(s.No) - int64(no)) })
	if !ok {
		return nil
	}
	return &d.Shards[i]
}

// close closes a shard.
func (s *ShardDesc) close(last uint64, now Instant) { s.Closed, s.Last = max(now, 1), last }

// disableStream closes a stream's shards. It stays readable until its records age out. The caller
// is inside the commit section.
func (e *Engine) disableStream(b *kv.Batch, id uint32, now Instant) {
	st := e.streamByID(id)
	if st == nil {
		return
	}
	d := st.desc.Load().clone()
	d.disable(e.order.lastSeq, now)
	e.publishStream(b, st, d)
	st.due.Wake(int64(now) + e.opts.StreamRetention.Milliseconds())
	st.changed.Announce()
}

// disable closes every shard behind sequence number last.
func (d *StreamDesc) disable(last uint64, now Instant) {
	d.Disabled = max(now, 1)
	for i := range d.Shards {
		if d.Shards[i].Open() {
			d.Shards[i].close(last, now)
		}
	}
}

// roll closes the slot's shard behind sequence number last and opens its child. The caller is
// inside the commit section.
func (d *StreamDesc) roll(no uint32, last uint64, now Instant) {
	sh := d.shard(no)
	sh.close(last, now)
	d.addShard(sh.Slot, no, last+1, now)
}

func (e *Engine) streamByID(id uint32) *stream {
	e.streams.mu.RLock()
	defer e.streams.mu.RUnlock()
	return e.streams.byID[id]
}

// streamOf returns the stream that a table writes to, or nil.
func (e *Engine) streamOf(d *TableDesc) *stream {
	if d.Stream.ViewType == "" {
		return nil
	}
	return e.streamByID(d.Stream.ID)
}

// findStream returns the stream of a kind with a table's name and a label, or nil.
func (e *Engine) findStream(kind streamKind, namespace, table, label string) *stream {
	e.streams.mu.RLock()
	defer e.streams.mu.RUnlock()
	for _, s := range e.streams.byID {
		d := s.desc.Load()
		if d.Namespace == namespace && d.Table == table && d.Label == label && d.kind() == kind {
			return s
		}
	}
	return nil
}

// Streams returns every readable stream but feeds, enabled or not yet aged out, oldest first.
func (e *Engine) Streams() ([]*StreamDesc, error) { return e.listStreams(ownStream) }

func (e *Engine) listStreams(kind streamKind) ([]*StreamDesc, error) {
	e.streams.mu.RLock()
	out := make([]*StreamDesc, 0, len(e.streams.byID))
	for _, s := range e.streams.byID {
		if d := s.desc.Load(); d.kind() == kind {
			out = append(out, d)
		}
	}
	e.streams.mu.RUnlock()
	slices.SortFunc(out, func(a, b *StreamDesc) int { return int(int64(a.ID) - int64(b.ID)) })
	return out, e.waitCatalogue(&e.streams.commit)
}

// StreamByLabel returns the stream with a table's name and a label, or ErrStreamNotFound. It does
// not find feeds.
func (e *Engine) StreamByLabel(namespace, table, label string) (*StreamDesc, error) {
	return e.streamByLabel(ownStream, namespace, table, label)
}

func (e *Engine) streamByLabel(kind streamKind, namespace, table, label string) (*StreamDesc, error) {
	var d *StreamDesc
	s := e.findStream(kind, namespace, table, label)
	if s != nil {
		d = s.desc.Load()
	}
	if err := e.waitCatalogue(&e.streams.commit); err != nil {
		return nil, err
	}
	if s == nil {
		return nil, ErrStreamNotFound
	}
	return d, nil
}

// loadStreams opens every stream of the catalogue and sets the next sequence number behind every
// record on disk.
func (e *Engine) loadStreams() error {
	bound := e.order.lastSeq + seqGap // no record's number is greater: see seqGap
	err := e.eachCatalogue(catStream, func(_, value []byte) error {
		d := &StreamDesc{}
		if err := json.Unmarshal(value, d); err != nil {
			return corrupt("stream description: %v", err)
		}
		st := newStream(e)
		st.adopt(d)
		e.streams.byID[d.ID] = st
		st.due = e.queue.Add(&trimmer{s: st})
		st.due.Wake(int64(minInstant))
		for i := range d.Shards {
			sh := &d.Shards[i]
			last, err := e.lastRecordOr(bound, d.ID, sh.No)
			if err != nil {
				return err
			}
			st.tip.Store(max(st.tip.Load(), last))
			e.order.lastSeq = max(e.order.lastSeq, last, sh.First-1, sh.Last, sh.Trimmed)
		}
		return nil
	})
	e.durable.seq.Store(e.order.lastSeq)
	return err
}

// lastRecord returns the sequence number of a shard's newest record, or 0 if it is empty.
func (e *Engine) lastRecord(stream, shard uint32) (uint64, error) {
	it := e.kv.NewIter(appendRecordKey(nil, stream, shard, 0), appendRecordKey(nil, stream, shard+1, 0))
	defer it.Close()
	if !it.Last() {
		return 0, it.Error()
	}
	return seqOfKey(it.Key()), nil
}

// lastRecordOr returns lastRecord, or bound if a damaged file hides the record.
func (e *Engine) lastRecordOr(bound uint64, stream, shard uint32) (uint64, error) {
	last, err := e.lastRecord(stream, shard)
	if isDamage(err) {
		e.logDamage(err, "the end of a shard cannot be read", "stream", stream, "shard", shard)
		return bound, nil
	}
	return last, err
}

// seqGap is the number of sequence numbers that a start skips. In async durability readers see
// records that a crash takes back. Later records must lie behind those, or a consumer that
// continues from its checkpoint would miss them. The gap exceeds the records that can pile up
// before a stalled disk.
const seqGap = 1 << 24

// rollAll closes every open shard that has records and opens its child. So a consumer that ignores
// parents and children fails at its first restart and not in production. It leaves a gap in the
// sequence numbers, which is on disk before any is used.
func (e *Engine) rollAll() error {
	if len(e.streams.byID) == 0 {
		return nil
	}
	err := e.commitNew(func(c *commit) error {
		for _, st := range e.streams.byID {
			d := st.desc.Load().clone()
			change := false
			for _, o := range st.open {
				last, err := e.lastRecordOr(e.order.lastSeq, d.ID, o.no)
				if err != nil {
					return err
				}
				if last != 0 {
					d.roll(o.no, last, c.now)
					change = true
				}
			}
			if change {
				e.publishStream(c.batch, st, d)
			}
		}
		e.order.lastSeq += seqGap
		c.batch.Set(catalogueKey(catClock), appendClock(nil, c.now, e.order.lastSeq))
		return nil
	}, nil)
	if err != nil || e.opts.Durability != kv.Async {
		return err
	}
	return e.kv.Flush()
}

// pending is a stream record that waits for its sequence number.
type pending struct {
	stream *stream
	slot   int
	value  []byte // complete but for the instant
}

// record adds the stream records of one change to the plan, one for each stream of the table. A
// change that leaves the item equal has none.
func (p *plan) record(d *TableDesc, key Key, old, next dynamo.Item, service bool) {
	record, feed := p.e.recordsFor(d, key, old, next, service)
	if record.stream != nil {
		p.records = append(p.records, record)
	}
	if feed != nil {
		p.records = append(p.records, *feed)
	}
}

// recordsFor returns the records of one change for the table's stream and for its feed. A record
// without a stream, and a nil feed, mean that there is none. Only a table with a stream pays for
// the comparison of the images.
func (e *Engine) recordsFor(d *TableDesc, key Key, old, next dynamo.Item, service bool) (record pending, feed *pending) {
	if d.streams() == 0 || old == nil && next == nil || old != nil && next != nil && bytes.Equal(old, next) {
		return pending{}, nil
	}
	record = e.recordFor(d, e.streamOf(d), d.Stream.ViewType, key, old, next, service)
	if st := e.feedOf(d); st != nil {
		feed = e.feedRecord(d, st, record, key, old, next, service)
	}
	return record, feed
}

// feedRecord returns the record of one change for a table's feed. It shares the value of the record
// for the table's stream, if both have the same view.
func (e *Engine) feedRecord(d *TableDesc, st *stream, record pending, key Key, old, next dynamo.Item, service bool) *pending {
	if record.stream == nil || d.Stream.ViewType != feedView {
		record = e.recordFor(d, st, feedView, key, old, next, service)
	}
	return &pending{stream: st, slot: st.desc.Load().slotOf(key.hash()), value: record.value}
}

// recordFor returns the record of one change for a stream, which may be nil.
func (e *Engine) recordFor(d *TableDesc, st *stream, view string, key Key, old, next dynamo.Item, service bool) pending {
	if st == nil {
		return pending{}
	}
	r := Record{Event: Modify, Service: service}
	switch {
	case old == nil:
		r.Event = Insert
	case next == nil:
		r.Event = Remove
	}
	if view != "KEYS_ONLY" && view != "NEW_IMAGE" {
		r.Old = old
	}
	if view != "KEYS_ONLY" && view != "OLD_IMAGE" {
		r.New = next
	}
	if r.Old == nil && r.New == nil { // otherwise an image holds them
		image := old
		if image == nil {
			image = next
		}
		r.Keys = d.Key.pick(image)
	}
	return pending{stream: st, slot: st.desc.Load().slotOf(key.hash()), value: r.append(nil)}
}

// slotOf returns the slot of a partition key.
func (d *StreamDesc) slotOf(hash uint32) int { return int(uint64(hash) * uint64(d.Slots) >> 32) }

// sequence assigns sequence numbers to records and adds them to the batch. The caller is inside the
// commit section.
func (e *Engine) sequence(b *kv.Batch, records []pending, now Instant) {
	for i := range records {
		r := &records[i]
		e.order.lastSeq++
		seq := e.order.lastSeq
		if invariant.Injected(invariant.UnorderedSeq) {
			seq ^= 1
		}
		r.stream.checkNext(r.slot, seq)
		shard := &r.stream.open[r.slot]
		setRecordInstant(r.value, now)
		b.Set(appendRecordKey(make([]byte, 0, recordKeyLen), r.stream.desc.Load().ID, shard.no, seq), r.value)
		r.stream.tip.Store(e.order.lastSeq)
		shard.bytes += int64(recordKeyLen + len(r.value))
		if shard.bytes >= e.opts.ShardBytes {
			d := r.stream.desc.Load().clone()
			d.roll(shard.no, seq, now)
			e.publishStream(b, r.stream, d)
		}
	}
}

// fill counts the slices of the reaper that fill the stream. A nil stream has none.
func (s *stream) fill(slices int32) {
	if s != nil {
		s.filling.Add(slices)
	}
}

// published is called when records of the stream have become durable. It wakes the waiting readers,
// and asks for the trimmer at the instant at which the records age out. A nil stream has none.
func (s *stream) published() {
	if s == nil {
		return
	}
	s.due.Wake(int64(s.e.Now() + s.e.retention()))
	if s.waiting.Load() > 0 {
		s.changed.Announce()
	}
}

func (e *Engine) wakeStreamReaders() {
	e.streams.mu.RLock()
	defer e.streams.mu.RUnlock()
	for _, s := range e.streams.byID {
		s.changed.Announce()
	}
}

// retention returns the lifetime of records in milliseconds.
func (e *Engine) retention() Instant { return Instant(e.opts.StreamRetention / time.Millisecond) }
