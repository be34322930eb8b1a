package bench

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// A quantile is never below the true one, and at most 1/64 above it.
func TestQuantileIsClose(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var h, other histogram
	var all []time.Duration
	for i := range 20_000 {
		d := time.Duration(random.ExpFloat64() * float64(300*time.Microsecond))
		if i%100 == 0 {
			d *= 1000
		}
		all = append(all, d)
		if i%2 == 0 {
			h.add(d)
		} else {
			other.add(d)
		}
	}
	h.merge(&other)
	slices.Sort(all)
	for _, q := range []float64{0, 0.001, 0.5, 0.9, 0.99, 0.999, 1} {
		want := all[max(int(q*float64(len(all))+0.999999)-1, 0)]
		got := h.quantile(q)
		if got < want || got > want+want/64 {
			t.Errorf("quantile %v: got %v, want %v", q, got, want)
		}
	}
	if h.n != len(all) || h.max != all[len(all)-1] {
		t.Errorf("n %d, max %v", h.n, h.max)
	}
}

func TestBucketsAreInOrder(t *testing.T) {
	last := time.Duration(-1)
	for i := range histogramBuckets {
		end := bucketEnd(i)
		if end <= last {
			t.Fatalf("bucket %d ends at %v, the one before at %v", i, end, last)
		}
		if got := bucketOf(end); got != i {
			t.Fatalf("%v is in bucket %d, want %d", end, got, i)
		}
		if got := bucketOf(last + 1); got != i {
			t.Fatalf("%v is in bucket %d, want %d", last+1, got, i)
		}
		last = end
	}
	if last < 4*time.Hour || bucketOf(1<<62) != histogramBuckets-1 || bucketOf(-1) != 0 {
		t.Errorf("the range ends at %v", last)
	}
}

func TestEmptyHistogram(t *testing.T) {
	var h histogram
	if h.quantile(0.99) != 0 || h.max != 0 {
		t.Errorf("an empty histogram has values")
	}
}
