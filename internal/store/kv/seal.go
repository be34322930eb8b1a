package kv

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// sealName is the file that a clean stop leaves: it names every file of the store. The next start
// checks them and removes it before anything changes. See FORMAT.md.
const sealName = "SEAL"

const (
	sealHead  = "mayfly seal 1\n"
	sealLimit = 64 << 20 // bytes; a file takes some 40
)

// sealedFile is a file in the state of a clean stop.
type sealedFile struct {
	name   string
	size   int64
	sum    uint32 // CRC-32C of all of it
	summed bool   // the sum is known
}

// sealedLog is a live log in the state of a clean stop: the end of its last record, and the last
// commit in it.
type sealedLog struct {
	number  uint64
	end     int64
	lastSeq uint64
}

// seal is the content of the seal.
type seal struct {
	lastSeq uint64 // the last commit of the store
	logs    []sealedLog
	files   []sealedFile
}

func (s *seal) encode() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%scommit %d\n", sealHead, s.lastSeq)
	for _, l := range s.logs {
		fmt.Fprintf(&b, "log %d %d %d\n", l.number, l.end, l.lastSeq)
	}
	for _, f := range s.files {
		if f.summed {
			fmt.Fprintf(&b, "file %s %d %08x\n", f.name, f.size, f.sum)
		} else {
			fmt.Fprintf(&b, "file %s %d -\n", f.name, f.size)
		}
	}
	return summed(&b)
}

func decodeSeal(content []byte) (*seal, error) {
	s := &seal{}
	return s, readSummed(content, sealHead, func(line string) bool {
		var l sealedLog
		var f sealedFile
		switch {
		case scanLine(line, "commit %d\n", &s.lastSeq):
		case scanLine(line, "log %d %d %d\n", &l.number, &l.end, &l.lastSeq):
			s.logs = append(s.logs, l)
		case scanLine(line, "file %s %d %08x\n", &f.name, &f.size, &f.sum):
			f.summed = true
			s.files = append(s.files, f)
		case scanLine(line, "file %s %d -\n", &f.name, &f.size):
			s.files = append(s.files, f)
		default:
			return false
		}
		return true
	})
}

// readSeal returns the seal of dir; nil if there is none.
func readSeal(fsys FS, dir string) (*seal, error) {
	content, err := readSmall(fsys, fsys.PathJoin(dir, sealName), sealLimit)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	s, err := decodeSeal(content)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errDamagedFile, err)
	}
	return s, nil
}

// isSealed reports whether a file belongs to the store, so that a seal names it.
func isSealed(name string) bool { return isStoreFile(name) && !strings.HasSuffix(name, ".new") }

// writeSeal seals a directory whose store is closed. It reads all files but the tables; sums holds
// the known checksums of those.
func writeSeal(fsys FS, dir string, sums *tableSums) error {
	found, err := inspect(fsys, dir)
	if err == nil {
		err = found.Err()
	}
	if err != nil {
		return err
	}
	// Pebble's last removals must be durable before the seal.
	if err := syncDirectory(fsys, dir); err != nil {
		return err
	}
	names, err := fsys.List(dir)
	if err != nil {
		return err
	}
	slices.Sort(names)
	s := seal{lastSeq: found.lastSeq}
	for _, l := range found.Logs {
		s.logs = append(s.logs, sealedLog{l.Number, l.End, l.LastSeq})
		s.lastSeq = max(s.lastSeq, l.LastSeq)
	}
	i := &inspector{inspection: found, fs: fsys}
	for _, name := range names {
		if !isSealed(name) {
			continue
		}
		f := sealedFile{name: name}
		if f.size, err = i.size(name); err != nil {
			return err
		}
		if sum, ok := sums.sum(name); ok {
			f.sum, f.summed = sum.sum, sum.length == f.size
		} else if isSmall(name) {
			f.summed = true
			if f.sum, err = i.sum(name, f.size); err != nil {
				return err
			}
		}
		s.files = append(s.files, f)
	}
	return writeWhole(fsys, dir, sealName, s.encode())
}

// isSmall reports whether a file is read whole when it is sealed and when the seal is checked.
// Tables are too large for that, and the records of a log have checksums of their own.
func isSmall(name string) bool { return !isTable(name) && !strings.HasSuffix(name, ".log") }

// checkSeal compares the directory with its seal, except for files already found at fault.
func (s *inspector) checkSeal(names []string) error {
	sealed, err := readSeal(s.fs, s.Dir)
	if errors.Is(err, errDamagedFile) {
		s.fault(sealName, -1, "%v", err)
		return nil
	}
	if err != nil || sealed == nil {
		return err
	}
	s.Sealed, s.sealedFiles = true, sealed.files
	known := map[string]bool{}
	for _, f := range sealed.files {
		known[f.name] = true
		if s.faulty(f.name) {
			continue
		}
		if err := s.checkSealed(f); err != nil {
			return err
		}
	}
	for _, name := range names {
		if isSealed(name) && !known[name] && !s.faulty(name) {
			s.fault(name, -1, "was not there at the last clean stop")
		}
	}
	for _, before := range sealed.logs {
		for _, log := range s.Logs {
			changed := log.End != before.end || log.LastSeq != before.lastSeq || !log.Closed
			if log.Number == before.number && changed && !s.faulty(log.File) {
				s.fault(log.File, log.End, "its records end with commit %d; at the last clean stop they ended at byte %d with commit %d and an end mark",
					log.LastSeq, before.end, before.lastSeq)
			}
		}
	}
	return nil
}

func (s *inspector) checkSealed(f sealedFile) error {
	size, err := s.size(f.name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		s.fault(f.name, -1, "is missing; it was there at the last clean stop")
		return nil
	case err != nil:
		return err
	case size != f.size:
		s.fault(f.name, -1, "has %d bytes; at the last clean stop it had %d", size, f.size)
		return nil
	}
	if !f.summed || !isSmall(f.name) {
		return nil
	}
	sum, err := s.sum(f.name, size)
	if err == nil && sum != f.sum {
		s.fault(f.name, -1, "has changed since the last clean stop")
	}
	return err
}

// tableSum is the checksum of the bytes that were written to a table.
type tableSum struct {
	length int64
	sum    uint32
}

// tableSums holds the checksums of the tables written since the store was opened, or named by the
// previous seal.
type tableSums struct {
	byName sync.Map // base name → tableSum
}

func newTableSums(sealed []sealedFile) *tableSums {
	t := &tableSums{}
	for _, f := range sealed {
		if f.summed && isTable(f.name) {
			t.byName.Store(f.name, tableSum{f.size, f.sum})
		}
	}
	return t
}

// sum returns a table's checksum, if it is known. A nil tableSums knows none.
func (t *tableSums) sum(name string) (sum tableSum, known bool) {
	if t == nil {
		return sum, false
	}
	v, known := t.byName.Load(name)
	if known {
		sum = v.(tableSum)
	}
	return sum, known
}

// summedFile is a table open for writing. Pebble writes it from its beginning to its end.
type summedFile struct {
	vfs.File
	name string
	sum  tableSum
	sums *tableSums
}

func (f *summedFile) Write(p []byte) (int, error) {
	sum := crc32.Update(f.sum.sum, castagnoli, p) // before the write, which may overwrite p
	n, err := f.File.Write(p)
	f.sum.length += int64(n)
	f.sum.sum = sum // a write that ends early fails, and Pebble drops the table
	return n, err
}

func (f *summedFile) Close() error {
	f.sums.byName.Store(f.name, f.sum)
	return f.File.Close()
}
