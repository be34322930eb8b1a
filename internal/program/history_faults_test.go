//go:build invariants

package program

import (
	"cmp"
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The checks of a real server notice that it is broken on purpose. Each runs in a process of its
// own, whose servers have the fault; without a fault it passes.
func TestChecksNoticeFaults(t *testing.T) {
	const lost = "the record of an acknowledged change is lost"
	const graph = "each of which comes before the next" // of the checker of transactions
	histories, kills := []string{"-test.run=^TestHistories$", "-operations=200000"}, []string{"-test.run=^TestKillNine$", "-kills=200"}
	for _, c := range []struct {
		fault string // "": none
		args  []string
		wants []string // one of these is in the output
	}{
		{"", []string{"-test.run=^TestHistories$|^TestKillNine$", "-operations=4000", "-kills=3"}, []string{"PASS"}},
		{"ShowExpired", histories, []string{"no order explains"}},
		{"FireEarly", histories, []string{"no order explains"}},
		{"ShowExpired", append(histories, "-only=lists"), []string{graph}},
		{"FireEarly", append(histories, "-only=lists"), []string{graph}},
		{"SkipRecheck", histories, []string{"no order explains", "removed an item without a deadline"}},
		{"ServeUndurable", histories, []string{"no order explains", "never was"}},
		{"AckBeforeSync", histories, []string{"no order explains", "never was", "is lost"}},
		{"AckBeforeSync", kills, []string{lost}},
		{"FireEarly", kills, []string{"removed by the service before its deadline", "records of nothing"}},
	} {
		t.Run(cmp.Or(c.fault, "none")+"/"+strings.Trim(c.args[0], "-^$=.")[len("test.run=^"):]+"/"+c.args[len(c.args)-1], func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
			defer cancel()
			command := exec.CommandContext(ctx, os.Args[0], append(c.args, "-test.v")...)
			command.Env = append(os.Environ(), "BREAK_WITH="+c.fault, "TMPDIR="+t.TempDir())
			command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // with its servers
			command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
			out, err := command.CombinedOutput()
			found := slices.ContainsFunc(c.wants, func(want string) bool { return strings.Contains(string(out), want) })
			if (err == nil) != (c.fault == "") || !found {
				t.Errorf("%v, and the output has none of %q:\n%.8000s", err, c.wants, out)
			}
		})
	}
}
