package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/mayflydb/mayfly/internal/dynamo"
	"github.com/mayflydb/mayfly/internal/kv"
)

// Verify reads the whole store and checks that items, index entries, deadline entries and low-water marks agree. It reports every
// disagreement. It looks at one state, so others may be at work meanwhile.
func (e *Engine) Verify(ctx context.Context) error {
	if err := e.enter(); err != nil {
		return err
	}
	defer e.leave()
	return e.verifyTables(ctx, e.Tables())
}

// verifyTables is Verify for some tables.
func (e *Engine) verifyTables(ctx context.Context, tables []*Table) error {
	e.order.Lock()
	snap := e.kv.NewSnapshot()
	var states []tableState
	for _, t := range tables {
		if d, err := t.live(); err == nil {
			states = append(states, tableState{e: e, d: d, marks: t.marks, kv: snap})
		}
	}
	e.order.Unlock()
	defer snap.Close()
	var errs []error
	for _, t := range states {
		errs = append(errs, t.verify(ctx))
	}
	return errors.Join(errs...)
}

// tableState is a table as it was at one moment.
type tableState struct {
	e     *Engine
	d     *TableDesc
	marks marks
	kv    kv.Reader
}

// verify checks one table: what its items ask for must be there, and nothing else.
func (t tableState) verify(ctx context.Context) error {
	var errs []error
	d := t.d
	report := func(format string, args ...any) { errs = append(errs, fmt.Errorf(d.Name+": "+format, args...)) }
	wantDeadlines, wantEntries, mayMiss := map[string][]byte{}, map[string][]byte{}, map[string]bool{}
	built, err := t.builtUpTo()
	if err != nil {
		return err
	}
	err = t.eachIn(ctx, spaceItems, func(key, value []byte) error {
		h, item, err := splitStored(value)
		if err != nil {
			return err
		}
		if err := dynamo.CheckItem(item); err != nil {
			report("item %x: %v", key, err)
			return nil
		}
		k, err := d.KeyOf(item)
		if err != nil || !bytes.Equal(k.bytes(), key) {
			report("item %x is stored under another key: %v", key, err)
			return nil
		}
		indexed := false
		for i := range d.Indexes {
			ix := &d.Indexes[i]
			entry, ok := d.appendIndexKey(nil, ix, item, k)
			if !ok {
				continue
			}
			wantEntries[string(entry)] = d.indexValue(ix, item, h)
			if ix.Building && bytes.Compare(k.suffix(), built[ix.ID]) > 0 {
				mayMiss[string(entry)] = true // the backfill has yet to come here
			} else {
				indexed = d.deadlineOf(h) != Never
			}
		}
		if h.removal != Never {
			entry := deadlineEntry{generation: h.generation, size: h.size, indexed: indexed}
			wantDeadlines[string(appendDeadlineKey(nil, d.ID, h.removal, k.suffix()))] = entry.append(nil)
			// The entry of a deadline that an ended generation decided and that counts as none goes when it is due, or with the backfill.
			if d.deadlineOf(h) == Never {
				mayMiss[string(appendDeadlineKey(nil, d.ID, h.removal, k.suffix()))] = true
				return nil
			}
			if (position{h.removal, k.enc[tablePrefixLen:]}).compare(t.marks.low) < 0 || h.removal < t.marks.stored {
				report("deadline %d lies below the low-water mark %d", h.removal, t.marks.stored)
			}
		}
		return nil
	})
	errs = append(errs, err)
	match := func(space byte, what string, want map[string][]byte, fits func(got, want []byte) bool) {
		errs = append(errs, t.eachIn(ctx, space, func(key, value []byte) error {
			w, ok := want[string(key)]
			switch {
			case !ok:
				report("%s %x belongs to no item", what, key)
			case !fits(value, w):
				report("%s %x is %x, its item asks for %x", what, key, value, w)
			}
			delete(want, string(key))
			return nil
		}))
		for key := range want {
			if !mayMiss[key] {
				report("%s %x is missing", what, key)
			}
		}
	}
	match(spaceDeadlines, "deadline entry", wantDeadlines, armsAs)
	match(spaceIndexes, "index entry", wantEntries, bytes.Equal)
	return errors.Join(errs...)
}

// armsAs says whether a deadline entry is what its item asks for. It may say that the item has index entries when their index has been removed
// since: the reaper then reads an item in vain. The other way round the reaper would leave index entries behind.
func armsAs(got, want []byte) bool {
	g, err := decodeDeadlineEntry(got)
	w, wantErr := decodeDeadlineEntry(want)
	w.indexed = w.indexed || g.indexed
	return err == nil && wantErr == nil && g == w
}

// builtUpTo gives, for each index that is being built, the last item key that is done.
func (t tableState) builtUpTo() (map[uint16][]byte, error) {
	built := map[uint16][]byte{}
	for i := range t.d.Indexes {
		ix := &t.d.Indexes[i]
		if !ix.Building {
			continue
		}
		after, _, err := t.e.get(t.kv, buildKey(t.d.ID, ix.ID))
		if err != nil {
			return nil, err
		}
		built[ix.ID] = after
	}
	return built, nil
}

// eachIn calls fn for every key of the table in a keyspace.
func (t tableState) eachIn(ctx context.Context, space byte, fn func(key, value []byte) error) error {
	it := t.kv.NewIter(tableSpan(space, t.d.ID))
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := fn(it.Key(), it.Value()); err != nil {
			return err
		}
	}
	return it.Error()
}
