package guard

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// plainArmed is a simple model of armed.
type plainArmed struct {
	waiting map[key]entry
	flying  map[key]entry
	next    map[key]entry
	gone    map[key]bool
}

// armed agrees with the simple model: one entry per key, due in order, one outcome for each.
func TestArmedIsAsTheModel(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 0))
		a, m := newArmed(), plainArmed{map[key]entry{}, map[key]entry{}, map[key]entry{}, map[key]bool{}}
		ends := map[int][]outcome{}
		var removals []removal
		armed, now := 0, int64(0)
		arm := func() {
			number := armed
			armed++
			e := entry{key: key(fmt.Sprint(r.IntN(20))), at: now + int64(r.IntN(3000)) - 500, armer: armerFunc(func(o outcome) { ends[number] = append(ends[number], o) })}
			if e.value = fmt.Sprintf("%d.%03d", e.at/1000, e.at%1000); e.at < 0 {
				e.value = "0"
			}
			a.arm(e)
			if _, flies := m.flying[e.key]; flies {
				m.next[e.key] = e
			} else {
				m.waiting[e.key] = e
			}
		}
		disarm := func() {
			k := key(fmt.Sprint(r.IntN(20)))
			was := a.disarm(k)
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
			batch, next := a.take(now, 1+r.IntN(4))
			for i, f := range batch {
				e, waits := m.waiting[f.key]
				if !waits || e.at != f.at || f.at > now || i > 0 && f.at < batch[i-1].at || e.text() != f.value {
					t.Fatalf("seed %d: took %v, model: %v", seed, f, e)
				}
				delete(m.waiting, f.key)
				m.flying[f.key] = e
			}
			first := int64(1<<63 - 1)
			for _, e := range m.waiting {
				first = min(first, e.at)
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
			a.end(f, removed)
			delete(m.flying, f.key)
			delete(m.gone, f.key)
			if e, follows := m.next[f.key]; follows {
				m.waiting[f.key] = e
				delete(m.next, f.key)
			}
		}
		for range 400 {
			now += int64(r.IntN(50))
			[]func(){arm, arm, disarm, take, end}[r.IntN(5)]()
			if a.len() != len(m.waiting)+len(m.flying) {
				t.Fatalf("seed %d: %d are armed, model: %d and %d", seed, a.len(), len(m.waiting), len(m.flying))
			}
		}
		finished := 0
		for number, outcomes := range ends {
			if finished++; len(outcomes) != 1 {
				t.Fatalf("seed %d: entry %d ended with %v", seed, number, outcomes)
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
		a := newArmed()
		ends := map[string]outcome{}
		for _, k := range []string{"again", "replaced", "disarmed"} {
			a.arm(entry{key: key(k), at: 1000, armer: armerFunc(func(o outcome) { ends[k] = o })})
		}
		batch, _ := a.take(1000, 10)
		if len(batch) != 3 {
			t.Fatalf("%d are due", len(batch))
		}
		a.arm(entry{key: "replaced", at: 5000})
		a.disarm("disarmed")
		for _, f := range batch {
			a.retry(f, time.Second)
		}
		if len(ends) != 2 || ends["replaced"] != replaced || ends["disarmed"] != replaced {
			t.Errorf("ends: %v", ends)
		}
		<-a.wake // of arming
		if batch, next := a.take(1000, 10); len(batch) != 0 || next != 5000 {
			t.Errorf("%d have not rested, the next is at %d", len(batch), next)
		}
		began := time.Now()
		<-a.wake
		if time.Since(began) != time.Second {
			t.Errorf("it rested for %v", time.Since(began))
		}
		if batch, _ := a.take(1000, 10); len(batch) != 1 || batch[0].key != "again" || batch[0].tries != 1 {
			t.Errorf("what comes back is %v", batch)
		}
		a.stop()
	})
}

// A million deadlines fit into 300 MB, without the garbage collector's overhead.
func TestMillionArmed(t *testing.T) {
	if testing.Short() {
		t.Skip("a million entries take a second or two")
	}
	const count = 1_000_000
	a := newArmed()
	before := heap()
	for i := range count {
		at := epoch.UnixMilli() + int64(i*7919%count)*1000
		a.arm(entry{key: key(fmt.Sprintf("S\x12session#%010d", i)), value: fmt.Sprint(at / 1000), at: at})
	}
	if used := heap() - before; used > 300<<20 {
		t.Errorf("%d MB", used>>20)
	}
	last := int64(0)
	for taken := 0; taken < count; {
		batch, _ := a.take(1<<62, 1000)
		for _, f := range batch {
			if f.at < last {
				t.Fatal("out of order")
			}
			last = f.at
		}
		taken += len(batch)
	}
}
