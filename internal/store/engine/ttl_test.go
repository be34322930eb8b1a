package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/kv"
)

// setTTL makes attribute the TTL attribute; empty: off.
func (d *db) setTTL(name, attribute string) *TableDesc {
	d.t.Helper()
	desc, err := d.Alter(context.Background(), "default", name, func(td *TableDesc, _ Instant) error {
		td.TTL.Attribute = attribute
		return nil
	})
	if err != nil {
		d.t.Fatal(err)
	}
	return desc
}

// stored returns the stored item under an item's key, expired or not, or nil.
func (d *db) stored(tab *Table, it dynamo.Item) (header, dynamo.Item) {
	d.t.Helper()
	value, ok, err := get(d.kv, keyOf(d.t, tab, it).bytes())
	if err != nil {
		d.t.Fatal(err)
	}
	if !ok {
		return header{}, nil
	}
	h, found, err := splitStored(value)
	if err != nil {
		d.t.Fatal(err)
	}
	return h, found
}

// still stops the reaper and the backfill, so that a test calls them itself.
func (d *db) still() {
	d.t.Helper()
	if err := d.stop(); err != nil {
		d.t.Fatal(err)
	}
	d.stop = func() error { return nil }
}

// awaitBackfill waits for the running backfill's end, without moving the clock.
func (d *db) awaitBackfill(tab *Table) {
	d.t.Helper()
	for tab.Desc().TTL.Backfill {
		d.advance(0)
	}
}

// backfillStep runs a step of the TTL backfill of d.
func (t *Table) backfillStep(d *TableDesc) (done bool, err error) { return t.ttlBackfill(d).step() }

// backfill runs every backfill that a table's description asks for.
func (t *Table) backfill(ctx context.Context) error {
	for {
		if more, err := t.backfillRound(ctx); err != nil || !more {
			return err
		}
	}
}

// A deadline is a number of seconds, rounded up to the millisecond, at most five years old by the
// write's clock.
func TestWhatIsADeadline(t *testing.T) {
	now := Instant(epoch.UnixMilli())
	desc := &TableDesc{TTL: TTLDesc{Attribute: "ttl", Generation: 3}}
	seconds := func(text string) dynamo.Value { return number(text) }
	fiveYearsAgo := int64(now-fiveYears) / 1000
	for _, c := range []struct {
		name  string
		value dynamo.Value
		want  Instant
	}{
		{"whole", seconds("1767225700"), 1767225700000},
		{"fraction", seconds("1767225700.25"), 1767225700250},
		{"fraction rounded up", seconds("1767225700.2500001"), 1767225700251},
		{"a little over a second", seconds("1767225700.00000000000000000001"), 1767225700001},
		{"exponent", seconds("1.7672257E9"), 1767225700000},
		{"past", seconds(fmt.Sprint(fiveYearsAgo + 1)), now - fiveYears + 1000},
		{"just under five years", seconds(fmt.Sprintf("%d.001", fiveYearsAgo)), now - fiveYears + 1},
		{"five years", seconds(fmt.Sprint(fiveYearsAgo)), Never},
		{"older", seconds("1000"), Never},
		{"zero", seconds("0"), Never},
		{"negative", seconds("-1767225700"), Never},
		{"far future", seconds("9e15"), 9e18},
		{"out of range", seconds("1e16"), Never},
		{"greatest", seconds("9.9e125"), Never},
		{"text", dynamo.AppendString(nil, "1767225700"), Never},
		{"binary", dynamo.AppendBinary(nil, []byte("1767225700")), Never},
		{"null", dynamo.AppendNull(nil), Never},
		{"true", dynamo.AppendBool(nil, true), Never},
		{"list", dynamo.AppendList(nil, []dynamo.Value{seconds("1767225700")}), Never},
		{"set", dynamo.AppendSet(nil, dynamo.KindNS, [][]byte{seconds("1767225700").Number()}), Never},
		{"none", nil, Never},
	} {
		h := desc.headerFor(Key{}, item("pk", "a", "sk", 1).With("ttl", c.value), now)
		if h.deadline != c.want || h.removal != c.want || h.generation != 3 {
			t.Errorf("%s: %+v, want deadline %d", c.name, h, c.want)
		}
	}
}

// The five-year rule is decided when the deadline is armed: an armed deadline stays one, and a
// backfill judges by the enabling's clock, however long it takes.
func TestFiveYearRuleIsDecidedOnce(t *testing.T) {
	d := openMemory(t)
	tab := d.table("events", func(td *TableDesc) { td.TTL = TTLDesc{} })
	nearly := int(epoch.UnixMilli()-int64(fiveYears))/1000 + 1
	a := item("pk", "a", "sk", 1, "ttl", nearly)
	d.put(tab, a)
	d.still()
	d.setTTL("events", "ttl")
	if err := d.clock.Advance(time.Hour); err != nil {
		t.Fatal(err)
	}
	if _, err := tab.backfillStep(tab.Desc()); err != nil {
		t.Fatal(err)
	}
	if h, _ := d.stored(tab, a); h.deadline != Instant(nearly)*1000 {
		t.Errorf("a backfill an hour later decided %+v", h)
	}
	b := item("pk", "b", "sk", 1, "ttl", nearly)
	d.put(tab, b)
	if h, _ := d.stored(tab, b); h.deadline != Never {
		t.Errorf("a write an hour later decided %+v", h)
	}
	if d.get(tab, a) != nil || d.get(tab, b) == nil {
		t.Error("the decisions are not what counts")
	}
}

// Enabling on a full table while writers write: when the status is enabled, every item has its
// deadline, all parts agree, and no other item has expired.
func TestEnableWhileWriting(t *testing.T) {
	d := openMemory(t)
	tab := d.table("events", func(td *TableDesc) { td.TTL = TTLDesc{} })
	const n = 1500
	of := func(i, v int) dynamo.Item {
		it := item("pk", fmt.Sprint("k", i%97), "sk", i, "v", v, "g", fmt.Sprint(i%7))
		if i%3 == 0 {
			it = it.With("ttl", number(fmt.Sprint(unix(time.Duration(i)*time.Second))))
		}
		return it
	}
	for i := range n {
		d.put(tab, of(i, 0))
	}
	var stop atomic.Bool
	var writers sync.WaitGroup
	for w := range 3 {
		writers.Go(func() {
			for i := w; !stop.Load(); i = (i + 3) % n {
				if err := d.Write(context.Background(), set(t, tab, of(i, 1+w))); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	if d.setTTL("events", "ttl"); !tab.Desc().TTL.Backfill {
		t.Error("enabled at once, although there are items")
	}
	d.awaitBackfill(tab)
	stop.Store(true)
	writers.Wait()
	d.advance(0)
	for i := range n {
		h, it := d.stored(tab, of(i, 0))
		if want := Instant(unix(time.Duration(i)*time.Second)) * 1000; i%3 == 0 && i > 0 && h.deadline != want || i%3 != 0 && h.deadline != Never {
			t.Fatalf("item %d is %v with %+v", i, it, h)
		}
	}
	d.verify()
	d.advance(n / 2 * time.Second)
	left := len(d.items(tab, Range{}))
	if want := n - n/6 - 1; left != want {
		t.Errorf("%d items are left, want %d", left, want)
	}
	d.verify()
}

// Disabling keeps unexpired items for ever. Expired items stay expired, and their REMOVE comes.
func TestDisable(t *testing.T) {
	d := openMemory(t)
	tab := d.table("events")
	gone, later := item("pk", "gone", "sk", 1, "ttl", unix(time.Second)), item("pk", "later", "sk", 1, "ttl", unix(time.Minute))
	d.put(tab, gone)
	d.put(tab, later)
	d.still()
	if err := d.clock.Advance(time.Second); err != nil {
		t.Fatal(err)
	}
	d.setTTL("events", "")
	if d.get(tab, gone) != nil {
		t.Error("an expired item came back when TTL was disabled")
	}
	d.stop = run(t, d.Engine).stop
	d.requestBackfill()
	d.awaitBackfill(tab)
	d.advance(time.Hour)
	if d.get(tab, gone) != nil || d.get(tab, later) == nil {
		t.Error("disabling changed who is there")
	}
	rs := d.records(tab)
	if len(rs) != 3 || !rs[2].Service && !rs[1].Service {
		t.Errorf("records: %+v", rs)
	}
	for _, p := range d.dump() {
		if p.key[0] == spaceDeadlines {
			t.Errorf("a deadline entry is left: %v", p)
		}
	}
	if ttl := tab.Desc().TTL; ttl.Backfill || ttl.Ended != nil {
		t.Errorf("the setting is %+v", ttl)
	}
	d.verify()
}

// Under any sequence of settings, partial backfills, writes and time: an item that had expired when
// a generation ended stays expired, a later deadline of an earlier generation counts as none, and
// the present setting counts from the rewrite on. In aws expiry items exist until their removal;
// after a change to strict expiry, every deadline counts at once.
func TestGenerations(t *testing.T) {
	d := openMemory(t)
	d.still()
	tables := 0
	rapid.Check(t, func(rt *rapid.T) {
		tables++
		s := rapid.SampledFrom(shapes).Draw(rt, "shape")
		m := &generations{db: d, tab: d.table(fmt.Sprint("t", tables), s.shape, func(td *TableDesc) { td.TTL = drawTTL(rt) }), items: map[int]*modelled{}}
		for range rapid.IntRange(1, 30).Draw(rt, "steps") {
			switch rapid.IntRange(0, 5).Draw(rt, "step") {
			case 0:
				if err := d.clock.Advance(time.Duration(rapid.IntRange(0, 2500).Draw(rt, "ms")) * time.Millisecond); err != nil {
					rt.Fatal(err)
				}
			case 1:
				m.change(drawTTL(rt))
			case 2:
				m.backfill(rapid.Bool().Draw(rt, "ends"))
			case 3:
				m.reap()
			default:
				sk := rapid.IntRange(0, 4).Draw(rt, "sk")
				it := item("pk", "a", "sk", sk)
				for _, a := range []string{"t", "u"} {
					if s := rapid.IntRange(-3, 5).Draw(rt, a); s > -3 {
						it = it.With(a, number(fmt.Sprint(int64(d.Now())/1000+int64(s))))
					}
				}
				m.put(sk, it)
			}
			m.compare(rt)
		}
		if err := d.verifyTables(context.Background(), []*Table{m.tab}); err != nil {
			rt.Fatal(err)
		}
		if s.view != "" {
			wantLives(t, d.records(m.tab), s)
		}
	})
}

func drawTTL(rt *rapid.T) TTLDesc {
	return TTLDesc{
		Attribute: rapid.SampledFrom([]string{"", "t", "u"}).Draw(rt, "attribute"),
		Expiry: rapid.SampledFrom([]Expiry{
			{}, {Mode: ExpiryAWS, Seed: 1, Delay: Delay{spread: true, most: 3000}}, {Mode: ExpiryAWS, Seed: 2, Delay: Delay{spread: true, most: 3000}},
		}).Draw(rt, "expiry"),
	}
}

// generations is a table with its expected items.
type generations struct {
	*db
	tab   *Table
	items map[int]*modelled // by sort key
}

// modelled is a stored item, with its expected judgement.
type modelled struct {
	item       dynamo.Item
	deadline   Instant // that counts; Never: none
	removal    Instant
	hides      bool // the item does not exist from its deadline on
	generation uint32
}

// judge returns an item's judgement under the present setting.
func (m *generations) judge(it dynamo.Item, now Instant) *modelled {
	d := m.tab.Desc()
	h := d.headerFor(keyOf(m.t, m.tab, it), it, now)
	return &modelled{it, h.deadline, h.removal, d.TTL.Expiry.Mode == ExpiryStrict, d.TTL.Generation}
}

func (m *generations) exists(sk int) bool {
	s := m.items[sk]
	return s != nil && !(s.hides && s.deadline <= m.Now())
}

// change alters the setting.
func (m *generations) change(to TTLDesc) {
	old := m.tab.Desc().TTL
	now, err := m.Alter(context.Background(), "default", m.tab.Desc().Name, func(td *TableDesc, _ Instant) error {
		td.TTL.Attribute, td.TTL.Expiry = to.Attribute, to.Expiry
		return nil
	})
	if err != nil {
		m.t.Fatal(err)
	}
	if now.TTL.Generation == old.Generation {
		if old.Attribute != to.Attribute || old.Attribute != "" && old.Expiry != to.Expiry {
			m.t.Fatal("the generation was not raised")
		}
		return
	}
	turnsStrict := old.Attribute == to.Attribute && to.Expiry.Mode == ExpiryStrict
	for _, s := range m.items {
		switch {
		case s.hides && s.deadline <= now.TTL.Since: // stays expired
		case !s.hides && turnsStrict:
			s.hides = true
		default:
			s.deadline = Never
		}
	}
}

// backfill runs a step of a backfill, or the first step of a new one, and may end it.
func (m *generations) backfill(ends bool) {
	desc := m.tab.Desc()
	if !desc.TTL.Backfill {
		return
	}
	if _, err := m.tab.backfillStep(desc); err != nil {
		m.t.Fatal(err)
	}
	for sk, s := range m.items {
		switch {
		case s.generation == desc.TTL.Generation:
		case s.deadline <= m.Now():
			delete(m.items, sk)
		default:
			m.items[sk] = m.judge(s.item, desc.TTL.Since)
		}
	}
	if ends {
		if err := m.tab.backfill(context.Background()); err != nil {
			m.t.Fatal(err)
		}
	}
}

// reap drains the due entries. In strict expiry no reader can see that.
func (m *generations) reap() {
	for next := Instant(0); next <= m.Now(); {
		at, err := (&reaper{t: m.tab}).Drain(context.Background(), int64(m.Now()))
		if err != nil {
			m.t.Fatal(err)
		}
		next = Instant(at)
	}
	for sk, s := range m.items {
		if s.deadline != Never && s.removal <= m.Now() {
			delete(m.items, sk)
		}
	}
}

// put writes an item. Writing it again does not move its removal.
func (m *generations) put(sk int, it dynamo.Item) {
	next := m.judge(it, m.Now())
	if s := m.items[sk]; m.exists(sk) && s.generation == next.generation && s.deadline == next.deadline {
		next.removal = s.removal
	}
	m.db.put(m.tab, it)
	m.items[sk] = next
}

// compare reads every key.
func (m *generations) compare(rt *rapid.T) {
	for sk := range 5 {
		key := item("pk", "a", "sk", sk)
		if got := m.get(m.tab, key) != nil; got != m.exists(sk) {
			h, it := m.stored(m.tab, key)
			rt.Fatalf("at %d item %d is there: %v, want %v; stored %v %+v, model %+v, setting %+v", m.Now(), sk, got, !got, it, h, m.items[sk], m.tab.Desc().TTL)
		}
	}
}

// A backfill removes items that had expired when their generation ended, with the record of an
// expiry. A write of an equal item after the change moves it to the present generation without one.
func TestBackfillRecords(t *testing.T) {
	d := openMemory(t)
	tab := d.table("events")
	d.still()
	gone, there := item("pk", "a", "sk", 1, "ttl", unix(time.Second)), item("pk", "b", "sk", 1, "other", unix(time.Hour))
	d.put(tab, gone)
	d.put(tab, there)
	if err := d.clock.Advance(time.Second); err != nil {
		t.Fatal(err)
	}
	before := tab.Desc()
	d.setTTL("events", "other")
	d.put(tab, there)
	if h, _ := d.stored(tab, there); h.generation != 2 || h.deadline == Never {
		t.Errorf("written again, it has %+v", h)
	}
	if n := len(d.records(tab)); n != 2 {
		t.Errorf("%d records before the backfill, want 2", n)
	}
	if _, err := tab.backfillStep(before); !errors.Is(err, errStale) {
		t.Errorf("a step under the description before: %v", err)
	}
	if _, err := tab.backfillStep(tab.Desc()); err != nil {
		t.Fatal(err)
	}
	found := false
	for _, r := range d.records(tab) {
		found = found || r.Service && r.Event == Remove && r.Old.String() == gone.String()
	}
	if _, it := d.stored(tab, gone); !found || it != nil {
		t.Errorf("the backfill left %v; a record of its expiry: %v", it, found)
	}
}

// A change of the attribute in the middle of a backfill restarts it, for the new attribute.
func TestChangeDuringBackfill(t *testing.T) {
	d := openMemory(t)
	tab := d.table("events", func(td *TableDesc) { td.TTL = TTLDesc{} })
	for i := range 2 * backfillSlice {
		d.put(tab, item("pk", fmt.Sprint(i), "sk", 1, "t", unix(time.Hour), "u", unix(2*time.Hour)))
	}
	d.still()
	d.setTTL("events", "t")
	if _, err := tab.backfillStep(tab.Desc()); err != nil {
		t.Fatal(err)
	}
	d.setTTL("events", "u")
	if err := tab.backfill(context.Background()); err != nil {
		t.Fatal(err)
	}
	d.stop = run(t, d.Engine).stop
	d.advance(2*time.Hour - time.Millisecond)
	if n := len(d.items(tab, Range{})); n != 2*backfillSlice {
		t.Errorf("%d items an hour after the deadline that no longer counts", n)
	}
	d.advance(time.Millisecond)
	if n := len(d.items(tab, Range{})); n != 0 {
		t.Errorf("%d items after the deadline", n)
	}
	d.verify()
}

// A backfill that runs while its description is published and not applied begins at the first item,
// not at the end of the previous backfill. The test simulates the commit section of the change.
func TestBackfillOfAChangeUnderWay(t *testing.T) {
	d := openMemory(t)
	tab := d.table("events", func(td *TableDesc) { td.TTL = TTLDesc{} })
	a := item("pk", "a", "sk", 1, "ttl", unix(time.Hour), "other", unix(2*time.Hour))
	d.put(tab, a)
	d.setTTL("events", "ttl")
	d.awaitBackfill(tab)
	d.still()

	d.order.Lock()
	old := tab.Desc()
	next := old.clone()
	next.TTL.Attribute = "other"
	b := d.kv.NewBatch()
	defer b.Close()
	d.startGeneration(b, old, next, d.Now())
	d.change(tab, next)
	done := make(chan error)
	go func() { done <- tab.backfill(context.Background()) }()
	settle()
	d.lastCommit.Add(1)
	if err := d.kv.Apply(b); err != nil {
		t.Fatal(err)
	}
	d.durable.mu.Lock()
	d.durable.commit.Store(d.lastCommit.Load())
	d.durable.cond.Broadcast()
	d.durable.mu.Unlock()
	d.order.Unlock()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if h, _ := d.stored(tab, a); h.generation != 2 || h.deadline != Instant(unix(2*time.Hour))*1000 || tab.Desc().TTL.Backfill {
		t.Errorf("the item has %+v, the setting is %+v", h, tab.Desc().TTL)
	}
}

// After a crash a backfill resumes behind the last durable step, and ends.
func TestBackfillResumes(t *testing.T) {
	disk := kv.NewCrashFS()
	dir := directory{fs: disk}
	d := open(t, dir.options())
	tab := d.table("events", func(td *TableDesc) { td.TTL = TTLDesc{} })
	var ws []*Write
	for i := range 3*backfillSlice - 10 {
		ws = append(ws, set(t, tab, item("pk", fmt.Sprint(i), "sk", 1, "ttl", unix(time.Hour))))
	}
	if err := d.Write(context.Background(), ws...); err != nil {
		t.Fatal(err)
	}
	d.still()
	since := d.setTTL("events", "ttl").TTL.Since
	if err := d.clock.Advance(time.Minute); err != nil {
		t.Fatal(err)
	}
	if _, err := tab.backfillStep(tab.Desc()); err != nil {
		t.Fatal(err)
	}
	d = d.crash(&dir, disk)
	tab = d.reopened("events")
	if ttl := tab.Desc().TTL; !ttl.Backfill || ttl.Since != since {
		t.Fatalf("after the crash the setting is %+v", ttl)
	}
	left := 0
	for _, w := range ws {
		if h, _ := d.stored(tab, w.New); h.generation == 0 {
			left++
		}
	}
	if left != 2*backfillSlice-10 {
		t.Errorf("%d items are left to do, want %d", left, 2*backfillSlice-10)
	}
	keys, err := tab.ttlBackfill(tab.Desc()).keys()
	if err != nil || len(keys) != backfillSlice {
		t.Fatal(len(keys), err)
	}
	if value, _, _ := get(d.kv, keys[0].bytes()); value[0]&flagGeneration != 0 {
		t.Error("the backfill does what it has done")
	}
	d = run(t, d.Engine)
	d.awaitBackfill(tab)
	for _, w := range ws {
		if h, _ := d.stored(tab, w.New); h.generation != 1 || h.deadline == Never {
			t.Fatalf("%v has %+v", w.New, h)
		}
	}
	d.verify()
	d.close()
}
