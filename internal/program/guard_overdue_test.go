package program

import (
	"bytes"
	"context"
	"testing"
	"testing/synctest"
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

// --stop-after counts the time before and after a question, without the question.
func TestStopAfterQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		guardAll := func(ctx context.Context, accepted map[string]bool) ([]*guarded, error) {
			if !accepted["people"] {
				time.Sleep(20 * time.Minute)
				return nil, &guard.Overdue{}
			}
			begun := time.Now()
			<-ctx.Done()
			if took := time.Since(begun); took != 40*time.Minute {
				t.Errorf("after the question it guards for %v", took)
			}
			return nil, nil
		}
		err := limitFlags{StopAfter: time.Hour}.guardAsking(t.Context(), guardAll, func(err error, _ guardWork) (string, error) {
			if err == nil {
				return "", nil
			}
			asked++
			time.Sleep(3 * time.Hour)
			return "people", nil
		})
		if err != nil || asked != 1 {
			t.Errorf("it ended with %v after %d questions", err, asked)
		}
	})
}
