package kv

import (
	"bytes"
	"cmp"
	"container/heap"
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"slices"
	"sort"
	"strconv"
	"strings"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/batchrepr"
	"github.com/cockroachdb/pebble/v2/record"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Stopped is the directory of a store that no process has open, for reading only: nothing in it
// changes. It can be read even if it is damaged.
type Stopped struct {
	fs          FS
	dir         string
	lock        *pebble.Lock // nil: without a lock file no process can hold it
	faults      []Damage     // of the directory as a whole
	known       bool         // the MANIFEST is readable, so the live files are known
	unjournaled bool
	tables      []manifestTable // that hold data; nil bounds and size 0: unknown
	logs        []string        // ascending by number
	sums        *tableSums      // of a sealed directory
	bytes       int64           // of all of these files
}

// OpenStopped locks a directory for reading. It returns ErrLocked if a process has it open.
func OpenStopped(fs FS, dir string) (*Stopped, error) {
	fs = cmp.Or(fs, vfs.Default)
	dir = fs.PathDir(fs.PathJoin(dir, "x")) // Open needs the clean form
	info, err := fs.Stat(dir)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("open %q: %w", dir, syscall.ENOTDIR)
	}
	if err := refuseForeign(fs, dir); err != nil {
		return nil, err
	}
	s := &Stopped{fs: fs, dir: dir}
	if _, err := fs.Stat(fs.PathJoin(dir, lockName)); err == nil {
		if s.lock, err = lockDirectory(Options{Dir: dir, FS: fs}); err != nil {
			return nil, err
		}
	}
	if err := s.inspect(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// inspect finds the files that hold data. If the MANIFEST is unreadable it uses every table and
// every log.
func (s *Stopped) inspect() error {
	found, err := inspect(s.fs, s.dir)
	if err != nil {
		return err
	}
	if found.Newer != 0 {
		return fmt.Errorf("%s: %w: its format version %d", s.dir, ErrNewer, found.Newer)
	}
	s.faults = found.Faults
	if found.Manifest != "" && found.nextFile == 0 && len(s.faults) == 0 {
		s.faults = append(s.faults, Damage{File: found.Manifest, Offset: 0, Fault: "is empty"})
	}
	s.known = found.Empty || found.Manifest != "" && !slices.ContainsFunc(s.faults, func(d Damage) bool {
		return d.File == found.Manifest || isMarker(d.File) && d.File != JournalName
	})
	s.unjournaled = found.Legacy && !found.Empty
	s.sums = newTableSums(found.sealedFiles)
	names, err := s.fs.List(s.dir)
	if err != nil {
		return err
	}
	files := listFiles(names)
	bounds := map[string]manifestTable{}
	for _, t := range found.Tables {
		if t.Virtual { // the file holds more
			t.Lower, t.Upper, t.Size = nil, nil, 0
		}
		bounds[t.File] = t
		if s.known {
			s.tables = append(s.tables, t)
		}
	}
	if !s.known {
		for _, number := range files.tables {
			l := bounds[tableName(number)]
			l.File = tableName(number)
			s.tables = append(s.tables, l)
		}
	}
	for _, number := range files.logs {
		if number >= found.minLog {
			s.logs = append(s.logs, logName(number))
		}
	}
	live := slices.Clone(s.logs)
	for _, l := range s.tables {
		live = append(live, l.File)
	}
	for _, name := range live {
		if info, err := s.fs.Stat(s.fs.PathJoin(s.dir, name)); err == nil {
			s.bytes += info.Size()
		}
	}
	return nil
}

// fileNumber returns the number in the name of a table or a log, or 0.
func fileNumber(name string) uint64 {
	number, _, _ := strings.Cut(name, ".")
	n, _ := strconv.ParseUint(number, 10, 64)
	return n
}

// Close releases the directory.
func (s *Stopped) Close() error {
	if s.lock == nil {
		return nil
	}
	return s.lock.Close()
}

// Unjournaled reports the same as DB.Unjournaled.
func (s *Stopped) Unjournaled() bool { return s.unjournaled }

// Bytes returns the size of all files that hold data.
func (s *Stopped) Bytes() int64 { return s.bytes }

// ReadOnly is the store in a sound directory, for reading.
type ReadOnly struct {
	pebble *pebble.DB
	lock   *pebble.Lock
}

// Open opens a sound directory for reads. The ReadOnly owns the directory's lock from then on.
func (s *Stopped) Open() (*ReadOnly, error) { return s.open(0) }

// open is Open with a block cache of a given size; 0: the default.
func (s *Stopped) open(cacheBytes int64) (*ReadOnly, error) {
	opts, err := Options{Dir: s.dir, FS: s.fs, CacheBytes: cacheBytes, ReserveBytes: -1}.withDefaults()
	if err != nil {
		return nil, err
	}
	if s.lock == nil { // Pebble requires one
		memory := NewMemFS()
		if err := memory.MkdirAll(s.dir, 0o700); err != nil {
			return nil, err
		}
		if s.lock, err = pebble.LockDirectory(s.dir, memory); err != nil {
			return nil, err
		}
	}
	p := pebbleOptions(opts)
	p.FS, p.Lock, p.ReadOnly, p.Logger = readOnlyFS{s.fs}, s.lock, true, noLogger{}
	// the read that meets a damaged block returns the error; Pebble's default is to panic
	p.EventListener = &pebble.EventListener{DataCorruption: func(pebble.DataCorruptionInfo) {}}
	opened, err := openPebble(s.dir, p)
	if err != nil {
		return nil, openError(s.dir, err)
	}
	r := &ReadOnly{pebble: opened, lock: s.lock}
	s.lock = nil
	return r, nil
}

// Get implements Reader.
func (r *ReadOnly) Get(key []byte) (value []byte, closer io.Closer, err error) {
	value, closer, err = r.pebble.Get(key)
	return value, closer, (*DB)(nil).readFailed(err)
}

// NewIter implements Reader.
func (r *ReadOnly) NewIter(lower, upper []byte) *Iter { return newIter(nil, r.pebble, lower, upper) }

// Close closes the store and releases the directory.
func (r *ReadOnly) Close() error { return errors.Join(r.pebble.Close(), r.lock.Close()) }

// noLogger drops Pebble's messages.
type noLogger struct{}

func (noLogger) Infof(string, ...any)              {}
func (noLogger) Errorf(string, ...any)             {}
func (noLogger) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

// readOnlyFS refuses every change.
type readOnlyFS struct{ FS }

var errReadOnly = errors.New("the directory is only read")

// List implements FS. Pebble takes the journal's name for a damaged marker's.
func (r readOnlyFS) List(dir string) ([]string, error) {
	names, err := r.FS.List(dir)
	return slices.DeleteFunc(names, isJournal), err
}

func (readOnlyFS) Create(string, vfs.DiskWriteCategory) (vfs.File, error) { return nil, errReadOnly }
func (readOnlyFS) Link(string, string) error                              { return errReadOnly }
func (readOnlyFS) OpenReadWrite(string, vfs.DiskWriteCategory, ...vfs.OpenOption) (vfs.File, error) {
	return nil, errReadOnly
}
func (readOnlyFS) Remove(string) error                  { return errReadOnly }
func (readOnlyFS) RemoveAll(string) error               { return errReadOnly }
func (readOnlyFS) Rename(string, string) error          { return errReadOnly }
func (readOnlyFS) MkdirAll(string, iofs.FileMode) error { return errReadOnly }
func (readOnlyFS) ReuseForWrite(string, string, vfs.DiskWriteCategory) (vfs.File, error) {
	return nil, errReadOnly
}

// Check reads every byte of every live file and reports each fault. It calls progress with the
// bytes read since the last call. It returns an error if it could not finish the check.
func (s *Stopped) Check(ctx context.Context, progress func(bytes int64), tell func(Damage)) error {
	reported := map[string]bool{} // files with a known fault
	report := func(d Damage) {
		reported[d.File] = true
		tell(d)
	}
	for _, d := range s.faults {
		report(d)
	}
	for _, l := range s.tables {
		if err := ctx.Err(); err != nil {
			return err
		}
		t, err := openRawTable(s.fs, s.dir, l.File)
		if err != nil {
			if !reported[l.File] {
				report(Damage{File: l.File, Offset: -1, Fault: faultText(err), Lower: l.Lower, Upper: l.Upper})
			}
			continue
		}
		t.checkMeta(report)
		it := &tableIter{t: t, lower: l.Lower, upper: l.Upper, report: func(d Damage, _ bool) { report(d) }}
		for ok := it.fill(); ok; ok = it.advance() {
			if it.next%256 == 0 && ctx.Err() != nil {
				return errors.Join(ctx.Err(), t.close())
			}
		}
		progress(t.size)
		if err := t.close(); err != nil {
			return err
		}
		if reported[l.File] {
			continue
		}
		if changed, err := s.changed(l.File); err != nil {
			return err
		} else if changed {
			report(Damage{File: l.File, Offset: -1, Fault: "has changed since the last clean stop", Lower: l.Lower, Upper: l.Upper})
		}
	}
	for _, name := range s.logs {
		known := reported[name]
		n, err := s.readLog(name, func([]byte) error { return ctx.Err() }, func(d Damage) {
			if !known {
				report(d)
			}
		})
		if err != nil {
			return err
		}
		progress(n)
	}
	return nil
}

// changed reports whether a table differs from the one that was sealed. Its blocks may be sound all
// the same.
func (s *Stopped) changed(table string) (bool, error) {
	was, sealed := s.sums.sum(table)
	if !sealed {
		return false, nil
	}
	sum, err := sumOf(s.fs, s.fs.PathJoin(s.dir, table), was.length)
	return sum != was.sum, err
}

// The ranks of files if the live ones are unknown. A log that is not the newest has most likely
// been flushed. Its version of a key may then be older than the one in a table, in which a
// compaction has zeroed the sequence number.
const (
	rankOlderLog = -1
	rankTable    = 0
	rankNewest   = 1
)

// Each calls fn for every readable key, in order, with its newest value. It reads the table files
// and the logs themselves, so a bad block costs only its own keys. It calls lost with each fault
// and the keys that may be missing or old because of it; nil bounds: any. fn may keep the slices.
func (s *Stopped) Each(ctx context.Context, progress func(bytes int64), lost func(Damage), fn func(key, value []byte) error) error {
	m := &merge{s: s, progress: progress}
	m.report = func(d Damage, loses bool) {
		if loses {
			lost(d)
		}
	}
	if !s.known {
		lost(Damage{File: "MANIFEST", Offset: -1, Fault: "it does not say which files belong to the database: a missing file goes unnoticed, and an old one may bring back deleted items"})
	}
	for _, d := range s.faults {
		if strings.HasSuffix(d.File, ".log") { // the keys of the changes in it are unknown
			d.Lower, d.Upper = nil, nil
			lost(d)
		}
	}
	if err := m.open(ctx); err != nil {
		return err
	}
	defer m.close()
	return m.run(ctx, fn)
}

// merge reads the files of a directory in the order of the keys, and finds the newest version of
// each key. Newer is the greater sequence number, in files of the same rank.
type merge struct {
	s        *Stopped
	progress func(int64)
	report   func(d Damage, lost bool)
	heap     sources
	spans    []span // ascending by start; from the first that begins behind the present key on
	active   []span // those that begin at or before the present key
}

// source is a file in a merge, at one entry.
type source struct {
	rank  int
	head  entry // of a table that has yet to be opened: no later than its first entry
	table manifestTable
	it    *tableIter // nil: the table has yet to be opened, or the source is of logs
	log   []entry    // of a log: the entries from head on
	isLog bool
}

// sources is a heap: the least key first, and its newest version.
type sources []*source

func (h sources) Len() int { return len(h) }
func (h sources) Less(i, j int) bool {
	a, b := h[i], h[j]
	if c := bytes.Compare(a.head.key, b.head.key); c != 0 {
		return c < 0
	}
	if a.rank != b.rank {
		return a.rank > b.rank
	}
	return a.head.seq > b.head.seq
}
func (h sources) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *sources) Push(x any)   { *h = append(*h, x.(*source)) }
func (h *sources) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	*h = (*h)[:last]
	return x
}

// open reads the range deletions and the logs, and puts every file into the heap. A table's entries
// are read only when their turn comes.
func (m *merge) open(ctx context.Context) error {
	for _, l := range m.s.tables {
		if err := ctx.Err(); err != nil {
			return err
		}
		t, err := openRawTable(m.s.fs, m.s.dir, l.File)
		if err != nil {
			m.whole(l, faultText(err))
			continue
		}
		if t.layout != nil && l.Size != 0 && t.size != l.Size {
			// Both are whole tables, but different ones: old versions could revive deleted keys.
			m.whole(l, fmt.Sprintf("has %d bytes, the MANIFEST says %d: it is another table, and left out", t.size, l.Size))
			if err := t.close(); err != nil {
				return err
			}
			continue
		}
		spans, err := t.spans()
		if err != nil {
			m.whole(l, "the range deletions are unreadable: "+faultText(err))
		}
		m.spans = append(m.spans, spans...)
		if err := t.close(); err != nil {
			return err
		}
		m.heap = append(m.heap, &source{rank: rankTable, table: l, head: entry{key: l.Lower, seq: 1<<64 - 1}})
	}
	for i, name := range m.s.logs {
		rank := rankTable
		if !m.s.known {
			if rank = rankOlderLog; i == len(m.s.logs)-1 {
				rank = rankNewest
			}
		}
		if err := m.addLog(name, rank); err != nil {
			return err
		}
	}
	sort.Slice(m.spans, func(i, j int) bool { return bytes.Compare(m.spans[i].start, m.spans[j].start) < 0 })
	heap.Init(&m.heap)
	return nil
}

// whole reports that every key of a table may be missing or old.
func (m *merge) whole(l manifestTable, fault string) {
	m.report(Damage{File: l.File, Offset: -1, Fault: fault, Lower: l.Lower, Upper: l.Upper}, true)
}

// addLog reads a log into memory.
func (m *merge) addLog(name string, rank int) error {
	src := &source{rank: rank, isLog: true}
	n, err := m.s.readLog(name, func(batch []byte) error {
		h, ok := batchrepr.ReadHeader(batch)
		if !ok {
			return errors.New("a batch is cut short")
		}
		seq := uint64(h.SeqNum)
		for r := batchrepr.Read(batch); ; {
			kind, key, value, ok, err := r.Next()
			if err != nil || !ok {
				return err
			}
			switch kind {
			case pebble.InternalKeyKindLogData:
				continue
			case pebble.InternalKeyKindSet:
				src.log = append(src.log, entry{key: key, value: value, seq: seq})
			case pebble.InternalKeyKindDelete:
				src.log = append(src.log, entry{key: key, seq: seq, deleted: true})
			case pebble.InternalKeyKindRangeDelete:
				m.spans = append(m.spans, span{start: key, end: value, seq: seq, rank: rank})
			default:
				return fmt.Errorf("a batch holds an operation of kind %d", kind)
			}
			seq++
		}
	}, func(d Damage) { m.report(d, true) })
	if err != nil {
		return err
	}
	m.progress(n)
	sort.Slice(src.log, func(i, j int) bool { return compareEntries(src.log[i], src.log[j]) < 0 })
	if len(src.log) > 0 {
		src.head = src.log[0]
		m.heap = append(m.heap, src)
	}
	return nil
}

// run calls fn for every visible key.
func (m *merge) run(ctx context.Context, fn func(key, value []byte) error) error {
	var key []byte // the present key; its versions that follow are older
	begun := false
	for n := 0; len(m.heap) > 0; n++ {
		if n%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		src := m.heap[0]
		e, opened := src.head, src.isLog || src.it != nil
		if opened && (!begun || !bytes.Equal(e.key, key)) {
			key, begun = e.key, true
			if !e.deleted && !m.covered(src.rank, e) {
				if err := fn(e.key, e.value); err != nil {
					return err
				}
			}
		}
		ok, err := m.step(src)
		if err != nil {
			return err
		}
		if ok {
			heap.Fix(&m.heap, 0)
		} else {
			heap.Pop(&m.heap)
		}
	}
	return nil
}

// step moves a source to its next entry.
func (m *merge) step(src *source) (ok bool, err error) {
	if src.isLog {
		if src.log = src.log[1:]; len(src.log) == 0 {
			return false, nil
		}
		src.head = src.log[0]
		return true, nil
	}
	if src.it != nil {
		ok = src.it.advance()
	} else {
		t, err := openRawTable(m.s.fs, m.s.dir, src.table.File)
		if err != nil {
			return false, err
		}
		src.it = &tableIter{t: t, lower: src.table.Lower, upper: src.table.Upper, report: m.report}
		ok = src.it.fill()
	}
	if !ok {
		m.progress(src.it.t.size)
		return false, src.it.t.close()
	}
	src.head = src.it.batch[0]
	return true, nil
}

// covered reports whether a range deletion that is newer than an entry removes it. The keys of the
// calls ascend.
func (m *merge) covered(rank int, e entry) bool {
	for len(m.spans) > 0 && bytes.Compare(m.spans[0].start, e.key) <= 0 {
		m.active = append(m.active, m.spans[0])
		m.spans = m.spans[1:]
	}
	m.active = slices.DeleteFunc(m.active, func(s span) bool { return bytes.Compare(s.end, e.key) <= 0 })
	return slices.ContainsFunc(m.active, func(s span) bool {
		return s.rank > rank || s.rank == rank && s.seq > e.seq
	})
}

// close closes the tables that are still open.
func (m *merge) close() {
	for _, src := range m.heap {
		if src.it != nil {
			_ = src.it.t.close() // it was only read
		}
	}
}

// readLog calls fn with every readable batch of a log, and returns the log's size. After a bad
// record it continues with the next block. A log that ends in the middle of a record is no fault
// here: a crash leaves it so.
func (s *Stopped) readLog(name string, fn func(batch []byte) error, report func(Damage)) (size int64, err error) {
	f, err := s.fs.Open(s.fs.PathJoin(s.dir, name))
	if err != nil {
		report(Damage{File: name, Offset: -1, Fault: faultText(err)})
		return 0, nil
	}
	data, err := io.ReadAll(f)
	if err := errors.Join(err, f.Close()); err != nil {
		report(Damage{File: name, Offset: -1, Fault: faultText(err)})
		return 0, nil
	}
	number := fileNumber(name)
	const blockSize = 32 << 10 // of the log format
	for start := 0; start < len(data); {
		r := numberedReader(record.NewReader, bytes.NewReader(data[start:]), number)
		for {
			at := int64(start) + r.Offset()
			one, err := r.Next()
			var batch []byte
			if err == nil {
				batch, err = io.ReadAll(one)
			}
			if err == nil {
				if bad := fn(batch); bad == nil {
					continue
				} else if errors.Is(bad, context.Canceled) || errors.Is(bad, context.DeadlineExceeded) {
					return 0, bad
				} else {
					report(Damage{File: name, Offset: at, Fault: faultText(bad)})
					continue
				}
			}
			if errors.Is(err, record.ErrInvalidChunk) || errors.Is(err, record.ErrZeroedChunk) {
				report(Damage{File: name, Offset: at, Fault: "record checksum mismatch"})
			}
			start = (int(at)/blockSize + 1) * blockSize
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				start = len(data)
			}
			break
		}
	}
	return int64(len(data)), nil
}

// Create opens a new store in a directory that is missing or empty, for bulk writes: applied
// batches are on disk after Flush.
func Create(fs FS, dir string) (*DB, error) {
	files := cmp.Or(fs, vfs.Default)
	switch names, err := files.List(dir); {
	case err == nil && len(names) > 0:
		return nil, fmt.Errorf("%s is not empty", dir)
	case err != nil && !errors.Is(err, iofs.ErrNotExist):
		return nil, err
	}
	return Open(Options{Dir: dir, FS: fs, Durability: Async, ReserveBytes: -1})
}
