package engine

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/mayflydb/mayfly/internal/invariant"
	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// Event is the kind of change in a stream record.
type Event byte

// The events; the numbers are part of the storage format.
const (
	Insert Event = 1
	Modify Event = 2
	Remove Event = 3
)

// Record is one stream record.
type Record struct {
	Seq     uint64 // ascending within a shard and from parent to child
	At      Instant
	Event   Event
	Service bool        // removed at its deadline, by the database itself
	Keys    dynamo.Item // the table's key attributes
	Old     dynamo.Item // nil: the view type or the event has none
	New     dynamo.Item
}

// Size returns the DynamoDB bytes of keys and images.
func (r *Record) Size() int { return r.Keys.Size() + r.Old.Size() + r.New.Size() }

const (
	recordEventMask = 0x03
	recordService   = 1 << 2
	recordOld       = 1 << 3
	recordNew       = 1 << 4
	recordKeys      = 1 << 5 // the keys are stored: no image holds them
	recordFlags     = recordEventMask | recordService | recordOld | recordNew | recordKeys
)

// append encodes a record without its sequence number, which is in its key. setRecordInstant fills
// in the instant.
func (r *Record) append(dst []byte) []byte {
	flags := byte(r.Event)
	if r.Service {
		flags |= recordService
	}
	if r.Old != nil {
		flags |= recordOld
	}
	if r.New != nil {
		flags |= recordNew
	}
	if r.Old == nil && r.New == nil {
		flags |= recordKeys
	}
	if dst == nil {
		dst = make([]byte, 0, 32+len(r.Keys)+len(r.Old)+len(r.New))
	}
	dst = append(dst, flags)
	dst = appendInstant(dst, r.At)
	for _, part := range []dynamo.Item{r.Old, r.New} {
		if part != nil {
			dst = binary.AppendUvarint(dst, uint64(len(part)))
			dst = append(dst, part...)
		}
	}
	if flags&recordKeys != 0 {
		dst = binary.AppendUvarint(dst, uint64(len(r.Keys)))
		dst = append(dst, r.Keys...)
	}
	return dst
}

func setRecordInstant(value []byte, now Instant) {
	binary.BigEndian.PutUint64(value[1:], uint64(now)^(1<<63))
}

func recordInstant(value []byte) (Instant, error) {
	if len(value) < 1+instantLen {
		return 0, corrupt("stream record of %d bytes", len(value))
	}
	return readInstant(value[1:]), nil
}

// decodeRecord decodes a stored record. Its items alias value.
func decodeRecord(key KeySchema, seq uint64, value []byte) (Record, error) {
	at, err := recordInstant(value)
	if err != nil {
		return Record{}, err
	}
	flags, rest := value[0], value[1+instantLen:]
	images := flags&(recordOld|recordNew) != 0
	if flags&recordEventMask == 0 || flags&^recordFlags != 0 || images == (flags&recordKeys != 0) {
		return Record{}, corrupt("stream record %d has flags %#x", seq, flags)
	}
	r := Record{Seq: seq, At: at, Event: Event(flags & recordEventMask), Service: flags&recordService != 0}
	part := func(flag byte) dynamo.Item {
		if flags&flag == 0 || err != nil {
			return nil
		}
		n, used := binary.Uvarint(rest)
		if used <= 0 || n > uint64(len(rest)-used) {
			err = corrupt("stream record %d is cut short", seq)
			return nil
		}
		item := dynamo.Item(rest[used : used+int(n)])
		rest = rest[used+int(n):]
		if bad := dynamo.CheckItem(item); bad != nil {
			err = corrupt("stream record %d: %v", seq, bad)
		}
		return item
	}
	r.Old, r.New, r.Keys = part(recordOld), part(recordNew), part(recordKeys)
	if err == nil && len(rest) != 0 {
		err = corrupt("stream record %d is too long", seq)
	}
	if err != nil {
		return Record{}, err
	}
	switch {
	case r.Keys != nil:
	case r.New != nil:
		r.Keys = key.pick(r.New)
	default:
		r.Keys = key.pick(r.Old)
	}
	return r, nil
}

func seqOfKey(key []byte) uint64 { return binary.BigEndian.Uint64(key[len(key)-8:]) }

// RecordPage is the result of one read of a shard.
type RecordPage struct {
	Records []Record
	Next    uint64 // the first sequence number of the next page
	End     bool   // the shard is closed and has been read to its end
}

// Records returns durable records of a shard from sequence number from on, up to limit records or
// about maxBytes. If the shard is open and has no such record, Records waits up to wait (real time)
// for one. It returns ErrStreamNotFound, ErrShardNotFound or ErrTrimmed.
func (e *Engine) Records(ctx context.Context, streamID, shardNo uint32, from uint64, limit, maxBytes int, wait time.Duration) (RecordPage, error) {
	if err := e.enter(); err != nil {
		return RecordPage{}, err
	}
	defer e.leave()
	st := e.streamByID(streamID)
	if st == nil {
		return RecordPage{}, ErrStreamNotFound
	}
	if wait <= 0 {
		e.gather(ctx, st, from, limit)
		return e.readShard(st, shardNo, from, limit, maxBytes)
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	st.waiting.Add(1)
	defer st.waiting.Add(-1)
	for {
		changed := st.changed.Next()
		if err := e.ready(); err != nil { // a closing or failing engine wakes its readers only once
			return RecordPage{}, err
		}
		page, err := e.readShard(st, shardNo, from, limit, maxBytes)
		if err != nil || len(page.Records) > 0 || page.End {
			return page, err
		}
		from = page.Next
		select {
		case <-changed:
		case <-ctx.Done():
			return page, nil
		}
	}
}

// gatherMost is the longest time that a read waits for a page to fill.
const gatherMost = 10 * time.Millisecond

// gather waits while the reaper removes items of the stream's table and the page would not be full.
// Thousands of items may be due at one instant. A reader that polls would get their records in
// pieces, and spend its time on calls and pauses in between.
func (e *Engine) gather(ctx context.Context, st *stream, from uint64, limit int) {
	if st.filling.Load() == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, gatherMost)
	defer cancel()
	st.waiting.Add(1)
	defer st.waiting.Add(-1)
	enough := from + uint64(limit*st.desc.Load().Slots) // about: other streams use numbers too
	for {
		changed := st.changed.Next()
		if st.filling.Load() == 0 || e.NextSeq() >= enough || e.ready() != nil {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// readShard reads durable records of a shard and does not wait for any. See Records.
func (e *Engine) readShard(st *stream, shardNo uint32, from uint64, limit, maxBytes int) (RecordPage, error) {
	// Load the description before the durable watermark: a shard that it shows as closed then has
	// all its records below the watermark. Load it also before the number of the commit to wait
	// for, which its writer sets first.
	d := st.desc.Load()
	changed := e.streams.commit.Load()
	sh := d.shard(shardNo)
	if sh == nil {
		return RecordPage{}, ErrShardNotFound
	}
	if from <= sh.Trimmed {
		return RecordPage{}, ErrTrimmed
	}
	if !sh.Open() {
		if err := e.waitDurable(changed); err != nil {
			return RecordPage{}, err
		}
	}
	durable := e.durable.seq.Load()
	if invariant.Injected(invariant.ServeUndurable) {
		durable = 1<<63 - 1
	}
	page := RecordPage{Next: max(from, sh.First)}
	if durable < from {
		page.End = !sh.Open() && durable >= sh.Last
		return page, nil
	}
	lost := e.trimmedOnDisk(d.ID, shardNo, from)
	it := e.kv.NewIter(appendRecordKey(nil, d.ID, shardNo, from), appendRecordKey(nil, d.ID, shardNo, durable+1))
	defer it.Close()
	// A trim publishes its mark before it deletes. So this check reports records that the iterator
	// misses, and does not skip them.
	now := st.desc.Load().shard(shardNo)
	trimmed := now == nil || from <= now.Trimmed || e.streamByID(d.ID) == nil
	if trimmed && !invariant.Injected(invariant.SkipTrimCheck) {
		return RecordPage{}, ErrTrimmed
	}
	invariant.CheckUnless(!lost, []invariant.Fault{invariant.SkipTrimCheck}, "a read of shard %d from record %d, which is trimmed", shardNo, from)
	size := 0
	ok := it.First()
	for ; ok && len(page.Records) < limit && size < maxBytes; ok = it.Next() {
		seq := seqOfKey(it.Key())
		sh.checkRead(seq, &e.durable)
		r, err := decodeRecord(d.Key, seq, append([]byte(nil), it.Value()...))
		if err != nil {
			return RecordPage{}, err
		}
		page.Records = append(page.Records, r)
		page.Next = seq + 1
		size += r.Size()
	}
	if err := it.Error(); err != nil {
		return RecordPage{}, err
	}
	page.End = !ok && !sh.Open() && durable >= sh.Last
	return page, nil
}

// NextSeq returns the sequence number of the next durable record. A reader from there sees only
// later writes.
func (e *Engine) NextSeq() uint64 { return e.durable.seq.Load() + 1 }
