package guard

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/guard/internal/audit"
	"github.com/mayflydb/mayfly/guard/internal/stream"
	"github.com/mayflydb/mayfly/internal/testkit"
)

// idling returns the requests per second of an idle fleet, by operation and table, with leases of
// the default length.
func idling(t *testing.T, strategy Strategy, workers int, fill func(*world)) (each map[string]float64) {
	bubbled(t, func(t *testing.T, w *world) {
		if fill != nil {
			fill(w)
		}
		var lines []*line
		var ends []func()
		for i := range workers {
			l := newLine(nil)
			g, err := New(l.lay(Options{
				DB: w.db, Streams: w.streams, Table: worldTable, Attribute: "ttl", Strategy: strategy, Owner: fmt.Sprint(i), LocalClock: true,
			}))
			must(t, err)
			r := w.run(g, nil)
			lines, ends = append(lines, l), append(ends, func() { must(t, r.stop()) })
		}
		time.Sleep(audit.After + 3*time.Minute) // the first audit has ended, and costs no calls until the next
		before := sentOf(lines)
		const span = 5 * time.Minute
		time.Sleep(span)
		each = map[string]float64{}
		for what, n := range sentOf(lines) {
			if n -= before[what]; n > 0 {
				each[what] = float64(n) / span.Seconds()
			}
		}
		for _, end := range ends {
			end()
		}
	})
	return each
}

func sentOf(lines []*line) map[string]int {
	all := map[string]int{}
	for _, l := range lines {
		l.mu.Lock()
		for what, n := range l.sent {
			all[what] += n
		}
		l.mu.Unlock()
	}
	return all
}

// atMost checks the number of requests per second that match.
func atMost(t *testing.T, each map[string]float64, matching string, most float64) {
	t.Helper()
	sum := 0.0
	for what, n := range each {
		if strings.Contains(what, matching) {
			sum += n
		}
	}
	if sum > most {
		t.Errorf("%.2f requests a second of %q, and at most %.2f are wanted", sum, matching, most)
	}
}

// An idle stream fleet makes few requests, and fewer writes: four in a lease for each worker's
// share in the stream and in the partitions, and one poll of each partition in 5/4 of a lease.
// Distant deadlines do not change that.
func TestIdleStreamFleet(t *testing.T) {
	t.Parallel()
	for _, workers := range testkit.Size([]int{1, 2}, []int{1, 2, 4}) {
		each := idling(t, Stream, workers, func(w *world) {
			for i := range 100 {
				w.put(fmt.Sprint("far", i), fmt.Sprint(time.Now().Add(time.Hour+time.Duration(i)*time.Minute).Unix()))
			}
		})
		n := float64(workers)
		atMost(t, each, "PutItem", 1.4*n)
		// 16 polls in 7.5 s, and a check for requested scans
		atMost(t, each, stream.TableName, 2.3+0.1*n)
		atMost(t, each, "DescribeStream", 0.11*n)
		atMost(t, each, "GetRecords", 0.1) // mayfly holds them
		atMost(t, each, "Scan", 0)
		atMost(t, each, "", 2.5+3.2*n)
		t.Logf("%d workers: %s", workers, rates(each))
	}
}

// Nor does a fleet of the index strategy write down that nothing has happened with each sweep.
func TestIdleIndexFleet(t *testing.T) {
	t.Parallel()
	each := idling(t, Index, 1, func(w *world) {
		w.put("far", fmt.Sprint(time.Now().Add(time.Hour).Unix()), text(windowAttribute, Window(time.Now().Add(time.Hour).Unix(), time.Minute)))
	})
	atMost(t, each, "PutItem", 0.7+0.02)
	t.Log(rates(each))
}

func rates(each map[string]float64) string {
	var parts []string
	for _, what := range slices.Sorted(maps.Keys(each)) {
		parts = append(parts, fmt.Sprintf("%s %.2f", what, each[what]))
	}
	return strings.Join(parts, ", ")
}
