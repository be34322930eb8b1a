package points

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"testing"
)

// watch is a clock that a test moves.
type watch struct{ ms int64 }

func (w *watch) now() int64 { return w.ms }

// sums returns a metric's points as "minute:count:sum:min:max".
func sums(r *Recorder, k Key, from, to int64) (out []string) {
	for _, p := range r.Points(k, from, to) {
		out = append(out, fmt.Sprintf("%d:%d:%g:%g:%g", p.Minute, p.Count, p.Sum, p.Min, p.Max))
	}
	return out
}

func wantSums(t *testing.T, r *Recorder, k Key, want ...string) {
	t.Helper()
	if got := sums(r, k, Oldest, 1<<40); !slices.Equal(got, want) {
		t.Errorf("points %v, want %v", got, want)
	}
}

var key = Key{Namespace: DynamoDB, Metric: "m", Table: "t"}

// Values are in the minute of the clock, also before the epoch.
func TestMinutes(t *testing.T) {
	w := &watch{ms: -1}
	r := NewRecorder(Options{Now: w.now})
	s := r.Series(key)
	s.Add(0.5)
	w.ms = 0
	s.Add(2)
	w.ms = 59_999
	s.Add(-1)
	w.ms = 60_000
	s.Add(0)
	w.ms += 24 * 3600 * 1000
	s.Add(1e6)
	wantSums(t, r, key, "-1:1:0.5:0.5:0.5", "0:2:1:-1:2", "1:1:0:0:0", "1441:1:1e+06:1e+06:1e+06")
	if got := sums(r, key, 0, 1); !slices.Equal(got, []string{"0:2:1:-1:2"}) {
		t.Errorf("points of one minute: %v", got)
	}
	s.AddAt(30_000, 7) // by a caller that read the clock long ago
	wantSums(t, r, key, "-1:1:0.5:0.5:0.5", "0:3:8:-1:7", "1:1:0:0:0", "1441:1:1e+06:1e+06:1e+06")
	s.Add(1)
	if got := sums(r, key, 1441, 1442); !slices.Equal(got, []string{"1441:2:1.000001e+06:1:1e+06"}) {
		t.Errorf("after a late value: %v", got)
	}
}

// AddJust takes the latest instant that the clock has shown.
func TestAddJust(t *testing.T) {
	w := &watch{ms: 10 * 60_000}
	r := NewRecorder(Options{Now: w.now, Shown: func() int64 { return 60_000 }})
	r.Series(key).AddJust(1)
	r.Series(key).Add(2)
	wantSums(t, r, key, "1:1:1:1:1", "10:1:2:2:2")
}

// Series of equal keys are one metric, and others are not.
func TestKeys(t *testing.T) {
	w := &watch{}
	r := NewRecorder(Options{Now: w.now})
	set := r.Set(Key{Namespace: DynamoDB, Table: "t"})
	set.Get("m", "").Add(1)
	r.Series(key).Add(2)
	set.Get("m", "Scan").Add(4)
	wantSums(t, r, key, "0:2:3:1:2")
	if first := set.Get("m", "Scan"); set.Get("m", "Scan") != first {
		t.Error("a set has two series of one name")
	}
	w.ms = 10 * 60_000
	r.Series(Key{Namespace: Scheduler, Metric: "n", Group: "g"}).Add(1)
	want := []Key{{Namespace: DynamoDB, Metric: "m", Table: "t"}, {Namespace: DynamoDB, Metric: "m", Table: "t", Operation: "Scan"}, {Namespace: Scheduler, Metric: "n", Group: "g"}}
	if got := r.Keys(Oldest); !slices.Equal(got, want) {
		t.Errorf("keys %v, want %v", got, want)
	}
	if got := r.Keys(10); !slices.Equal(got, want[2:]) {
		t.Errorf("keys of the last minute %v", got)
	}
	for _, k := range want {
		if back, ok := KeyOf(string(k.Namespace), k.Metric, k.Dimensions()); !ok || back != k {
			t.Errorf("%v became %v by its dimensions", k, back)
		}
	}
	for _, bad := range [][]Dimension{{{"TableName", ""}}, {{"Unknown", "x"}}, {{"TableName", "a"}, {"TableName", "b"}}} {
		if k, ok := KeyOf("AWS/DynamoDB", "m", bad); ok {
			t.Errorf("%v is %v", bad, k)
		}
	}
}

// Points end by age, and by number the oldest first.
func TestBounds(t *testing.T) {
	w := &watch{}
	r := NewRecorder(Options{Now: w.now, Most: 3})
	other := key
	other.Table = "other"
	for m := range int64(4) {
		w.ms = m * 60_000
		r.Series(key).Add(1)
	}
	wantSums(t, r, key, "1:1:1:1:1", "2:1:1:1:1", "3:1:1:1:1")
	r.Series(key).AddAt(0, 1) // too late: it would be the oldest
	wantSums(t, r, key, "1:1:1:1:1", "2:1:1:1:1", "3:1:1:1:1")
	for i := range 5 {
		other.Index = fmt.Sprint(i)
		r.Series(other).Add(1)
	}
	wantSums(t, r, key, "3:1:1:1:1")
	if len(r.Keys(Oldest)) != 3 || r.total != 3 {
		t.Errorf("%d metrics, %d points; want 3 in the latest minute", len(r.Keys(Oldest)), r.total)
	}
	w.ms += (Retention + 1) * 60_000
	r.Series(other).Add(1)
	wantSums(t, r, key)
	if r.total != 1 {
		t.Errorf("%d points after their time", r.total)
	}
}

// When the latest minute is full, the points of deleted tables end first, and then there are no new
// metrics. A metric that is not kept has no beginning.
func TestFullMinute(t *testing.T) {
	w := &watch{}
	r := NewRecorder(Options{Now: w.now, Most: 4})
	begun := 0
	r.OnBegin(func(Key, int64) { begun++ })
	of := func(table string) Key { return Key{Namespace: DynamoDB, Metric: "m", Table: table} }
	for _, table := range []string{"a", "b", "c", "d"} {
		r.Series(of(table)).Add(1)
	}
	e := r.Series(of("e"))
	e.Add(1)
	e.Add(1)
	wantSums(t, r, of("e"))
	if begun != 4 {
		t.Errorf("%d metrics began, want 4", begun)
	}
	for _, table := range []string{"c", "b", "a"} {
		r.EndTable(table)
	}
	r.SetLevels("b", nil) // created again
	wantSums(t, r, of("c"), "0:1:1:1:1")
	r.Series(of("f")).Add(1)
	r.Series(of("g")).Add(1)
	r.Series(of("h")).Add(1)
	var tables []string
	for _, k := range r.Keys(Oldest) {
		tables = append(tables, k.Table)
	}
	if want := []string{"b", "d", "f", "g"}; !slices.Equal(tables, want) {
		t.Errorf("points of the tables %v, want %v", tables, want)
	}
	w.ms = 60_000
	e.Add(1)
	wantSums(t, r, of("e"), "1:1:1:1:1")
}

// Tables that come and go in one minute, as in a suite under a frozen clock, take bounded memory.
func TestTablesComeAndGo(t *testing.T) {
	w := &watch{}
	const most = 100
	r := NewRecorder(Options{Now: w.now, Most: most})
	for i := range 50 * most {
		table := fmt.Sprint(i)
		k := Key{Namespace: DynamoDB, Metric: "m", Table: table}
		r.SetLevels(table, map[Key]float64{{Metric: "level", Table: table}: 1, {Metric: "level", Table: table, Index: "i"}: 2})
		r.Series(k).Add(1)
		if got := sums(r, k, 0, 1); len(got) != 1 {
			t.Fatalf("table %d has no point", i)
		}
		r.EndTable(table)
	}
	levels, points := 0, 0
	for _, of := range r.levels {
		levels += len(of)
	}
	for _, m := range r.minutes {
		for _, of := range m.tables {
			points += len(of)
		}
	}
	if levels+points != r.total || r.total > most || len(r.gone.names) != points || r.ended.Len() != levels {
		t.Errorf("%d levels, %d points, %d counted, %d deleted tables, %d ended levels", levels, points, r.total, len(r.gone.names), r.ended.Len())
	}
}

// Ended levels end with the minutes of their end. Those of other tables stay.
func TestEndedLevelsCount(t *testing.T) {
	w := &watch{}
	r := NewRecorder(Options{Now: w.now, Most: 3})
	of := func(table string) Key { return Key{Metric: "level", Table: table} }
	for m, table := range []string{"a", "b", "c"} {
		w.ms = int64(m) * 60_000
		r.Series(key).Add(1)
		r.SetLevels(table, map[Key]float64{of(table): 1})
	}
	r.EndTable("a") // in minute 2, so the minutes before end first
	wantSums(t, r, of("a"), "0:1:1:1:1", "1:1:1:1:1")
	wantSums(t, r, key, "2:1:1:1:1")
	r.SetLevels("a", map[Key]float64{of("a"): 1}) // created again in the minute of its end
	wantSums(t, r, of("a"), "0:1:1:1:1", "1:1:1:1:1", "2:1:1:1:1")
	r.EndTable("b")
	wantSums(t, r, of("b"), "1:1:1:1:1")
	r.EndTable("a")
	if r.total != 3 || r.levels["b"] != nil {
		t.Errorf("%d points; the level that ended first is %v", r.total, r.levels["b"])
	}
	wantSums(t, r, of("c"), "2:1:1:1:1")
}

func TestLevels(t *testing.T) {
	w := &watch{}
	r := NewRecorder(Options{Now: w.now})
	set := func(minute int64, v float64) {
		w.ms = minute * 60_000
		levels := map[Key]float64{}
		if v > 0 {
			levels[key] = v
		}
		r.SetLevels(key.Table, levels)
	}
	set(0, 5)
	set(0, 6) // the last value of a minute counts
	set(2, 6)
	set(3, 7)
	set(5, 0)
	set(7, 8)
	w.ms = 8*60_000 + 1
	wantSums(t, r, key, "0:1:6:6:6", "1:1:6:6:6", "2:1:6:6:6", "3:1:7:7:7", "4:1:7:7:7", "7:1:8:8:8", "8:1:8:8:8")
	if got := sums(r, key, 2, 4); !slices.Equal(got, []string{"2:1:6:6:6", "3:1:7:7:7"}) {
		t.Errorf("a range: %v", got)
	}
	if !slices.Contains(r.Keys(8), key) {
		t.Error("a level is not listed")
	}
	set(9, 0)
	if slices.Contains(r.Keys(10), key) {
		t.Error("a level is listed after its end")
	}
	set(9+Retention, 0)
	if len(r.levels) != 1 {
		t.Error("a level has ended before its time")
	}
	set(9+Retention+1, 0)
	if len(r.levels) != 0 {
		t.Error("a level stays after its time")
	}
	for i := range int64(3 * stepsMost) {
		set(100_000+i, float64(i%2+1))
	}
	if n := len(r.levels[key.Table][key].steps); n != stepsMost {
		t.Errorf("%d changes of a level are kept", n)
	}
	set(200_000, 1)
	if n := len(r.levels[key.Table][key].steps); n != 2 {
		t.Errorf("%d changes of a level are kept when all but one are too old", n)
	}
}

// Values added by many goroutines while the minutes change are all counted.
func TestConcurrentMinutes(t *testing.T) {
	r := NewRecorder(Options{Now: func() int64 { return 0 }, Most: 1 << 20})
	s := r.Series(key)
	const adders, each = 8, 2000
	var running sync.WaitGroup
	for range adders {
		running.Go(func() {
			random := rand.New(rand.NewPCG(1, 2))
			for i := range each {
				s.AddAt(int64(i)*1000+random.Int64N(90_000), 1)
			}
		})
	}
	running.Wait()
	count, total := int64(0), 0.0
	for _, p := range r.Points(key, Oldest, 1<<40) {
		count, total = count+p.Count, total+p.Sum
	}
	if count != adders*each || total != adders*each {
		t.Errorf("%d values with the sum %g, want %d", count, total, adders*each)
	}
}

// Nil recorders, sets and series keep nothing.
func TestNil(t *testing.T) {
	var r *Recorder
	r.Series(key).Add(1)
	r.Set(key).Get("m", "").AddAt(r.Now(), 1)
	r.SetLevels(key.Table, map[Key]float64{key: 1})
	r.EndTable(key.Table)
}

func TestMerge(t *testing.T) {
	var p Point
	p.Merge(Point{1, 2, 3, 1, 2})
	p.Merge(Point{2, 1, -4, -4, -4})
	if want := (Point{0, 3, -1, -4, 2}); !reflect.DeepEqual(p, want) {
		t.Errorf("got %+v, want %+v", p, want)
	}
}

// Adding a value allocates nothing within a minute.
func TestAddAllocatesNothing(t *testing.T) {
	s := NewRecorder(Options{Now: func() int64 { return 0 }}).Set(key)
	if n := testing.AllocsPerRun(100, func() { s.Get("m", "GetItem").Add(1) }); n > 0.5 {
		t.Errorf("%g allocations", n)
	}
}

func BenchmarkAdd(b *testing.B) {
	s := NewRecorder(Options{Now: func() int64 { return 0 }}).Set(key)
	for b.Loop() {
		s.Get("m", "GetItem").Add(1)
	}
}
