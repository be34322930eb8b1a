package kv

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/mayflydb/mayfly/internal/testkit"
)

// backlog simulates a store with waiting compactions.
type backlog struct {
	limit, waiting int
	asked          int // calls of the scheduler
	granted        []pebble.CompactionGrantHandle
	gone           bool   // it says once that a compaction waits although none does
	none           func() // runs when it is known that none waits
}

func (b *backlog) GetAllowedWithoutPermission() int { b.asked++; return b.limit }

func (b *backlog) GetWaitingCompaction() (bool, pebble.WaitingCompaction) {
	b.asked++
	if b.gone {
		b.gone = false
		return true, pebble.WaitingCompaction{}
	}
	if b.waiting == 0 && b.none != nil {
		defer b.none()
	}
	return b.waiting > 0, pebble.WaitingCompaction{}
}

func (b *backlog) Schedule(g pebble.CompactionGrantHandle) bool {
	if b.waiting == 0 {
		defer b.none()
		return false
	}
	b.waiting--
	b.granted = append(b.granted, g)
	return true
}

func newTestScheduler(t *testing.T, db pebble.DBForCompaction) *scheduler {
	var b background
	b.init()
	t.Cleanup(b.stop)
	s := newScheduler(&b)
	s.Register(1, db)
	if ok, _ := s.TrySchedule(); ok {
		t.Error("granted before Pebble is open")
	}
	s.mu.opened = true
	return s
}

// The scheduler never exceeds the limit, and the end of a compaction grants its place to a waiting
// one.
func TestCompactionsAreLimited(t *testing.T) {
	db := &backlog{limit: 2, waiting: 3}
	s := newTestScheduler(t, db)
	_, first := s.TrySchedule()
	if ok, _ := s.TrySchedule(); !ok {
		t.Fatal("the second of two was refused")
	}
	if ok, _ := s.TrySchedule(); ok {
		t.Fatal("a third of two was granted")
	}
	first.Done()
	if len(db.granted) != 1 {
		t.Errorf("one ended, %d granted", len(db.granted))
	}
	db.limit = 4
	db.granted[0].Done()
	if db.waiting != 0 || s.mu.running != 3 {
		t.Errorf("after the limit grew %d run and %d wait", s.mu.running, db.waiting)
	}
	s.Unregister()
	db.waiting = 1
	db.granted[1].Done()
	if ok, _ := s.TrySchedule(); ok || db.waiting != 1 {
		t.Error("granted after Unregister")
	}
}

// A compaction that becomes due while the scheduler looks for waiting ones does not wait until
// another one ends. Pebble does not ask again for a compaction that was refused, so all others would
// wait for ever too.
func TestDueWhileGranting(t *testing.T) {
	for _, gone := range []bool{false, true} { // a compaction that waited is no longer due once it has a place
		t.Run(fmt.Sprint("gone ", gone), func(t *testing.T) {
			db := &backlog{limit: 1, gone: gone}
			s := newTestScheduler(t, db)
			due := 0
			db.none = func() {
				db.none = func() {}
				due++
				if ok, g := s.TrySchedule(); ok {
					db.granted = append(db.granted, g)
				} else {
					db.waiting++
				}
			}
			_, first := s.TrySchedule()
			first.Done()
			if due != 1 || len(db.granted) != 1 || db.waiting != 0 {
				t.Errorf("%d became due, %d were granted, and %d wait although none runs", due, len(db.granted), db.waiting)
			}
		})
	}
}

// compactionFS calls back before a compaction creates a table.
type compactionFS struct {
	FS
	creates func()
}

func (fs compactionFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if category == "pebble-compaction" {
		fs.creates()
	}
	return fs.FS.Create(name, category)
}

// A store that was not closed opens without waiting for the compaction that the flush of its log
// makes due. That compaction begins afterwards.
func TestOpensBeforeCompactions(t *testing.T) {
	disk := NewCrashFS()
	db := open(t, crashOpts(disk))
	db.compactions.damaged.failures.Store(10) // for a pause of a minute
	db.compactions.pause(&db.compactions.damaged)
	for n := range 60 {
		mustWrite(t, db, batchOf(0, n)...)
	}
	if n := db.pebble.Metrics().Levels[0].TablesCount; n < 4 {
		t.Fatalf("level 0 has %d tables, too few for a compaction", n)
	}
	disk.CutNow()
	began, resume := make(chan struct{}, 100), make(chan struct{})
	late := time.AfterFunc(20*time.Second, func() {
		t.Error("the store waits for a compaction before it opens")
		close(resume)
	})
	open(t, crashOpts(compactionFS{disk.AfterCrash(), func() { began <- struct{}{}; <-resume }}))
	if late.Stop() {
		close(resume)
	}
	<-began
}

// During a pause no compaction begins. Its end grants the free places.
func TestPausedCompactions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &backlog{limit: 1, waiting: 1}
		s := newTestScheduler(t, db)
		s.pause(&s.short)
		if ok, _ := s.TrySchedule(); ok {
			t.Error("granted during a pause")
		}
		time.Sleep(pauseFirst + time.Nanosecond)
		synctest.Wait()
		if len(db.granted) != 1 {
			t.Errorf("%d granted after the pause", len(db.granted))
		}
	})
}

// IdleIsFree: without compactions the scheduler has no timer and calls nothing.
func TestIdleSchedulerIsFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &backlog{limit: 1, waiting: 1}
		s := newTestScheduler(t, db)
		_, first := s.TrySchedule()
		first.Done()
		db.granted[0].Done()
		asked, began := db.asked, testkit.Wakeups()
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		if n := testkit.Wakeups() - began; n > 1000 || db.asked != asked {
			t.Errorf("%d calls and %d wake-ups in an idle day", db.asked-asked, n)
		}
		s.Unregister()
	})
}
