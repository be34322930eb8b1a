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
		mayfly.ErrLocked:     "stop the other process that uses d",
		mayfly.ErrForeign:    "an empty or new directory",
		mayfly.ErrNoSpace:    "free space on the disk that holds d, then start again: nothing is lost",
		mayfly.ErrDamaged:    "nothing in d was changed; list all faults with `mayfly check d`; then restore a backup, or copy the readable part with `mayfly salvage d --to NEW`",
		mayfly.ErrCorrupt:    "list all faults with `mayfly check d`; then restore a backup, or copy the readable part with `mayfly salvage d --to NEW`",
		mayfly.ErrFormat:     "open d with the newer mayfly that wrote it",
		mayfly.ErrClockAhead: "correct the machine's clock",
	} {
		var out buffer
		if code := report(&out, adviseOpen(fmt.Errorf("open: %w", cause), "d")); code != exitError || !strings.Contains(out.String(), advice) {
			t.Errorf("%v: exit code %d, %q", cause, code, out.String())
		}
	}
}
