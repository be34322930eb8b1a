package kv

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
)

// stopped returns the files of a cleanly stopped store, with tables and with commits that exist
// only in the log.
func stopped(t *testing.T) map[string]string {
	t.Helper()
	fs := diskOf(t, crashed(t))
	db, err := Open(crashOpts(fs))
	if err != nil {
		t.Fatal(err)
	}
	mustWrite(t, db, batchOf(2, 0)...)
	if err := db.Flush(); err != nil {
		t.Fatal(err)
	}
	for n := range 3 {
		mustWrite(t, db, batchOf(2, 1+n)...)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	files := files(t, fs, defaultDir)
	if files[sealName] == "" {
		t.Fatalf("no seal in %v", slices.Sorted(maps.Keys(files)))
	}
	return files
}

// After a clean stop a missing, shorter or unknown file refuses the start, and so does any change
// of a file other than a table. `mayfly check` checks the content of tables.
func TestSealedDirectory(t *testing.T) {
	files := stopped(t)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if name == sealName {
			continue
		}
		removed := name
		if strings.HasPrefix(name, "marker.manifest.") {
			removed = "marker.manifest.*"
		}
		refused(t, with(files, name, remove), removed)
		length := len(files[name])
		if length == 0 {
			continue
		}
		for _, keep := range []int{0, length / 2, length - 1} {
			refused(t, with(files, name, cut(keep)), name)
		}
		if isTable(name) {
			continue
		}
		for _, offset := range []int{0, length / 3, length - 1} {
			refused(t, with(files, name, flipped(offset)), name)
		}
	}
	refused(t, with(files, sealName, flipped(20)), sealName)
	refused(t, with(files, sealName, cut(20)), sealName)
	extra := maps.Clone(files)
	extra["000001.sst"] = "old"
	refused(t, extra, "000001.sst")

	fs := diskOf(t, files)
	db, err := Open(crashOpts(fs))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := fs.Stat(fs.PathJoin(defaultDir, sealName)); err == nil {
		t.Error("the seal is still there while the store is open")
	}
	if rows := list(t, db, "2/z/", "2/z0"); len(rows) != 4 {
		t.Errorf("%d rows of 4", len(rows))
	}
}

// The seal holds the checksum of each table, even from an earlier run. A check detects a
// table replaced by another with sound blocks.
func TestSealedTables(t *testing.T) {
	sealed := func(first int) FS {
		fs := NewMemFS()
		db, err := Open(crashOpts(fs))
		if err != nil {
			t.Fatal(err)
		}
		for n := range 3 {
			mustWrite(t, db, fmt.Sprintf("key%d=%s", n, noise(first+n, 1000)))
		}
		if err := errors.Join(db.Flush(), db.Close()); err != nil {
			t.Fatal(err)
		}
		if db, err = Open(crashOpts(fs)); err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		return fs
	}
	files, others := copyOf(t, sealed(1)), copyOf(t, sealed(100))
	tables := 0
	for name := range files {
		if !isTable(name) {
			continue
		}
		tables++
		if len(others[name]) != len(files[name]) {
			t.Fatalf("%s: %d bytes and %d", name, len(files[name]), len(others[name]))
		}
		other := func([]byte) []byte { return []byte(others[name]) }
		if faults := faultsOf(t, diskOf(t, with(files, name, other))); len(faults) != 1 || faults[0].File != name {
			t.Errorf("%s: %v", name, faults)
		}
	}
	if faults := faultsOf(t, diskOf(t, files)); tables == 0 || len(faults) > 0 {
		t.Errorf("%d tables: %v", tables, faults)
	}
}

func copyOf(t *testing.T, fs FS) map[string]string { t.Helper(); return files(t, fs, defaultDir) }

// A log that ends early after a crash is a warning that names the file, the offset and the last
// commit.
func TestEndOfLogIsLogged(t *testing.T) {
	files := crashed(t)
	log := one(t, files, "", ".log")
	whole := endOfLog(t, files)
	for name, change := range map[string]func([]byte) []byte{
		"last record flipped": flipped(len(files[log]) - 1),
		"cut by 7 bytes":      cut(len(files[log]) - 7),
		"emptied":             cut(0),
	} {
		text := endOfLog(t, with(files, log, change))
		if text == whole {
			t.Errorf("%s: logged as if nothing was lost: %s", name, text)
		}
	}
	if text := endOfLog(t, stopped(t)); text != "" {
		t.Errorf("after a clean stop: %s", text)
	}
}

// endOfLog opens the files and returns the warnings about them.
func endOfLog(t *testing.T, files map[string]string) string {
	t.Helper()
	var out bytes.Buffer
	opts := crashOpts(diskOf(t, files))
	opts.Logger = slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelWarn, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	db, err := Open(opts)
	if err != nil {
		t.Fatal(err)
	}
	text := out.String()
	db.Close()
	if text != "" && (!strings.Contains(text, ".log") || !strings.Contains(text, "offset=") || !strings.Contains(text, "last_commit=")) {
		t.Errorf("logged: %s", text)
	}
	return text
}

// A store that stopped because of a failure is not sealed.
func TestFailureIsNotSealed(t *testing.T) {
	fs := NewMemFS()
	db, err := Open(crashOpts(fs))
	if err != nil {
		t.Fatal(err)
	}
	db.failure.set(errInjected)
	_ = db.Close()
	if _, err := fs.Stat(fs.PathJoin(defaultDir, sealName)); err == nil {
		t.Error("sealed after a failure")
	}
}

func FuzzSeal(f *testing.F) {
	s := seal{lastSeq: 7, logs: []sealedLog{{4, 100, 7}}, files: []sealedFile{{"000004.log", 100, 0, false}, {"MANIFEST-000001", 40, 99, true}}}
	f.Add(s.encode())
	f.Add([]byte(sealHead))
	f.Fuzz(func(t *testing.T, content []byte) {
		s, err := decodeSeal(content)
		if err != nil {
			return
		}
		again, err := decodeSeal(s.encode())
		if err != nil || again.lastSeq != s.lastSeq || !slices.Equal(again.logs, s.logs) || !slices.Equal(again.files, s.files) {
			t.Errorf("%+v, encoded again: %+v, %v", s, again, err)
		}
	})
}

func FuzzJournal(f *testing.F) {
	s := journalState{turn: 3, current: 2, claims: []claim{{2, 400, 1234}}, logs: []uint64{4, 9}}
	f.Add(s.encode())
	f.Fuzz(func(t *testing.T, slot []byte) {
		s, err := decodeSlot(slot)
		if err != nil {
			return
		}
		again, err := decodeSlot(s.encode())
		if err == nil && (again.turn != s.turn || again.current != s.current || !slices.Equal(again.claims, s.claims) || !slices.Equal(again.logs, s.logs)) {
			t.Errorf("%+v, encoded again: %+v", s, again)
		}
	})
}

// A record of the MANIFEST with arbitrary bytes decodes or is refused.
func FuzzEdit(f *testing.F) {
	f.Add([]byte("\x01\x1aleveldb.BytewiseComparator\x02\x04\x03\x09\x04\x0a"))
	f.Add([]byte("\x67\x00\x05\x40\x09a\x01\x00\x00\x00\x00\x00\x00\x00\x09b\x01\x00\x00\x00\x00\x00\x00\x00\x0a\x0b\x01"))
	f.Fuzz(func(t *testing.T, record []byte) {
		e, err := decodeEdit(record)
		if err != nil {
			return
		}
		v := newVersion()
		if v.apply(e, "leveldb.BytewiseComparator") == nil && len(v.sorted()) != len(v.tables) {
			t.Error("tables are missing")
		}
	})
}
