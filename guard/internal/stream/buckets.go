package stream

import "time"

// buckets is a set of buckets: a bit for each, by the hour. The deadlines of a month are in 43,200
// minutes, and a scan finds them in any order.
type buckets map[int64][bucketWords]uint64

const (
	hour        = int64(time.Hour / time.Millisecond)
	bucketWords = (60*spreadMax + 63) / 64
)

// placeOf returns a bucket's hour, and its number in the hour.
func placeOf(b int64) (at, number int64) {
	at = b - b%hour
	return at, (b-at)/minute*spreadMax + b%minute
}

func (all buckets) has(b int64) bool {
	at, n := placeOf(b)
	words := all[at]
	return words[n/64]&(1<<(n%64)) != 0
}

func (all buckets) add(b int64) {
	at, n := placeOf(b)
	words := all[at]
	words[n/64] |= 1 << (n % 64)
	all[at] = words
}
