package guard

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/mayflydb/mayfly"
)

// benchPage is the number of items in a page of a megabyte, at 150 bytes each.
const benchPage = 7_000

// cannedScan answers the scans of a world's table with prepared pages, over HTTP and at hardly any
// cost, so that the processor's time is guard's. Each segment has so many pages.
func (w *world) cannedScan(b *testing.B, segments, pages int) (served *atomic.Int64) {
	served = &atomic.Int64{}
	ttl := w.in(24 * 60 * 60)
	var bodies [][]byte
	for number := range segments * pages {
		var body bytes.Buffer
		body.WriteString(`{"Items":[`)
		for i := range benchPage {
			if i > 0 {
				body.WriteByte(',')
			}
			fmt.Fprintf(&body, `{"pk":{"S":"order-%06d-%04d"},"ttl":{"N":"%s"}}`, number, i, ttl)
		}
		fmt.Fprintf(&body, `],"Count":%d,"ScannedCount":%[1]d,"ConsumedCapacity":{"TableName":"t","CapacityUnits":128}`, benchPage)
		if (number+1)%pages != 0 {
			fmt.Fprintf(&body, `,"LastEvaluatedKey":{"pk":{"S":"order-%06d-%04d"}}`, number, benchPage-1)
		}
		body.WriteByte('}')
		bodies = append(bodies, body.Bytes())
	}
	server := httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, r *http.Request) {
		var in struct {
			Segment           int
			ExclusiveStartKey map[string]struct{ S string }
		}
		must(b, json.NewDecoder(r.Body).Decode(&in))
		number := in.Segment * pages
		if after, has := in.ExclusiveStartKey["pk"]; has {
			_, err := fmt.Sscanf(after.S, "order-%d-", &number)
			must(b, err)
			number++
		}
		answer.Header().Set("Content-Type", "application/x-amz-json-1.0")
		answer.Write(bodies[number])
		served.Add(1)
	}))
	b.Cleanup(server.Close)
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	b.Cleanup(transport.CloseIdleConnections)
	w.via(func(r *http.Request, send func(*http.Request) (*http.Response, error)) (*http.Response, error) {
		if operation(r) != "Scan" {
			return send(r)
		}
		canned, err := http.NewRequestWithContext(r.Context(), r.Method, server.URL, r.Body)
		if err != nil {
			return nil, err
		}
		canned.ContentLength = r.ContentLength
		return transport.RoundTrip(canned)
	})
	return served
}

// processorTime returns the time that this process has used processors.
func processorTime() time.Duration {
	var used syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &used) != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// The first scan of a table: a pass of the scan strategy, which only reads, and the first scan of
// the stream strategy, which also stores each deadline: in a store of its own, or at the endpoint.
// cpu-µs/item includes the store's, as both are in this process.
func BenchmarkFirstScan(b *testing.B) {
	for _, c := range []struct {
		name     string
		strategy Strategy
		pages    int // of each segment
		own      bool
	}{{"scan", Scan, 20, false}, {"stream, own store", Stream, 2, true}, {"stream, at the endpoint", Stream, 2, false}} {
		b.Run(c.name, func(b *testing.B) {
			var items, took, used float64
			for range b.N {
				b.StopTimer()
				w := newWorld(b, overHTTP, inRealTime)
				o := w.quiet()
				o.Segments, o.Strategy, o.MaxRCU, o.Period = 4, c.strategy, 1e9, time.Hour
				served := w.cannedScan(b, o.Segments, c.pages)
				o.DB = w.db
				if c.own {
					own, err := mayfly.Open(b.TempDir(), mayfly.Options{})
					must(b, err)
					defer own.Close()
					o.Deadlines = own.DynamoDB()
				}
				ended := make(chan struct{}, 1)
				o.Progress = func(p Progress) {
					if p.Ended && (p.Doing == FirstScan || p.Doing == WholeScan) {
						ended <- struct{}{}
					}
				}
				began, before := time.Now(), processorTime()
				b.StartTimer()
				r := w.start(o)
				<-ended
				b.StopTimer()
				if n := served.Load(); n != int64(o.Segments*c.pages) {
					b.Errorf("%d pages were read, not %d", n, o.Segments*c.pages)
				}
				items += float64(o.Segments * c.pages * benchPage)
				took += time.Since(began).Seconds()
				used += float64((processorTime() - before).Microseconds())
				must(b, r.stop())
				b.StartTimer()
			}
			b.ReportMetric(items/took, "items/s")
			b.ReportMetric(used/items, "cpu-µs/item")
			b.ReportMetric(0, "ns/op")
		})
	}
}
