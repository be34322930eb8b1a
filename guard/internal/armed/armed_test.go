package armed

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"
)

// plainArmed is a simple model of armed.
type plainArmed struct {
	waiting map[Key]Entry
	flying  map[Key]Entry
	next    map[Key]Entry
	gone    map[Key]bool
}

// armed agrees with the simple model: one entry per key, due in order, one outcome for each.
func TestArmedIsAsTheModel(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 0))
		a, m := New(), plainArmed{map[Key]Entry{}, map[Key]Entry{}, map[Key]Entry{}, map[Key]bool{}}
		ends := map[int][]Outcome{}
		var removals []Removal
		armed, now := 0, int64(0)
		arm := func() {
			number := armed
			armed++
			e := Entry{Key: Key(fmt.Sprint(r.IntN(20))), At: now + int64(r.IntN(3000)) - 500, Armer: Func(func(o Outcome) { ends[number] = append(ends[number], o) })}
			if e.Value = fmt.Sprintf("%d.%03d", e.At/1000, e.At%1000); e.At < 0 {
				e.Value = "0"
			}
			a.Arm(e)
			if _, flies := m.flying[e.Key]; flies {
				m.next[e.Key] = e
			} else {
				m.waiting[e.Key] = e
			}
		}
		disarm := func() {
			k := Key(fmt.Sprint(r.IntN(20)))
			was := a.Disarm(k)
			_, waits := m.waiting[k]
			_, follows := m.next[k]
			if was != (waits || follows) {
				t.Fatalf("seed %d: disarmed: %v, model: %v", seed, was, waits || follows)
			}
			delete(m.waiting, k)
			delete(m.next, k)
			if _, flies := m.flying[k]; flies {
				m.gone[k] = true
			}
		}
		take := func() {
			batch, next := a.Take(now, 1+r.IntN(4))
			for i, f := range batch {
				e, waits := m.waiting[f.Key]
				if !waits || e.At != f.At || f.At > now || i > 0 && f.At < batch[i-1].At || e.Text() != f.Value {
					t.Fatalf("seed %d: took %v, model: %v", seed, f, e)
				}
				delete(m.waiting, f.Key)
				m.flying[f.Key] = e
			}
			first := int64(1<<63 - 1)
			for _, e := range m.waiting {
				first = min(first, e.At)
			}
			if next != first {
				t.Fatalf("seed %d: the next is at %d, model: %d", seed, next, first)
			}
			removals = append(removals, batch...)
		}
		end := func() {
			if len(removals) == 0 {
				return
			}
			i := r.IntN(len(removals))
			f := removals[i]
			removals = slices.Delete(removals, i, i+1)
			a.End(f, Removed)
			delete(m.flying, f.Key)
			delete(m.gone, f.Key)
			if e, follows := m.next[f.Key]; follows {
				m.waiting[f.Key] = e
				delete(m.next, f.Key)
			}
		}
		for range 400 {
			now += int64(r.IntN(50))
			[]func(){arm, arm, disarm, take, end}[r.IntN(5)]()
			if a.Len() != len(m.waiting)+len(m.flying) {
				t.Fatalf("seed %d: %d are armed, model: %d and %d", seed, a.Len(), len(m.waiting), len(m.flying))
			}
		}
		finished := 0
		for number, outcomes := range ends {
			if finished++; len(outcomes) != 1 {
				t.Fatalf("seed %d: Entry %d ended with %v", seed, number, outcomes)
			}
		}
		if finished+len(m.waiting)+len(m.flying)+len(m.next) != armed {
			t.Fatalf("seed %d: of %d entries %d have ended, and %d, %d and %d are there", seed, armed, finished, len(m.waiting), len(m.flying), len(m.next))
		}
	}
}

// An entry with a failed attempt rests and returns; one that was replaced meanwhile does not.
func TestArmedRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := New()
		ends := map[string]Outcome{}
		for _, k := range []string{"again", "replaced", "disarmed"} {
			a.Arm(Entry{Key: Key(k), At: 1000, Armer: Func(func(o Outcome) { ends[k] = o })})
		}
		batch, _ := a.Take(1000, 10)
		if len(batch) != 3 {
			t.Fatalf("%d are due", len(batch))
		}
		a.Arm(Entry{Key: "replaced", At: 5000})
		a.Disarm("disarmed")
		for _, f := range batch {
			a.Retry(f, time.Second)
		}
		if len(ends) != 2 || ends["replaced"] != Replaced || ends["disarmed"] != Replaced {
			t.Errorf("ends: %v", ends)
		}
		<-a.Wake // of arming
		if batch, next := a.Take(1000, 10); len(batch) != 0 || next != 5000 {
			t.Errorf("%d have not rested, the next is at %d", len(batch), next)
		}
		began := time.Now()
		<-a.Wake
		if time.Since(began) != time.Second {
			t.Errorf("it rested for %v", time.Since(began))
		}
		if batch, _ := a.Take(1000, 10); len(batch) != 1 || batch[0].Key != "again" || batch[0].Tries != 1 {
			t.Errorf("what comes back is %v", batch)
		}
		a.Stop()
	})
}

// A million deadlines fit into 300 MB, without the garbage collector's overhead.
func TestMillionArmed(t *testing.T) {
	if testing.Short() {
		t.Skip("a million entries take a second or two")
	}
	const count = 1_000_000
	a := New()
	before := heap()
	for i := range count {
		at := int64(1_893_456_000_000) + int64(i*7919%count)*1000
		a.Arm(Entry{Key: Key(fmt.Sprintf("S\x12session#%010d", i)), Value: fmt.Sprint(at / 1000), At: at})
	}
	if used := heap() - before; used > 300<<20 {
		t.Errorf("%d MB", used>>20)
	}
	last := int64(0)
	for taken := 0; taken < count; {
		batch, _ := a.Take(1<<62, 1000)
		for _, f := range batch {
			if f.At < last {
				t.Fatal("out of order")
			}
			last = f.At
		}
		taken += len(batch)
	}
}

// heap returns the bytes in use after a collection.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A million deadlines in memory.
func BenchmarkArmed(b *testing.B) {
	const n = 1_000_000
	for range b.N {
		a := New()
		before := heap()
		for i := range n {
			at := int64(1_893_456_000_000) + int64(i*7919%n)*1000
			a.Arm(Entry{Key: Key(fmt.Sprintf("S\x12session#%010d", i)), Value: strconv.FormatInt(at/1000, 10), At: at})
		}
		b.ReportMetric(float64(heap()-before)/(1<<20), "MB")
		b.ReportMetric(float64(heap()-before)/n, "B/entry")
		runtime.KeepAlive(a)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/entry")
}
