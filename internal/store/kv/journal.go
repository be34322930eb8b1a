package kv

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// JournalName is the file that lists the files that must exist after a crash. It has the prefix of
// Pebble's markers but another form, so a mayfly that does not know it refuses the directory before
// it changes anything. guardFS hides it from our own Pebble.
const JournalName = "marker.journal"

// isJournal reports whether name is the journal's, complete or in the making.
func isJournal(name string) bool { return strings.HasPrefix(name, JournalName) }

// The journal holds two slots, written in turn, so that a crash during a write leaves the other
// one. See FORMAT.md.
const (
	journalSlot      = 4096
	journalManifests = 3  // claims kept
	journalLogs      = 64 // numbers kept
	journalHead      = "mayfly journal 1\n"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// claim states that the first bytes of a MANIFEST are on disk, with their checksum.
type claim struct {
	manifest uint64
	length   int64
	sum      uint32
}

// journalState is the content of a slot. It is written before Pebble learns that its sync has
// succeeded, and so before Pebble removes a file that is obsolete from then on.
type journalState struct {
	turn    uint64   // raised by every write: the slot with the greater turn counts
	current uint64   // the marker names this MANIFEST or a later one; 0: none yet
	claims  []claim  // ascending by MANIFEST
	logs    []uint64 // that exist unless the MANIFEST makes them obsolete, ascending
}

// claim returns the claim about a MANIFEST.
func (s *journalState) claim(manifest uint64) (claim, bool) {
	for _, c := range s.claims {
		if c.manifest == manifest {
			return c, true
		}
	}
	return claim{}, false
}

// encode returns the slot.
func (s *journalState) encode() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%sturn %d\ncurrent %d\n", journalHead, s.turn, s.current)
	for _, c := range s.claims {
		fmt.Fprintf(&b, "manifest %d %d %08x\n", c.manifest, c.length, c.sum)
	}
	for _, n := range s.logs {
		fmt.Fprintf(&b, "log %d\n", n)
	}
	slot := make([]byte, journalSlot)
	copy(slot, summed(&b))
	return slot
}

// summed ends a text with a line that holds its checksum, and returns it.
func summed(text *bytes.Buffer) []byte {
	fmt.Fprintf(text, "sum %08x\n", crc32.Checksum(text.Bytes(), castagnoli))
	return text.Bytes()
}

// readSummed checks the head and the checksum of a text, and calls read with each line between
// them. read reports whether it knows the line.
func readSummed(text []byte, head string, read func(line string) bool) error {
	if !bytes.HasSuffix(text, []byte("\n")) {
		return errors.New("does not end with its checksum")
	}
	cut := bytes.LastIndexByte(text[:len(text)-1], '\n') + 1
	if want := fmt.Sprintf("sum %08x\n", crc32.Checksum(text[:cut], castagnoli)); want != string(text[cut:]) {
		return errors.New("checksum mismatch")
	}
	lines, ok := bytes.CutPrefix(text[:cut], []byte(head))
	if !ok {
		return errors.New("unknown version")
	}
	for line := range bytes.Lines(lines) {
		if !read(string(line)) {
			return fmt.Errorf("unknown line %q", line)
		}
	}
	return nil
}

// decodeSlot decodes a slot.
func decodeSlot(slot []byte) (*journalState, error) {
	end := bytes.IndexByte(slot, 0)
	if end < 0 {
		end = len(slot)
	}
	s := &journalState{}
	return s, readSummed(slot[:end], journalHead, func(line string) bool {
		var c claim
		var n uint64
		switch {
		case scanLine(line, "turn %d\n", &s.turn), scanLine(line, "current %d\n", &s.current):
		case scanLine(line, "manifest %d %d %08x\n", &c.manifest, &c.length, &c.sum):
			s.claims = append(s.claims, c)
		case scanLine(line, "log %d\n", &n):
			s.logs = append(s.logs, n)
		default:
			return false
		}
		return true
	})
}

// scanLine reports whether a line matches a form, and stores its numbers.
func scanLine(line, form string, into ...any) bool {
	n, err := fmt.Sscanf(line, form, into...)
	return err == nil && n == len(into)
}

// readJournal returns the newest state of the journal in dir; nil if there is no journal.
func readJournal(fsys FS, dir string) (*journalState, error) {
	content, err := readSmall(fsys, fsys.PathJoin(dir, JournalName), 2*journalSlot)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var newest *journalState
	for i := 0; i < len(content); i += journalSlot {
		s, err := decodeSlot(content[i:min(i+journalSlot, len(content))])
		if err == nil && (newest == nil || s.turn > newest.turn) {
			newest = s
		}
	}
	if newest == nil {
		return nil, fmt.Errorf("%w: neither of its slots is valid", errDamagedFile)
	}
	return newest, nil
}

// errDamagedFile marks errors about the content of a file, as opposed to errors of reading it.
var errDamagedFile = errors.New("is damaged")

// readSmall returns the content of a file of at most limit bytes. A longer one is damaged.
func readSmall(fsys FS, path string, limit int64) ([]byte, error) {
	f, err := fsys.Open(path)
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(f, limit+1))
	err = errors.Join(err, f.Close())
	if err == nil && int64(len(content)) > limit {
		err = fmt.Errorf("%w: it has more than %d bytes", errDamagedFile, limit)
	}
	return content, err
}

// journal writes the journal of an open store.
type journal struct {
	file vfs.File
	mu   struct {
		sync.Mutex
		state journalState
		// made are the logs whose directory entries may not be on disk yet.
		made []uint64
	}
}

// startJournal writes an inspection's result durably into the journal, and returns it for further
// changes. Before that it creates the format marker of an empty directory, so that a directory with
// a journal is recognized as a store's. Without an inspection, in Memory mode, there is no journal.
func startJournal(fsys FS, dir string, found *inspection) (*journal, error) {
	if found == nil {
		return nil, nil
	}
	if found.Empty {
		if err := createFormat(fsys, dir); err != nil {
			return nil, err
		}
	}
	state := found.journalState()
	path := fsys.PathJoin(dir, JournalName)
	if _, err := fsys.Stat(path); errors.Is(err, fs.ErrNotExist) {
		// Both slots, so that the file has its full length from the start.
		content := slices.Concat(state.encode(), make([]byte, journalSlot))
		if err := writeWhole(fsys, dir, JournalName, content); err != nil {
			return nil, err
		}
	}
	f, err := fsys.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, err
	}
	j := &journal{file: f}
	j.mu.state = state
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.writeLocked(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return j, nil
}

// writeWhole creates a file that is complete or missing after a crash.
func writeWhole(fsys FS, dir, name string, content []byte) error {
	path := fsys.PathJoin(dir, name)
	f, err := fsys.Create(path+".new", vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		_ = fsys.Remove(path + ".new")
		return err
	}
	if err := fsys.Rename(path+".new", path); err != nil {
		return err
	}
	return syncDirectory(fsys, dir)
}

// writeLocked writes the state into the older slot and syncs it.
func (j *journal) writeLocked() error {
	s := &j.mu.state
	s.turn++
	s.claims = s.claims[max(0, len(s.claims)-journalManifests):]
	s.logs = s.logs[max(0, len(s.logs)-journalLogs):]
	if _, err := j.file.WriteAt(s.encode(), int64(s.turn%2)*journalSlot); err != nil {
		return err
	}
	return j.file.Sync()
}

// manifestSynced records that a MANIFEST is on disk up to a length.
func (j *journal) manifestSynced(c claim) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := &j.mu.state
	i := slices.IndexFunc(s.claims, func(old claim) bool { return old.manifest == c.manifest })
	switch {
	case i < 0:
		s.claims = append(s.claims, c)
	case s.claims[i] == c:
		return nil
	default:
		s.claims[i] = c
	}
	return j.writeLocked()
}

// manifestCurrent records that the marker on disk names a MANIFEST.
func (j *journal) manifestCurrent(manifest uint64) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.mu.state.current = manifest
	return j.writeLocked()
}

// logMade records a new log, whose directory entry may not be on disk.
func (j *journal) logMade(number uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.mu.made = append(j.mu.made, number)
}

// logsMade returns the logs whose directory entries the next sync of the directory makes durable.
// Call it before that sync: a log that is created during the sync may not be covered.
func (j *journal) logsMade() []uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.mu.made)
}

// directorySynced records that the entries of logs are on disk.
func (j *journal) directorySynced(made []uint64) error {
	if len(made) == 0 {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	fresh := slices.DeleteFunc(made, func(n uint64) bool { return !slices.Contains(j.mu.made, n) })
	if len(fresh) == 0 {
		return nil // another sync was first
	}
	j.mu.made = slices.DeleteFunc(j.mu.made, func(n uint64) bool { return slices.Contains(fresh, n) })
	j.mu.state.logs = append(j.mu.state.logs, fresh...)
	return j.writeLocked()
}

func (j *journal) close() error {
	if j == nil {
		return nil
	}
	return j.file.Close()
}
