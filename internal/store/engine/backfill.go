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
	// backfillSlice is the number of items that one step of a backfill handles under their locks.
	backfillSlice = 256
	// backfillPause is the pause between a backfill's attempts on a full disk, since a backfill grows
	// data like any write. After another error that may pass, it is the first pause.
	backfillPause = time.Second
)

// errBackfillDamaged ends a backfill that has handled every readable item.
var errBackfillDamaged = errors.New("items in a damaged file are missing from it")

// ahead is the position of a backfill that has skipped items in a damaged file. The progress on
// disk stays before the first of them.
type ahead struct {
	d    *TableDesc
	from []byte // the next item key
	done bool   // every readable item is done
}

// requestBackfill asks Run to backfill a table. The request counts as work in flight, so an advance
// of the clock waits for it.
func (e *Engine) requestBackfill() {
	done := e.activity.Begin()
	select {
	case e.backfills <- done:
	default: // one token is enough: a run visits every table
		done()
	}
}

// runBackfills runs every requested backfill until ctx is done.
func (e *Engine) runBackfills(ctx context.Context) error {
	defer e.closeSources()
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

// backfillAll runs one step of each backfill in turn, so that a small table does not wait for a
// large one. A table with unreadable items keeps its status and does not delay the others. Failed
// backfills are tried again after a pause.
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
				if left {
					e.failedRetry.succeeded()
				}
				more = more || left
			case errors.Is(err, ErrTableNotFound):
			case ctx.Err() != nil, e.ready() != nil:
				return err
			default:
				failed[t] = true
				if isDamage(err) {
					e.backfillRetry.later(e.life, e.requestBackfill)
				} else {
					e.failedRetry.later(e.life, e.requestBackfill)
				}
				e.logDamage(err, "a backfill failed; it is tried again later", "table", t.Desc().Name)
			}
		}
	}
	return nil
}

// backfillRound runs a step of each of the table's backfills and ends those without items left. It
// reports whether another round is needed.
func (t *Table) backfillRound(ctx context.Context) (more bool, err error) {
	d, err := t.live()
	if err != nil {
		return false, err
	}
	todo := t.backfills(d)
	if len(todo) == 0 && !d.Restore.Running || d.Restore.Import != "" {
		return false, nil
	}
	if t.e.full() {
		clock.Pause(backfillPause, ctx.Done())
		return true, ctx.Err()
	}
	if d.Restore.Running {
		return t.restoreRound(ctx, d)
	}
	for _, b := range todo {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		done, err := b.step()
		if err == nil && done {
			err = b.complete(ctx)
		}
		if err != nil && !errors.Is(err, errStale) {
			return false, err
		}
	}
	return true, nil
}

// backfill visits every item of a table in key order, after a change of its TTL setting or for a
// new index. Each batch carries the progress, so a backfill continues after a crash.
type backfill struct {
	t        *Table
	d        *TableDesc // the description that started it; under another one a step is stale
	progress []byte     // the catalogue key that holds the last finished item key, from its hash on
	// item adds the changes for one stored item to a plan. Its caller holds the item's lock.
	item func(p *plan, k Key, h header, stored dynamo.Item)
	// setDone changes the description when no item is left. It returns errStale if the description
	// has moved on.
	setDone func(d *TableDesc) error
}

// backfills returns the backfills that a description asks for.
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

// complete records the end of the backfill in the description.
func (b *backfill) complete(ctx context.Context) error {
	_, err := b.t.e.Alter(ctx, b.d.Namespace, b.d.Name, func(d *TableDesc, _ Instant) error {
		if d.ID != b.d.ID {
			return errStale
		}
		return b.setDone(d)
	})
	return err
}

// step handles the next slice of items. It reports whether no item was left.
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
	p.wakeReapers(c.now)
	return false, e.finishWrite(c, p)
}

// keys returns the next keys behind the stored progress.
func (b *backfill) keys() ([]Key, error) {
	lower, upper := tableSpan(spaceItems, b.d.ID)
	// A new description is visible before the batch that resets its progress. In the commit section
	// the two match.
	b.t.e.order.Lock()
	after, ok, err := get(b.t.e.kv, b.progress)
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
		delete(b.t.ahead, string(b.progress)) // skipped items may be readable again
	} else if a != nil {
		lower = a.from
	}
	var keys []Key
	size := 0
	err = eachReadable(b.t.e.kv, lower, upper, func(key, value []byte) (more bool, err error) {
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

// ahead returns the backfill's position if it has skipped items, and otherwise nil.
func (b *backfill) ahead() *ahead {
	a := b.t.ahead[string(b.progress)]
	if a == nil || a.d != b.d {
		return nil
	}
	return a
}

// skip leaves an item in a damaged file. The backfill continues behind it, but from here on its
// progress on disk stays, so that a restart visits the item again.
func (b *backfill) skip() {
	if b.ahead() != nil {
		return
	}
	if b.t.ahead == nil {
		b.t.ahead = map[string]*ahead{}
	}
	b.t.ahead[string(b.progress)] = &ahead{d: b.d}
}

// stepLocked handles the items of keys under their locks and commits them together with the
// progress.
func (b *backfill) stepLocked(p *plan, keys []Key) (*commit, error) {
	for _, k := range keys {
		value, ok, err := get(p.e.kv, k.bytes())
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
	c, err := p.e.commitSection(p.batch, func(c *commit) error {
		if b.t.desc.Load() != b.d {
			return errStale
		}
		return p.fill(c)
	})
	if err == nil {
		countCollected(p.collected)
	}
	return c, err
}

// ttlBackfill returns the backfill that moves every item of an earlier TTL generation to the
// present one. A further change of the setting restarts it.
func (t *Table) ttlBackfill(d *TableDesc) *backfill {
	return &backfill{
		t: t, d: d, progress: idKey(catBackfill, d.ID),
		item: func(p *plan, k Key, h header, stored dynamo.Item) { t.judgeAgain(p, d, k, h, stored) },
		setDone: func(now *TableDesc) error {
			if now.TTL.Generation != d.TTL.Generation {
				return errStale
			}
			// ENABLED or DISABLED: no item is left of an earlier generation
			now.TTL.Backfill, now.TTL.Ended, now.TTL.Backfilled = false, nil, now.TTL.Ended
			return nil
		},
	}
}

// judgeAgain computes an item's deadline under the table's present TTL setting.
func (t *Table) judgeAgain(p *plan, d *TableDesc, k Key, h header, stored dynamo.Item) {
	if h.generation == d.TTL.Generation {
		return // written since the setting changed
	}
	w := planned{w: &Write{Table: t, Key: k}, desc: d, oldHeader: h, stored: stored, removal: Never}
	p.remember(&w) // the deadline counts for a restore, so the header does too
	// the deadline passed in its own generation, so the item stays expired
	if d.deadlineOf(h) <= p.e.Now() {
		p.expire(&w)
		return
	}
	// Judge at the instant of the enabling: the five-year rule must not depend on the duration of a
	// backfill.
	w.newHeader = d.headerFor(k, w.stored, d.TTL.Since)
	w.removal = w.newHeader.removal
	d.putItem(p.batch, k, w.stored, w.stored, h, w.newHeader, nil)
	p.writes = append(p.writes, w)
}
