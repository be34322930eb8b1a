package engine

import (
	"github.com/mayflydb/mayfly/internal/invariant"
	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// effects are what the end of one deadline entry changes.
type effects struct {
	keys   [][]byte  // to delete: the entry, the item and its index entries
	due    Instant   // the removal of the item; Never: only the entry goes
	record pending   // of the removal; without a stream: none
	feed   *pending  // the same for the table's feed; nil: none
	undo   undo      // of the removal; without a history: none
	shrink collected // of the item's collection; without local indexes: none
}

// effectsOf reads what the end of an entry changes.
func (s *slice) effectsOf(a *armed) (effects, error) {
	r := effects{keys: [][]byte{s.d.entryKey(a)}, due: Never}
	if !s.needsItem(a) {
		if !s.ahead {
			s.checkUnread(a)
		}
		r.keys, r.due = append(r.keys, a.key.bytes()), a.removal
		if c := s.t.collections; c != nil { // an item without entries
			r.shrink = collected{in: c, d: s.d, key: a.key, bytes: -int64(a.entry.size)}
		}
		err := s.recordKeysOnly(a, &r)
		return r, err
	}
	value, found, err := get(s.t.e.kv, a.key.bytes())
	if err != nil {
		return effects{}, err
	}
	if !found {
		s.checkOrphan(a)
		return r, nil
	}
	h, item, err := splitStored(value)
	if err != nil {
		return effects{}, err
	}
	if h.removal != a.removal && !invariant.Injected(invariant.SkipRecheck) {
		s.checkOrphan(a)
		return r, nil
	}
	if !s.ahead {
		a.checkEntry(h)
	}
	if s.d.deadlineOf(h) == Never && !invariant.Injected(invariant.SkipRecheck) {
		return r, nil // armed under an earlier generation; no longer a deadline
	}
	for i := range s.d.Indexes {
		if key, ok := s.d.appendIndexKey(nil, &s.d.Indexes[i], item, a.key); ok {
			r.keys = append(r.keys, key)
		}
	}
	r.keys, r.due = append(r.keys, a.key.bytes()), h.removal
	s.record(a, item, &r)
	r.undo = s.t.undoOf(s.d, a.key, h, item)
	if c := s.t.collections; c != nil {
		r.shrink = collected{in: c, d: s.d, key: a.key, bytes: -s.d.collectionBytes(a.key, item, h.size)}
	}
	return r, nil
}

// needsItem reports whether the removal must read the item: to judge its deadline, for the record's
// old image or the history, or to find its index entries.
func (s *slice) needsItem(a *armed) bool {
	if a.entry.generation != s.d.TTL.Generation && !invariant.Injected(invariant.IgnoreGeneration) || a.entry.indexed {
		return true
	}
	return s.d.recordsOld() || s.d.History.Days != 0
}

// recordsOld reports whether the records of a stream have the old image.
func (d *TableDesc) recordsOld() bool {
	return d.Stream.ViewType == "OLD_IMAGE" || d.Stream.ViewType == "NEW_AND_OLD_IMAGES" || d.Feed.Destination != ""
}

// recordKeysOnly sets the stream record of a removal that did not read the item.
func (s *slice) recordKeysOnly(a *armed, r *effects) error {
	if s.d.streams() == 0 {
		return nil
	}
	keys, err := keyItem(s.d.Key, a.key.suffix())
	if err != nil {
		return err
	}
	s.record(a, keys, r)
	return nil
}

// record sets the stream records of the removal of an item, or of its keys.
func (s *slice) record(a *armed, old dynamo.Item, r *effects) {
	r.record, r.feed = s.t.e.recordsFor(s.d, a.key, old, nil, true)
}

// checkOrphan checks that a deadline entry without a matching item has a reason. Every batch changes
// both together, so it is either read ahead, beside a write of the item, or its table was dropped;
// the commit section then refuses this slice.
func (s *slice) checkOrphan(a *armed) {
	invariant.CheckUnless(s.ahead || s.t.desc.Load() != s.d, unreadFaults, "%s: a deadline entry at %d without its item", s.d.Name, a.removal)
}
