package guard

import (
	"hash/fnv"
	"iter"
	"strconv"
	"strings"
	"time"
)

// Expiration windows, as published (docs/spec/patterns.md (a)): a window is named by its two ends, and holds the TTLs after the first of them up to and with the second.
//
//	AsPublished: Window gives what the published function gives, for each whole second
//	Covers:      start < ttl ≤ end, and both ends are multiples of the granularity, one granularity apart
//	Ordered:     a ≤ b  ⇒  Window(a) ≤ Window(b), as texts too
//	Complete:    the windows that a sweep asks for from one TTL to another are those of all TTLs between
//	RoundTrip:   a window is read back from its name, with its shard

// windowEnd is how the end of a window is written: UTC, with milliseconds and Z, as JavaScript's toISOString does.
const windowEnd = "2006-01-02T15:04:05.000Z"

const windowEndLength = len(windowEnd)

// Window names the expiration window that an item belongs to: the value of the index's partition key for an index of windows. The writer of an item computes it from the item's
// TTL, in epoch seconds from 0 to 10^11, and writes both in one call, whenever the TTL changes. The granularity is cut to whole seconds, and at least one.
func Window(ttl int64, granularity time.Duration) string {
	return windowOf(ttl, granularity).String()
}

// Shard gives the shard of an item among n, "0" to "n-1": the value of the index's partition key for an index of shards. The key is any text that differs among items that are written
// at the same time; the text of the item's key serves. It is the FNV-1a hash of 32 bits over the text, modulo n, so that writers in other languages can compute it too; they may as
// well draw a shard at random, since a sweep asks all of them.
func Shard(key string, n int) string {
	h := fnv.New32a()
	h.Write([]byte(key))
	return strconv.FormatUint(uint64(h.Sum32())%uint64(max(n, 1)), 10)
}

// WindowShard names a shard of a window, where one partition of an index cannot take all that expires within a window: "<window>#<shard>".
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

// next is the window after.
func (w window) next() window { return window{w.end, w.end + (w.end - w.start)} }

func (w window) granularity() time.Duration { return time.Duration(w.end-w.start) * time.Second }

func (w window) String() string {
	return time.Unix(w.start, 0).UTC().Format(windowEnd) + "_" + time.Unix(w.end, 0).UTC().Format(windowEnd)
}

// readWindow reads the value of an index's partition key. ok is false where it names no window as Window does, of whole seconds and at a multiple of its length. The shard is what
// follows it; "": none.
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
	rest := name[2*windowEndLength+1:]
	shard, sharded := strings.CutPrefix(rest, "#")
	switch {
	case w.start >= w.end, w.end%(w.end-w.start) != 0, rest != "" && !sharded, sharded && shard == "":
		return window{}, "", false
	case w.String()+rest != name: // fractions of seconds, or the comma that time.Parse takes for a point
		return window{}, "", false
	}
	return w, shard, true
}

// windowsBetween gives the windows that hold the TTLs from low to high, both included, in order.
func windowsBetween(low, high int64, granularity time.Duration) iter.Seq[window] {
	return func(yield func(window) bool) {
		for w := windowOf(low, granularity); w.start < high; w = w.next() {
			if !yield(w) {
				return
			}
		}
	}
}
