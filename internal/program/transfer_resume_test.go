package program

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
)

// An import and a copy that end while they create the table complete it when they are repeated: the
// table has the TTL attribute of table.json or of the source.
func TestTransferCompletesTable(t *testing.T) {
	t.Parallel()
	s, db := memoryServer(t)
	side := sideOf(db, "things")
	if err := side.Create(t.Context(), thingsTable()); err != nil {
		t.Fatal(err)
	}
	put(t, side, thingsTable(), everyType)
	want := contents(t, db, "things")
	exported := t.TempDir()
	mustTransfer(t, "export", "--endpoint", s.url, "--table", "things", "--to", exported)
	for _, command := range []string{"import", "copy"} {
		for _, end := range []struct {
			name      string
			operation string // is cut
			after     string // once the endpoint has got this operation
			ttl       string // before the command is repeated
			log       string // of the first run, with TABLE
		}{
			{"before it is active", "DescribeTable", "CreateTable", "", ""},
			{"before TTL", "UpdateTimeToLive", "CreateTable", "", ""},
			{"interrupted", "UpdateTimeToLive", "CreateTable", "", "mayfly: interrupted while it created table \"TABLE\"\n  next: run the same command again to continue\n"},
			{"before its id is saved", "DescribeTable", "UpdateTimeToLive", "until", ""},
		} {
			t.Run(command+" "+end.name, func(t *testing.T) {
				table := strings.ReplaceAll(command+" "+end.name, " ", "-")
				g := newCutter(t, s.url)
				args := map[string][]string{
					"import": {"import", "--table", table, "--from", exported},
					"copy":   {"copy", "--table", "things", "--to-table", table},
				}[command]
				args = append(args, "--endpoint", g.URL, "--patience", "1ms", "--progress", filepath.Join(t.TempDir(), "p"))
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				reached := false
				g.set(func(operation string, _ int) bool {
					reached = reached || operation == end.after
					if !reached || operation != end.operation {
						return false
					}
					if end.log != "" {
						stop()
					}
					return true
				})
				_, log, code := runTransfer(ctx, args...)
				if want := strings.ReplaceAll(end.log, "TABLE", table); code != exitError || want != "" && log != want {
					t.Fatalf("exit code %d: %s", code, log)
				}
				if d, err := sideOf(db, table).Describe(t.Context()); err != nil || d.TimeToLiveAttribute != end.ttl {
					t.Fatalf("before the second run the TTL attribute is %q, want %q: %v", d.TimeToLiveAttribute, end.ttl, err)
				}
				g.set(func(string, int) bool { return false })
				mustTransfer(t, args...)
				if d, err := sideOf(db, table).Describe(t.Context()); err != nil || d.TimeToLiveAttribute != "until" {
					t.Errorf("the TTL attribute is %q: %v", d.TimeToLiveAttribute, err)
				}
				same(t, table, contents(t, db, table), want)
			})
		}
	}
}
