package stream

import (
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/mayflydb/mayfly/guard/internal/armed"
	"github.com/mayflydb/mayfly/guard/internal/strategy"
	"github.com/mayflydb/mayfly/guard/internal/table"
	"github.com/mayflydb/mayfly/internal/work/ensure"
)

// The number of partitions grows by divisions, up to four at a time, and never shrinks. Workers that
// start together agree.
func TestDivisionsGrow(t *testing.T) {
	s := &store{db: open(t), spec: deadlinesSpec, label: "table"}
	_, err := ensure.Table(t.Context(), s.db, deadlinesSpec)
	must(t, err)
	want := func(set Settings, wanted int, text string) {
		t.Helper()
		all, err := s.ensureDivisions(t.Context(), 5, set, wanted)
		must(t, err)
		if got := divisionsText(all); got != text {
			t.Errorf("with %d partitions wanted, the divisions are %s; want %s", wanted, got, text)
		}
	}
	older := Settings{born: 1, partitions: 16}
	want(older, 0, "1/16/1/1")
	want(older, 8, "1/16/1/1")
	want(older, 32, "1/16/1/1 2/32/4/5")
	want(older, 16, "1/16/1/1 2/32/4/5")
	want(older, 64, "1/16/1/1 2/32/4/5 3/64/4/5")
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if _, err := s.ensureDivisions(t.Context(), 5, older, 128); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	want(older, 0, "1/16/1/1 2/32/4/5 3/64/4/5 4/128/4/5")
	_, err = s.ensureDivisions(t.Context(), 5, older, 256)
	if p, ok := errors.AsType[*table.Problem](err); !ok || p.Next != "use --partitions 128 until they have passed" {
		t.Errorf("a fifth division: %v", err)
	}
	s.label = "new"
	want(Settings{born: 1}, 0, "2/16/4/5")
	s.label = "new and small"
	want(Settings{born: 1}, 2, "2/2/4/5")
	want(Settings{born: 1}, 4, "2/2/4/5 3/4/4/5")
}

// A damaged list of divisions is refused.
func FuzzDivisions(f *testing.F) {
	for _, text := range []string{"2/16/4/5", "1/16/1/1 2/32/4/5", "", "2/17/4/5", "2/16/4", "3/16/4/5 2/32/4/5", "2/16/0/5", "2/16/11/5", "11/16/4/5", "-1/16/4/5", "2/16/4/5x"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		all, err := readDivisionsText(text)
		if err != nil {
			return
		}
		again, err := readDivisionsText(divisionsText(all))
		if err != nil || len(all) == 0 || len(all) > divisionsMax || divisionsText(again) != divisionsText(all) {
			t.Errorf("%q became %q: %v", text, divisionsText(all), err)
		}
		for _, d := range all {
			if !ValidPartitions(d.partitions) || PartitionsMax%d.partitions != 0 {
				t.Errorf("%q has %d partitions", text, d.partitions)
			}
		}
	})
}

// An item may have rows in two divisions. They are tried in the order of their deadlines, in whatever
// order they are found; a refused row of the older division is deleted, and a removed one as well.
func TestChainsAcrossDivisions(t *testing.T) {
	const k = armed.Key("S\x01a")
	for _, newFirst := range []bool{false, true} {
		g := &arming{}
		s := New(&strategy.Env{Guard: g, Table: &table.Table{}}, nil)
		s.divide([]*division{{number: 1, partitions: 16, spread: 1}, {number: 2, partitions: 64, spread: 4}})
		var parts []*partition
		for _, d := range s.store.live() {
			parts = append(parts, d.parts[d.partitionOf(k)])
		}
		rows := []*row{{key: k, at: 1000, tag: 1}, {key: k, at: 2000, tag: 2}}
		order := []int{0, 1}
		if newFirst {
			slices.Reverse(order)
		}
		for _, i := range order {
			parts[i].armFound(rows[i], false)
		}
		if last := g.entries[len(g.entries)-1]; last.At != 1000 {
			t.Errorf("new first %v: the deadline %d is armed last", newFirst, last.At)
		}
		rows[0].Finished(armed.Entry{}, armed.Removed)
		if last := g.entries[len(g.entries)-1]; last.At != 2000 {
			t.Errorf("new first %v: after the first deadline, %d is armed", newFirst, last.At)
		}
		if toClean := s.toClean(); len(toClean) != 1 || toClean[0].p != parts[0] {
			t.Errorf("new first %v: %d rows are to be deleted", newFirst, len(toClean))
		}
		rows[1].Finished(armed.Entry{}, armed.Removed) // the record of the removal deletes it
		if toClean := s.toClean(); len(toClean) != 0 {
			t.Errorf("new first %v: %d more rows are to be deleted", newFirst, len(toClean))
		}
	}
}
