package bench

import (
	"math/bits"
	"time"
)

// histogram counts durations from 1 ns to over four hours, in buckets at most 1/64 of their value
// wide. The zero value is empty. It is not safe for concurrent use.
type histogram struct {
	count [histogramBuckets]uint32
	n     int
	max   time.Duration
}

const (
	histogramBits    = 6 // bits of precision below the leading one
	histogramOctaves = 44 - histogramBits
	histogramBuckets = (histogramOctaves + 1) << histogramBits
)

// bucketOf returns the bucket of a duration.
func bucketOf(d time.Duration) int {
	v := uint64(max(d, 0))
	shift := max(bits.Len64(v)-histogramBits-1, 0)
	return min(shift<<histogramBits+int(v>>shift), histogramBuckets-1)
}

// bucketEnd returns the greatest duration of a bucket.
func bucketEnd(bucket int) time.Duration {
	shift := max(bucket>>histogramBits-1, 0)
	mantissa := bucket - shift<<histogramBits
	return time.Duration((uint64(mantissa)+1)<<shift - 1)
}

func (h *histogram) add(d time.Duration) {
	h.count[bucketOf(d)]++
	h.n++
	h.max = max(h.max, d)
}

// merge adds the counts of another histogram.
func (h *histogram) merge(other *histogram) {
	for i, n := range other.count {
		h.count[i] += n
	}
	h.n += other.n
	h.max = max(h.max, other.max)
}

// quantile returns a duration that the share q of all durations does not exceed, 0 ≤ q ≤ 1, at most
// 1/64 above the least such duration. It returns 0 for an empty histogram.
func (h *histogram) quantile(q float64) time.Duration {
	if h.n == 0 {
		return 0
	}
	need := min(max(int(q*float64(h.n)+0.999999), 1), h.n)
	seen := 0
	for i, n := range h.count {
		if seen += int(n); seen >= need {
			return min(bucketEnd(i), h.max)
		}
	}
	return h.max
}
