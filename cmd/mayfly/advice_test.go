package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mayflydb/mayfly"
)

// Each failure to open a database that a user can mend comes with the advice for it.
func TestAdviseOpen(t *testing.T) {
	for cause, advice := range map[error]string{
		mayfly.ErrLocked:     "another process has d open",
		mayfly.ErrForeign:    "an empty or a new directory",
		mayfly.ErrNoSpace:    "make room on the disk that holds d, then start again: nothing is lost",
		mayfly.ErrDamaged:    "nothing in d was changed; run `mayfly check d` for all faults, `mayfly salvage d --to NEW`",
		mayfly.ErrCorrupt:    "run `mayfly check d` for all faults, `mayfly salvage d --to NEW`",
		mayfly.ErrFormat:     "a newer mayfly wrote d: use that version",
		mayfly.ErrClockAhead: "set the machine's clock right",
	} {
		var out buffer
		if code := report(&out, adviseOpen(fmt.Errorf("open: %w", cause), "d")); code != exitError || !strings.Contains(out.String(), advice) {
			t.Errorf("%v: exit code %d, %q", cause, code, out.String())
		}
	}
}
