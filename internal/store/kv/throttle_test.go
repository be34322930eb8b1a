package kv

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// flushes writes and flushes so many tables that overlap, all in level 0.
func flushes(db *DB, tables int) error {
	for n := range tables {
		if err := errors.Join(write(db, fmt.Sprintf("a=%d", n), fmt.Sprintf("z=%d", n)), db.Flush()); err != nil {
			return fmt.Errorf("table %d: %w", n, err)
		}
	}
	return nil
}

// Writes wait while level 0 is deep and a compaction is under way. They continue when it succeeds.
func TestWritesWaitForCompactions(t *testing.T) {
	var compacting, hold atomic.Bool
	hold.Store(true)
	release := make(chan struct{})
	letGo := sync.OnceFunc(func() {
		hold.Store(false)
		close(release)
	})
	opts := crashOpts(NewMemFS())
	opts.FS = errorfs.Wrap(opts.FS, errorfs.InjectorFunc(func(op errorfs.Op) error {
		// A compaction opens tables to read them; nothing else here reads.
		if hold.Load() && op.Kind == errorfs.OpFileReadAt && isTable(op.Path) {
			compacting.Store(true)
			<-release
		}
		return nil
	}))
	db := open(t, opts)
	t.Cleanup(letGo) // before db is closed
	done := make(chan error, 1)
	go func() { done <- flushes(db, 2*deepestLevelZero) }()
	for limit := time.Now().Add(30 * time.Second); db.pebble.Metrics().Levels[0].Sublevels < deepestLevelZero; time.Sleep(time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("level 0 has %d tables", db.pebble.Metrics().Levels[0].TablesCount)
		}
	}
	select {
	case err := <-done:
		t.Fatalf("the writes did not wait: %v", err)
	case <-time.After(200 * time.Millisecond):
	}
	if !compacting.Load() {
		t.Error("there was no compaction")
	}
	letGo()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if got := get(t, db, "z"); got != fmt.Sprint(2*deepestLevelZero-1) {
		t.Errorf("z is %s", got)
	}
}

// A damaged file in level 0, which no compaction removes, does not block writes.
func TestWritesPassDamage(t *testing.T) {
	var bad atomic.Value // the damaged file's name
	opts := crashOpts(NewMemFS())
	opts.FS = errorfs.Wrap(opts.FS, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if name, ok := bad.Load().(string); ok && op.Kind == errorfs.OpFileReadAt && filepath.Base(op.Path) == name {
			return errors.New("the disk cannot read this file")
		}
		return nil
	}))
	db := open(t, opts)
	if err := flushes(db, 1); err != nil {
		t.Fatal(err)
	}
	bad.Store(tableFiles(t, opts.FS)[0])
	done := make(chan error, 1)
	go func() { done <- flushes(db, 2*deepestLevelZero) }()
	select {
	case err := <-done:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the writes stand still")
	}
	if depth := db.pebble.Metrics().Levels[0].Sublevels; depth < deepestLevelZero {
		t.Errorf("level 0 is only %d deep: this test is too mild", depth)
	}
	if got := get(t, db, "z"); got != fmt.Sprint(2*deepestLevelZero-1) {
		t.Errorf("z is %s", got)
	}
	if found := db.Damages(); len(found) != 1 || db.Failed() != nil {
		t.Errorf("damages %v, failed %v", found, db.Failed())
	}
}
