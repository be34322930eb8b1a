package stream

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"

	"github.com/mayflydb/mayfly/guard/internal/armed"
	"github.com/mayflydb/mayfly/guard/internal/strategy"
	"github.com/mayflydb/mayfly/guard/internal/table"
	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/ensure"
	"github.com/mayflydb/mayfly/internal/work/lease"
)

const (
	claimedAt = 1893456000_000 // ms
	silence   = 10_000         // ms: the duration of a lease
)

// openFleet opens a database with a guarded table and a table of deadlines.
func openFleet(t *testing.T) *dynamodb.Client {
	t.Helper()
	db := open(t)
	for _, spec := range []ensure.Spec{deadlinesSpec, {Name: "orders", Key: "pk"}} {
		_, err := ensure.Table(t.Context(), db, spec)
		must(t, err)
	}
	return db
}

// fleetWorker returns a worker of a fleet that has one partition.
func fleetWorker(t *testing.T, db *dynamodb.Client, name string) (*Strategy, *still) {
	t.Helper()
	g := &still{now: claimedAt, set: armed.New()}
	guarded, err := table.Describe(t.Context(), db, "orders")
	must(t, err)
	s := New(&strategy.Env{Guard: g, Armed: g.set, DB: db, Table: guarded, Log: slog.New(slog.DiscardHandler),
		Leases: lease.Options{Owner: name, Duration: silence * time.Millisecond}}, nil)
	s.divide([]*division{{number: 2, partitions: 1, spread: 1, since: claimedAt - minute}})
	return s, g
}

// shown returns the row of a deadline that the n-th record of a stream has shown.
func shown(key string, at int64, n string) *row {
	return rowOf(armed.Entry{Key: armed.Key("S\x01" + key), At: at}, byOf(1, n), claimedAt)
}

// The owner of a partition leaves a deadline to the worker that has written and armed it, as long as
// that worker lives and is not silent for long after the deadline. Until the deadline is armed or
// gone, each poll begins at it.
func TestClaims(t *testing.T) {
	for name, at := range map[string]int64{"ahead": claimedAt + 3000, "overdue": claimedAt - minute} {
		t.Run(name, func(t *testing.T) {
			db := openFleet(t)
			a, atA := fleetWorker(t, db, "a")
			b, atB := fleetWorker(t, db, "b")
			kind := b.store.newest().leases()
			b.met(kind, []string{"a", "b"})
			must(t, a.write(t.Context(), []*row{shown("x", at, "1")}, nil))
			if len(atA.entries) != 1 {
				t.Fatalf("the writer has armed %d deadlines", len(atA.entries))
			}
			o := &owner{partition: b.store.newest().parts[0], from: min(at, claimedAt) - minute}
			poll := func(now int64, armed int) {
				t.Helper()
				atB.now = now
				must(t, o.poll(t.Context()))
				if len(atB.entries) != armed {
					t.Fatalf("%d ms after the deadline the owner has armed %d deadlines, not %d", now-at, len(atB.entries), armed)
				}
				if armed == 0 && at > claimedAt && o.from > at {
					t.Errorf("%d ms after the deadline, the next poll begins after it", now-at)
				}
			}
			end := max(at, claimedAt) + silence
			poll(claimedAt, 0)
			poll(end-1, 0)
			poll(end, 1)
			poll(end+1000, 1)

			must(t, a.write(t.Context(), []*row{shown("y", at, "2")}, nil))
			o.from = at // as the next owner
			poll(claimedAt, 1)
			b.met(kind, []string{"b"})
			poll(claimedAt, 2)
		})
	}
}

// An owner with a backlog leaves deadlines to their writer for longer, but not for ever.
func TestClaimsWhenBehind(t *testing.T) {
	for behind, left := range map[int64]int64{0: 0, 1: 1, 30_000: 30_000, 4 * silence: 4 * silence, 30 * 86_400_000: 4 * silence} {
		db := openFleet(t)
		a, _ := fleetWorker(t, db, "a")
		b, atB := fleetWorker(t, db, "b")
		b.met(b.store.newest().leases(), []string{"a", "b"})
		const at = claimedAt + 100
		must(t, a.write(t.Context(), []*row{shown("x", at, "1")}, nil))
		o := &owner{partition: b.store.newest().parts[0], from: claimedAt - minute}
		for armings, now := range []int64{at + silence + left - 1, at + silence + left} {
			atB.set.Disarm("late")
			atB.set.Arm(armed.Entry{Key: "late", At: now - behind})
			atB.now = now
			must(t, o.poll(t.Context()))
			if n := len(atB.entries); n != armings {
				t.Errorf("%d ms behind, %d ms after the deadline: the owner has armed %d, not %d", behind, now-at, n, armings)
			}
		}
	}
}

// A row is left only to a living worker that was not silent for long, and a worker arms the rows of
// its own claims. It claims what it arms, and nothing else.
func TestIsClaimed(t *testing.T) {
	db := openFleet(t)
	a, _ := fleetWorker(t, db, "a")
	a.met(a.store.newest().leases(), []string{"a", "b"})
	o := &owner{partition: a.store.newest().parts[0]}
	const written, soon, ahead = "/1893456000000", "/1893456001000", "/9993456000000"
	for _, c := range []struct {
		claim      string
		left, mine bool
	}{
		{"", false, false},
		{"b", false, false},
		{shortName("b"), false, false},
		{shortName("b") + "/", false, false},
		{shortName("b") + "/x", false, false},
		{shortName("b") + "/1", false, false}, // long ago
		{shortName("b") + written, true, false},
		{shortName("b") + soon, true, false},
		{shortName("b") + ahead, false, false},   // the clock was wrong
		{shortName("c") + written, false, false}, // dead
		{shortName("a") + written, false, true},
	} {
		r := shown("x", claimedAt-minute, "1")
		if left := o.isClaimed(r, map[string]types.AttributeValue{attrClaim: attr.S(c.claim)}); left != c.left || r.mine != c.mine {
			t.Errorf("claim %q: it is left to another worker: %v; it is this worker's: %v", c.claim, left, r.mine)
		}
	}
	must(t, a.write(t.Context(), []*row{shown("far", claimedAt+10*minute, "1"), shown("near", claimedAt+2000, "2")}, nil))
	claims := map[string]bool{}
	d := a.store.newest()
	for _, m := range []int64{0, 10 * minute} {
		must(t, a.store.query(t.Context(), a.store.bucket(d, 0, claimedAt+m), "0", "~", 0, func(item map[string]types.AttributeValue) bool {
			r, err := readRow(item)
			must(t, err)
			claims[string(r.key[2:])] = item[attrClaim] != nil
			return true
		}))
	}
	if len(claims) != 2 || claims["far"] || !claims["near"] {
		t.Errorf("claimed: %v", claims)
	}
}

// A worker that no longer owns a partition keeps the deadlines that it has claimed: the next owner
// leaves them to it.
func TestClaimsOutliveOwnership(t *testing.T) {
	s, g := fleetWorker(t, openFleet(t), "a")
	must(t, s.write(t.Context(), []*row{shown("claimed", claimedAt-1000, "1")}, nil))
	p := s.store.newest().parts[0]
	p.armFound(shown("found", claimedAt-1000, "2"), false)
	p.leave()
	if _, kept := g.set.Deadline("S\x01claimed"); !kept || g.set.Len() != 1 {
		t.Errorf("the claimed one is kept: %v, of %d", kept, g.set.Len())
	}
}

// armings passes the keys of armed deadlines on.
type armings struct {
	strategy.Guard
	keys chan armed.Key
}

func (g armings) Now() int64        { return claimedAt }
func (g armings) Arm(e armed.Entry) { g.keys <- e.Key }

// A deadline whose row takes long to write delays no other, of a record or of a scan that writes its
// rows one by one.
func TestSlowRowDelaysNoOther(t *testing.T) {
	for _, scanned := range []bool{false, true} {
		t.Run(fmt.Sprint("scanned ", scanned), func(t *testing.T) { slowRowDelaysNoOther(t, scanned) })
	}
}

func slowRowDelaysNoOther(t *testing.T, scanned bool) {
	db := openFleet(t)
	others := make(chan struct{})
	slow, _ := sortKey(claimedAt-1000, "S\x01slow")
	db = dynamodb.New(db.Options(), func(o *dynamodb.Options) {
		o.APIOptions = append(slices.Clip(o.APIOptions), func(stack *middleware.Stack) error {
			return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("wait", func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
				if p, ok := in.Parameters.(*dynamodb.PutItemInput); ok && attr.String(p.Item[attrAt]) == slow {
					select {
					case <-others:
					case <-ctx.Done():
					}
				}
				return next.HandleInitialize(ctx, in)
			}), middleware.After)
		})
	})
	s, _ := fleetWorker(t, db, "a")
	s.singly.Store(scanned)
	arming := armings{keys: make(chan armed.Key, 10)}
	s.Guard = arming
	written := make(chan error, 1)
	go func() {
		const at = claimedAt - 1000
		rows := []*row{shown("slow", at, "1"), shown("b", at, "2"), shown("c", at, "3")}
		for _, r := range rows {
			if scanned {
				r.by, r.tag = "", 0
			}
		}
		written <- s.write(t.Context(), rows, nil)
	}()
	for range 2 {
		select {
		case k := <-arming.keys:
			if k == "S\x01slow" {
				t.Error("the slow one is armed before it is written")
			}
		case <-time.After(20 * time.Second):
			t.Fatal("the others are not armed")
		}
	}
	close(others)
	must(t, <-written)
	if k := <-arming.keys; k != "S\x01slow" {
		t.Errorf("%q is armed", k)
	}
}
