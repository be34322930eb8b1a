package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Under any sequence of settings, partial backfills, writes, deletes, reaps and time, the counts of
// each step, the first and the last instant and the keys match the items whose deadlines count.
func TestUpcomingAgainstModel(t *testing.T) {
	d := openMemory(t)
	d.still()
	tables := 0
	rapid.Check(t, func(rt *rapid.T) {
		tables++
		s := rapid.SampledFrom(shapes).Draw(rt, "shape")
		m := &generations{db: d, tab: d.table(fmt.Sprint("t", tables), s.shape, func(td *TableDesc) { td.TTL = drawTTL(rt) }), items: map[int]*modelled{}}
		for range rapid.IntRange(1, 30).Draw(rt, "steps") {
			sk := rapid.IntRange(0, 4).Draw(rt, "sk")
			switch rapid.IntRange(0, 7).Draw(rt, "step") {
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
			case 4:
				if m.exists(sk) {
					d.delete(m.tab, item("pk", "a", "sk", sk))
					delete(m.items, sk)
				}
			default:
				it := item("pk", "a", "sk", sk)
				for _, a := range []string{"t", "u"} {
					if s := rapid.IntRange(-3, 5).Draw(rt, a); s > -3 {
						it = it.With(a, number(fmt.Sprint(int64(d.Now())/1000+int64(s))))
					}
				}
				m.put(sk, it)
			}
			m.compareUpcoming(rt)
		}
	})
}

// compareUpcoming compares the deadlines of a drawn period with the model's.
func (m *generations) compareUpcoming(rt *rapid.T) {
	from := m.Now() + Instant(rapid.IntRange(-4000, 6000).Draw(rt, "from"))
	p := Period{
		From: from, To: from + Instant(rapid.IntRange(1, 8000).Draw(rt, "long")),
		Steps: rapid.IntRange(0, 20).Draw(rt, "slots"), Keys: rapid.IntRange(0, 6).Draw(rt, "keys"), Most: rapid.IntRange(0, 6).Draw(rt, "most"),
	}
	var want []DueKey
	last := Never
	generation := m.tab.Desc().TTL.Generation
	for sk, s := range m.items {
		if s.generation != generation {
			p.Most = 100 // reads entries that do not count, too
			if s.deadline != s.removal && s.deadline != Never {
				return // before the backfill visits it, the entry alone does not show whether it counts
			}
		}
		if s.deadline == Never {
			continue
		}
		if last == Never || s.removal > last {
			last = s.removal
		}
		if p.From <= s.removal && s.removal < p.To {
			want = append(want, DueKey{item("pk", "a", "sk", sk), s.removal})
		}
	}
	slices.SortFunc(want, func(a, b DueKey) int {
		return cmp.Or(cmp.Compare(a.At, b.At), compareValues(a.Key.Get("sk"), b.Key.Get("sk")))
	})
	until, first, counts := p.To, Never, make([]int64, p.Steps)
	counted := want
	if p.Steps > 0 && len(want) > p.Most {
		until, counted = want[p.Most].At, want[:p.Most]
	}
	if len(want) > 0 {
		first = want[0].At
	}
	if p.Steps == 0 {
		counted = nil
	}
	for _, w := range counted {
		counts[int(w.At-p.From)*p.Steps/int(p.To-p.From)]++
	}
	got, err := m.tab.Upcoming(context.Background(), p)
	if err != nil {
		rt.Fatal(err)
	}
	want = want[:min(len(want), p.Keys)]
	sameKeys := slices.EqualFunc(got.Due, want, func(a, b DueKey) bool { return a.At == b.At && a.Key.String() == b.Key.String() })
	if !slices.Equal(got.Counts, counts) || got.Until != until || got.First != first || got.Last != last || !sameKeys {
		rt.Fatalf("at %d in %+v: %+v; want counts %v, until %d, first %d, last %d, keys %v; setting %+v", m.Now(), p, got, counts, until, first, last, want, m.tab.Desc().TTL)
	}
}

// The steps of any period partition it: each instant belongs to one step, without a rounding error.
func TestUpcomingSteps(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := Period{From: Instant(rapid.Int64().Draw(rt, "from")), Steps: rapid.IntRange(1, 5000).Draw(rt, "steps")}
		p.To = Instant(rapid.Int64Min(int64(min(p.From, Never-1))+1).Draw(rt, "to"))
		if p.To <= p.From {
			rt.Skip("no period")
		}
		at := Instant(rapid.Int64Range(int64(p.From), int64(p.To)-1).Draw(rt, "at"))
		into := new(big.Int).Sub(big.NewInt(int64(at)), big.NewInt(int64(p.From)))
		long := new(big.Int).Sub(big.NewInt(int64(p.To)), big.NewInt(int64(p.From)))
		want := into.Mul(into, big.NewInt(int64(p.Steps))).Div(into, long)
		if got := p.step(at); int64(got) != want.Int64() {
			rt.Fatalf("%d of %+v is in step %d, want %d", at, p, got, want)
		}
	})
	for _, c := range []struct {
		p    Period
		at   Instant
		want int
	}{
		{Period{From: 0, To: 100, Steps: 100}, 29, 29}, // 0.29 * 100 is less than 29
		{Period{From: math.MinInt64, To: math.MaxInt64, Steps: 2000}, math.MaxInt64 - 1, 1999},
		{Period{From: math.MinInt64, To: math.MaxInt64, Steps: 2000}, 0, 1000},
		{Period{From: math.MinInt64, To: math.MaxInt64, Steps: 2000}, math.MinInt64, 0},
	} {
		if n := c.p.step(c.at); n != c.want {
			t.Errorf("%d of %+v is in step %d, want %d", c.at, c.p, n, c.want)
		}
	}
}

// Counting ends at the limit of entries, and returns the instant before which nothing is missing.
// Many items share each instant.
func TestUpcomingMany(t *testing.T) {
	d := openMemory(t)
	tab := d.table("events")
	for i := range 3000 {
		d.put(tab, item("pk", fmt.Sprint(i), "sk", 1, "ttl", unix(time.Duration(1+i%10)*time.Second)))
	}
	at := func(s int) Instant { return Instant(unix(time.Duration(s)*time.Second)) * 1000 }
	p := Period{From: at(0), To: at(20), Steps: 20, Keys: 700, Most: 650}
	got, err := tab.Upcoming(context.Background(), p)
	if err != nil || got.Counts[1] != 300 || got.Counts[2] != 300 || got.Counts[3] != 50 || got.Until != at(3) || len(got.Due) != 700 || got.Last != at(10) || got.First != at(1) {
		t.Errorf("%v %d keys, until %d, %v", got.Counts, len(got.Due), got.Until, err)
	}
	p.Most = 600
	if got, err = tab.Upcoming(context.Background(), p); err != nil || got.Counts[3] != 0 || got.Until != at(3) {
		t.Errorf("%v, until %d, %v", got.Counts, got.Until, err)
	}
	p.Most = 3000
	if got, err = tab.Upcoming(context.Background(), p); err != nil || got.Counts[10] != 300 || got.Until != at(20) || len(got.Due) != 700 {
		t.Errorf("%v %d keys, until %d, %v", got.Counts, len(got.Due), got.Until, err)
	}
	p.To, p.Steps = at(3), 3
	if got, err = tab.Upcoming(context.Background(), p); err != nil || fmt.Sprint(got.Counts) != "[0 300 300]" || got.Until != at(3) || len(got.Due) != 600 {
		t.Errorf("%v %d keys, until %d, %v", got.Counts, len(got.Due), got.Until, err)
	}
	d.advance(5 * time.Second)
	p = Period{From: at(0), To: at(20), Steps: 20, Most: 3000}
	if got, err = tab.Upcoming(context.Background(), p); err != nil || got.Counts[5] != 0 || got.Counts[6] != 300 || got.First != at(6) {
		t.Errorf("after five seconds: %v, first %d, %v", got.Counts, got.First, err)
	}
}

// Entries of an ended TTL generation, which the backfill has yet to visit, are passed up to a limit.
// Then the keys are complete before the instant in the answer, and nothing expires after Last.
func TestUpcomingBehindStaleEntries(t *testing.T) {
	d := openMemory(t)
	d.still()
	m := &generations{db: d, tab: d.table("events", func(td *TableDesc) { td.TTL = TTLDesc{Attribute: "t", Generation: 1} }), items: map[int]*modelled{}}
	for i := range 30 {
		m.put(i, item("pk", "a", "sk", i, "t", unix(time.Duration(10+i)*time.Second)))
	}
	m.change(TTLDesc{Attribute: "u"})
	m.put(100, item("pk", "a", "sk", 100, "u", unix(25*time.Second)))
	at := func(s int) Instant { return Instant(unix(time.Duration(s)*time.Second)) * 1000 }
	defer func(most int) { staleMost = most }(staleMost)
	for most, want := range map[int]Upcoming{
		5:  {Until: at(15), First: Never, Last: at(34)},
		20: {Until: at(60), First: at(25), Last: at(25)},
	} {
		staleMost = most
		got, err := m.tab.Upcoming(context.Background(), Period{From: at(0), To: at(60), Keys: 1})
		if err != nil || got.Until != want.Until || got.First != want.First || got.Last != want.Last {
			t.Errorf("passing %d: %+v, %v; want %+v", most, got, err, want)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for i := range upcomingTurn {
		m.put(200+i, item("pk", "a", "sk", 200+i, "t", unix(time.Hour), "u", unix(20*time.Second)))
	}
	m.change(TTLDesc{Attribute: "v"})
	staleMost = 1 << 30
	if _, err := m.tab.Upcoming(ctx, Period{From: at(0), To: at(1), Steps: 1}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// A cancelled request ends within one turn, and a dropped table is one that does not exist.
func TestUpcomingEnds(t *testing.T) {
	d := openMemory(t)
	tab := d.table("events")
	for i := range upcomingTurn {
		d.put(tab, item("pk", fmt.Sprint(i), "sk", 1, "ttl", unix(time.Hour)))
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	all := Period{From: 0, To: math.MaxInt64, Steps: 1, Most: 1 << 30}
	if _, err := tab.Upcoming(ctx, all); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := d.DropTable(context.Background(), "default", "events", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := tab.Upcoming(context.Background(), all); !errors.Is(err, ErrTableNotFound) {
		t.Errorf("dropped: %v", err)
	}
}

// BenchmarkUpcoming counts 1,000 deadlines in a table with as many others behind and before them as
// the name says, half of them renewed. The times must be about equal.
//
//	go test -run '^$' -bench Upcoming ./internal/store/engine
func BenchmarkUpcoming(b *testing.B) {
	for _, others := range []int{0, 10_000, 100_000} {
		b.Run(fmt.Sprint("others=", others), func(b *testing.B) {
			d, tab := benchTable(b, Options{Dir: b.TempDir()})
			now := int(d.Now() / 1000)
			put := func(i, ttl int) {
				it := benchItem(i, ttl)
				if err := d.Write(context.Background(), set(b, tab, it)); err != nil {
					b.Fatal(err)
				}
			}
			for i := range others {
				if i%2 == 0 {
					put(i, now+3600+i%60)
				}
				put(i, now+1800+i%3600)
			}
			for i := range 1000 {
				put(others+i, now+900+i%300)
			}
			p := Period{From: Instant(now) * 1000, To: Instant(now+1200) * 1000, Steps: 60, Keys: 20, Most: 1 << 20}
			b.ReportAllocs()
			b.ResetTimer()
			for b.Loop() {
				if got, err := tab.Upcoming(context.Background(), p); err != nil || got.Until != p.To {
					b.Fatalf("until %d, %v", got.Until, err)
				}
			}
		})
	}
}
