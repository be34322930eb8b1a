package engine

import (
	"context"
	"errors"
)

// trimmer removes a stream's records once they are older than the retention, whole shards once all of theirs are, and the stream
// itself once it has been disabled for as long. It is a source of the due queue like any table: it sleeps until the oldest record
// ages out and does nothing while there is none.
type trimmer struct{ s *stream }

const (
	trimSlice = 10_000    // records looked at in one go
	trimEvery = 60 * 1000 // ms between trims of one stream: one range deletion then covers many records
)

// cut is what to remove of one shard.
type cut struct {
	shard   uint32
	through uint64 // records up to this number
	whole   bool   // and the shard with them
}

// Drain trims what is due at now.
func (t *trimmer) Drain(ctx context.Context, now int64) (next int64, err error) {
	e, d := t.s.e, t.s.desc.Load()
	at := Instant(now)
	if d.Disabled != 0 && at >= d.Disabled+e.retention() {
		return int64(Never), t.drop(d)
	}
	cuts, left, more, err := t.find(d, at)
	if err != nil {
		return 0, err
	}
	if len(cuts) > 0 {
		if err := t.apply(d, cuts); errors.Is(err, errStale) {
			return now, nil
		} else if err != nil {
			return 0, err
		}
	}
	if d.Disabled != 0 {
		left = min(left, d.Disabled+e.retention())
	}
	switch {
	case more:
		return now, nil
	case left == Never:
		return int64(Never), nil
	default:
		return int64(max(left, at+min(trimEvery, e.retention()/10+1))), nil
	}
}

// find looks for what has aged out; left is when the next record will have, more says that this slice was not all.
func (t *trimmer) find(d *StreamDesc, now Instant) (cuts []cut, left Instant, more bool, err error) {
	e := t.s.e
	left = Never
	budget := trimSlice
	for _, sh := range d.Shards {
		if !sh.Open() {
			if now >= sh.Closed+e.retention() {
				cuts = append(cuts, cut{shard: sh.No, through: sh.Last, whole: true})
				continue
			}
			left = min(left, sh.Closed+e.retention())
		}
		it := e.kv.NewIter(appendRecordKey(nil, d.ID, sh.No, 0), appendRecordKey(nil, d.ID, sh.No+1, 0))
		c := cut{shard: sh.No}
		for ok := it.First(); ok; ok = it.Next() {
			at, instantErr := recordInstant(it.Value())
			if instantErr != nil {
				err = instantErr
				break
			}
			if at+e.retention() > now {
				left = min(left, at+e.retention())
				break
			}
			if budget == 0 {
				more = true
				break
			}
			c.through = seqOfKey(it.Key())
			budget--
		}
		if err = errors.Join(err, it.Error(), it.Close()); err != nil {
			return nil, 0, false, err
		}
		if c.through != 0 {
			cuts = append(cuts, c)
		}
	}
	return cuts, left, more, nil
}

// apply removes the cuts in one batch.
func (t *trimmer) apply(was *StreamDesc, cuts []cut) error {
	e := t.s.e
	b := e.kv.NewBatch()
	defer b.Close()
	c, err := e.commitSection(b, func(c *commit) error {
		if t.s.desc.Load() != was {
			return errStale
		}
		d := was.clone()
		for _, cut := range cuts {
			b.DeleteRange(appendRecordKey(nil, d.ID, cut.shard, 0), appendRecordKey(nil, d.ID, cut.shard, cut.through+1))
			if !cut.whole {
				d.shard(cut.shard).Trimmed = cut.through
				continue
			}
			kept := d.Shards[:0]
			for _, sh := range d.Shards {
				if sh.No != cut.shard {
					kept = append(kept, sh)
				}
			}
			d.Shards = kept
		}
		// The records that told the last sequence number may be the ones that go.
		b.Set(catalogueKey(catClock), appendClock(nil, c.now, e.order.lastSeq))
		e.publishStream(b, t.s, d)
		return nil
	})
	if err != nil {
		return err
	}
	return e.finish(c)
}

// drop forgets a stream that has been disabled for the whole retention.
func (t *trimmer) drop(d *StreamDesc) error {
	e := t.s.e
	b := e.kv.NewBatch()
	defer b.Close()
	c, err := e.commitSection(b, func(c *commit) error {
		b.DeleteRange(appendRecordKey(nil, d.ID, 0, 0), appendRecordKey(nil, d.ID+1, 0, 0))
		b.Delete(idKey(catStream, d.ID))
		b.Set(catalogueKey(catClock), appendClock(nil, c.now, e.order.lastSeq))
		e.streams.commit.Store(e.lastCommit.Load() + 1) // before anyone can miss it
		e.streams.mu.Lock()
		delete(e.streams.byID, d.ID)
		e.streams.mu.Unlock()
		return nil
	})
	if err != nil {
		return err
	}
	t.s.due.Remove()
	return e.finish(c)
}
