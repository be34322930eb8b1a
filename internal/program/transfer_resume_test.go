package program

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/mayflydb/mayfly/internal/work/transfer"
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

// A half-finished run does not continue with other files or another table of the same name. The repeated
// command names the difference, and writes nothing.
func TestTransferChangedMeanwhile(t *testing.T) {
	t.Parallel()
	s, db := memoryServer(t)
	table, err := transfer.Keyed("pk", "S", "", "")
	if err != nil {
		t.Fatal(err)
	}
	create := func(t *testing.T, name string, items ...string) {
		t.Helper()
		if err := sideOf(db, name).Create(t.Context(), table); err != nil {
			t.Fatal(err)
		}
		put(t, sideOf(db, name), table, items)
	}
	again := func(t *testing.T, name string) {
		t.Helper()
		if _, err := db.DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: &name}); err != nil {
			t.Fatal(err)
		}
		create(t, name)
	}
	const (
		first  = `{"pk":{"S":"first"}}`
		second = `{"pk":{"S":"other"}}` // of the same length
	)
	write := func(t *testing.T, dir, item string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "files", "a.json"), []byte(`{"Item":`+item+`}`), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const (
		importArgs = "import --table TO --from DIR/files --key pk:S --progress DIR/p"
		copyArgs   = "copy --table FROM --to-table TO --progress DIR/p"
		exportArgs = "export --table FROM --to DIR"
	)
	for i, c := range []struct {
		name, args string
		cut        string // the operation that ends the first run
		change     func(t *testing.T, dir, from, to string)
		want       string   // with DIR, FROM, TO, URL and ID, the name of the export
		left       []string // the items of TO afterwards; nil if it does not exist
	}{
		{"import of other files", importArgs, "BatchWriteItem", func(t *testing.T, dir, _, _ string) { write(t, dir, second) },
			"the files in DIR/files have changed since the half-finished import began\n  next: remove DIR/p, then import all again with --into-existing", []string{}},
		{"import into another table", importArgs, "BatchWriteItem", func(t *testing.T, _, _, to string) { again(t, to) },
			`table "TO" was deleted and created again since the half-finished import began` + "\n  next: remove DIR/p to begin anew", []string{}},
		{"import into a table of someone else", importArgs, "CreateTable", func(t *testing.T, _, _, to string) { create(t, to, second) },
			`table "TO" exists, and the half-finished import has not written to it` + "\n  next: remove DIR/p to begin anew, then add --into-existing", []string{second}},
		{"import into a table with other keys", importArgs, "CreateTable", func(t *testing.T, _, _, to string) {
			other, err := transfer.Keyed("pk", "S", "sk", "N")
			if err == nil {
				err = sideOf(db, to).Create(t.Context(), other)
			}
			if err != nil {
				t.Fatal(err)
			}
		}, `table "TO" at URL: its keys are [pk:S sk:N]; the source has [pk:S]` + "\n  next: repeat the half-finished import with its own --key and --sort, or import into another table", []string{}},
		{"copy to another table", copyArgs, "BatchWriteItem", func(t *testing.T, _, _, to string) { again(t, to) },
			`table "TO" was deleted and created again since the half-finished copy began` + "\n  next: remove DIR/p to begin anew", []string{}},
		{"copy to a table of someone else", copyArgs, "CreateTable", func(t *testing.T, _, _, to string) { create(t, to, second) },
			`table "TO" exists, and the half-finished copy has not written to it` + "\n  next: remove DIR/p to begin anew, then add --into-existing", []string{second}},
		{"copy of another table", copyArgs, "BatchWriteItem", func(t *testing.T, _, from, _ string) { again(t, from) },
			`table "FROM" was deleted and created again since the half-finished copy began` + "\n  next: remove DIR/p to begin anew", []string{}},
		{"export of another table", exportArgs, "Scan", func(t *testing.T, _, from, _ string) { again(t, from) },
			`DIR/AWSDynamoDB/ID is a half-finished export of an earlier table "FROM", which was deleted` + "\n  next: remove DIR/AWSDynamoDB/ID to begin anew, or use another --to", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, from, to := t.TempDir(), fmt.Sprint("from-", i), fmt.Sprint("to-", i)
			create(t, from, first)
			if err := os.Mkdir(filepath.Join(dir, "files"), 0o700); err != nil {
				t.Fatal(err)
			}
			write(t, dir, first)
			g := newCutter(t, s.url)
			args := strings.Fields(strings.NewReplacer("DIR", dir, "FROM", from, "TO", to).Replace(c.args))
			args = append(args, "--endpoint", g.URL, "--patience", "1ms")
			g.set(func(operation string, _ int) bool { return operation == c.cut })
			if _, log, code := runTransfer(t.Context(), args...); code != exitError {
				t.Fatalf("the first run: exit code %d: %s", code, log)
			}
			c.change(t, dir, from, to)
			g.set(func(string, int) bool { return false })
			_, log, code := runTransfer(t.Context(), args...)
			folders, _ := filepath.Glob(filepath.Join(dir, "AWSDynamoDB", "*"))
			id := filepath.Base(strings.Join(folders, ""))
			if want := "mayfly: " + strings.NewReplacer("DIR", dir, "FROM", from, "TO", to, "URL", g.URL, "ID", id).Replace(c.want) + "\n"; code == exitOK || log != want {
				t.Errorf("exit code %d\n%swant\n%s", code, log, want)
			}
			if c.left != nil {
				same(t, to, contents(t, db, to), c.left)
			} else if _, err := sideOf(db, to).Describe(t.Context()); !transfer.Missing(err) {
				t.Errorf("%s exists: %v", to, err)
			}
		})
	}
}
