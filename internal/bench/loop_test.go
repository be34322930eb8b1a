package bench

import (
	"context"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/store/kv"
)

// The loop has a working operation for every scenario that writes.
func TestLoopOperations(t *testing.T) {
	l, err := openLoop("", kv.Memory)
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	if err := l.fill(t.Context(), 1500, 1000, tablePut); err != nil {
		t.Fatal(err)
	}
	for i := range scenarios {
		s := &scenarios[i]
		if has := (&loopTarget{l}).has(s); has != s.write {
			t.Errorf("%s: has an operation: %v", s.name, has)
		}
		if !s.write {
			continue
		}
		got, _, err := l.load(t.Context(), s, 3, 5*time.Millisecond)
		if err != nil || got.errors > 0 || got.calls == 0 || got.items != got.calls*s.perCall || got.latency.n != got.calls {
			t.Errorf("%s: %d calls, %d items, %d errors %s, %v", s.name, got.calls, got.items, got.errors, got.problem, err)
		}
	}
}

// A drain removes every item and entry, in order, and leaves the records.
func TestLoopDrains(t *testing.T) {
	for _, kind := range []*design{tableBurst, tableBurstPlain} {
		const items = 2500
		perS, _, err := drainLoop(t.Context(), "", kv.Memory, items, kind)
		if err != nil || perS <= 0 {
			t.Fatalf("%s: %v/s, %v", kind.name, perS, err)
		}
	}
	l, err := openLoop("", kv.Memory)
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	if err := l.fill(t.Context(), 10, 1000, tableBurstPlain); err != nil {
		t.Fatal(err)
	}
	n, _, err := l.drainSlice(appendDueKey(nil, 0, 0), true)
	if err != nil || n != 10 {
		t.Fatalf("%d removed, %v", n, err)
	}
	count := map[byte]int{}
	it := l.store.NewIter(nil, nil)
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		count[it.Key()[0]]++
	}
	if count[spaceItem] != 0 || count[spaceDue] != 0 || count[spaceLog] != 10 {
		t.Errorf("left: %v", count)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := drainLoop(ctx, "", kv.Memory, 10, tableBurst); err == nil {
		t.Error("a cancelled drain goes on")
	}
}
