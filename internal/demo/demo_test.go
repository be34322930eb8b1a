package demo

import (
	"strings"
	"testing"
	"time"

	dynamotypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

var testNow = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

func planned(t *testing.T, items int, spread time.Duration, unit Unit) *Demo {
	t.Helper()
	d, err := New(Options{Items: items, Spread: spread, Unit: unit, Now: func() time.Time { return testNow }})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// Every item has its own key. Deadlines are sorted, at whole units, and even over the spread.
func TestPlan(t *testing.T) {
	for _, tt := range []struct {
		unit                     Unit
		items, instants, largest int
	}{
		{Seconds, 1, 1, 1},
		{Seconds, 20_000, 30, 667},
		{Seconds, 10, 10, 1},
		{Milliseconds, 1, 1, 1},
		{Milliseconds, 20_000, 20_000, 1},
		{Milliseconds, 90_000, 30_000, 3},
	} {
		d := planned(t, tt.items, 30*time.Second, tt.unit)
		if len(d.plan) != tt.items || len(d.byKey) != tt.items {
			t.Fatalf("%d items and %d keys, want %d", len(d.plan), len(d.byKey), tt.items)
		}
		first, due := d.plan[0].deadline, map[time.Time]int{}
		for i, e := range d.plan {
			due[e.deadline]++
			if !e.deadline.Equal(tt.unit.ceil(e.deadline)) {
				t.Fatalf("the deadline %v is not in %s", e.deadline, tt.unit)
			}
			if i > 0 && e.deadline.Before(d.plan[i-1].deadline) {
				t.Fatalf("deadline %d is out of order", i)
			}
			if after := e.deadline.Sub(first); after >= 30*time.Second || e.deadline.Before(testNow) {
				t.Fatalf("deadline %d is %v after the first", i, after)
			}
		}
		largest := 0
		for at, n := range due {
			largest = max(largest, n)
			if n < tt.largest-1 {
				t.Errorf("%d %s: %d are due at %v, and %d at another instant", tt.items, tt.unit, n, at, tt.largest)
			}
		}
		if len(due) != tt.instants || largest != tt.largest || d.atOnce != largest {
			t.Errorf("%d %s: %d instants, at most %d at once, reported as %d", tt.items, tt.unit, len(due), largest, d.atOnce)
		}
	}
}

// The largest plan does not overflow.
func TestLargestPlan(t *testing.T) {
	d := planned(t, itemsMax, spreadMax, Seconds)
	last := d.plan[itemsMax-1].deadline
	if span := last.Sub(d.plan[0].deadline); span != spreadMax-time.Second {
		t.Errorf("the deadlines span %v", span)
	}
}

func TestOptionsComplain(t *testing.T) {
	_, err := New(Options{Items: -1, Spread: time.Millisecond})
	for _, option := range []string{"--items", "--spread", "--deadline-unit"} {
		if err == nil || !strings.Contains(err.Error(), option) {
			t.Errorf("no complaint about %s: %v", option, err)
		}
	}
}

// image returns an item in the form of the stream.
func image(e *entry) map[string]types.AttributeValue {
	out := map[string]types.AttributeValue{}
	for name, v := range e.item() {
		switch v := v.(type) {
		case *dynamotypes.AttributeValueMemberS:
			out[name] = &types.AttributeValueMemberS{Value: v.Value}
		case *dynamotypes.AttributeValueMemberN:
			out[name] = &types.AttributeValueMemberN{Value: v.Value}
		}
	}
	return out
}

func inserted(e *entry) types.Record {
	all := image(e)
	return types.Record{EventName: types.OperationTypeInsert, Dynamodb: &types.StreamRecord{Keys: all, NewImage: all}}
}

func removed(e *entry) types.Record {
	all, service, dynamo := image(e), "Service", "dynamodb.amazonaws.com"
	return types.Record{
		EventName: types.OperationTypeRemove, Dynamodb: &types.StreamRecord{Keys: all, OldImage: all},
		UserIdentity: &types.Identity{Type: &service, PrincipalId: &dynamo},
	}
}

// A run without faults breaks no law; each fault breaks its own.
func TestEachLawIsNoticed(t *testing.T) {
	type run struct {
		*Demo
		e *entry
	}
	at := func(r run, late time.Duration, records ...types.Record) {
		r.tally.arrived(r.byKey, records, r.e.deadline.Add(late))
	}
	seen := func(r run, there bool, from, to time.Duration) {
		r.tally.wasRead([]*entry{r.e}, []bool{true}, map[string]bool{r.e.key(): there}, r.e.deadline.Add(from), r.e.deadline.Add(to))
	}
	for _, tt := range []struct {
		name  string
		watch func(run)
		want  string // empty: no law is broken
	}{
		{"all is well", func(r run) {
			seen(r, true, -20*time.Millisecond, -10*time.Millisecond)
			at(r, 5*time.Millisecond, inserted(r.e), removed(r.e))
			seen(r, false, 0, time.Millisecond)
		}, ""},
		{"a read across the deadline says nothing", func(r run) {
			seen(r, false, -time.Millisecond, 0)
			seen(r, true, -time.Millisecond, time.Millisecond)
			at(r, 0, inserted(r.e), removed(r.e))
			if report := r.Snapshot(); report.Before+report.Gone > 0 {
				t.Errorf("it counts as %d before and %d after the deadline", report.Before, report.Gone)
			}
		}, ""},
		{"read as gone too early", func(r run) {
			seen(r, false, -2*time.Millisecond, -time.Millisecond)
			at(r, 0, inserted(r.e), removed(r.e))
		}, "gone before the deadline"},
		{"recorded too early", func(r run) { at(r, -time.Millisecond, inserted(r.e), removed(r.e)) }, "gone before the deadline"},
		{"read at the deadline", func(r run) {
			seen(r, true, 0, time.Millisecond)
			at(r, 0, inserted(r.e), removed(r.e))
		}, "answered after the deadline"},
		{"no record", func(r run) { at(r, 0, inserted(r.e)) }, "without a record"},
		{"two removals", func(r run) { at(r, 0, inserted(r.e), removed(r.e), removed(r.e)) }, "twice"},
		{"two insertions", func(r run) { at(r, 0, inserted(r.e), inserted(r.e), removed(r.e)) }, "twice"},
		{"no identity", func(r run) {
			record := removed(r.e)
			record.UserIdentity = nil
			at(r, 0, inserted(r.e), record)
		}, "identity"},
		{"another image", func(r run) {
			record := removed(r.e)
			record.Dynamodb.OldImage[attrWind] = &types.AttributeValueMemberN{Value: "99"}
			at(r, 0, inserted(r.e), record)
		}, "another image"},
		{"no image", func(r run) {
			record := removed(r.e)
			record.Dynamodb.OldImage = nil
			at(r, 0, inserted(r.e), record)
		}, "another image"},
		{"a record before its time", func(r run) { at(r, 0, removed(r.e), inserted(r.e)) }, "another image"},
		{"still scanned", func(r run) {
			at(r, 0, inserted(r.e), removed(r.e))
			r.tally.scanned(1)
		}, "scan"},
	} {
		d := planned(t, 1, time.Second, Seconds)
		tt.watch(run{d, d.plan[0]})
		broken := d.finalReport().Broken()
		switch {
		case tt.want == "" && len(broken) > 0:
			t.Errorf("%s: %v", tt.name, broken)
		case tt.want != "" && (len(broken) != 1 || !strings.Contains(broken[0], tt.want)):
			t.Errorf("%s: got %v, want %q", tt.name, broken, tt.want)
		}
	}
}

func TestLateness(t *testing.T) {
	var l lateness
	if l.quantile(0.99) != 0 {
		t.Error("nothing is late")
	}
	for ms := range 100 {
		l.add(time.Duration(ms+1) * time.Millisecond)
	}
	l.add(2 * time.Minute)
	if p50, p99 := l.quantile(0.5), l.quantile(0.99); p50 != 51 || p99 != 100 {
		t.Errorf("p50 %d, p99 %d", p50, p99)
	}
	if l.max != 2*time.Minute {
		t.Errorf("max %v", l.max)
	}
	total := 0
	for _, b := range l.buckets() {
		total += b.Items
	}
	if buckets := l.buckets(); total != 101 || buckets[1].Items != 1 || buckets[2].Items != 1 || buckets[len(buckets)-1].Items != 1 {
		t.Errorf("%d in %v", total, buckets)
	}
}
