package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflydb/mayfly/internal/faulttest"
	"github.com/mayflydb/mayfly/internal/invariant"
	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/kv"
)

// The laws (ARCHITECTURE.md, "Tests"), each a test of its name. With the build tag invariants each
// also runs with the engine broken on purpose, and must notice. NothingLost and the crash half of
// the others are in crash_test.go.

// lawsProbe is a testing.TB that records a failure instead of failing the test.
type lawsProbe struct {
	testing.TB
	mu struct {
		sync.Mutex
		broken   []string
		cleanups []func()
	}
}

type lawBroken struct{}

func (p *lawsProbe) Helper() {}

func (p *lawsProbe) note(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.broken = append(p.mu.broken, text)
}

func (p *lawsProbe) Error(args ...any)                 { p.note(fmt.Sprint(args...)) }
func (p *lawsProbe) Errorf(format string, args ...any) { p.note(fmt.Sprintf(format, args...)) }
func (p *lawsProbe) Fatal(args ...any)                 { p.note(fmt.Sprint(args...)); panic(lawBroken{}) }
func (p *lawsProbe) Fatalf(format string, args ...any) {
	p.note(fmt.Sprintf(format, args...))
	panic(lawBroken{})
}

func (p *lawsProbe) Cleanup(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.cleanups = append(p.mu.cleanups, f)
}

// attempt runs a part of a test that may end in a failure or a panic.
func (p *lawsProbe) attempt(part func()) {
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(lawBroken); !ok {
				p.note(fmt.Sprint(r))
			}
		}
	}()
	part()
}

// probe runs a test and returns its failures. It closes everything that the test has opened before
// it returns: an engine that continues would meet the next fault, or the end of this one.
func probe(t *testing.T, test func(t testing.TB)) []string {
	p := &lawsProbe{TB: t}
	p.attempt(func() { test(p) })
	broken := slices.Clone(p.mu.broken)
	for _, f := range slices.Backward(p.mu.cleanups) {
		p.attempt(f)
	}
	return broken
}

// holds checks a law, and that it notices each fault, as does an invariant.CheckUnless.
func holds(t *testing.T, law func(t testing.TB), faults ...invariant.Fault) {
	t.Run("holds", func(t *testing.T) { law(t) })
	if !invariant.Enabled {
		return
	}
	for _, f := range faults {
		t.Run(f.String(), func(t *testing.T) {
			defer inject(f)()
			for range faulttest.Goes(5) { // a race on a loaded machine may need several attempts
				if len(probe(t, law)) > 0 {
					if !noticed(f) {
						t.Errorf("no check has noticed %v", f)
					}
					return
				}
			}
			t.Errorf("the law did not notice %v", f)
		})
	}
}

// awsExpiry is the aws expiry of the law tests. Its delays are short, so that delayed removals
// happen during a test.
var awsExpiry = Expiry{Mode: ExpiryAWS, Seed: 3, Delay: Delay{spread: true, least: 2000, most: 9000}}

// shape is a kind of table. The table's indexes and stream decide whether the reaper reads an item
// before it removes it.
type shape struct {
	name    string
	indexed bool
	view    string // of its stream; "": no stream
}

var shapes = []shape{
	{name: "full", indexed: true, view: "NEW_AND_OLD_IMAGES"},
	{name: "plain"},
	{name: "KEYS_ONLY", view: "KEYS_ONLY"},
	{name: "NEW_IMAGE", view: "NEW_IMAGE"},
}

// shape changes the description of the table that db.table creates.
func (s shape) shape(td *TableDesc) {
	td.Stream.ViewType = s.view
	if !s.indexed {
		td.Indexes = nil
	}
}

// readsItem reports whether the reaper reads an item before it removes it.
func (s shape) readsItem() bool { return s.indexed }

// hasOld reports whether the stream's records carry the old image.
func (s shape) hasOld() bool { return s.view == "NEW_AND_OLD_IMAGES" }

// eachShape runs a test of each shape of table in an expiry mode.
func eachShape(t *testing.T, x Expiry, test func(t *testing.T, s shape)) {
	t.Run(expiryName(x), func(t *testing.T) {
		for _, s := range shapes {
			t.Run(s.name, func(t *testing.T) { test(t, s) })
		}
	})
}

// holdsInBoth checks a law of both expiry modes in each, with every shape of table.
func holdsInBoth(t *testing.T, law func(t testing.TB, x Expiry, s shape), faults ...invariant.Fault) {
	for _, x := range []Expiry{{}, awsExpiry} {
		eachShape(t, x, func(t *testing.T, s shape) {
			holds(t, func(t testing.TB) { law(t, x, s) }, faults...)
		})
	}
}

func expiryName(x Expiry) string {
	if x.Mode == ExpiryStrict {
		return "strict"
	}
	return string(x.Mode)
}

// by sets a table's expiry mode.
func by(x Expiry) func(*TableDesc) { return func(td *TableDesc) { td.TTL.Expiry = x } }

// removals opens a memory engine and returns the reported instants of removal.
func removals(t testing.TB) (d *db, told func() []Instant) {
	var reaps func() []Reap
	d = openMemory(t, func(o *Options) { reaps = reapsOf(o) })
	return d, func() (all []Instant) {
		d.t.Helper()
		d.background.Wait()
		for _, r := range reaps() {
			all = append(all, r.Due...)
		}
		return all
	}
}

// moveTo moves the clock while the reaper is stopped.
func (d *db) moveTo(at Instant) {
	d.t.Helper()
	if err := d.clock.Set(at.Time()); err != nil {
		d.t.Fatal(err)
	}
}

// TestNeverEarly: nothing is removed or hidden while now < deadline; a fraction is rounded up to
// the millisecond.
func TestNeverEarly(t *testing.T) {
	eachShape(t, Expiry{}, func(t *testing.T, s shape) {
		holds(t, func(t testing.TB) { neverEarly(t, s) }, invariant.FireEarly)
	})
}

func neverEarly(t testing.TB, s shape) {
	d, told := removals(t)
	tab := d.table("events", s.shape)
	var b dynamo.Builder
	for n, v := range item("pk", "f", "sk", 1).All() {
		b.SetBytes(n, v)
	}
	b.Set("ttl", number(fmt.Sprintf("%d.0001", unix(5*time.Second))))
	fraction := b.Item()
	whole := item("pk", "w", "sk", 1, "ttl", unix(5*time.Second))
	d.put(tab, fraction)
	d.put(tab, whole)
	d.advance(4999 * time.Millisecond)
	if d.get(tab, whole) == nil || d.get(tab, fraction) == nil {
		t.Fatal("gone 1 ms before the deadline")
	}
	if s.view != "" && len(d.records(tab)) != 2 || len(told()) != 0 {
		t.Fatalf("%v removed 1 ms before the deadline", told())
	}
	d.advance(time.Millisecond)
	if d.get(tab, whole) != nil {
		t.Fatal("there at the deadline")
	}
	if d.get(tab, fraction) == nil {
		t.Fatal("a fraction was not rounded up")
	}
	d.advance(time.Millisecond)
	if d.get(tab, fraction) != nil {
		t.Fatal("there at the deadline rounded up")
	}
	if n := len(told()); n != 2 {
		t.Errorf("%d removals of 2 items", n)
	}
	if s.view == "" {
		return
	}
	for _, r := range d.records(tab) {
		if r.Event == Remove && int64(r.At) < epoch.Add(5*time.Second).UnixMilli() {
			t.Errorf("removed at %v", r.At.Time())
		}
	}
}

// TestNeverEarlyByMode: in every mode an item exists until its instant of removal and not after,
// and that is not before its deadline; in aws expiry it is its key's delay later.
func TestNeverEarlyByMode(t *testing.T) {
	holdsInBoth(t, func(t testing.TB, x Expiry, s shape) {
		d, told := removals(t)
		tab := d.table("events", s.shape, by(x))
		removals := map[Instant][]dynamo.Item{}
		for i := range 12 {
			it := item("pk", "a", "sk", i, "ttl", unix(time.Duration(5+i/6)*time.Second))
			d.put(tab, it)
			h, _ := d.stored(tab, it)
			deadline := Instant(unix(time.Duration(5+i/6)*time.Second)) * 1000
			least, most := Instant(0), Instant(0)
			if x.Mode == ExpiryAWS {
				least, most = x.Delay.least, x.Delay.most
			}
			if h.deadline != deadline || h.removal < deadline+least || h.removal > deadline+most {
				t.Errorf("item %d: %+v", i, h)
			}
			removals[h.removal] = append(removals[h.removal], it)
		}
		if x.Mode == ExpiryAWS && len(removals) < 6 {
			t.Errorf("the delays of 12 keys are the same: %v", removals)
		}
		for _, at := range slices.Sorted(maps.Keys(removals)) {
			d.advance(time.Duration(at-1-d.Now()) * time.Millisecond)
			for _, it := range removals[at] {
				if _, stored := d.stored(tab, it); d.get(tab, it) == nil || stored == nil {
					t.Fatalf("%v is gone 1 ms early", it)
				}
			}
			d.advance(time.Millisecond)
			for _, it := range removals[at] {
				if d.get(tab, it) != nil {
					t.Fatalf("%v is there when it is to be removed", it)
				}
			}
		}
		if n := len(told()); n != 12 {
			t.Errorf("%d removals of 12 items", n)
		}
		if !s.hasOld() {
			return
		}
		for _, r := range d.records(tab) {
			if r.Event == Remove && !slices.ContainsFunc(removals[r.At], func(it dynamo.Item) bool { return it.String() == r.Old.String() }) {
				t.Errorf("%v was removed at %v", r.Old, r.At.Time())
			}
		}
	}, invariant.FireEarly)
}

// TestStrictlyGone: from the deadline on the item does not exist for any observer, even before the
// reaper removes it. The reaper does not run here at all.
func TestStrictlyGone(t *testing.T) {
	eachShape(t, Expiry{}, func(t *testing.T, s shape) {
		holds(t, func(t testing.TB) { strictlyGone(t, s) }, invariant.ShowExpired)
	})
}

func strictlyGone(t testing.TB, s shape) {
	d := openMemory(t)
	tab := d.table("events", s.shape, func(td *TableDesc) {
		if !s.indexed {
			return
		}
		td.Indexes = append(td.Indexes, IndexDesc{
			Name: "local", Projection: Projection{Type: "KEYS_ONLY"},
			Key: KeySchema{Partition: []KeyAttr{{"pk", dynamo.KindString}}, Sort: []KeyAttr{{"g", dynamo.KindString}}},
		}, IndexDesc{
			Name: "composite", Global: true, Projection: Projection{Type: "KEYS_ONLY"},
			Key: KeySchema{Partition: []KeyAttr{{"g", dynamo.KindString}, {"pk", dynamo.KindString}}, Sort: []KeyAttr{{"h", dynamo.KindNumber}, {"sk", dynamo.KindNumber}}},
		})
	})
	if err := d.stop(); err != nil {
		t.Fatal(err)
	}
	a := item("pk", "a", "sk", 1, "g", "x", "h", 1, "ttl", unix(time.Second))
	d.put(tab, a)
	build := func(index string) {
		if !s.indexed {
			return
		}
		d.addIndex("events", byH(index))
		if err := tab.backfill(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	build("built before")
	if err := d.clock.Advance(time.Second); err != nil {
		t.Fatal(err)
	}
	build("built after")
	pk := []dynamo.Value{dynamo.AppendString(nil, "a")}
	g := []dynamo.Value{dynamo.AppendString(nil, "x")}
	if d.get(tab, a) != nil {
		t.Error("Get sees it")
	}
	ranges := map[string]Range{"Scan": {}, "Query": {Partition: pk}, "Query backward": {Partition: pk, Backward: true}}
	if s.indexed {
		maps.Copy(ranges, map[string]Range{
			"local index":  {Index: tab.Desc().Index("local"), Partition: pk},
			"global index": {Index: tab.Desc().Index("byG"), Partition: g}, "index Scan": {Index: tab.Desc().Index("byG")},
			"composite index":       {Index: tab.Desc().Index("composite"), Partition: slices.Concat(g, pk), Sort: []dynamo.SortCondition{{Op: dynamo.SortEQ, Low: number("1")}}},
			"composite Scan":        {Index: tab.Desc().Index("composite")},
			"an index built before": {Index: tab.Desc().Index("built before")}, "an index built after": {Index: tab.Desc().Index("built after")},
		})
	}
	for name, r := range ranges {
		if len(d.items(tab, r)) != 0 {
			t.Errorf("%s sees it", name)
		}
	}
	err := d.ReadSnapshot(context.Background(), func(v *View) error {
		it, _, err := v.Get(tab, keyOf(t, tab, a))
		if it != nil {
			t.Error("a snapshot read sees it")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	stats, err := tab.Stats(context.Background())
	if err != nil || stats.Items != 0 {
		t.Errorf("it is counted: %+v %v", stats, err)
	}
	seen := false
	w := &Write{Table: tab, Key: keyOf(t, tab, a), ReadOld: true, Decide: func(old dynamo.Item, _ Instant) (dynamo.Item, error) {
		seen = seen || old != nil
		return old, nil
	}}
	if err := d.Write(context.Background(), w); err != nil {
		t.Fatal(err)
	}
	if seen || w.Old != nil {
		t.Error("a condition or a return value sees it")
	}
	d.stop = run(t, d.Engine).stop
}

// TestStrictlyGoneInstantFitsSnapshot: a read that hides an item by the clock alone sees every
// commit with an earlier clock. The test simulates a writer inside the commit section that read the
// clock before the deadline and applies its renewal after the read. The same holds for a view that
// hides the expired items of aws expiry.
func TestStrictlyGoneInstantFitsSnapshot(t *testing.T) {
	holdsInBoth(t, func(t testing.TB, x Expiry, s shape) {
		d := openMemory(t)
		tab := d.table("events", s.shape, by(x))
		if err := d.stop(); err != nil {
			t.Fatal(err)
		}
		a := item("pk", "a", "sk", 1, "ttl", unix(time.Second))
		renewed := item("pk", "a", "sk", 1, "ttl", unix(time.Hour))
		d.put(tab, a)

		d.order.Lock()
		if err := d.clock.Advance(time.Second); err != nil {
			t.Fatal(err)
		}
		got := make(chan dynamo.Item, 1)
		go func() {
			var out dynamo.Item
			_ = d.Read(context.Background(), func(v *View) (err error) {
				v.Show(ExpiredHidden)
				out, _, err = v.Get(tab, keyOf(t, tab, a))
				return err
			})
			got <- out
		}()
		// lets the reader read; the law holds whether it has or not
		time.Sleep(20 * time.Millisecond)
		desc := tab.Desc()
		b := d.kv.NewBatch()
		key := keyOf(t, tab, a)
		desc.putItem(b, key, a, renewed, desc.headerFor(key, a, 0), desc.headerFor(key, renewed, 0), nil)
		d.lastCommit.Add(1)
		if err := d.kv.Apply(b); err != nil {
			t.Fatal(err)
		}
		d.durable.commit.Store(d.lastCommit.Load())
		d.order.Unlock()
		if it := <-got; it == nil {
			t.Error("an item that was renewed in time was hidden")
		}
		d.stop = run(t, d.Engine).stop
	}, invariant.SkipPassThrough)
}

// TestStrictlyGoneInstantIsNotBefore: the instant of a snapshot read is not before its snapshot. An
// item written after its deadline never existed, and no snapshot shows it. The test writes one just
// before the snapshot is taken.
func TestStrictlyGoneInstantIsNotBefore(t *testing.T) {
	holdsInBoth(t, func(t testing.TB, x Expiry, s shape) {
		d := openMemory(t)
		tab := d.table("events", s.shape, by(x))
		d.still()
		a := item("pk", "a", "sk", 1, "ttl", unix(time.Second))
		take, first := d.snapshot, true
		d.snapshot = func() *kv.Snapshot {
			if first {
				first = false
				d.moveTo(Instant(unix(time.Second)) * 1000)
				d.put(tab, a)
			}
			return take()
		}
		err := d.ReadSnapshot(context.Background(), func(v *View) error {
			v.Show(ExpiredHidden)
			it, _, err := v.Get(tab, keyOf(t, tab, a))
			if it != nil {
				t.Errorf("a snapshot read at %d shows what was written later, and had expired", v.Now())
			}
			return err
		})
		if err != nil || first {
			t.Fatal(err, first)
		}
	}, invariant.InstantBeforeSnapshot)
}

// TestStrictlyGoneForCommits: a write that is committed at a deadline or later does not find the
// item, even if it was decided before. The test lets the deadline pass while the write waits for
// the commit section.
func TestStrictlyGoneForCommits(t *testing.T) {
	eachShape(t, Expiry{}, func(t *testing.T, s shape) {
		holds(t, func(t testing.TB) {
			d := openMemory(t)
			tab := d.table("events", s.shape)
			d.still()
			a := item("pk", "a", "sk", 1, "ttl", unix(time.Second))
			d.put(tab, a)
			decided, done := make(chan struct{}, 2), make(chan error, 1)
			w := &Write{Table: tab, Key: keyOf(t, tab, a), ReadOld: true, Decide: func(dynamo.Item, Instant) (dynamo.Item, error) {
				decided <- struct{}{}
				return item("pk", "a", "sk", 1, "n", 2), nil
			}}
			d.order.Lock()
			go func() { done <- d.Write(context.Background(), w) }()
			<-decided
			// lets the write reach the commit section; the law holds whether it has or not
			time.Sleep(20 * time.Millisecond)
			d.moveTo(Instant(unix(time.Second)) * 1000)
			d.order.Unlock()
			if err := <-done; err != nil || w.Old != nil {
				t.Errorf("a write that was committed at the deadline found %v: %v", w.Old, err)
			}
			d.verify()
		}, invariant.ClockBeforeOrder)
	})
}

// TestRenewedLives: an item whose deadline moved is never removed at the old one. The reaper
// collects the old deadline, the item is replaced, and then the reaper continues. In aws expiry the
// replaced item had expired and was visible.
func TestRenewedLives(t *testing.T) {
	for _, x := range []Expiry{{}, awsExpiry} {
		eachShape(t, x, func(t *testing.T, s shape) {
			faults := []invariant.Fault{invariant.SkipRecheck}
			if !s.readsItem() {
				faults = append(faults, invariant.ReapMissing, invariant.SeenAhead)
			}
			holds(t, func(t testing.TB) { renewedLives(t, x, s) }, faults...)
		})
	}
}

func renewedLives(t testing.TB, x Expiry, s shape) {
	d, told := removals(t)
	tab := d.table("events", s.shape, by(x))
	if err := d.stop(); err != nil {
		t.Fatal(err)
	}
	for i, next := range []dynamo.Item{
		item("pk", "a", "sk", 0, "g", "x", "ttl", unix(time.Hour)), // renewed
		item("pk", "a", "sk", 1, "g", "x"),                         // disarmed
	} {
		a := item("pk", "a", "sk", i, "g", "x", "ttl", unix(time.Duration(20*i+1)*time.Second))
		d.put(tab, a)
		h, _ := d.stored(tab, a)
		d.moveTo(h.removal)
		s := d.collect(tab, d.Now())
		before := len(told())
		w := d.put(tab, next)
		if (w.Old == nil) != (x.Mode == ExpiryStrict) {
			t.Errorf("the write found %v", w.Old)
		}
		if w.Old == nil {
			before++ // the write has expired the item that it replaced
		}
		if err := s.reap(); err != nil {
			t.Fatal(err)
		}
		if d.get(tab, next) == nil {
			t.Errorf("%v was removed on its old deadline", next)
		}
		if n := len(told()); n != before {
			t.Errorf("%d removals are told of, want %d", n, before)
		}
	}
	d.stop = run(t, d.Engine).stop
	d.verify()
}

// collect returns a pass of the reaper with the one entry due at an instant, for other calls to
// overtake.
func (d *db) collect(tab *Table, at Instant) *slice {
	d.t.Helper()
	s, from := tab.newSlice(tab.Desc())
	if err := s.collect(from, at); err != nil || len(s.found) != 1 {
		d.t.Fatalf("%d entries are due: %v", len(s.found), err)
	}
	return s
}

// TestDisabledLives: an item whose TTL is switched off before its deadline is never removed,
// whether the reaper or the backfill reaches it first.
func TestDisabledLives(t *testing.T) {
	for _, x := range []Expiry{{}, awsExpiry} {
		eachShape(t, x, func(t *testing.T, s shape) {
			var faults []invariant.Fault
			if !s.readsItem() {
				faults = append(faults, invariant.IgnoreGeneration)
			}
			holds(t, func(t testing.TB) {
				d, told := removals(t)
				tab := d.table("events", s.shape, by(x))
				d.still()
				a := item("pk", "a", "sk", 1, "g", "x", "ttl", unix(time.Second))
				d.put(tab, a)
				h, _ := d.stored(tab, a)
				d.setTTL("events", "")
				d.moveTo(h.removal)
				d.drain(tab)
				if d.get(tab, a) == nil {
					t.Error("an item was removed on a deadline that had been switched off")
				}
				d.stop = run(t, d.Engine).stop
				d.awaitBackfill(tab)
				d.advance(time.Hour)
				if d.get(tab, a) == nil || len(told()) != 0 {
					t.Errorf("an hour later it is %v; removals %v", d.get(tab, a), told())
				}
				d.verify()
			}, faults...)
		})
	}
}

// TestExactlyOneRecord: each expiry is reported once, and makes one REMOVE with the service's
// identity and the old image. A write over an expired item that the reaper has not removed expires
// it first, and in aws expiry changes it.
func TestExactlyOneRecord(t *testing.T) {
	for _, x := range []Expiry{{}, awsExpiry} {
		eachShape(t, x, func(t *testing.T, s shape) {
			var faults []invariant.Fault
			if !s.readsItem() {
				faults = append(faults, invariant.SkipRecheck)
			}
			if s.view != "" {
				faults = append(faults, invariant.RecordTwice)
			}
			if s.view != "" && x.Mode == ExpiryStrict {
				faults = append(faults, invariant.ForgetOldRecord)
			}
			holds(t, func(t testing.TB) { exactlyOneRecord(t, x, s) }, faults...)
		})
	}
}

func exactlyOneRecord(t testing.TB, x Expiry, s shape) {
	d, told := removals(t)
	tab := d.table("events", s.shape, by(x))
	if err := d.stop(); err != nil {
		t.Fatal(err)
	}
	a := item("pk", "a", "sk", 1, "ttl", unix(time.Second))
	again := item("pk", "a", "sk", 1, "ttl", unix(time.Hour), "n", 2)
	d.put(tab, a)
	h, _ := d.stored(tab, a)
	removed := []Instant{h.removal}
	d.moveTo(h.removal)
	late := d.collect(tab, d.Now())
	d.put(tab, again)
	h, _ = d.stored(tab, again)
	if err := late.reap(); err != nil {
		t.Fatal(err)
	}
	d.stop = run(t, d.Engine).stop
	d.advance(2 * time.Hour)
	removed = append(removed, h.removal)
	type record struct {
		event   Event
		service bool
		old     dynamo.Item
	}
	want := []record{{Insert, false, nil}, {Remove, true, a}, {Insert, false, nil}, {Remove, true, again}}
	if x.Mode == ExpiryAWS {
		want = []record{{Insert, false, nil}, {Modify, false, a}, {Remove, true, again}}
		removed = removed[1:]
	}
	if got := told(); !slices.Equal(got, removed) {
		t.Errorf("removals at %v are told of, want %v", got, removed)
	}
	if _, it := d.stored(tab, again); it != nil {
		t.Errorf("%v is stored after its deadline", it)
	}
	d.verify()
	if s.view == "" {
		return
	}
	rs := d.records(tab)
	if len(rs) != len(want) {
		t.Fatalf("%d records, want %d: %+v", len(rs), len(want), rs)
	}
	for i, w := range want {
		if !s.hasOld() {
			w.old = nil
		}
		if rs[i].Event != w.event || rs[i].Service != w.service || rs[i].Old.String() != w.old.String() {
			t.Errorf("record %d is %+v", i, rs[i])
		}
	}
}

// TestOrderPerKey: a key's records appear in commit order, once. Writers race on few keys; each
// record must follow its predecessor.
func TestOrderPerKey(t *testing.T) {
	eachShape(t, Expiry{}, func(t *testing.T, s shape) {
		if s.view != "" {
			holds(t, func(t testing.TB) { orderPerKey(t, s) }, invariant.UnorderedSeq)
		}
	})
}

func orderPerKey(t testing.TB, s shape) {
	d := openMemory(t, func(o *Options) { o.ShardBytes = 4 << 10 })
	tab := d.table("events", s.shape)
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(w)))
			for i := range 200 {
				key := item("pk", fmt.Sprint("k", r.IntN(4)), "sk", 1)
				wr := &Write{Table: tab, Key: keyOf(t, tab, key), ReadOld: true, Decide: func(dynamo.Item, Instant) (dynamo.Item, error) {
					if i%7 == 0 {
						return nil, nil
					}
					return key.With("v", number(fmt.Sprint(w*1000+i))), nil
				}}
				if err := d.Write(context.Background(), wr); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	wantLives(t, d.records(tab), s)
}

// TestIdleIsFree: with nothing due the process does no periodic work. A simulated day passes over a
// table whose only deadline lies behind it, without a pass of the due queue.
func TestIdleIsFree(t *testing.T) {
	holdsInBoth(t, func(t testing.TB, x Expiry, s shape) {
		test, ok := t.(*testing.T)
		if p, probe := t.(*lawsProbe); probe {
			test, ok = p.TB.(*testing.T), true
		}
		if !ok {
			t.Fatal("needs a test")
		}
		synctest.Test(test, func(*testing.T) {
			e, err := Open(Options{Durability: kv.Memory})
			if err != nil {
				t.Fatal(err)
			}
			d := run(t, e)
			tab := d.table("events", s.shape, by(x))
			d.put(tab, item("pk", "a", "sk", 1, "ttl", int(e.Now()/1000)+2*86400))
			synctest.Wait()
			before, ahead := e.queue.Passes(), e.soon.Passes()
			time.Sleep(24 * time.Hour)
			synctest.Wait()
			if n := e.soon.Passes() - ahead; n > 1 {
				t.Errorf("the queue of preparers looked %d times in a day with nothing due", n)
			}
			if n := e.queue.Passes() - before; n > 1 {
				t.Errorf("the due queue looked %d times in a day with nothing due", n)
			}
			time.Sleep(25 * time.Hour)
			synctest.Wait()
			if d.get(tab, item("pk", "a", "sk", 1)) != nil {
				t.Error("there a day after its deadline")
			}
			if err := d.stop(); err != nil && !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		})
	}, invariant.BusyLoop)
}

// TestMarkBelowAll: no live deadline entry lies below its table's low-water mark, in any order of
// arming and disarming.
func TestMarkBelowAll(t *testing.T) {
	holdsInBoth(t, func(t testing.TB, x Expiry, s shape) {
		d := openMemory(t)
		tab := d.table("events", s.shape, by(x))
		r := rand.New(rand.NewPCG(7, 7))
		for range 40 {
			for range 20 {
				at := int(d.Now()/1000) - 5 + r.IntN(60)
				d.put(tab, item("pk", fmt.Sprint(r.IntN(50)), "sk", 1, "ttl", at))
			}
			d.advance(0) // Verify needs an idle engine
			if err := d.Verify(context.Background()); err != nil && strings.Contains(err.Error(), "low-water mark") {
				t.Fatal(err)
			}
			d.advance(time.Duration(r.IntN(10)) * time.Second)
		}
		d.advance(2 * time.Minute)
		if n := len(d.items(tab, Range{})); n != 0 {
			t.Errorf("%d expired items are seen", n)
		}
		stored := 0
		lower, upper := tableSpan(spaceItems, tab.id)
		it := d.kv.NewIter(lower, upper)
		defer it.Close()
		for ok := it.First(); ok; ok = it.Next() {
			stored++
		}
		if stored != 0 {
			t.Errorf("%d expired items were never reaped", stored)
		}
	}, invariant.KeepMark)
}
