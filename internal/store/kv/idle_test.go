package kv

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflydb/mayfly/internal/testkit"
)

// An idle open store does nothing. (Pebble's own scheduler would wake 864,000 times in this day.)
func TestIdleIsFree(t *testing.T) {
	for _, d := range []Durability{Sync, Async, Memory} {
		synctest.Test(t, func(t *testing.T) {
			db, err := Open(Options{FS: NewMemFS(), Durability: d})
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			mustWrite(t, db, "a=1")
			time.Sleep(time.Minute)
			before := testkit.Wakeups()
			time.Sleep(24 * time.Hour)
			if n := testkit.Wakeups() - before; n > 1000 {
				t.Errorf("%v: %d wake-ups in an idle day", d, n)
			}
		})
	}
}
