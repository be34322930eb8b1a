package timeseries

import (
	"errors"
	"testing"
	"time"
)

// While a device gets more shards, or fewer, every reader sees each sample once, at any time and
// with any cache.
func TestShardsChange(t *testing.T) {
	const retention = 10 * time.Minute
	x := newWorld(t, Spec{Retention: retention, CacheFor: time.Minute, Ahead: time.Second})
	slow, err := Open(t.Context(), x.Series.db, Spec{Table: "weather", Now: x.db.Clock().Now}) // another process, with a cache of its own
	must(t, err)
	slowWriter, err := slow.Writer(t.Context(), WriterOptions{})
	must(t, err)

	var written []Sample
	step := func() {
		t.Helper()
		now := x.db.Clock().Now()
		for i := range 10 {
			s := Sample{Device: "roof", Time: now.Add(-time.Duration(i)), Values: map[string]float64{"n": float64(len(written))}}
			written = append(written, s)
			must(t, []*Writer{x.w, slowWriter}[i%2].Write(t.Context(), s))
		}
		// again, with the shard count of this moment
		must(t, x.w.Write(t.Context(), written[len(written)-10:]...))
		want := 0
		for _, s := range written {
			if s.Time.Add(retention).After(now) {
				want++
			}
		}
		for name, series := range map[string]*Series{"a reader": x.Series, "another": slow} {
			got := all(t, series.Reader(ReaderOptions{}).Range(t.Context(), Query{Device: "roof"}))
			if len(got) != want {
				t.Errorf("at %s %s sees %d samples, want %d", now.Sub(start), name, len(got), want)
			}
		}
		x.advance(17 * time.Second)
	}
	steps := func(n int) {
		t.Helper()
		for range n {
			step()
		}
	}
	partitions := func() int {
		t.Helper()
		n, err := x.Shards(t.Context(), "roof")
		must(t, err)
		return n.Readers(x.db.Clock().Now())
	}

	steps(3)
	n, err := x.SetShards(t.Context(), "roof", 4)
	must(t, err)
	if now := x.db.Clock().Now(); n.Writers(now) != 1 || n.Readers(now) != 4 || n.Writers(now.Add(2*time.Minute)) != 4 {
		t.Errorf("after growing: %+v", n)
	}
	if _, err := x.SetShards(t.Context(), "roof", 5); !errors.Is(err, errChanging) {
		t.Errorf("a change while another goes on: %v", err)
	}
	steps(12)
	n, err = x.SetShards(t.Context(), "roof", 2)
	must(t, err)
	if now := x.db.Clock().Now(); n.Writers(now) != 2 || n.Readers(now) != 4 {
		t.Errorf("after shrinking: %+v", n)
	}
	steps(10)
	if _, err = x.SetShards(t.Context(), "roof", 3); err != nil {
		t.Error(err)
	}
	steps(40)
	if got := partitions(); got != 3 {
		t.Errorf("readers ask %d shards in the end", got)
	}
	if _, err = x.SetShards(t.Context(), "roof", 1); err != nil {
		t.Error(err)
	}
	steps(45) // until the old shards are empty
	if got := partitions(); got != 1 {
		t.Errorf("readers ask %d shards after the last decrease", got)
	}
}

// At any time after a change readers query at least as many shards as writers use, or have used
// within the retention. In the end they query no others.
func FuzzShards(f *testing.F) {
	f.Add([]byte{4, 10, 2, 200, 9, 1, 1, 255})
	f.Fuzz(func(t *testing.T, changes []byte) {
		const cacheFor, keep = time.Minute, 10 * time.Minute
		type used struct {
			count int
			until time.Time // the last instant at which a writer's cache may have had this count
		}
		n, now := oneShard, start
		var history []used
		for i := 0; i+1 < len(changes) && i < 100; i += 2 {
			before := n.Writers(now)
			next, err := n.change(int(changes[i])%shardsMax+1, now, cacheFor, keep)
			if err == nil {
				history = append(history, used{before, now.Add(cacheFor)})
				if next.NextAt.After(now) {
					history = append(history, used{before, next.NextAt})
				}
				n = next
			}
			for range 8 {
				now = now.Add(time.Duration(changes[i+1]) * 5 * time.Second / 8)
				if n.Readers(now) < n.Writers(now) {
					t.Fatalf("readers ask %d, writers use %d: %+v", n.Readers(now), n.Writers(now), n)
				}
				for _, u := range history {
					if now.Before(u.until.Add(keep)) && n.Readers(now) < u.count {
						t.Fatalf("readers ask %d, and %d have been in use until %s: %+v at %s", n.Readers(now), u.count, u.until, n, now)
					}
				}
			}
		}
		now = now.Add(2*cacheFor + keep)
		if n.Readers(now) != n.Writers(now) {
			t.Fatalf("readers ask %d in the end, writers use %d: %+v", n.Readers(now), n.Writers(now), n)
		}
	})
}
