package program

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// TestBackupUnderLoad backs up a real server at random instants while writers write, and kills it in
// the middle of the last backup. Each backup, restored, is the database at one instant between the
// beginning and the end of its command: every change that was acknowledged before the beginning is
// there, changes of a key appear in their order, transactions whole, items with their index entries
// and stream records, and expired ones are gone at the first read and leave one record. The relations
// between all parts of the restored directory are checked too.
func TestBackupUnderLoad(t *testing.T) {
	t.Parallel()
	backups := 6
	if testing.Short() {
		backups = 2
	}
	for name, args := range map[string][]string{"sync": nil, "async": {"--durability", "async"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seed := uint64(time.Now().UnixNano())
			t.Logf("seed %d", seed)
			random := rand.New(rand.NewPCG(seed, 1000))
			dir, place := t.TempDir(), filepath.Join(t.TempDir(), "backups")
			s := serveDir(t, dir, args...)
			api, _ := s.clients()
			stream, err := createEvents(t.Context(), api)
			if err != nil {
				t.Fatal(err)
			}
			var running sync.WaitGroup
			writers := make([]*writer, 16)
			for i := range writers {
				writers[i] = newWriter(i, rand.New(rand.NewPCG(seed, uint64(i))))
				running.Go(func() { writers[i].write(t.Context(), api) })
			}
			var taken []instants
			for range backups {
				time.Sleep(time.Duration(random.IntN(300)) * time.Millisecond)
				begun := time.Now()
				out, log, code := runProgram("backup", "--endpoint", s.url, "--to", place)
				if code != 0 {
					t.Fatalf("a backup ends with code %d: %s", code, log)
				}
				id, _, _ := strings.Cut(out, ":")
				taken = append(taken, instants{id, begun, time.Now()})
			}
			killDuringBackup(t, s, place, time.Duration(random.IntN(20))*time.Millisecond)
			running.Wait()

			for _, b := range taken {
				restored := filepath.Join(t.TempDir(), "restored")
				if _, log, code := runProgram("restore", "--from", place, "--backup", b.id, "--to", restored); code != 0 {
					t.Fatalf("a restore ends with code %d: %s", code, log)
				}
				s := serveDir(t, restored, args...)
				asOf := ledgersOf(t, s, stream, writers, b)
				audit(t, s, stream, asOf)
				awaitExpiries(t, s, stream, asOf)
				if code, err := s.stop(syscall.SIGTERM); err != nil || code != "0" {
					t.Errorf("the server ends with %s, %v", code, err)
				}
				if out, log, code := runProgram("check", restored); code != 0 {
					t.Errorf("the check ends with code %d: %s%s", code, out, log)
				}
			}

			s = serveDir(t, dir, args...)
			if left, _ := filepath.Glob(filepath.Join(dir, ".mayfly-copy-*")); len(left) > 0 {
				t.Errorf("the kill has left %q", left)
			}
			if _, log, code := runProgram("backup", "--endpoint", s.url, "--to", place); code != 0 {
				t.Errorf("after the kill a backup ends with code %d: %s", code, log)
			}
			if _, log, code := runProgram("restore", "--from", place, "--check"); code != 0 {
				t.Errorf("a check of the backups ends with code %d: %s", code, log)
			}
		})
	}
}

// instants are the bounds of a backup.
type instants struct {
	id           string
	begun, ended time.Time
}

// killDuringBackup kills the server soon after a backup has begun. The backup may be complete.
func killDuringBackup(t *testing.T, s *served, place string, after time.Duration) {
	t.Helper()
	c := exec.Command("mayfly", "backup", "--endpoint", s.url, "--to", place)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(after)
	if code, err := s.stop(syscall.SIGKILL); err != nil || code != "killed" {
		t.Errorf("the server ended by itself: %s, %v", code, err)
	}
	if _ = c.Wait(); c.ProcessState.ExitCode() > exitError {
		t.Errorf("the backup of a killed server ends with %d", c.ProcessState.ExitCode())
	}
}

// ledgersOf returns the ledgers as a restored server shows them: with all changes that were
// acknowledged before the backup, and those later ones that its stream has. No change may be there
// that began after the backup had ended.
func ledgersOf(t *testing.T, s *served, stream string, writers []*writer, b instants) []*writer {
	t.Helper()
	_, streams := s.clients()
	events := readEvents(t, streams, stream)
	asOf := make([]*writer, len(writers))
	for i, w := range writers {
		asOf[i] = &writer{owner: w.owner}
		for _, l := range w.ledgers {
			asOf[i].ledgers = append(asOf[i].ledgers, l.asOf(t, events[l.pk], b))
		}
	}
	return asOf
}

// asOf returns the shortest history of a key that explains its records and has all changes from
// before the backup. The history may end with a change that was not acknowledged yet.
func (l *ledger) asOf(t *testing.T, events []event, b instants) *ledger {
	t.Helper()
	all := slices.Clone(l.acknowledged)
	if l.underWay != nil {
		all = append(all, *l.underWay)
	}
	least := 0
	for least < len(l.acknowledged) && all[least].answered.Before(b.begun) {
		least++
	}
	for n := least; n <= len(all); n++ {
		history := &ledger{pk: l.pk, owner: l.owner, acknowledged: all[:n:n]}
		if history.explains(events) {
			if n > 1 && all[n-2].answered.After(b.ended) {
				t.Errorf("%s: the backup of %v has change %+v, which began later", l.pk, b, all[n-1])
			}
			return history
		}
	}
	t.Errorf("%s: no history with the first %d of %d changes explains %+v", l.pk, least, len(all), events)
	return &ledger{pk: l.pk, owner: l.owner, acknowledged: all[:least:least]}
}

// explains reports whether the records, but for removals by the service, are those of the history.
func (l *ledger) explains(events []event) bool {
	wrong, _ := l.compareRecords(&found{events: events}, time.Now(), false)
	return len(wrong) == 0
}

// runProgram runs a command in a process of its own.
func runProgram(args ...string) (out, log string, code int) {
	return runWith(nil, args...)
}

// runWith is runProgram with further environment variables.
func runWith(environment []string, args ...string) (out, log string, code int) {
	var stdout, stderr strings.Builder
	c := exec.Command("mayfly", args...)
	c.Env, c.Stdout, c.Stderr = append(os.Environ(), environment...), &stdout, &stderr
	if err := c.Run(); c.ProcessState == nil {
		return "", err.Error(), -1
	}
	return stdout.String(), stderr.String(), c.ProcessState.ExitCode()
}
