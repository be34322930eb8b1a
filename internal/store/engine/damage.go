package engine

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/store/kv"
)

// A damaged table file fails only the reads that need it. The background work (the reaper, the
// trimmer, backfills, counts, the start) skips unreadable keys, continues behind them, and tries
// them again later.

// isDamage reports whether an error is about damaged bytes on disk.
func isDamage(err error) bool { return errors.Is(err, kv.ErrCorrupt) || errors.Is(err, ErrCorrupt) }

// repeated reports whether a log may omit an error, because it had one about the same file within
// the last minute.
func repeated(err error) bool {
	var r interface{ Repeated() bool }
	return errors.As(err, &r) && r.Repeated()
}

// DamagedFile is a table file with unreadable blocks.
type DamagedFile struct {
	File   string // base name
	Fault  string
	Ranges []DamagedRange // the keys that the file may hold
}

// DamagedRange is a part of a table that a damaged file may hold.
type DamagedRange struct {
	Table string // its name; empty: the catalogue, or data of a dropped table
	// "all items", "items from {…} to {…}", "entries of index byName", "deadlines from … to …",
	// "stream records"
	Range string
}

// String returns the file as one line.
func (f DamagedFile) String() string {
	var parts []string
	for i, r := range f.Ranges {
		switch {
		case i > 0 && r.Table == f.Ranges[i-1].Table, r.Table == "":
			parts = append(parts, r.Range)
		default:
			parts = append(parts, "table "+r.Table+": "+r.Range)
		}
	}
	return fmt.Sprintf("%s may hold %s", f.File, strings.Join(parts, ", "))
}

// maxRanges is how many ranges of one file are listed.
const maxRanges = 50

// Damages returns the damaged table files in the order of their discovery.
func (e *Engine) Damages() (files []DamagedFile) {
	if e.enter() != nil {
		return nil
	}
	defer e.leave()
	return e.damages()
}

func (e *Engine) damages() (files []DamagedFile) {
	for _, d := range e.kv.Damages() {
		files = append(files, DamagedFile{File: d.File, Fault: d.Fault, Ranges: e.ranges(d.Lower, d.Upper)})
	}
	return files
}

// ranges returns the names of the ranges between two keys, both inclusive. A nil bound is unknown
// and selects everything.
func (e *Engine) ranges(lower, upper []byte) (out []DamagedRange) {
	// show appends the range of one kind in [from, to); shown renders a key in it.
	show := func(table, kind string, from, to []byte, shown func(key []byte) string) {
		lo, hi, ok := overlap(lower, upper, from, to)
		switch {
		case !ok:
			return
		case len(out) == maxRanges:
			out = append(out, DamagedRange{Range: "and more"})
			return
		case len(out) > maxRanges:
			return
		}
		r := "all " + kind
		switch {
		case lo != nil && hi != nil:
			r = fmt.Sprintf("%s from %s to %s", kind, shown(lo), shown(hi))
		case lo != nil:
			r = fmt.Sprintf("%s from %s on", kind, shown(lo))
		case hi != nil:
			r = fmt.Sprintf("%s up to %s", kind, shown(hi))
		}
		out = append(out, DamagedRange{Table: table, Range: r})
	}
	hex := func(key []byte) string { return fmt.Sprintf("%x", key) }
	show("", "of the catalogue", []byte{spaceCatalogue}, []byte{spaceItems}, hex)
	tables := e.Tables()
	slices.SortFunc(tables, func(a, b *Table) int { return int(int64(a.id) - int64(b.id)) })
	for _, t := range tables {
		d := t.Desc()
		from, to := tableSpan(spaceItems, d.ID)
		show(d.Name, "items", from, to, func(key []byte) string { return d.shown(key[tablePrefixLen:]) })
		for i := range d.Indexes {
			from, to := indexSpan(d.ID, d.Indexes[i].ID)
			show(d.Name, "entries of index "+d.Indexes[i].Name, from, to, hex)
		}
		from, to = tableSpan(spaceDeadlines, d.ID)
		show(d.Name, "deadlines", from, to, showInstant)
		if d.Stream.ID != 0 {
			from, to = streamSpan(d.Stream.ID)
			show(d.Name, "stream records", from, to, showRecord)
		}
		if d.Feed.ID != 0 {
			from, to = streamSpan(d.Feed.ID)
			show(d.Name, "records for a Kinesis stream", from, to, showRecord)
		}
	}
	return out
}

func showInstant(key []byte) string {
	if len(key) < tablePrefixLen+instantLen {
		return fmt.Sprintf("%x", key)
	}
	at := readInstant(key[tablePrefixLen:])
	if at == Never {
		return "never"
	}
	return at.Time().UTC().Format("2006-01-02T15:04:05.000Z")
}

func showRecord(key []byte) string {
	if len(key) != recordKeyLen {
		return fmt.Sprintf("%x", key)
	}
	return fmt.Sprintf("shard %d, record %d", binary.BigEndian.Uint32(key[5:]), seqOfKey(key))
}

// watchDamage logs each damaged file once, when it is found.
func (e *Engine) watchDamage(ctx context.Context) error {
	known := map[string]bool{}
	for {
		for _, f := range e.damages() {
			if !known[f.File] {
				known[f.File] = true
				e.log.Error("a table file is damaged: what needs it fails, everything else goes on; run mayfly check and mayfly salvage",
					"file", f.File, "fault", f.Fault, "holds", f.String())
			}
		}
		select {
		case <-e.kv.Damaged():
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// logDamage logs a failure caused by a damaged file, at most once a minute for each file.
func (e *Engine) logDamage(err error, message string, args ...any) {
	if !repeated(err) {
		e.log.Error(message, append(args, "error", err)...)
	}
}

// probeLen is how many bytes behind a table's prefix a probe of readableFrom varies: an instant and
// a hash.
const probeLen = instantLen + hashLen

// readableFrom returns a key in (from, upper] from which the store is readable again, given that a
// read at from needs a damaged block. It returns upper if there is no earlier key. from and upper
// share the first tablePrefixLen bytes, or upper is the end of this prefix.
//
// Pebble names the damaged file but not the keys of the block. So readableFrom probes single keys
// at doubling distances and then bisects. If several blocks are damaged it may skip readable keys
// between them.
func readableFrom(r kv.Reader, from, upper []byte) ([]byte, error) {
	var head [probeLen]byte
	copy(head[:], from[tablePrefixLen:])
	start := new(big.Int).SetBytes(head[:])
	key := func(distance *big.Int) []byte {
		at := new(big.Int).Add(start, distance)
		if at.BitLen() > 8*probeLen {
			return upper
		}
		k := append(slices.Clone(from[:tablePrefixLen]), at.FillBytes(make([]byte, probeLen))...)
		if bytes.Compare(k, upper) > 0 {
			return upper
		}
		return k
	}
	bad, good := new(big.Int), big.NewInt(1)
	for {
		k := key(good)
		ok, err := readable(r, k, upper)
		if err != nil {
			return nil, err
		}
		if ok {
			break
		}
		bad, good = good, new(big.Int).Lsh(good, 1)
	}
	for one := big.NewInt(1); ; {
		gap := new(big.Int).Sub(good, bad)
		if gap.Cmp(one) <= 0 {
			return key(good), nil
		}
		middle := new(big.Int).Add(bad, gap.Rsh(gap, 1))
		ok, err := readable(r, key(middle), upper)
		switch {
		case err != nil:
			return nil, err
		case ok:
			good = middle
		default:
			bad = middle
		}
	}
}

// readable reports whether the first key in [from, upper) can be read, or there is none.
func readable(r kv.Reader, from, upper []byte) (bool, error) {
	if bytes.Compare(from, upper) >= 0 {
		return true, nil
	}
	it := r.NewIter(from, upper)
	it.First()
	err := it.Close()
	if isDamage(err) {
		return false, nil
	}
	return err == nil, err
}

// eachReadable calls fn for each readable key in [lower, upper) until fn returns false, and skipped
// for each unreadable range, with its first key. It returns an error of fn, or one that is not
// about damage. Every call searches the end of an unreadable range again: the store keeps the bad
// blocks in mind, so that takes milliseconds.
func eachReadable(r kv.Reader, lower, upper []byte, fn func(key, value []byte) (more bool, err error), skipped func(from []byte, err error)) error {
	for bytes.Compare(lower, upper) < 0 {
		more, failed, err := eachUntilDamage(r, &lower, upper, fn)
		if err != nil || !more || failed == nil {
			return err
		}
		to, err := readableFrom(r, lower, upper)
		if err != nil {
			return err
		}
		skipped(lower, failed)
		lower = to
	}
	return nil
}

// eachUntilDamage calls fn for each key from lower on, up to the first unreadable one, and moves
// lower behind the last key read. failed is the error of the unreadable key; nil: there is none.
func eachUntilDamage(r kv.Reader, lower *[]byte, upper []byte, fn func(key, value []byte) (bool, error)) (more bool, failed, err error) {
	it := r.NewIter(*lower, upper)
	defer it.Close()
	var last []byte
	for ok := it.First(); ok; ok = it.Next() {
		value := it.Value()
		if len(value) == 0 && it.Error() != nil {
			break
		}
		if more, err := fn(it.Key(), value); err != nil || !more {
			return false, nil, err
		}
		last = append(append(last[:0], it.Key()...), 0)
	}
	if last != nil {
		*lower = last
	}
	if err := it.Error(); !isDamage(err) {
		return true, nil, err
	}
	return true, it.Error(), nil
}

const (
	// real time before skipped keys are tried again; doubles with each failure in a row
	retryFirst = time.Minute
	retryMost  = time.Hour
)

// retry decides when background work returns to the keys that it skipped: after a pause of real
// time that doubles with each failure.
type retry struct {
	reached  atomic.Bool   // it is time
	pending  atomic.Bool   // a timer is set
	first    time.Duration // the shortest pause; 0: retryFirst
	failures int           // in a row; touched by one goroutine
}

// due reports whether it is time to try again.
func (r *retry) due() bool { return r.reached.Swap(false) }

// later calls wake after a pause, and due is then true once. It does nothing while a call is
// pending.
func (r *retry) later(life context.Context, wake func()) {
	if r.pending.Swap(true) {
		return
	}
	wait := min(cmp.Or(r.first, retryFirst)<<min(r.failures, 10), retryMost)
	r.failures++
	timer := clock.AfterFunc(wait, func() {
		r.pending.Store(false)
		r.reached.Store(true)
		wake()
	})
	context.AfterFunc(life, func() { timer.Stop() })
}

// succeeded resets the pause to its shortest.
func (r *retry) succeeded() { r.failures = 0 }
