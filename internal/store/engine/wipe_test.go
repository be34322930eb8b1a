package engine

import (
	"fmt"
	"testing"

	"github.com/mayflydb/mayfly/internal/store/kv"
)

// A power cut during a wipe leaves everything or nothing, and what follows works.
func TestWipePowerCut(t *testing.T) {
	whole, empty := 0, 0
	for cut := int64(1); ; cut++ {
		disk := kv.NewCrashFS()
		options := func(fs kv.FS) Options {
			return Options{Dir: "data", FS: fs, Clock: frozenClock(), ClockControl: true, ReserveBytes: -1}
		}
		d := open(t, options(disk))
		tab, streamed := d.table("plain", bareTable), d.table("streamed") // with records and index entries
		for i := range 20 {
			d.put(tab, item("pk", fmt.Sprint(i), "sk", 1))
			d.put(streamed, item("pk", fmt.Sprint(i), "sk", 1))
		}
		if _, err := d.CreateBackup(t.Context(), "default", "plain", "first"); err != nil {
			t.Fatal(err)
		}
		if err := d.stop(); err != nil {
			t.Fatal(err)
		}
		if err := d.Engine.Close(); err != nil {
			t.Fatal(err)
		}
		disk.CutAfter(disk.Ops() + cut)
		err := Wipe(options(disk))
		wasCut := disk.WasCut()
		d = open(t, options(disk.AfterCrash()))
		names, _, listErr := d.TableNames("default", "", 10)
		backups, backupErr := d.Backups()
		switch {
		case listErr != nil || backupErr != nil:
			t.Fatal(listErr, backupErr)
		case len(names) == 0 && len(backups) == 0:
			empty++
			d.put(d.table("plain", bareTable), item("pk", "new", "sk", 1))
		case err == nil:
			t.Fatalf("cut at operation %d: Wipe succeeded, and %q and %d backups are left", cut, names, len(backups))
		case len(names) == 2 && len(backups) == 1:
			whole++
			again, err := d.Table("default", "plain")
			if err != nil {
				t.Fatal(err)
			}
			d.put(again, item("pk", "new", "sk", 1))
		default:
			t.Fatalf("cut at operation %d: %q and %d backups are left", cut, names, len(backups))
		}
		if !wasCut {
			break
		}
	}
	if whole == 0 || empty < 2 {
		t.Errorf("%d cuts left everything, %d nothing", whole, empty)
	}
}
