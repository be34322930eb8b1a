package guard

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"

	"github.com/mayflydb/mayfly/guard/internal/audit"
	"github.com/mayflydb/mayfly/guard/internal/strategy"
	"github.com/mayflydb/mayfly/guard/internal/stream"
	"github.com/mayflydb/mayfly/internal/testkit"
	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/lease"
)

// audited are the strategies that have an audit.
var audited = []Strategy{Stream, Index, Schedule}

// audits runs a test for each of them, in virtual time.
func audits(t *testing.T, test func(t *testing.T, w *world, o Options)) {
	for _, strategy := range audited {
		t.Run(string(strategy), func(t *testing.T) {
			bubbled(t, func(t *testing.T, w *world) { test(t, w, w.auditOptions(strategy)) })
		})
	}
}

// auditEvery is the time between two audits in these tests: a guard that idles through a day takes
// long. A pass that is due ends within auditPass, which has room for the two hours that the audit
// gives the index's patrol.
var auditEvery = testkit.Size(2*time.Hour, 24*time.Hour)

const auditPass = 3 * time.Hour

func (w *world) auditOptions(s Strategy) Options {
	o := w.options(s)
	o.LocalClock, o.AuditEvery = true, auditEvery
	if s == Index {
		o.Period = time.Minute // a test of many hours has fewer sweeps
	}
	if s == Schedule {
		o.Scheduler, o.Role = w.Scheduler(), testRole
	}
	return o
}

// lose writes an item that is due in a while, and has the strategy forget it.
func (w *world) lose(s Strategy, name string, in int64) {
	w.t.Helper()
	w.put(name, w.in(in))
	switch s { // the index is sparse, so it does not have the item
	case Stream:
		time.Sleep(10 * time.Second)
		w.forgetDeadline(name)
	case Schedule:
		time.Sleep(10 * time.Second)
		group, all := ScheduleGroup(worldTable), w.schedules()
		for _, one := range all {
			if strings.Contains(aws.ToString(one.Target.Input), name) {
				must(w.t, second(w.Scheduler().DeleteSchedule(context.Background(), &scheduler.DeleteScheduleInput{GroupName: &group, Name: one.Name})))
				return
			}
		}
		w.t.Fatalf("%s has no schedule", name)
	}
}

// forgetDeadline deletes an item's row in the deadline table.
func (w *world) forgetDeadline(name string) {
	w.t.Helper()
	out, err := w.DynamoDB().Scan(context.Background(), &dynamodb.ScanInput{TableName: aws.String(stream.TableName), ConsistentRead: aws.Bool(true)})
	must(w.t, err)
	for _, item := range out.Items {
		_, text, _ := strings.Cut(attr.String(item["at"]), "/")
		if key, err := base64.RawURLEncoding.DecodeString(text); err != nil || !strings.Contains(string(key), name) {
			continue
		}
		_, err := w.DynamoDB().DeleteItem(context.Background(), &dynamodb.DeleteItemInput{
			TableName: aws.String(stream.TableName), Key: map[string]types.AttributeValue{"part": item["part"], "at": item["at"]},
		})
		must(w.t, err)
		return
	}
	w.t.Fatalf("%s has no row in %s", name, stream.TableName)
}

// The audit removes an overdue item that the strategy did not know of, and counts it as missed. The
// strategy's own items are not, nor those that stay.
func TestAuditFindsMissedItems(t *testing.T) {
	t.Parallel()
	audits(t, func(t *testing.T, w *world, o Options) {
		events := &recorder{}
		o.Observe = events.observe
		r := w.start(o)
		time.Sleep(time.Minute)
		w.putWindowed("own", w.in(600))
		w.put("later", w.in(100*3600))
		w.put("mistake", w.in(-6*365*24*3600)) // is taken for one, and stays
		w.lose(o.Strategy, "lost", 600)
		time.Sleep(10*time.Minute + time.Second) // not the instant of the removal itself
		if !w.has("lost") || w.has("own") {
			t.Fatalf("after its deadline, lost: %v, own: %v", w.has("lost"), w.has("own"))
		}
		time.Sleep(auditEvery + auditPass)
		if w.has("lost") || !w.has("later") || !w.has("mistake") {
			t.Errorf("lost: %v, later: %v, mistake: %v", w.has("lost"), w.has("later"), w.has("mistake"))
		}
		missed := events.of(Missed)
		if len(missed) != 1 || missed[0].Key != `{"pk":{"S":"lost"}}` || r.Stats().Counts[Missed] != 1 {
			t.Errorf("missed: %+v", missed)
		}
		must(t, r.stop())
	})
}

// A worker with memory for few deadlines, as one that is alone has it, audits all the same.
func TestAuditWithLittleMemory(t *testing.T) {
	t.Parallel()
	bubbled(t, func(t *testing.T, w *world) {
		g, err := New(w.auditOptions(Stream))
		must(t, err)
		g.armed.Most = strategy.RoomKept / 2
		r := w.run(g, nil)
		time.Sleep(time.Minute)
		w.lose(Stream, "lost", 600)
		time.Sleep(auditEvery + auditPass)
		if w.has("lost") {
			t.Error("the item is there")
		}
		must(t, r.stop())
	})
}

// Nothing counts as missed in an ordinary run of a fleet: with a backlog, items that are renewed, or
// written long after their deadlines, and an audit all the time.
func TestAuditMissesNothing(t *testing.T) {
	t.Parallel()
	audits(t, func(t *testing.T, w *world, o Options) {
		for i := range 100 {
			w.putWindowed(fmt.Sprint("before", i), w.in(-3600))
		}
		var all []*guarding
		var reports sync.WaitGroup
		ctx, end := context.WithCancel(t.Context())
		for i := range 2 {
			o.Owner, o.Alone, o.AuditEvery, o.AuditRCU = fmt.Sprint(i), false, 10*time.Minute, 100
			o.MaxWCU, o.Lease = 0.05, time.Minute // a backlog of some twenty minutes, and few heartbeats
			r := w.start(o)
			reports.Go(func() { r.Report(ctx) })
			all = append(all, r)
		}
		for i := range 12 {
			time.Sleep(5 * time.Minute)
			w.putWindowed(fmt.Sprint("soon", i), w.in(20))
			w.putWindowed(fmt.Sprint("late", i), w.in(-1800))
			w.putWindowed("renewed", w.in(400))
		}
		within := 40 * time.Minute
		if o.Strategy == Index { // the patrol is hourly
			within = 3 * time.Hour
		}
		time.Sleep(within)
		removed := int64(0)
		for _, r := range all {
			removed += r.Stats().Counts[Removed]
			if n := r.Stats().Counts[Missed]; n > 0 {
				t.Errorf("%d of its own items count as missed", n)
			}
		}
		if n := w.count(); n > 0 {
			t.Errorf("%d items are left", n)
		}
		if least := int64(110); o.Strategy != Schedule && removed < least {
			t.Errorf("%d items were removed", removed)
		}
		end()
		for _, r := range all {
			must(t, r.stop())
		}
		reports.Wait()
	})
}

// The audit leaves an item to the strategy for as long as that may take to learn of it: an hourly
// patrol of the index finds what was written long after its deadline.
func TestAuditWaitsForTheStrategy(t *testing.T) {
	t.Parallel()
	bubbled(t, func(t *testing.T, w *world) {
		w.putWindowed("future", w.in(1e6))
		r := w.start(w.auditOptions(Index))
		time.Sleep(5 * time.Minute) // the first patrol is over
		w.putWindowed("late", w.in(-1800))
		time.Sleep(audit.After + 10*time.Minute)
		if !w.has("late") {
			t.Error("the audit did not wait for the patrol")
		}
		time.Sleep(2 * time.Hour)
		if c := r.Stats().Counts; w.has("late") || c[Removed] != 1 || c[Missed] != 0 {
			t.Errorf("the item is there: %v; removed %d, missed %d", w.has("late"), c[Removed], c[Missed])
		}
		must(t, r.stop())
	})
}

// auditScans are the scans of the table that are the audit's: they have the condition on overdue
// items.
func (p *tap) auditScans() (all []*dynamodb.ScanInput) {
	for _, in := range p.of("Scan") {
		if in := in.(*dynamodb.ScanInput); strings.Contains(aws.ToString(in.FilterExpression), ":overdue") {
			all = append(all, in)
		}
	}
	return all
}

// The audit keeps to its read units, and a pass that is interrupted goes on where it was: after a
// restart, and when another worker takes it over. Then the next pass is not before its time.
func TestAuditResumes(t *testing.T) {
	t.Parallel()
	for _, alone := range []bool{true, false} {
		t.Run(fmt.Sprint("alone ", alone), func(t *testing.T) {
			bubbled(t, func(t *testing.T, w *world) {
				for i := range 400 { // of a read unit each
					w.put(fmt.Sprint("far", i), w.in(1e6), text("x", strings.Repeat("x", 7900)))
				}
				o := w.auditOptions(Stream)
				taps := map[string]*tap{}
				start := func(name string) *guarding {
					at := *w
					taps[name] = at.tapped()
					o.DB, o.Owner, o.Alone, o.AuditRCU, o.AuditEvery = at.db, name, alone, 0.5, 90*time.Minute
					return w.start(o)
				}
				a := start("a")
				time.Sleep(audit.After + 5*time.Minute)
				first := taps["a"].auditScans()
				read := 0
				for _, in := range first[:max(len(first)-1, 0)] {
					read += int(*in.Limit)
				}
				if len(first) < 5 || read > 180 { // 300 s of half a unit, and a page
					t.Errorf("%d scans of %d items in five minutes of half a read unit a second", len(first), read)
				}
				must(t, a.stop())
				b := start("b")
				time.Sleep(audit.After + 30*time.Minute)
				then := taps["b"].auditScans()
				if len(then) == 0 || then[0].ExclusiveStartKey == nil || len(then) > 130 {
					t.Errorf("the pass goes on by %d scans", len(then))
				}
				if n := len(first) + len(then); alone && n > 205 {
					t.Errorf("%d scans for 200 pages", n)
				}
				if !alone { // a fleet that idles for hours takes long
					must(t, b.stop())
					return
				}
				time.Sleep(30 * time.Minute)
				if n := len(taps["b"].auditScans()); n != len(then) {
					t.Errorf("%d scans before the next pass is due", n-len(then))
				}
				time.Sleep(30 * time.Minute)
				if n := len(taps["b"].auditScans()); n < len(then)+5 {
					t.Errorf("%d scans of the next pass", n-len(then))
				}
				must(t, b.stop())
			})
		})
	}
}

// One worker of a fleet audits at a time. When it dies, another one continues the pass.
func TestAuditOfAFleet(t *testing.T) {
	t.Parallel()
	bubbled(t, func(t *testing.T, w *world) {
		for i := range 400 {
			w.put(fmt.Sprint("far", i), w.in(1e6), text("x", strings.Repeat("x", 7900)))
		}
		w.put("~", w.in(1e6))
		lines, taps, all := map[string]*line{}, map[string]*tap{}, map[string]*guarding{}
		for _, name := range []string{"a", "b"} {
			at := *w
			taps[name] = at.tapped()
			lines[name] = newLine(nil)
			o := w.auditOptions(Stream)
			o.DB, o.Owner, o.Alone, o.AuditRCU = at.db, name, false, 0.5
			all[name] = w.start(lines[name].lay(o))
		}
		time.Sleep(audit.After + 5*time.Minute)
		first, other := "a", "b"
		if len(taps["b"].auditScans()) > 0 {
			first, other = other, first
		}
		before := taps[first].auditScans()
		if n := len(taps[other].auditScans()); len(before) < 5 || n > 0 {
			t.Errorf("the workers made %d and %d scans", len(before), n)
		}
		lines[first].kill()
		must(t, all[first].stop()) // it would only log that its line is cut
		delete(all, first)
		time.Sleep(20 * time.Minute)
		if after := taps[other].auditScans(); len(after) == 0 || after[0].ExclusiveStartKey == nil {
			t.Errorf("the other worker made %d scans", len(after))
		}
		for _, r := range all {
			must(t, r.stop())
		}
	})
}

// A dry run removes nothing, and counts a missed item once, although each pass finds it. An item
// that the strategy has reported is not missed.
func TestAuditOfADryRun(t *testing.T) {
	t.Parallel()
	audits(t, func(t *testing.T, w *world, o Options) {
		o.DryRun, o.AuditEvery = true, time.Hour
		if o.Strategy == Schedule { // it keeps all deadlines in memory, so it cannot forget one
			o.AuditRCU = -1
		}
		r := w.start(o)
		time.Sleep(time.Minute)
		w.putWindowed("own", w.in(600))
		if o.Strategy != Schedule {
			w.lose(o.Strategy, "lost", 600)
		}
		time.Sleep(testkit.Size(6*time.Hour, 30*time.Hour))
		c := r.Stats().Counts
		if want := int64(1); o.Strategy != Schedule && (c[Missed] != want || c[Spared] != want+1) || !w.has("own") {
			t.Errorf("missed: %d, spared: %d", c[Missed], c[Spared])
		}
		must(t, r.stop())
	})
}

// Without an audit there is none. An endpoint that forbids the scan does not end guard.
func TestAuditIsOff(t *testing.T) {
	t.Parallel()
	for _, c := range []string{"off", "forbidden"} {
		t.Run(c, func(t *testing.T) {
			bubbled(t, func(t *testing.T, w *world) {
				p := w.tapped()
				o := w.auditOptions(Stream)
				var lines bytes.Buffer
				var mu sync.Mutex
				o.Logger = slog.New(slog.NewTextHandler(lockedWriter{&mu, &lines}, nil))
				if c == "off" {
					o.AuditRCU = -1
				}
				p.do(func(_ context.Context, operation string, in any) error {
					if in, is := in.(*dynamodb.ScanInput); is && strings.Contains(*in.FilterExpression, ":overdue") {
						return refusal("AccessDeniedException")
					}
					return nil
				})
				r := w.start(o)
				time.Sleep(time.Minute)
				w.lose(Stream, "lost", 600)
				time.Sleep(auditEvery + auditPass)
				if n, want := len(p.auditScans()), map[string]int{"forbidden": 1}[c]; n != want || !w.has("lost") {
					t.Errorf("%d scans; the item is there: %v", n, w.has("lost"))
				}
				must(t, r.stop())
				if off := bytes.Contains(lines.Bytes(), []byte("the audit is off")); off != (c == "forbidden") {
					t.Errorf("it is logged that the audit is off: %v", off)
				}
			})
		})
	}
}

// The audit does not judge while the strategy is behind, a problem is open, or any worker has a
// backlog. In a dry run it does not judge beside another worker.
func TestAuditWaits(t *testing.T) {
	t.Parallel()
	bubbled(t, func(t *testing.T, w *world) {
		o := w.auditOptions(Stream)
		o.Alone, o.Owner = false, "a"
		r := w.startIdle(o)
		caught := &caughtUp{ok: true}
		settled := func() bool {
			_, ok, err := r.settled(t.Context(), caught)
			must(t, err)
			return ok
		}
		want := func(what string, ok bool) {
			t.Helper()
			if settled() != ok {
				t.Errorf("%s: settled is %v", what, !ok)
			}
		}
		report := func(name string, overdue int64, age time.Duration) {
			leases := lease.New(w.db, r.statusName(), lease.Options{Owner: name})
			text := fmt.Sprintf(`{"name":%q,"at":%q,"overdue_ms":%d}`, name, r.shownNow().Add(-age).Format(time.RFC3339), overdue)
			rows, err := leases.Rows(t.Context())
			must(t, err)
			row := rows[name]
			row.Shard = name
			l, err := leases.Take(t.Context(), row)
			must(t, err)
			must(t, l.Save(t.Context(), text))
		}
		report("b", 30_000, 0)
		want("all is well", true)
		caught.ok = false
		want("the strategy is behind", false)
		caught.ok = true
		r.raise(&Problem{Code: NoStream})
		want("a problem is open", false)
		r.settle(NoStream)
		report("b", 120_000, 0)
		want("another worker has a backlog", false)
		report("b", 120_000, 5*time.Minute)
		want("a worker had one that is gone", true)
		report("a", 120_000, 0)
		want("this worker had one", true)
		must(t, r.stop()) // a running guard reads its options
		r.o.DryRun = true
		want("a dry run", true)
		report("b", 0, 0)
		want("a dry run of two", false)
	})
}

type caughtUp struct{ ok bool }

func (c *caughtUp) Run(context.Context) error { return nil }
func (c *caughtUp) CaughtUp(context.Context) (time.Duration, bool, error) {
	return 0, c.ok, nil
}

// An item that guard was not allowed to remove was no secret to the strategy.
func TestAuditIgnoresGivenUpItems(t *testing.T) {
	t.Parallel()
	bubbled(t, func(t *testing.T, w *world) {
		var refused atomic.Bool
		refused.Store(true)
		w.tapped().do(func(_ context.Context, operation string, in any) error {
			if operation == "DeleteItem" && tableOf(in) == worldTable && refused.Load() {
				return refusal("ItemCollectionSizeLimitExceededException")
			}
			return nil
		})
		o := w.auditOptions(Stream)
		o.AuditEvery = time.Hour
		r := w.start(o)
		w.put("a", w.in(60))
		time.Sleep(3 * time.Hour)
		refused.Store(false)
		time.Sleep(3 * time.Hour)
		if c := r.Stats().Counts; c[Missed] > 0 || c[Failed] == 0 {
			t.Errorf("missed: %d, failed: %d", c[Missed], c[Failed])
		}
		must(t, r.stop())
	})
}
