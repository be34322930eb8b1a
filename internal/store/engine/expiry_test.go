package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/kv"
)

// pkSK is the key of the tables that db creates.
var pkSK = KeySchema{Partition: []KeyAttr{{"pk", dynamo.KindString}}, Sort: []KeyAttr{{"sk", dynamo.KindNumber}}}

// A delay is a documented function of seed and key. Another program computed these draws and delays
// from the documentation of Delay and of XXH64.
func TestDelayIsReproducible(t *testing.T) {
	desc := &TableDesc{ID: 1, Key: pkSK}
	keys := []dynamo.Item{item("pk", "a", "sk", 1), item("pk", "b", "sk", 1), item("pk", strings.Repeat("x", 40), "sk", 1)}
	uniform := Delay{spread: true, least: 480_000, most: 1_800_000}
	for _, c := range []struct {
		seed     uint64
		key      int
		draw     uint64
		observed Instant
		uniform  Instant
	}{
		{0, 0, 0x543f8e30d17eaf42, 558_982, 914_405},
		{0, 1, 0x00d3c8f186f014b3, 480_775, 484_265},
		{0, 2, 0x32fbce6457a84d8d, 527_797, 742_884},
		{7, 0, 0xa391ac2a4f528765, 656_463, 1_323_403},
		{7, 1, 0xede5eeb64669f6c9, 774_456, 1_706_663},
		{7, 2, 0xe6cba72b6bffeb65, 763_181, 1_670_040},
		{math.MaxUint64, 1, 0x035ce24b91f1e881, 483_152, 497_339},
	} {
		for _, table := range []uint32{1, 2} { // only seed and key matter
			desc.ID = table
			got := draw(c.seed, keyOfDesc(t, desc, keys[c.key]))
			if got != c.draw || (Delay{}).forDraw(got) != c.observed || uniform.forDraw(got) != c.uniform {
				t.Errorf("seed %d, %v: draw %#x, %d ms observed, %d ms uniform; want %+v", c.seed, keys[c.key], got, (Delay{}).forDraw(got), uniform.forDraw(got), c)
			}
		}
	}
}

func keyOfDesc(t *testing.T, d *TableDesc, it dynamo.Item) Key {
	t.Helper()
	k, err := d.KeyOf(it)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// The distributions match their names, over the whole range of draws and at its ends.
func TestDelayDistributions(t *testing.T) {
	mean := func(d Delay) (least, most, mean Instant) {
		const n = 10_000
		least = Never
		for i := range uint64(n) {
			delay := d.forDraw(i*(math.MaxUint64/n) + i)
			least, most, mean = min(least, delay), max(most, delay), mean+delay
		}
		last := d.forDraw(math.MaxUint64)
		return least, max(most, last), mean / n
	}
	for text, want := range map[string][3]Instant{
		"observed":      {480_000, 1_799_999, 635_683},
		"fixed:10m":     {600_000, 600_000, 600_000},
		"fixed:0s":      {0, 0, 0},
		"uniform:8m-9m": {480_000, 540_000, 509_997},
		"uniform:0s-1h": {0, 3_600_000, 1_799_820},
	} {
		d, err := ParseDelay(text)
		if err != nil {
			t.Fatal(err)
		}
		least, most, mean := mean(d)
		if least != want[0] || most != want[1] || mean != want[2] {
			t.Errorf("%s: from %d to %d ms, %d on average; want %v", text, least, most, mean, want)
		}
	}
	quantiles := map[uint64]Instant{0: 480_000, math.MaxUint64 / 2: 599_999, math.MaxUint64/2 + 1: 600_000, math.MaxUint64 / 100 * 97: 790_999}
	for draw, want := range quantiles {
		if got := (Delay{}).forDraw(draw); got != want {
			t.Errorf("observed, draw %#x: %d ms, want %d", draw, got, want)
		}
	}
}

// String has one form for each distribution, so that equal settings are equal. Errors name the
// fault.
func TestParseDelay(t *testing.T) {
	for text, want := range map[string]string{
		"observed": "observed", "fixed:10m": "fixed:10m", "fixed:600s": "fixed:10m", "fixed:0s": "fixed:0s", "fixed:1h30m5s": "fixed:1h30m5s",
		"fixed:1.5s": "fixed:1.5s", "fixed:8784h": "fixed:8784h", "uniform:8m-30m": "uniform:8m-30m", "uniform:480s-0.5h": "uniform:8m-30m", "fixed:1d": "fixed:24h", "uniform:1d12h-1w": "uniform:36h-168h",
		"uniform:1s-1s": "fixed:1s", "uniform:0s-1ms": "uniform:0s-1ms", "uniform:10m10s-2h10m": "uniform:10m10s-2h10m",
	} {
		d, err := ParseDelay(text)
		if err != nil || d.String() != want {
			t.Errorf("%s: %v, %v", text, d, err)
		}
		if again, err := ParseDelay(d.String()); err != nil || again != d {
			t.Errorf("%v is not read back: %v, %v", d, again, err)
		}
	}
	const none = "invalid distribution of delays "
	for text, want := range map[string]string{
		"":                    none + `""; use observed, fixed:10m or uniform:8m-30m`,
		"10m":                 none + `"10m"; use observed, fixed:10m or uniform:8m-30m`,
		"observed:10m":        none + `"observed:10m"; use observed, fixed:10m or uniform:8m-30m`,
		"fixed":               none + `"fixed": "" is not a duration; use 90s, 10m or 2d`,
		"fixed:soon":          none + `"fixed:soon": "soon" is not a duration; use 90s, 10m or 2d`,
		"fixed:-1s":           none + `"fixed:-1s": -1s is not between 0s and 8784h (366 days)`,
		"fixed:8785h":         none + `"fixed:8785h": 8785h is not between 0s and 8784h (366 days)`,
		"fixed:1ms1us":        none + `"fixed:1ms1us": 1ms1us is not a whole number of milliseconds`,
		"uniform:8m":          none + `"uniform:8m": "" is not a duration; use 90s, 10m or 2d`,
		"uniform:30m-8m":      none + `"uniform:30m-8m": the shorter delay must come first`,
		"uniform:1s-2s-3s":    none + `"uniform:1s-2s-3s": "2s-3s" is not a duration; use 90s, 10m or 2d`,
		"uniform:8m-3000000h": none + `"uniform:8m-3000000h": "3000000h" is not a duration; use 90s, 10m or 2d`,
	} {
		if d, err := ParseDelay(text); err == nil || err.Error() != want {
			t.Errorf("%s: %v, %v\nwant %s", text, d, err, want)
		}
	}
	for _, x := range []Expiry{{}, awsExpiry, {Mode: ExpiryAWS, Seed: math.MaxUint64}} {
		text, err := json.Marshal(TTLDesc{Expiry: x})
		var back TTLDesc
		if err := errors.Join(err, json.Unmarshal(text, &back)); err != nil || back.Expiry != x || bytes.Contains(text, []byte("Expiry")) != (x != Expiry{}) {
			t.Errorf("%+v became %s and %+v, %v", x, text, back.Expiry, err)
		}
	}
}

// In aws expiry an item is removed when now > value in whole seconds. Its delay counts from the
// deadline, or from a later write.
func TestRemoval(t *testing.T) {
	key := keyOfDesc(t, &TableDesc{ID: 1, Key: pkSK}, item("pk", "a", "sk", 1))
	aws := func(text string) Expiry {
		d, err := ParseDelay(text)
		if err != nil {
			t.Fatal(err)
		}
		return Expiry{Mode: ExpiryAWS, Delay: d}
	}
	for _, c := range []struct {
		x                   Expiry
		deadline, now, want Instant
	}{
		{Expiry{}, 100_000, 0, 100_000},
		{Expiry{}, 100_001, 200_000, 100_001},
		// the value is 100; at 100.999 the whole second is not greater
		{aws("fixed:0s"), 100_000, 0, 101_000},
		{aws("fixed:0s"), 99_999, 0, 100_000},
		{aws("fixed:0s"), 100_001, 0, 101_000},
		{aws("fixed:0s"), 100_500, 0, 101_000},
		{aws("fixed:0s"), -1, -5000, 0},
		{aws("fixed:0s"), -1000, -5000, 0},
		{aws("fixed:0s"), -1001, -5000, -1000},
		{aws("fixed:999ms"), 100_000, 0, 101_000},
		{aws("fixed:1001ms"), 100_000, 0, 101_001},
		{aws("fixed:10m"), 100_000, 99_999, 700_000},
		{aws("fixed:10m"), 100_250, 0, 700_250},
		{aws("fixed:10m"), 100_000, 100_000, 700_000},
		{aws("fixed:10m"), 100_000, 5_000_123, 5_600_123}, // expired when it was written
		{aws("fixed:0s"), 100_000, 5_000_123, 5_000_123},
		{aws("observed"), 100_000, 0, 658_982},
		{aws("fixed:8784h"), farthest - 1, 0, Never - 1001},
		{aws("fixed:8784h"), farthest, 0, farthest},
		{aws("observed"), Never - 1, 0, Never - 1},
	} {
		if got := c.x.removal(c.deadline, c.now, key); got != c.want {
			t.Errorf("%v, deadline %d armed at %d: removal at %d, want %d", c.x, c.deadline, c.now, got, c.want)
		}
	}
}

// late creates a table whose items are removed ten minutes after their deadlines.
func (d *db) late(name string, change ...func(*TableDesc)) *Table {
	return d.table(name, append(change, by(Expiry{Mode: ExpiryAWS, Delay: Delay{spread: true, least: 600_000, most: 600_000}}))...)
}

// In aws expiry an expired item is visible to every observer until its removal. Then it vanishes
// everywhere at once, with its record.
func TestAWSExpiryShowsUntilRemoval(t *testing.T) {
	d := openMemory(t)
	tab := d.late("events")
	a := item("pk", "a", "sk", 1, "g", "x", "ttl", unix(time.Second))
	d.put(tab, a)
	pk, g := []dynamo.Value{dynamo.AppendString(nil, "a")}, []dynamo.Value{dynamo.AppendString(nil, "x")}
	byG := tab.Desc().Index("byG")
	count := func() (seen []string) {
		if d.get(tab, a) != nil {
			seen = append(seen, "get")
		}
		for name, r := range map[string]Range{"scan": {}, "query": {Partition: pk}, "index": {Index: byG, Partition: g}, "index scan": {Index: byG}} {
			if len(d.items(tab, r)) == 1 {
				seen = append(seen, name)
			}
		}
		w := &Write{Table: tab, Key: keyOf(t, tab, a), ReadOld: true, Decide: func(old dynamo.Item, _ Instant) (dynamo.Item, error) { return old, nil }}
		if err := d.Write(context.Background(), w); err != nil {
			t.Fatal(err)
		}
		if w.Old != nil {
			seen = append(seen, "condition")
		}
		stats, err := tab.Stats(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if stats.Items == 1 && stats.Indexes["byG"].Items == 1 {
			seen = append(seen, "count")
		}
		return seen
	}
	for _, at := range []time.Duration{time.Second, 2 * time.Second, 10*time.Minute + time.Second - time.Millisecond} {
		d.advance(epoch.Add(at).Sub(d.Now().Time()))
		if seen := count(); len(seen) != 7 {
			t.Errorf("%v after the start only %v see the item", at, seen)
		}
	}
	d.verify()
	d.advance(time.Millisecond)
	if seen := count(); len(seen) != 0 {
		t.Errorf("removed, it is seen by %v", seen)
	}
	rs := d.records(tab)
	if len(rs) != 2 || !rs[1].Service || rs[1].Event != Remove || rs[1].Old.String() != a.String() || rs[1].At != d.Now() {
		t.Errorf("records: %+v", rs)
	}
	d.verify()
}

// An expired but visible item can be renewed, disarmed, changed and deleted as any other. Writing
// it again does not move its removal.
func TestAWSExpiryWritesToTheExpired(t *testing.T) {
	d := openMemory(t)
	tab := d.late("events")
	of := func(pk string, pairs ...any) dynamo.Item { return item(append([]any{"pk", pk, "sk", 1}, pairs...)...) }
	for _, pk := range []string{"renewed", "disarmed", "changed", "deleted", "left"} {
		d.put(tab, of(pk, "ttl", unix(time.Second)))
	}
	d.advance(5 * time.Minute)
	d.put(tab, of("renewed", "ttl", unix(time.Hour)))
	d.put(tab, of("disarmed"))
	d.put(tab, of("changed", "ttl", unix(time.Second), "n", 2))
	d.put(tab, of("changed", "ttl", unix(time.Second), "n", 3))
	d.delete(tab, of("deleted"))
	// expired when it was written: its ten minutes begin then
	d.put(tab, of("born", "ttl", unix(time.Second)))
	there := func() (pks []string) {
		for _, it := range d.items(tab, Range{Index: nil}) {
			pks = append(pks, string(it.Get("pk").Bytes()))
		}
		return sortedStrings(pks)
	}
	want := func(when string, pks ...string) {
		t.Helper()
		if got := there(); fmt.Sprint(got) != fmt.Sprint(sortedStrings(pks)) {
			t.Errorf("%s: %v, want %v", when, got, pks)
		}
	}
	d.advance(5*time.Minute + time.Second - time.Millisecond)
	want("before removal", "renewed", "disarmed", "changed", "left", "born")
	d.advance(time.Millisecond)
	want("after it", "renewed", "disarmed", "born")
	d.advance(5*time.Minute - time.Second)
	want("ten minutes after the last write", "renewed", "disarmed")
	d.advance(time.Hour)
	want("an hour later", "disarmed")
	lives := map[string]string{}
	for _, r := range d.records(tab) {
		text := map[Event]string{Insert: "I", Modify: "M", Remove: "R"}[r.Event]
		if r.Service {
			text += "s"
		}
		lives[string(r.Keys.Get("pk").Bytes())] += text
	}
	if got := fmt.Sprint(lives); got != "map[born:IRs changed:IMMRs deleted:IR disarmed:IM left:IRs renewed:IMRs]" {
		t.Errorf("the stream says %s", got)
	}
	d.verify()
}

func sortedStrings(s []string) []string {
	out := append([]string{}, s...)
	slices.Sort(out)
	return out
}

// A view can be narrowed to the items of strict expiry, or to the others, in the table and in
// indexes. In strict expiry there are no others.
func TestShow(t *testing.T) {
	for _, x := range []Expiry{{}, {Mode: ExpiryAWS, Delay: Delay{spread: true, least: 600_000, most: 600_000}}} {
		t.Run(expiryName(x), func(t *testing.T) {
			d := openMemory(t)
			tab := d.table("events", by(x))
			d.still()
			for i, pk := range []string{"expired", "now", "soon", "never"} {
				it := item("pk", pk, "sk", 1, "g", "x")
				if pk != "never" {
					it = it.With("ttl", number(fmt.Sprint(unix(time.Duration(i)*time.Second))))
				}
				d.put(tab, it)
			}
			if err := d.clock.Advance(time.Second); err != nil {
				t.Fatal(err)
			}
			shown := func(e Expired) string {
				var table, index, gets []string
				err := d.ReadSnapshot(context.Background(), func(v *View) error {
					v.Show(e)
					table, index, gets = nil, nil, nil
					for ix, into := range map[*IndexDesc]*[]string{nil: &table, tab.Desc().Index("byG"): &index} {
						err := v.Range(tab, Range{Index: ix}, func(it dynamo.Item) (bool, error) {
							*into = append(*into, string(it.Get("pk").Bytes()))
							return true, nil
						})
						if err != nil {
							return err
						}
					}
					for _, pk := range []string{"expired", "now", "soon", "never"} {
						it, _, err := v.Get(tab, keyOf(t, tab, item("pk", pk, "sk", 1)))
						if err != nil {
							return err
						}
						if it != nil {
							gets = append(gets, pk)
						}
					}
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
				table, index, gets = sortedStrings(table), sortedStrings(index), sortedStrings(gets)
				if fmt.Sprint(table) != fmt.Sprint(index) || fmt.Sprint(table) != fmt.Sprint(gets) {
					t.Errorf("the table shows %v, the index %v, by key %v", table, index, gets)
				}
				return fmt.Sprint(table)
			}
			const living = "[never soon]"
			all, rest := "[expired never now soon]", "[expired now]"
			if x.Mode == ExpiryStrict {
				all, rest = living, "[]"
			}
			if got := shown(ExpiredShown); got != all {
				t.Errorf("shown: %s", got)
			}
			if got := shown(ExpiredHidden); got != living {
				t.Errorf("hidden: %s", got)
			}
			if got := shown(ExpiredOnly); got != rest {
				t.Errorf("only: %s", got)
			}
		})
	}
}

// setExpiry changes a table's expiry.
func (d *db) setExpiry(name string, x Expiry) {
	d.t.Helper()
	_, err := d.Alter(context.Background(), "default", name, func(td *TableDesc, _ Instant) error {
		td.TTL.Expiry = x
		return nil
	})
	if err != nil {
		d.t.Fatal(err)
	}
}

// A change of the mode on a full table, either way, while writers write, time passes and an index
// is built. No reader of a key sees it vanish and return without a write, nothing is removed early,
// and after the backfill every item follows the new setting.
func TestSwitchWhileWriting(t *testing.T) {
	const n = 1200
	for _, to := range []Expiry{{}, awsExpiry} {
		from := awsExpiry
		if to == awsExpiry {
			from = Expiry{}
		}
		t.Run("to "+expiryName(to), func(t *testing.T) {
			d := openMemory(t)
			tab := d.table("events", by(from))
			of := func(i, v int) dynamo.Item {
				return item("pk", fmt.Sprint("k", i%97), "sk", i, "v", v, "g", fmt.Sprint(i%7), "ttl", unix(time.Duration(i)*50*time.Millisecond+10*time.Second))
			}
			for i := range n {
				d.put(tab, of(i, 0))
			}
			var stop atomic.Bool
			var workers sync.WaitGroup
			for w := range 2 { // writers do not touch the first third, which is only read
				workers.Go(func() {
					for i := w; !stop.Load(); i++ {
						it := of(n/3+i%(2*n/3), 1+i)
						if err := d.Write(context.Background(), set(t, tab, it)); err != nil {
							t.Error(err)
							return
						}
					}
				})
			}
			gone := make([]bool, n/3)
			workers.Go(func() {
				for i := 0; !stop.Load(); i++ {
					there := d.get(tab, of(i%len(gone), 0)) != nil
					if there && gone[i%len(gone)] {
						t.Errorf("item %d was gone and is there", i%len(gone))
					}
					gone[i%len(gone)] = !there
				}
			})
			// items of a hundred deadlines have expired, and in aws expiry some of them are visible
			d.advance(15 * time.Second)
			d.setExpiry("events", to)
			// another backfill beside it
			_, err := d.Alter(context.Background(), "default", "events", func(td *TableDesc, _ Instant) error {
				td.Indexes = append(td.Indexes, IndexDesc{
					Name: "byTTL", Global: true, Projection: Projection{Type: "KEYS_ONLY"}, Key: KeySchema{Partition: []KeyAttr{{"ttl", dynamo.KindNumber}}},
				})
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			for range 20 {
				d.advance(10 * time.Millisecond)
			}
			for tab.Desc().needsBackfill() {
				d.advance(0)
			}
			stop.Store(true)
			workers.Wait()
			d.advance(0)
			d.verify()
			for i := range n {
				it := of(i, 0)
				h, stored := d.stored(tab, it)
				deadline := Instant(unix(time.Duration(i)*50*time.Millisecond+10*time.Second)) * 1000
				if stored == nil {
					if deadline > d.Now() {
						t.Fatalf("item %d is gone before its deadline", i)
					}
					continue
				}
				if h.generation != tab.Desc().TTL.Generation || h.deadline != deadline || h.late() != (to.Mode == ExpiryAWS) {
					t.Fatalf("item %d has %+v", i, h)
				}
			}
			d.advance(2 * time.Minute)
			if left := len(d.items(tab, Range{})) + len(d.items(tab, Range{Index: tab.Desc().Index("byTTL")})); left != 0 {
				t.Errorf("%d items and entries are left", left)
			}
			for _, r := range d.records(tab) {
				if r.Service && int64(r.At) < int64(valueOfTTL(r.Old))*1000 {
					t.Errorf("%v was removed at %v", r.Old, r.At.Time())
				}
			}
			wantChains(t, d.records(tab))
			d.verify()
		})
	}
}

// valueOfTTL returns an item's TTL attribute.
func valueOfTTL(it dynamo.Item) (seconds int) {
	if _, err := fmt.Sscan(it.Get("ttl").Number().String(), &seconds); err != nil {
		panic(err)
	}
	return seconds
}

// From aws to strict expiry every deadline counts from the change on, not only after the backfill.
// From strict to aws expired items stay gone, even before the backfill reaches them.
func TestSwitchCountsAtOnce(t *testing.T) {
	d := openMemory(t)
	d.still()
	past, soon, later := item("pk", "past", "sk", 1, "ttl", unix(time.Second)), item("pk", "soon", "sk", 1, "ttl", unix(3*time.Second)), item("pk", "later", "sk", 1, "ttl", unix(time.Hour))
	late, strict := d.late("late"), d.table("strict")
	for _, tab := range []*Table{late, strict} {
		for _, it := range []dynamo.Item{past, soon, later} {
			d.put(tab, it)
		}
	}
	there := func(tab *Table) (out string) {
		for _, it := range []dynamo.Item{past, soon, later} {
			if d.get(tab, it) != nil {
				out += string(it.Get("pk").Bytes()) + " "
			}
		}
		return out
	}
	want := func(when string, tab *Table, want string) {
		t.Helper()
		if got := there(tab); got != want {
			t.Errorf("%s, %s: %s", tab.Desc().Name, when, got)
		}
	}
	d.moveTo(d.Now() + 2000)
	want("before", late, "past soon later ")
	want("before", strict, "soon later ")
	d.setExpiry("late", Expiry{})
	d.setExpiry("strict", awsExpiry)
	want("changed", late, "soon later ")
	want("changed", strict, "soon later ")
	d.moveTo(d.Now() + 1000)
	want("a second later", late, "later ")
	want("a second later", strict, "soon later ")
	d.put(late, past.With("ttl", number(fmt.Sprint(unix(time.Hour))))) // expires the old one first
	for _, tab := range []*Table{late, strict} {
		if err := tab.backfill(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	want("backfilled", late, "past later ")
	want("backfilled", strict, "soon later ")
	lives := map[string]string{}
	for _, tab := range []*Table{late, strict} {
		for _, r := range d.records(tab) {
			text := map[Event]string{Insert: "I", Modify: "M", Remove: "R"}[r.Event]
			if r.Service {
				text += "s"
			}
			lives[tab.Desc().Name+" "+string(r.Keys.Get("pk").Bytes())] += text
		}
	}
	if got := fmt.Sprint(lives); got != "map[late later:I late past:IRsI late soon:IRs strict later:I strict past:IRs strict soon:I]" {
		t.Errorf("the streams say %s", got)
	}
	d.verify()
}

// A change without an effect on expiry raises no generation: the expiry of a table without TTL, or
// an equal setting.
func TestSwitchNothing(t *testing.T) {
	d := openMemory(t)
	off, on := d.table("off", func(td *TableDesc) { td.TTL = TTLDesc{} }), d.table("on", by(awsExpiry))
	d.setExpiry("off", awsExpiry)
	d.setExpiry("on", awsExpiry)
	for _, tab := range []*Table{off, on} {
		if ttl := tab.Desc().TTL; ttl.Backfill || ttl.Expiry != awsExpiry || ttl.Generation > 1 {
			t.Errorf("%s: %+v", tab.Desc().Name, ttl)
		}
	}
	d.setTTL("off", "ttl")
	a := item("pk", "a", "sk", 1, "ttl", unix(time.Second))
	d.put(off, a)
	if h, _ := d.stored(off, a); !h.late() {
		t.Errorf("an item written once TTL is on has %+v", h)
	}
	reseeded := awsExpiry
	reseeded.Seed++
	d.setExpiry("on", reseeded)
	if ttl := on.Desc().TTL; ttl.Generation != 2 {
		t.Errorf("another seed left %+v", ttl)
	}
}

// After a crash in the middle of a change of the mode the backfill resumes and ends, every item
// follows the new setting, and the delays are drawn equal again.
func TestSwitchResumes(t *testing.T) {
	for _, to := range []Expiry{{}, awsExpiry} {
		from := awsExpiry
		if to == awsExpiry {
			from = Expiry{}
		}
		t.Run("to "+expiryName(to), func(t *testing.T) {
			disk := kv.NewCrashFS()
			dir := directory{fs: disk}
			d := open(t, dir.options())
			tab := d.table("events", by(from))
			var ws []*Write
			for i := range 2*backfillSlice + 10 {
				ws = append(ws, set(t, tab, item("pk", fmt.Sprint(i), "sk", 1, "ttl", unix(time.Duration(1+i%2*3600)*time.Second))))
			}
			if err := d.Write(context.Background(), ws...); err != nil {
				t.Fatal(err)
			}
			d.still()
			d.moveTo(d.Now() + 1500) // half of them have expired
			d.setExpiry("events", to)
			if _, err := tab.backfillStep(tab.Desc()); err != nil {
				t.Fatal(err)
			}
			d = d.crash(&dir, disk)
			tab = d.reopened("events")
			if ttl := tab.Desc().TTL; !ttl.Backfill || ttl.Expiry != to {
				t.Fatalf("after the crash the setting is %+v", ttl)
			}
			// Expired items of strict expiry are gone before and after the change. So in either
			// case half of the items exist.
			if n := len(d.items(tab, Range{})); n != len(ws)/2 {
				t.Errorf("%d items are there, want %d", n, len(ws)/2)
			}
			d = run(t, d.Engine)
			d.awaitBackfill(tab)
			d.verify()
			for i, w := range ws {
				h, it := d.stored(tab, w.New)
				if gone := i%2 == 0; gone != (it == nil) || it != nil && h != tab.Desc().headerFor(w.Key, it, tab.Desc().TTL.Since) {
					t.Fatalf("item %d is %v with %+v", i, it, h)
				}
			}
			d.advance(2 * time.Hour)
			if n := len(d.items(tab, Range{})); n != 0 {
				t.Errorf("%d items never expired", n)
			}
			d.close()
		})
	}
}

// A restart changes no removal. Items that fell due meanwhile are removed after it.
func TestAWSExpiryOverARestart(t *testing.T) {
	dir := newDirectory()
	d := dir.open(t)
	tab := d.late("events")
	a, b := item("pk", "a", "sk", 1, "ttl", unix(time.Second)), item("pk", "b", "sk", 1, "ttl", unix(time.Hour))
	d.put(tab, a)
	d.put(tab, b)
	d.moveTo(d.Now() + 2000)
	before, _ := d.stored(tab, a)
	d.close()
	d = dir.open(t)
	tab = d.reopened("events")
	if after, _ := d.stored(tab, a); after != before || d.get(tab, a) == nil || tab.Desc().TTL.Backfill {
		t.Errorf("%+v became %+v", before, after)
	}
	d.advance(time.Duration(before.removal-d.Now()) * time.Millisecond)
	if d.get(tab, a) != nil || d.get(tab, b) == nil {
		t.Error("the removals are not those that were drawn")
	}
	d.close()
}
