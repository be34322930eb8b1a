package kv

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/batchrepr"
	"github.com/cockroachdb/pebble/v2/record"
)

// inspection is the state of a directory according to its files, without the content of the tables.
type inspection struct {
	Dir      string
	Empty    bool            // no database, or one whose creation was cut off before it held data
	Sealed   bool            // a clean stop left its seal
	Legacy   bool            // it has no journal: a mayfly before format 3 wrote it
	Manifest string          // base name of the current MANIFEST; "" if unknown
	Tables   []manifestTable // live, by level and number
	Logs     []liveLog       // live, ascending
	Faults   []Damage
	// TornManifest is the offset of a record of the MANIFEST that a crash cut off before it
	// counted; -1 if there is none.
	TornManifest int64
	// Newer is the format version of a directory that a newer program wrote; 0 if this program
	// knows it. The rest of such a directory is not inspected.
	Newer uint64

	minLog, nextFile, lastSeq uint64
	manifestClaim             claim
	turn                      uint64 // of the journal
	sealedFiles               []sealedFile
}

// liveLog is a live log file: the MANIFEST has not made it obsolete.
type liveLog struct {
	Number            uint64
	File              string
	Size              int64
	End               int64  // offset behind its last valid record
	Records           int    // that hold changes
	FirstSeq, LastSeq uint64 // sequence numbers of the first and the last change; 0 without records
	Closed            bool   // it ends with the mark of a log that was closed
	// Beyond counts valid pieces of records behind End. A power cut leaves some if the disk wrote
	// later blocks first; so does damage to one of the last commits.
	Beyond int
}

// Err returns the faults as a *DamageError; nil if there are none.
func (i *inspection) Err() error {
	if len(i.Faults) == 0 {
		return nil
	}
	return &DamageError{Dir: i.Dir, Faults: i.Faults}
}

// journalState returns the state with which the journal of an open store begins.
func (i *inspection) journalState() journalState {
	s := journalState{turn: i.turn}
	if !i.Empty {
		s.current = i.manifestClaim.manifest
		s.claims = []claim{i.manifestClaim}
	}
	for _, log := range i.Logs {
		s.logs = append(s.logs, log.Number)
	}
	return s
}

// fault adds a fault. A negative offset means unknown.
func (i *inspection) fault(file string, offset int64, format string, args ...any) {
	i.Faults = append(i.Faults, Damage{File: file, Offset: offset, Fault: fmt.Sprintf(format, args...)})
}

func tableName(number uint64) string    { return fmt.Sprintf("%06d.sst", number) }
func logName(number uint64) string      { return fmt.Sprintf("%06d.log", number) }
func manifestName(number uint64) string { return fmt.Sprintf("MANIFEST-%06d", number) }

// listing holds the directory's files by kind, each ascending.
type listing struct {
	manifests, options, tables, logs []uint64
	manifestMarkers, formatMarkers   []marker
	badMarkers                       []string
}

// marker is a file whose name identifies the current MANIFEST or format. The one with the greatest
// turn counts.
type marker struct {
	file  string
	turn  uint64
	value string
}

// listFiles sorts the names of a directory's files into kinds. It ignores files that Pebble would
// ignore.
func listFiles(names []string) listing {
	var l listing
	number := func(name, prefix, suffix string, into *[]uint64) bool {
		digits, ok := strings.CutPrefix(name, prefix)
		if !ok {
			return false
		}
		if digits, ok = strings.CutSuffix(digits, suffix); !ok {
			return false
		}
		n, err := strconv.ParseUint(digits, 10, 64)
		if err == nil {
			*into = append(*into, n)
		}
		return err == nil
	}
	for _, name := range names {
		switch {
		case isJournal(name):
		case isMarker(name):
			l.addMarker(name)
		default:
			_ = number(name, "MANIFEST-", "", &l.manifests) || number(name, "OPTIONS-", "", &l.options) ||
				number(name, "", ".sst", &l.tables) || number(name, "", ".log", &l.logs)
		}
	}
	for _, numbers := range [][]uint64{l.manifests, l.options, l.tables, l.logs} {
		slices.Sort(numbers)
	}
	for _, markers := range [][]marker{l.manifestMarkers, l.formatMarkers} {
		sort.Slice(markers, func(i, j int) bool { return markers[i].turn < markers[j].turn })
	}
	return l
}

func (l *listing) addMarker(name string) {
	parts := strings.SplitN(name, ".", 4)
	if len(parts) < 4 {
		l.badMarkers = append(l.badMarkers, name)
		return
	}
	turn, err := strconv.ParseUint(parts[2], 10, 64)
	switch m := (marker{name, turn, parts[3]}); {
	case err != nil:
		l.badMarkers = append(l.badMarkers, name)
	case parts[1] == "manifest":
		l.manifestMarkers = append(l.manifestMarkers, m)
	case parts[1] == "format-version":
		l.formatMarkers = append(l.formatMarkers, m)
	}
}

// inspect reads the directory's MANIFEST, markers, options, journal and live logs, checks that they
// agree with each other and with the existing files, and changes nothing. Damage is in
// inspection.Faults; the error reports only a failure to inspect.
func inspect(fsys FS, dir string) (*inspection, error) {
	i := &inspection{Dir: dir, TornManifest: -1}
	names, err := fsys.List(dir)
	if err != nil {
		return nil, err
	}
	if slices.Contains(names, restoringName) {
		i.fault(restoringName, -1, "says that a backup is being restored into this directory, or that the restore was cut off; repeat it")
		return i, nil
	}
	s := &inspector{inspection: i, fs: fsys, listing: listFiles(names)}
	err = s.inspect(slices.Contains(names, JournalName))
	if err == nil && i.Newer == 0 {
		err = s.checkSeal(names)
	}
	if err != nil {
		return nil, fmt.Errorf("inspect %q: %w", dir, err)
	}
	return i, nil
}

// restoringName is a file that package backup keeps in a directory while it restores a backup there.
const restoringName = "RESTORING"

// inspector is an inspection under way.
type inspector struct {
	*inspection
	fs FS
	listing
	journal *journalState // nil if there is none
	version *version
}

func (s *inspector) path(name string) string { return s.fs.PathJoin(s.Dir, name) }

func (s *inspector) inspect(hasJournal bool) (err error) {
	for _, name := range s.badMarkers {
		s.fault(name, -1, "is no marker's name")
	}
	if s.checkFormat() {
		return nil
	}
	s.Legacy = !hasJournal
	if s.journal, err = readJournal(s.fs, s.Dir); errors.Is(err, errDamagedFile) {
		s.fault(JournalName, -1, "%v", err)
	} else if err != nil {
		return err
	}
	if s.journal != nil {
		s.turn = s.journal.turn
	}
	manifest, ok := s.currentManifest()
	if !ok {
		return nil
	}
	s.Manifest = manifestName(manifest)
	s.version = newVersion()
	if err := s.readManifest(manifest); err != nil {
		return err
	}
	s.minLog, s.nextFile, s.lastSeq = s.version.minLog, s.version.nextFile, s.version.lastSeq
	s.Tables = s.version.sorted()
	if len(s.Faults) > 0 {
		return nil // further faults would follow from these
	}
	if err := s.checkTables(); err != nil {
		return err
	}
	if err := s.checkLogs(); err != nil {
		return err
	}
	return s.checkOptions()
}

// checkFormat checks the marker of the format version, and reports whether a newer program wrote
// the directory.
func (s *inspector) checkFormat() (newer bool) {
	if len(s.formatMarkers) == 0 {
		return false
	}
	m := s.formatMarkers[len(s.formatMarkers)-1]
	v, err := strconv.ParseUint(m.value, 10, 64)
	switch {
	case err != nil:
		s.fault(m.file, -1, "is no format version")
	case v > uint64(formatVersion):
		s.Newer = v
		return true
	case v < uint64(pebble.FormatMinSupported):
		s.fault(m.file, -1, "names format version %d; the oldest known one is %d", v, pebble.FormatMinSupported)
	}
	return false
}

// currentManifest returns the number of the MANIFEST that counts. ok is false if there is none to
// read, because the directory is empty or at fault.
func (s *inspector) currentManifest() (number uint64, ok bool) {
	if len(s.manifestMarkers) == 0 {
		s.withoutMarker()
		return 0, false
	}
	m := s.manifestMarkers[len(s.manifestMarkers)-1]
	digits, ok := strings.CutPrefix(m.value, "MANIFEST-")
	number, err := strconv.ParseUint(digits, 10, 64)
	if !ok || err != nil || number == 0 {
		s.fault(m.file, -1, "names no MANIFEST")
		return 0, false
	}
	if !slices.Contains(s.manifests, number) {
		s.fault(manifestName(number), -1, "is missing; %s names it", m.file)
		return 0, false
	}
	newest := s.manifests[len(s.manifests)-1]
	switch {
	case s.journal != nil && number < s.journal.current:
		s.fault(m.file, -1, "is out of date: the journal says that %s was current", manifestName(s.journal.current))
		return 0, false
	case s.Legacy && number < newest:
		s.fault(m.file, -1, "is out of date: %s is newer", manifestName(newest))
		return 0, false
	}
	return number, true
}

// withoutMarker judges a directory in which no marker names a MANIFEST: it is empty, its creation
// was cut off, or it has lost the marker.
func (s *inspector) withoutMarker() {
	created := s.journal != nil && s.journal.current > 0
	if created || len(s.tables)+len(s.logs)+len(s.options) > 0 || len(s.manifests) > 1 {
		found := "files of a database are there"
		if len(s.manifests) > 0 {
			found = manifestName(s.manifests[len(s.manifests)-1]) + " is there"
		}
		s.fault("marker.manifest.*", -1, "is missing, though %s; it is an empty file, which some ways of copying leave out", found)
		return
	}
	s.Empty = true
}

// readManifest reads the MANIFEST into the version. The part that the journal claims must be
// unchanged. After it may come one record that a crash cut off. Pebble never learned that it was
// written, so it has removed no file that the earlier records need.
func (s *inspector) readManifest(number uint64) error {
	name := manifestName(number)
	size, err := s.size(name)
	if err != nil {
		return err
	}
	claimed, known := claim{}, false
	if s.journal != nil {
		if claimed, known = s.journal.claim(number); !known {
			s.fault(name, -1, "is unknown to the journal, which names %s as current: one of them is from another time", manifestName(s.journal.current))
			return nil
		}
	} else {
		claimed = claim{manifest: number, length: size}
	}
	end, fault, err := s.readEdits(name)
	if err != nil {
		return err
	}
	switch {
	case fault != nil && end < claimed.length:
		s.fault(name, end, "%v", fault)
		return nil
	case end < claimed.length:
		s.fault(name, end, "ends here; %d bytes were written", claimed.length)
		return nil
	case fault != nil:
		s.TornManifest = end
	}
	sum, err := s.sum(name, claimed.length)
	if err != nil {
		return err
	}
	if known && sum != claimed.sum {
		s.fault(name, -1, "its first %d bytes are not those that were written", claimed.length)
		return nil
	}
	s.manifestClaim = claim{manifest: number, length: end}
	s.manifestClaim.sum, err = s.sum(name, end)
	return err
}

// readEdits applies the records of a MANIFEST to the version, up to the first unreadable one. It
// returns the offset behind the last good record.
func (s *inspector) readEdits(name string) (end int64, fault, err error) {
	f, err := s.fs.Open(s.path(name))
	if err != nil {
		return 0, nil, err
	}
	defer f.Close()
	records := record.NewReader(f, 0)
	for {
		end = records.Offset()
		r, err := records.Next()
		if errors.Is(err, io.EOF) {
			return end, nil, nil
		}
		var content []byte
		if err == nil {
			content, err = io.ReadAll(r)
		}
		if invalidRecord(err) {
			return end, errors.New("record is damaged or cut off"), nil
		}
		if err != nil {
			return end, nil, err
		}
		e, err := decodeEdit(content)
		if err == nil {
			err = s.version.apply(e, pebble.DefaultComparer.Name)
		}
		if err != nil {
			return end, fmt.Errorf("record makes no sense: %w", err), nil
		}
	}
}

// invalidRecord reports whether reading a log stopped because of its content.
func invalidRecord(err error) bool {
	return errors.Is(err, record.ErrInvalidChunk) || errors.Is(err, record.ErrZeroedChunk) || errors.Is(err, record.ErrUnexpectedEOF)
}

// size returns the length of a file.
func (s *inspector) size(name string) (int64, error) {
	info, err := s.fs.Stat(s.path(name))
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func (s *inspector) sum(name string, n int64) (uint32, error) { return sumOf(s.fs, s.path(name), n) }

// sumOf returns the CRC-32C of the first n bytes of a file that has as many.
func sumOf(fs FS, path string, n int64) (uint32, error) {
	f, err := fs.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	hash := crc32.New(castagnoli)
	_, err = io.CopyN(hash, f, n)
	return hash.Sum32(), err
}

// checkTables checks that the file of each live table exists, with the size that the MANIFEST says
// and the bytes that end every table. It does not read the contents.
func (s *inspector) checkTables() error {
	sizes := map[string]int64{}
	for _, t := range s.Tables {
		size := t.Size
		if t.Virtual {
			backing, ok := s.version.backings[t.backing]
			if !ok {
				s.fault(s.Manifest, -1, "table %d is a part of %s, which it does not describe", t.Number, t.File)
				continue
			}
			size = backing
		}
		sizes[t.File] = size
	}
	for _, t := range s.Tables {
		size, ok := sizes[t.File]
		if !ok {
			continue // another table of the same file was first
		}
		delete(sizes, t.File)
		if err := s.checkTable(t, size); err != nil {
			return err
		}
	}
	return nil
}

// checkSize reports whether a file that the MANIFEST names exists with its size.
func (s *inspector) checkSize(name string, want int64) (bool, error) {
	size, err := s.size(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		s.fault(name, -1, "is missing; %s names it", s.Manifest)
		return false, nil
	case err != nil:
		return false, err
	case size != want:
		s.fault(name, -1, "has %d bytes, %s says %d", size, s.Manifest, want)
		return false, nil
	}
	return true, nil
}

// The last bytes of every table.
const (
	pebbleMagic  = "\xf0\x9f\xaa\xb3\xf0\x9f\xaa\xb3"
	rocksDBMagic = "\xf7\xcf\xf4\x85\xb7\x41\xe2\x88"
)

func (s *inspector) checkTable(t manifestTable, size int64) error {
	before := len(s.Faults)
	ok, err := s.checkSize(t.File, size)
	if ok {
		err = s.checkFooter(t.File, size)
	}
	for i := before; i < len(s.Faults); i++ {
		s.Faults[i].Lower, s.Faults[i].Upper = t.Lower, t.Upper
	}
	return err
}

func (s *inspector) checkFooter(name string, size int64) error {
	f, err := s.fs.Open(s.path(name))
	if err != nil {
		return err
	}
	defer f.Close()
	end := make([]byte, len(pebbleMagic))
	if size >= int64(len(end)) {
		if _, err := f.ReadAt(end, size-int64(len(end))); err != nil {
			return err
		}
	}
	if string(end) != pebbleMagic && string(end) != rocksDBMagic {
		s.fault(name, max(0, size-int64(len(end))), "does not end as a table does")
	}
	return nil
}

// checkLogs reads the live logs and checks that none is missing.
func (s *inspector) checkLogs() error {
	for _, number := range s.logs {
		if number < s.minLog {
			continue
		}
		if err := s.readLog(number); err != nil {
			return err
		}
	}
	s.checkMissingLogs()
	// Sequence numbers run through the logs without a gap. The first may lie before the last one in
	// the MANIFEST, which counts all changes applied when it was written.
	next := max(s.lastSeq+1, firstSequence)
	for i, log := range s.Logs {
		last := i == len(s.Logs)-1
		if !last && !log.Closed && !s.faulty(log.File) {
			s.fault(log.File, log.End, "ends here without the mark of a closed log, and %s follows it", s.Logs[i+1].File)
		}
		if log.Records == 0 {
			continue
		}
		if log.FirstSeq > next && len(s.Faults) == 0 {
			s.fault(log.File, 0, "begins with commit %d; commits %d to %d before it are missing", log.FirstSeq, next, log.FirstSeq-1)
		}
		next = log.LastSeq + 1
	}
	return nil
}

// firstSequence is the first sequence number of a new store.
const firstSequence = 10

// checkMissingLogs finds missing logs.
func (s *inspector) checkMissingLogs() {
	if s.journal != nil {
		for _, number := range s.journal.logs {
			if number >= s.minLog && !slices.Contains(s.logs, number) {
				s.fault(logName(number), -1, "is missing; it holds the last commits")
			}
		}
		return
	}
	// Without a journal: each start creates a log and then an OPTIONS file with a greater number.
	if len(s.Logs) == 0 && len(s.options) > 0 && s.options[len(s.options)-1] > s.minLog {
		s.fault(logName(s.minLog), -1, "the last log is missing; its number is at least %d", s.minLog)
	}
}

func (s *inspector) faulty(file string) bool {
	return slices.ContainsFunc(s.Faults, func(d Damage) bool { return d.File == file })
}

// readLog reads a log to the end of its valid records. If later records prove that more were on
// disk, it adds a fault.
func (s *inspector) readLog(number uint64) error {
	log := liveLog{Number: number, File: logName(number)}
	var err error
	if log.Size, err = s.size(log.File); err != nil {
		return err
	}
	f, err := s.fs.Open(s.path(log.File))
	if err != nil {
		return err
	}
	defer f.Close()
	records := numberedReader(record.NewReader, f, number)
	header := make([]byte, batchrepr.HeaderLen)
	for {
		log.End = records.Offset()
		r, err := records.Next()
		if errors.Is(err, io.EOF) {
			log.Closed = log.End < log.Size
			break
		}
		if err == nil {
			_, err = io.ReadFull(r, header)
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			s.fault(log.File, log.End, "record is shorter than a commit")
			break
		}
		if err == nil {
			_, err = io.Copy(io.Discard, r)
		}
		if errors.Is(err, record.ErrUnexpectedEOF) {
			if err := s.readTail(f, &log); err != nil {
				return err
			}
			break
		}
		if invalidRecord(err) {
			s.fault(log.File, log.End, "record is damaged, and later records show that it was on disk")
			break
		}
		if err != nil {
			return err
		}
		if !s.addCommit(&log, header) {
			break
		}
	}
	s.Logs = append(s.Logs, log)
	return nil
}

// readTail inspects the bytes behind a log's valid records.
func (s *inspector) readTail(f io.ReaderAt, log *liveLog) error {
	tail, err := readTail(f, log.Number, log.End)
	log.Beyond = tail.chunks
	if tail.damaged {
		s.fault(log.File, log.End, "record is damaged, and later records show that it was on disk")
	}
	return err
}

// numberedReader calls record.NewReader, whose number has a type that only Pebble can name.
func numberedReader[N ~uint64](newReader func(io.Reader, N) *record.Reader, f io.Reader, number uint64) *record.Reader {
	return newReader(f, N(number))
}

// addCommit counts a record of a log by its header: sequence number and count of changes. It
// reports whether no commit before it is missing.
func (s *inspector) addCommit(log *liveLog, header []byte) bool {
	seq, count := binary.LittleEndian.Uint64(header), binary.LittleEndian.Uint32(header[8:])
	if count == 0 {
		return true // an empty record of syncLog
	}
	if log.Records > 0 && seq != log.LastSeq+1 {
		s.fault(log.File, log.End, "commit %d follows commit %d", seq, log.LastSeq)
		return false
	}
	if log.Records == 0 {
		log.FirstSeq = seq
	}
	log.Records++
	log.LastSeq = seq + uint64(count) - 1
	return true
}

// checkOptions checks that the newest OPTIONS file is readable and matches, and that there is one
// if the store was ever open.
func (s *inspector) checkOptions() error {
	used := len(s.Tables) > 0 || slices.ContainsFunc(s.Logs, func(l liveLog) bool { return l.Records > 0 })
	if used && len(s.formatMarkers) == 0 {
		s.fault("marker.format-version.*", -1, "is missing; it is an empty file, which some ways of copying leave out")
	}
	if len(s.options) == 0 {
		if used {
			s.fault("OPTIONS-*", -1, "is missing")
		}
		return nil
	}
	name := fmt.Sprintf("OPTIONS-%06d", s.options[len(s.options)-1])
	content, err := readSmall(s.fs, s.path(name), 1<<20)
	if err == nil {
		err = (&pebble.Options{Comparer: pebble.DefaultComparer, Merger: pebble.DefaultMerger}).CheckCompatibility(s.Dir, string(content))
		if err == nil && !bytes.Contains(content, []byte("[Options]")) {
			err = errDamagedFile
		}
		if err != nil {
			s.fault(name, -1, "cannot be used: %v", err)
		}
		return nil
	}
	if errors.Is(err, errDamagedFile) || errors.Is(err, os.ErrNotExist) {
		s.fault(name, -1, "%v", err)
		return nil
	}
	return err
}
