package index

import (
	"hash/fnv"
	"iter"
	"strconv"
	"strings"
	"time"
)

// Expiration windows, as published (docs/spec/patterns.md (a)): a window is named by its two ends,
// and holds the TTLs after the first up to and including the second.
//
//	AsPublished: Window returns the same as the published function, for each whole second
//	Covers:      start < ttl ≤ end, and both ends are multiples of the granularity, one apart
//	Ordered:     a ≤ b  ⇒  Window(a) ≤ Window(b), as texts too
//	Complete:    the windows of a sweep from one TTL to another hold all TTLs between
//	RoundTrip:   a window is read back from its name, with its shard

// windowEnd is the format of a window's ends: UTC, with milliseconds and Z, like JavaScript's
// toISOString.
const windowEnd = "2006-01-02T15:04:05.000Z"

const windowEndLength = len(windowEnd)

// Window returns the name of the expiration window of a TTL: see guard.Window.
func Window(ttl int64, granularity time.Duration) string {
	return windowOf(ttl, granularity).String()
}

// Shard returns the shard of an item among n: see guard.Shard.
func Shard(key string, n int) string {
	h := fnv.New32a()
	h.Write([]byte(key))
	return strconv.FormatUint(uint64(h.Sum32())%uint64(max(n, 1)), 10)
}

// WindowShard returns the name of a shard of a window.
func WindowShard(window, shard string) string { return window + "#" + shard }

// window is an expiration window: the TTLs t with start < t ≤ end, in epoch seconds.
type window struct{ start, end int64 }

func windowOf(ttl int64, granularity time.Duration) window {
	length := max(int64(granularity/time.Second), 1)
	end := ttl - ttl%length
	if end < ttl { // a TTL on an edge belongs to the window that it ends
		end += length
	}
	return window{end - length, end}
}

// next returns the window that follows.
func (w window) next() window { return window{w.end, w.end + (w.end - w.start)} }

func (w window) String() string {
	return time.Unix(w.start, 0).UTC().Format(windowEnd) + "_" + time.Unix(w.end, 0).UTC().Format(windowEnd)
}

// readWindow parses a partition key. ok is false unless it is a name from Window, of whole seconds
// and at a multiple of its length. shard is the part after "#", or "".
func readWindow(name string) (w window, shard string, ok bool) {
	if len(name) < 2*windowEndLength+1 || name[windowEndLength] != '_' {
		return window{}, "", false
	}
	start, err := time.Parse(windowEnd, name[:windowEndLength])
	if err != nil {
		return window{}, "", false
	}
	end, err := time.Parse(windowEnd, name[windowEndLength+1:2*windowEndLength+1])
	if err != nil {
		return window{}, "", false
	}
	w = window{start.Unix(), end.Unix()}
	tail := name[2*windowEndLength+1:]
	shard, sharded := strings.CutPrefix(tail, "#")
	switch {
	case w.start >= w.end, w.end%(w.end-w.start) != 0, tail != "" && !sharded, sharded && shard == "":
		return window{}, "", false
	// fractions of seconds, or the comma that time.Parse takes for a point
	case w.String()+tail != name:
		return window{}, "", false
	}
	return w, shard, true
}

// windowsBetween returns the windows of the TTLs from low to high, both included, in order.
func windowsBetween(low, high int64, granularity time.Duration) iter.Seq[window] {
	return func(yield func(window) bool) {
		for w := windowOf(low, granularity); w.start < high; w = w.next() {
			if !yield(w) {
				return
			}
		}
	}
}
