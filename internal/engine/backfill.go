package engine

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/mayflydb/mayfly/internal/clock"
)

const (
	// backfillSlice is how many items one step of a backfill rewrites under their locks.
	backfillSlice = 256
	// backfillPause is how long a backfill waits for room on a full disk before it looks again: it grows data like any write.
	backfillPause = time.Second
)

// wantBackfill tells Run that a table has items of an earlier TTL generation. The backfill is in flight from here on, so an advance of
// the clock waits for it.
func (e *Engine) wantBackfill() {
	done := e.activity.Begin()
	select {
	case e.backfills <- done:
	default: // one token is enough: the run looks at every table
		done()
	}
}

// runBackfills carries every wanted backfill to its end, until ctx is done.
func (e *Engine) runBackfills(ctx context.Context) error {
	for {
		var done func()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case done = <-e.backfills:
		}
		err := e.backfillAll(ctx)
		done()
		if err != nil {
			return err
		}
	}
}

// backfillAll carries out what there is to do. A table whose items cannot be read keeps its status and does not hold up the others.
func (e *Engine) backfillAll(ctx context.Context) error {
	for _, t := range e.Tables() {
		err := t.backfill(ctx)
		switch {
		case err == nil, errors.Is(err, ErrTableNotFound):
		case ctx.Err() != nil, e.ready() != nil:
			return err
		default:
			e.log.Error("a TTL backfill failed, and is tried again at the next start or change of a TTL setting", "table", t.Desc().Name, "error", err)
		}
	}
	return nil
}

// backfill rewrites every item that an earlier TTL generation judged, in key order. It keeps where it is in the batches themselves,
// so after a crash it goes on from there; a further change of the setting starts it over.
func (t *Table) backfill(ctx context.Context) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		d, err := t.live()
		if err != nil {
			return err
		}
		if !d.TTL.Backfill {
			return nil
		}
		if t.e.full() {
			clock.Pause(backfillPause, ctx.Done())
			continue
		}
		done, err := t.backfillStep(d)
		if errors.Is(err, errStale) {
			continue
		}
		if err != nil {
			return err
		}
		if !done {
			continue
		}
		if err := t.endBackfill(ctx, d); err != nil {
			return err
		}
	}
}

// endBackfill makes the status ENABLED or DISABLED: no item carries an earlier generation any more.
func (t *Table) endBackfill(ctx context.Context, was *TableDesc) error {
	_, err := t.e.Alter(ctx, was.Namespace, was.Name, func(d *TableDesc, _ Instant) error {
		if d.ID != was.ID || d.TTL.Generation != was.TTL.Generation {
			return errStale
		}
		d.TTL.Backfill, d.TTL.Ended, d.TTL.Backfilled = false, nil, d.TTL.Ended
		return nil
	})
	if errors.Is(err, errStale) {
		return nil
	}
	return err
}

// backfillStep rewrites the next slice of items; done says that there was none left.
func (t *Table) backfillStep(d *TableDesc) (done bool, err error) {
	e := t.e
	keys, err := t.backfillKeys(d)
	if err != nil || len(keys) == 0 {
		return err == nil, err
	}
	p := &plan{e: e, batch: e.kv.NewBatch()}
	defer p.batch.Close()
	for _, k := range keys {
		p.ids = append(p.ids, stripeOf(d.ID, k.hash()))
	}
	p.ids = e.lockStripes(p.ids)
	c, err := p.backfillLocked(t, d, keys)
	e.unlockStripes(p.ids)
	if err != nil {
		return false, err
	}
	p.wakeReapers()
	return false, e.finishWrite(c, p)
}

// backfillKeys gives the next keys behind the stored progress.
func (t *Table) backfillKeys(d *TableDesc) ([]Key, error) {
	lower, upper := tableSpan(spaceItems, d.ID)
	after, ok, err := t.e.get(t.e.kv, idKey(catBackfill, d.ID))
	if err != nil {
		return nil, err
	}
	if ok {
		lower = append(lower, after...)
		lower = append(lower, 0)
	}
	it := t.e.kv.NewIter(lower, upper)
	defer it.Close()
	var keys []Key
	size := 0
	for ok := it.First(); ok && len(keys) < backfillSlice && size < sliceBytes; ok = it.Next() {
		size += len(it.Value())
		k, err := d.keyFromSuffix(it.Key()[tablePrefixLen:])
		if err != nil {
			return nil, err
		}
		keys = append(keys, k)
	}
	return keys, it.Error()
}

// backfillLocked rewrites the items of keys under their locks and commits, with the progress in the same batch.
func (p *plan) backfillLocked(t *Table, d *TableDesc, keys []Key) (*commit, error) {
	for _, k := range keys {
		value, ok, err := p.e.get(p.e.kv, k.bytes())
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		h, item, err := splitStored(value)
		if err != nil {
			return nil, err
		}
		if h.generation == d.TTL.Generation {
			continue // written since the setting changed
		}
		w := planned{w: &Write{Table: t, Key: k}, desc: d, oldHeader: h, stored: bytes.Clone(item), removal: Never}
		if d.deadlineOf(h) != Never { // it had passed when its generation ended, and stays expired
			p.expire(&w)
			continue
		}
		// The enabling's instant judges, not this step's: the five-year rule must not depend on how long a backfill takes.
		w.newHeader = d.headerFor(item, d.TTL.Since)
		w.removal = w.newHeader.removal
		d.putItem(p.batch, k, w.stored, w.stored, h, w.newHeader)
		p.writes = append(p.writes, w)
	}
	p.batch.Set(idKey(catBackfill, d.ID), keys[len(keys)-1].suffix())
	return p.e.commitSection(p.batch, func(c *commit) error {
		if t.desc.Load() != d {
			return errStale
		}
		return p.fill(c)
	})
}
