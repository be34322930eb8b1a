package sim

import (
	"hash/fnv"
	"io"
	"math/rand/v2"
	"time"
)

// dice returns a source for the decisions about one thing, which has a stable name.
func dice(seed uint64, name string, n ...uint64) *rand.Rand {
	h := fnv.New64a()
	_, _ = io.WriteString(h, name)
	sum := h.Sum64()
	for _, x := range n { // splitmix64
		sum += x + 0x9e3779b97f4a7c15
		sum = (sum ^ sum>>30) * 0xbf58476d1ce4e5b9
		sum = (sum ^ sum>>27) * 0x94d049bb133111eb
	}
	return rand.New(rand.NewPCG(seed, sum))
}

// percent is true in so many of a hundred cases.
func percent(r *rand.Rand, n int) bool { return r.IntN(100) < n }

// upTo returns a duration of whole milliseconds, at most most.
func upTo(r *rand.Rand, most time.Duration) time.Duration {
	return time.Duration(r.Int64N(most.Milliseconds()+1)) * time.Millisecond
}
