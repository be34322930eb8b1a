package kv

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
)

// checkEssential reads the keys below Options.Essential in every table that may hold some. Without
// them the owner of the store would refuse it, but only after Pebble has rewritten the directory.
func (s *inspector) checkEssential(below []byte) error {
	checked := map[string]bool{}
	for _, t := range s.Tables {
		if checked[t.File] || bytes.Compare(t.Lower, below) >= 0 || s.faulty(t.File) {
			continue
		}
		checked[t.File] = true
		f, err := s.fs.Open(s.path(t.File))
		if err != nil {
			return err
		}
		err = readBelow(f, below)
		if pebble.IsCorruptionError(err) || errors.Is(err, ErrCorrupt) {
			d := Damage{File: t.File, Offset: -1, Fault: fmt.Sprintf("the keys up to %x, which the store needs, cannot be read: %v", below, err)}
			d.Lower, d.Upper = t.Lower, t.Upper
			s.Faults = append(s.Faults, d)
		} else if err != nil {
			return err
		}
	}
	return nil
}

// readBelow reads every key of a table file below a bound, and closes the file. Pebble verifies the
// checksums of the blocks, and may panic over a damaged index.
func readBelow(f sstable.ReadableFile, below []byte) (err error) {
	defer rescue(&err, ErrCorrupt)
	r, err := newTableReader(f)
	if err != nil {
		return errors.Join(err, f.Close())
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	it, err := r.NewIter(sstable.NoTransforms, nil, below, sstable.AssertNoBlobHandles)
	if err != nil {
		return err
	}
	for kv := it.First(); kv != nil; kv = it.Next() {
		if _, _, err := kv.Value(nil); err != nil {
			return errors.Join(err, it.Close())
		}
	}
	return errors.Join(it.Error(), it.Close())
}
