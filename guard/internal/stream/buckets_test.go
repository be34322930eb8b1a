package stream

import (
	"math/rand/v2"
	"testing"
)

// A set of buckets has those that were added, and no others.
func TestBuckets(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	all, want := buckets{}, map[int64]bool{}
	of := func() int64 { return 1893456000_000 + int64(r.IntN(3*60))*minute + int64(r.IntN(spreadMax)) }
	for range 600 {
		b := of()
		all.add(b)
		want[b] = true
	}
	for range 10_000 {
		if b := of(); all.has(b) != want[b] {
			t.Fatalf("has(%d) is %v", b, all.has(b))
		}
	}
	if len(all) != 3 {
		t.Errorf("three hours take %d elements", len(all))
	}
}
