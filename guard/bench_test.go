package guard

import (
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/guard/internal/armed"
)

// quiet are options for figures: over HTTP, by the machine's clock.
func (w *world) quiet() Options {
	o := w.options(Auto)
	o.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	return o
}

// A burst: all are due at once.
func BenchmarkRemove(b *testing.B) {
	for _, batch := range []int{0, 25} {
		b.Run(fmt.Sprintf("batch %d", batch), func(b *testing.B) {
			w := newWorld(b, overHTTP, inRealTime)
			ttl := w.in(-1)
			w.fill("i", b.N, ttl)
			o := w.quiet()
			o.Batch = batch
			r := w.startIdle(o)
			var entries []armed.Entry
			for i := range b.N {
				k, _ := r.table.KeyOf(w.key(fmt.Sprint("i", i)))
				at, _ := strconv.ParseInt(ttl, 10, 64)
				entries = append(entries, armed.Entry{Key: k, Value: ttl, At: at * 1000})
			}
			b.ResetTimer()
			for _, e := range entries {
				r.arm(e)
			}
			r.awaitCount(Removed, int64(b.N))
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "removals/s")
		})
	}
}

// Lateness at 1,000 deadlines a second, known a second ahead.
func BenchmarkLateness(b *testing.B) {
	const each, seconds = 1000, 10
	w := newWorld(b, overHTTP, inRealTime)
	events := &recorder{}
	o := w.quiet()
	o.Observe = events.observe
	r := w.startIdle(o)
	for range b.N {
		before := r.Stats().Counts[Removed]
		start := w.now().Add(5 * time.Second).UnixMilli()
		for i := range each * seconds {
			at := start + int64(i)*seconds*1000/(each*seconds)
			value := fmt.Sprintf("%d.%03d", at/1000, at%1000)
			name := fmt.Sprint("i", i)
			w.put(name, value)
			k, _ := r.table.KeyOf(w.key(name))
			r.arm(armed.Entry{Key: k, Value: value, At: at})
		}
		r.awaitCount(Removed, before+each*seconds)
	}
	var late []time.Duration
	for _, e := range events.of(Removed) {
		late = append(late, e.Late)
	}
	slices.Sort(late)
	for _, q := range []float64{0.5, 0.99, 1} {
		b.ReportMetric(float64(late[int(q*float64(len(late)-1))].Microseconds())/1000, fmt.Sprintf("p%v-ms", q*100))
	}
	b.ReportMetric(0, "ns/op")
}

// How fast one worker makes rows: of the records of a stream that is followed already, or of the
// items of a first scan; in a table at the endpoint, or in a store of its own.
func BenchmarkFollow(b *testing.B) {
	for _, source := range []string{"stream", "first scan"} {
		for _, store := range []string{"table", "directory"} {
			b.Run(source+"/"+store, func(b *testing.B) { follow(b, source == "stream", store == "directory") })
		}
	}
}

func follow(b *testing.B, followed, local bool) {
	w := newWorld(b, overHTTP, inRealTime)
	o := w.quiet()
	o.Strategy, o.Alone = Stream, local
	deadlines := w.DynamoDB()
	if local {
		deadlines = localStore(b).DynamoDB()
		o.Deadlines = deadlines
	}
	if followed {
		first := w.start(o)
		awaitScanned(b, deadlines)
		must(b, first.stop())
	}
	w.fill("i", b.N, w.in(3600))
	b.ResetTimer()
	w.start(o)
	for len(notedIn(b, deadlines)) < b.N {
		time.Sleep(500 * time.Millisecond) // notedIn reads all rows
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}
