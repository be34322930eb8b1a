package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/kv"
)

const (
	// backfillSlice is how many items one step of a backfill does under their locks.
	backfillSlice = 256
	// backfillPause is how long a backfill waits for room on a full disk before it looks again: it grows data like any write.
	backfillPause = time.Second
)

// errBackfillDamaged ends a backfill that has done all items but those that cannot be read.
var errBackfillDamaged = errors.New("items in a damaged file are missing from it")

// ahead is where a backfill is that has skipped items in a damaged file. The progress on disk stays before the first of them.
type ahead struct {
	d    *TableDesc
	from []byte // the item key to go on from
	done bool   // all items that can be read are done
}

// wantBackfill tells Run that a table has something to backfill. It is in flight from here on, so an advance of the clock waits for it.
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

// backfillAll carries out what there is to do, a step of each backfill in turn, so that a small table does not wait for a large one. A table
// whose items cannot be read keeps its status and does not hold up the others.
func (e *Engine) backfillAll(ctx context.Context) error {
	failed := map[*Table]bool{}
	for more := true; more; {
		more = false
		for _, t := range e.Tables() {
			if failed[t] {
				continue
			}
			left, err := t.backfillRound(ctx)
			switch {
			case err == nil:
				more = more || left
			case errors.Is(err, ErrTableNotFound):
			case ctx.Err() != nil, e.ready() != nil:
				return err
			default:
				failed[t] = true
				if isDamage(err) {
					e.backfillRetry.later(e.life, e.wantBackfill)
				}
				e.logDamage(err, "a backfill failed; the next start or change of the table tries again", "table", t.Desc().Name)
			}
		}
	}
	return nil
}

// backfillRound does a step of each of the table's backfills, and ends those that have nothing left; more says whether to come again.
func (t *Table) backfillRound(ctx context.Context) (more bool, err error) {
	d, err := t.live()
	if err != nil {
		return false, err
	}
	todo := t.backfills(d)
	if len(todo) == 0 {
		return false, nil
	}
	if t.e.full() {
		clock.Pause(backfillPause, ctx.Done())
		return true, ctx.Err()
	}
	for _, b := range todo {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		done, err := b.step()
		if err == nil && done {
			err = b.finish(ctx)
		}
		if err != nil && !errors.Is(err, errStale) {
			return false, err
		}
	}
	return true, nil
}

// backfill is work on every item that a table holds, in key order: after a change of its TTL setting, or for a new index. It keeps where it is in
// the batches themselves, so after a crash it goes on from there.
type backfill struct {
	t        *Table
	d        *TableDesc // what it goes by; once there is another description, a step is stale
	progress []byte     // the catalogue key of the last item key that is done, from its hash on
	// item puts into a plan what one stored item needs. It is called under the item's lock.
	item func(p *plan, k Key, h header, stored dynamo.Item)
	// end changes the description when no item is left; errStale: it is about something else by now.
	end func(d *TableDesc) error
}

// backfills gives what a table's description wants done.
func (t *Table) backfills(d *TableDesc) (todo []*backfill) {
	if d.TTL.Backfill {
		todo = append(todo, t.ttlBackfill(d))
	}
	for i := range d.Indexes {
		if ix := &d.Indexes[i]; ix.Building {
			todo = append(todo, t.indexBackfill(d, ix))
		}
	}
	return todo
}

// finish makes the description say that the backfill has come to its end.
func (b *backfill) finish(ctx context.Context) error {
	_, err := b.t.e.Alter(ctx, b.d.Namespace, b.d.Name, func(d *TableDesc, _ Instant) error {
		if d.ID != b.d.ID {
			return errStale
		}
		return b.end(d)
	})
	return err
}

// step does the next slice of items; done says that there was none left.
func (b *backfill) step() (done bool, err error) {
	e := b.t.e
	keys, err := b.keys()
	if err != nil || len(keys) == 0 {
		if a := b.ahead(); err == nil && a != nil {
			a.done, err = true, fmt.Errorf("%w: %w", kv.ErrCorrupt, errBackfillDamaged)
		}
		return err == nil, err
	}
	p := &plan{e: e, batch: e.kv.NewBatch()}
	defer p.batch.Close()
	for _, k := range keys {
		p.ids = append(p.ids, stripeOf(b.d.ID, k.hash()))
	}
	p.ids = e.lockStripes(p.ids)
	c, err := b.stepLocked(p, keys)
	e.unlockStripes(p.ids)
	if err != nil {
		return false, err
	}
	p.wakeReapers()
	return false, e.finishWrite(c, p)
}

// keys gives the next keys behind the stored progress.
func (b *backfill) keys() ([]Key, error) {
	lower, upper := tableSpan(spaceItems, b.d.ID)
	// A description is seen before the batch is applied that sets its progress back: in the commit section the two fit.
	b.t.e.order.Lock()
	after, ok, err := b.t.e.get(b.t.e.kv, b.progress)
	b.t.e.order.Unlock()
	if err != nil {
		return nil, err
	}
	if ok {
		lower = append(lower, after...)
		lower = append(lower, 0)
	}
	if a := b.ahead(); a != nil && a.done {
		if ok, err := readable(b.t.e.kv, lower, upper); err != nil || !ok {
			return nil, err
		}
		delete(b.t.ahead, string(b.progress)) // what was skipped can be read again
	} else if a != nil {
		lower = a.from
	}
	var keys []Key
	size := 0
	err = eachReadable(b.t.e.kv, &gaps{}, lower, upper, func(key, value []byte) (more bool, err error) {
		size += len(value)
		k, err := b.d.keyFromSuffix(key[tablePrefixLen:])
		if err != nil {
			return false, err
		}
		keys = append(keys, k)
		return len(keys) < b.t.e.backfillItems && size < sliceBytes, nil
	}, func([]byte, error) { b.skip() })
	if a := b.ahead(); a != nil && len(keys) > 0 {
		a.from = append(keys[len(keys)-1].bytes(), 0)
	}
	return keys, err
}

// ahead returns where the backfill is that has skipped items; nil: it has skipped none.
func (b *backfill) ahead() *ahead {
	a := b.t.ahead[string(b.progress)]
	if a == nil || a.d != b.d {
		return nil
	}
	return a
}

// skip makes the backfill leave its progress on disk where it is.
func (b *backfill) skip() {
	if b.ahead() != nil {
		return
	}
	if b.t.ahead == nil {
		b.t.ahead = map[string]*ahead{}
	}
	b.t.ahead[string(b.progress)] = &ahead{d: b.d}
}

// stepLocked does the items of keys under their locks and commits, with the progress in the same batch.
func (b *backfill) stepLocked(p *plan, keys []Key) (*commit, error) {
	for _, k := range keys {
		value, ok, err := p.e.get(p.e.kv, k.bytes())
		if isDamage(err) {
			b.skip()
			b.ahead().from = append(keys[len(keys)-1].bytes(), 0)
			continue
		}
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
		b.item(p, k, h, item)
	}
	if b.ahead() == nil {
		p.batch.Set(b.progress, keys[len(keys)-1].suffix())
	}
	return p.e.commitSection(p.batch, func(c *commit) error {
		if b.t.desc.Load() != b.d {
			return errStale
		}
		return p.fill(c)
	})
}

// ttlBackfill moves every item that an earlier TTL generation judged to the present one. A further change of the setting starts it over.
func (t *Table) ttlBackfill(d *TableDesc) *backfill {
	return &backfill{
		t: t, d: d, progress: idKey(catBackfill, d.ID),
		item: func(p *plan, k Key, h header, stored dynamo.Item) { t.judgeAgain(p, d, k, h, stored) },
		end: func(now *TableDesc) error {
			if now.TTL.Generation != d.TTL.Generation {
				return errStale
			}
			// ENABLED or DISABLED: no item carries an earlier generation any more.
			now.TTL.Backfill, now.TTL.Ended, now.TTL.Backfilled = false, nil, now.TTL.Ended
			return nil
		},
	}
}

// judgeAgain decides an item's deadline under the table's present TTL setting.
func (t *Table) judgeAgain(p *plan, d *TableDesc, k Key, h header, stored dynamo.Item) {
	if h.generation == d.TTL.Generation {
		return // written since the setting changed
	}
	w := planned{w: &Write{Table: t, Key: k}, desc: d, oldHeader: h, stored: stored, removal: Never}
	if d.deadlineOf(h) <= p.e.Now() { // it had passed when its generation ended, and stays expired
		p.expire(&w)
		return
	}
	// The enabling's instant judges, not this step's: the five-year rule must not depend on how long a backfill takes.
	w.newHeader = d.headerFor(k, w.stored, d.TTL.Since)
	w.removal = w.newHeader.removal
	d.putItem(p.batch, k, w.stored, w.stored, h, w.newHeader, nil)
	p.writes = append(p.writes, w)
}
