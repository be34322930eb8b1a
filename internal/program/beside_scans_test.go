package program

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// BenchmarkBesideScans measures the calls of one client alone, and while ten others run the most
// expensive scan: 20,000 small items in a page, and 145 conditions on each. Both are measured in
// turn.
func BenchmarkBesideScans(b *testing.B) {
	s, err := startServer(b.TempDir(), nil, "--data", b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(s.kill)
	scan := fillScanned(b, s.url)
	v := &victim{url: s.url}
	var alone, beside []time.Duration
	scans := 0
	window := func(scanning int) []time.Duration {
		ctx, cancel := context.WithTimeout(b.Context(), time.Second)
		defer cancel()
		var all sync.WaitGroup
		var mu sync.Mutex
		for range scanning {
			all.Go(func() {
				for ctx.Err() == nil {
					if err := v.call(http.DefaultClient, "Scan", scan); err != nil {
						b.Error(err)
						return
					}
					mu.Lock()
					scans++
					mu.Unlock()
				}
			})
		}
		v.work(ctx)
		all.Wait()
		took := v.took
		v.took = nil
		return took
	}
	for b.Loop() {
		alone = append(alone, window(0)...)
		beside = append(beside, window(10)...)
	}
	for _, err := range v.errors {
		b.Error(err)
	}
	p99, slower := percentile(alone, 99), percentile(beside, 99)
	b.ReportMetric(float64(percentile(alone, 50).Microseconds()), "p50-alone-µs")
	b.ReportMetric(float64(percentile(beside, 50).Microseconds()), "p50-beside-µs")
	b.ReportMetric(float64(p99.Microseconds()), "p99-alone-µs")
	b.ReportMetric(float64(slower.Microseconds()), "p99-beside-µs")
	b.ReportMetric(float64(slower)/float64(p99), "p99-ratio")
	b.ReportMetric(float64(scans)/float64(b.N), "scans/s")
	b.ReportMetric(0, "ns/op")
}

// fillScanned makes a table with 20,000 items, and the victim's. It returns the body of the scan.
func fillScanned(tb testing.TB, url string) string {
	tb.Helper()
	client := &victim{url: url}
	call := func(operation, body string) {
		if err := client.call(http.DefaultClient, operation, body); err != nil {
			tb.Fatal(err)
		}
	}
	for _, table := range []string{"scanned", "small"} {
		call("CreateTable", `{"TableName":"`+table+`","BillingMode":"PAY_PER_REQUEST","KeySchema":[{"AttributeName":"pk","KeyType":"HASH"}],"AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"}]}`)
	}
	for n := 0; n < 20_000; n += 25 {
		var puts []string
		for i := range 25 {
			puts = append(puts, fmt.Sprintf(`{"PutRequest":{"Item":{"pk":{"S":"%05d"},"t":{"S":"some text that is short"}}}}`, n+i))
		}
		call("BatchWriteItem", `{"RequestItems":{"scanned":[`+strings.Join(puts, ",")+`]}}`)
	}
	var conditions, values []string
	for n := range 145 {
		conditions = append(conditions, fmt.Sprintf("contains(t,:v%d)", n))
		values = append(values, fmt.Sprintf(`":v%d":{"S":"none%d"}`, n, n))
	}
	return `{"TableName":"scanned","FilterExpression":"` + strings.Join(conditions, " OR ") + `","ExpressionAttributeValues":{` + strings.Join(values, ",") + `}}`
}
