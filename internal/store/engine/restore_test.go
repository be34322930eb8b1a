package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflydb/mayfly/internal/store/kv"
)

// busyFS has no file descriptor for backups while busy is set.
type busyFS struct {
	kv.FS
	busy  atomic.Bool
	tried atomic.Int64
}

func (f *busyFS) List(dir string) ([]string, error) {
	if f.busy.Load() && strings.Contains(dir, backupsDir) {
		f.tried.Add(1)
		return nil, syscall.EMFILE
	}
	return f.FS.List(dir)
}

// An error that may pass delays a restore, and does not end it. Meanwhile its source is closed, and
// other restores do not spin.
func TestRestoreBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := &busyFS{FS: kv.NewMemFS()}
		d := open(t, crashOptions(fs))
		tab := d.table("events")
		for i := range 5 {
			d.put(tab, item("pk", fmt.Sprint(i), "sk", 1, "g", "x"))
		}
		want := d.items(tab, Range{})
		b := d.backup("events")
		fs.busy.Store(true)
		for i := range sourcesMax + 1 {
			if _, err := d.beginRestore(b, fmt.Sprint("again", i)); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if n := fs.tried.Load(); n < 4 || n > 40 {
			t.Errorf("%d attempts in ten seconds", n)
		}
		for i := range sourcesMax + 1 {
			if tab, err := d.TableToDescribe("default", fmt.Sprint("again", i)); err != nil || !tab.Desc().Restore.Running {
				t.Errorf("table %d under restore: %v", i, err)
			}
		}
		fs.busy.Store(false)
		time.Sleep(time.Minute)
		synctest.Wait()
		for i := range sourcesMax + 1 {
			d.wantItems(d.reopened(fmt.Sprint("again", i)), want)
		}
		d.verify()
		d.close()
	})
}

// A restore that meets an error closes its source, so that a restore that waits for one of the few
// can go on. Damage of the store itself is no damage of the backup: the table stays.
func TestRestoreClosesSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := open(t, crashOptions(kv.NewMemFS()))
		tab := d.table("events", func(td *TableDesc) { td.Indexes, td.TTL, td.Stream = nil, TTLDesc{}, StreamSpec{} })
		d.keepHistory("events", 1)
		for i := range 5 {
			d.put(tab, item("pk", fmt.Sprint(i), "sk", 1))
		}
		d.advance(time.Second)
		middle := d.Now()
		d.advance(time.Second)
		d.put(tab, item("pk", "0", "sk", 1, "v", 1))
		b := d.backup("events")
		if err := d.stop(); err != nil {
			t.Fatal(err)
		}
		var stuck []*Table
		for i := range sourcesMax {
			again, err := d.beginRestoreTo("events", middle, fmt.Sprint("stuck", i))
			if err != nil {
				t.Fatal(err)
			}
			for range 2 { // copies, and leaves the undoing
				if done, err := again.restoreStep(again.Desc()); err != nil {
					t.Fatal(done, err)
				}
			}
			batch := d.kv.NewBatch()
			batch.Set(keyOf(t, again, item("pk", "0", "sk", 1)).bytes(), []byte{0xff})
			if err := errors.Join(d.kv.Apply(batch), batch.Close()); err != nil {
				t.Fatal(err)
			}
			stuck = append(stuck, again)
		}
		if d.openSources != sourcesMax {
			t.Errorf("%d sources are open", d.openSources)
		}
		third, err := d.beginRestore(b, "third")
		if err != nil {
			t.Fatal(err)
		}
		d.stop = run(t, d.Engine).stop
		synctest.Wait()
		if third.Desc().Restore.Running {
			t.Error("the third restore waits")
		}
		for _, tab := range stuck {
			if desc, err := tab.live(); err != nil || !desc.Restore.Running {
				t.Errorf("table %s: %v", tab.Desc().Name, err)
			}
		}
		if err := d.stop(); err != nil {
			t.Fatal(err)
		}
		if d.openSources != 0 {
			t.Errorf("%d sources are open", d.openSources)
		}
		for _, tab := range stuck {
			if _, err := tab.restoreRound(context.Background(), tab.Desc()); errors.Is(err, errRestoreFailed) || !isDamage(err) || tab.source != nil {
				t.Errorf("got %v", err)
			}
		}
		d.stop = func() error { return nil }
		d.close()
	})
}
