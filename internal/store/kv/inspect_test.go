package kv

import (
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// files returns the content of each file of a directory except the lock, which Open may create.
func files(t *testing.T, fs FS, dir string) map[string]string {
	t.Helper()
	names, err := fs.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, name := range names {
		f, err := fs.Open(fs.PathJoin(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(f)
		if err = errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
		if name != "LOCK" {
			all[name] = string(content)
		}
	}
	return all
}

// diskOf returns a file system with these files in the default directory.
func diskOf(t *testing.T, files map[string]string) FS {
	t.Helper()
	fs := NewMemFS()
	copyTo(t, fs, files)
	return fs
}

// copyTo puts files into the default directory, durably.
func copyTo(t *testing.T, fs FS, files map[string]string) {
	t.Helper()
	if err := makeDirectories(fs, defaultDir); err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		f, err := fs.Create(fs.PathJoin(defaultDir, name), vfs.WriteCategoryUnspecified)
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.Write([]byte(content))
		if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	if err := syncDirectory(fs, defaultDir); err != nil {
		t.Fatal(err)
	}
}

// killed returns the files of a store whose process is killed after work, without background work:
// it loses no data passed to the system.
func killed(t *testing.T, before map[string]string, work func(db *DB)) (after map[string]string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		disk := NewCrashFS()
		disk.KeepUnsynced(100, 0)
		copyTo(t, disk, before)
		db, err := Open(crashOpts(disk))
		if err != nil {
			t.Fatal(err)
		}
		work(db)
		synctest.Wait()
		disk.CutNow()
		_ = db.Close()
		after = files(t, disk.AfterCrash(), defaultDir)
	})
	return after
}

// crashed returns the files of a store whose process was killed twice, with tables and with commits
// that exist only in the log.
func crashed(t *testing.T) (files map[string]string) {
	t.Helper()
	for run := range 2 {
		files = killed(t, files, func(db *DB) {
			for n := range 5 {
				mustWrite(t, db, batchOf(run, n)...)
			}
			if err := db.Flush(); err != nil {
				t.Fatal(err)
			}
			for n := range 3 {
				mustWrite(t, db, batchOf(run, 5+n)...)
			}
		})
	}
	return files
}

// one returns the name of the last file that begins with prefix and ends with suffix.
func one(t *testing.T, files map[string]string, prefix, suffix string) string {
	t.Helper()
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(files))) {
		if strings.HasPrefix(name, prefix) && strings.HasSuffix(name, suffix) {
			return name
		}
	}
	t.Fatalf("no %s*%s in %v", prefix, suffix, slices.Sorted(maps.Keys(files)))
	return ""
}

// refused opens the files and expects a DamageError about one of them. Every byte must stay
// unchanged.
func refused(t *testing.T, damaged map[string]string, file string) {
	t.Helper()
	fs := diskOf(t, damaged)
	db, err := Open(crashOpts(fs))
	if err == nil {
		db.Close()
		t.Errorf("%s: opened", file)
		return
	}
	var damage *DamageError
	if !errors.As(err, &damage) || !errors.Is(err, ErrCorrupt) {
		t.Errorf("%s: %v is no DamageError", file, err)
	} else if !slices.ContainsFunc(damage.Faults, func(d Damage) bool { return d.File == file }) {
		t.Errorf("%s: %v does not name it", file, err)
	}
	if after := files(t, fs, defaultDir); !maps.Equal(after, damaged) {
		t.Errorf("%s: refused, and the directory has changed: %v, before %v", file, slices.Sorted(maps.Keys(after)), slices.Sorted(maps.Keys(damaged)))
	}
}

// with returns the files with one changed; content nil removes it.
func with(files map[string]string, name string, change func(content []byte) []byte) map[string]string {
	changed := maps.Clone(files)
	content := change([]byte(files[name]))
	if content == nil {
		delete(changed, name)
	} else {
		changed[name] = string(content)
	}
	return changed
}

func flipped(offset int) func([]byte) []byte {
	return func(content []byte) []byte { content[offset] ^= 0x10; return content }
}

func cut(length int) func([]byte) []byte {
	return func(content []byte) []byte { return content[:length:length] }
}

func remove([]byte) []byte { return nil }

// The files of crashed open, and hold every acknowledged write.
func TestCrashedOpens(t *testing.T) {
	db, err := Open(crashOpts(diskOf(t, crashed(t))))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for run := range 2 {
		if rows := list(t, db, string(rune('0'+run))+"/z/", string(rune('0'+run))+"/z0"); len(rows) != 8 {
			t.Errorf("run %d: %d rows of 8", run, len(rows))
		}
	}
}

// A MANIFEST with any damaged byte, or cut at any length, refuses the start and nothing is deleted.
func TestDamagedManifestIsRefused(t *testing.T) {
	files := crashed(t)
	manifest := one(t, files, "MANIFEST-", "")
	length := len(files[manifest])
	for offset := range length {
		refused(t, with(files, manifest, flipped(offset)), manifest)
		refused(t, with(files, manifest, cut(offset)), manifest)
	}
	refused(t, with(files, manifest, remove), manifest)
}

// A marker that is lost, or that names the previous MANIFEST, refuses the start and nothing is
// deleted.
func TestDamagedMarkerIsRefused(t *testing.T) {
	files := crashed(t)
	marker := one(t, files, "marker.manifest.", "")
	refused(t, with(files, marker, remove), "marker.manifest.*")

	old := with(files, marker, remove)
	manifests := slices.DeleteFunc(slices.Sorted(maps.Keys(files)), func(name string) bool { return !strings.HasPrefix(name, "MANIFEST-") })
	if len(manifests) < 2 {
		t.Fatalf("only %v", manifests)
	}
	older := marker[:strings.Index(marker, "MANIFEST-")] + manifests[0]
	old[older] = ""
	refused(t, old, older)

	format := one(t, files, "marker.format-version.", "")
	refused(t, with(files, format, remove), "marker.format-version.*")
	newer := with(files, format, remove)
	newer["marker.format-version.000099.999"] = ""
	if _, err := Open(crashOpts(diskOf(t, newer))); !errors.Is(err, ErrNewer) || errors.Is(err, ErrCorrupt) {
		t.Errorf("a newer format version: %v", err)
	}
}

// A missing, short or foreign table or OPTIONS file is refused before anything changes.
func TestDamagedFileIsRefused(t *testing.T) {
	files := crashed(t)
	found, err := inspect(diskOf(t, files), defaultDir)
	if err != nil || len(found.Tables) == 0 {
		t.Fatal(found, err)
	}
	for _, table := range found.Tables {
		content := files[table.File]
		refused(t, with(files, table.File, remove), table.File)
		refused(t, with(files, table.File, cut(len(content)-1)), table.File)
		refused(t, with(files, table.File, flipped(len(content)-1)), table.File)
	}
	refused(t, with(files, one(t, files, "OPTIONS-", ""), cut(0)), one(t, files, "OPTIONS-", ""))
	refused(t, with(files, JournalName, cut(0)), JournalName)
}

// A live log that is removed, or damaged in any of its commits but the last three, refuses the
// start. Only the log itself could prove that the last ones were on disk.
func TestDamagedLogIsRefused(t *testing.T) {
	files := killed(t, nil, func(db *DB) {
		for range 60 {
			mustWrite(t, db, "k="+strings.Repeat("v", 997))
		}
	})
	log := one(t, files, "", ".log")
	refused(t, with(files, log, remove), log)
	for offset := 0; offset < 56_000; offset += 499 {
		refused(t, with(files, log, flipped(offset)), log)
	}
}
