package main

import (
	"bytes"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/guard"
	"github.com/mayflydb/mayfly/internal/front/admin"
)

// After the answer no, guard keeps the exit code of the problem, and does not claim that nothing was
// removed if another table was guarded, or the overdue items were found in the middle of a scan.
func TestDeclined(t *testing.T) {
	for want, work := range map[string]guardWork{
		"mayfly: cancelled: nothing was removed\n  next: check it\n":                            {},
		"mayfly: cancelled: guard has ended, after 0 confirmed removals\n  next: check it\n":    {begun: true}, // an answer may be lost
		"mayfly: cancelled: guard has ended, after 1000 confirmed removals\n  next: check it\n": {begun: true, removed: 1000},
	} {
		problem := &guard.Problem{Code: guard.ManyOverdue, Message: "many", Next: "check it", Err: &guard.Overdue{Table: "people"}}
		var said bytes.Buffer
		if code := report(&said, &declined{(&endpoint{}).adviseGuard(problem), work}); code != exitLimit || said.String() != want {
			t.Errorf("exit code %d: %s", code, &said)
		}
	}
}

// The work of guards that have ended counts: of one that has begun, and of one that could not.
func TestGuardWork(t *testing.T) {
	server, err := startServer(t.TempDir(), nil, "--memory", "--expiry", "aws", "--expiry-delay", "fixed:1000h")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.kill)
	db := clientOf(server.url, "any", "any")
	makeExpiring(t, db, "people")
	putExpired(t, db, "people", "ada", time.Second)
	var done guardWork
	for _, c := range []struct {
		table string
		want  guardWork
	}{{"missing", guardWork{}}, {"people", guardWork{true, 1}}} {
		one := &guarded{table: c.table}
		one.Guard, err = guard.New(guard.Options{DB: db, Table: c.table, Strategy: guard.Scan, Alone: true, MaxRemovals: 1, Observe: one.observer(admin.NewGuard(nil), c.table, false)})
		if err != nil {
			t.Fatal(err)
		}
		err := one.Run(t.Context())
		if done.add([]*guarded{one}); done != c.want {
			t.Errorf("%s: %+v, want %+v; guard ended with %v", c.table, done, c.want, err)
		}
	}
}
