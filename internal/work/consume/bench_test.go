package consume_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/work/consume"
	"github.com/mayflydb/mayfly/internal/work/lease"
)

// report reports the rate of an operation done n times.
func report(b *testing.B, n int, what string) {
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), what+"/s")
	b.ReportMetric(b.Elapsed().Seconds()*1e6/float64(n), "µs/"+what)
}

// fill writes n items of 400 bytes whose deadlines have passed, so that each leaves two stream
// records.
func (e *endpoint) fill(b *testing.B, table string, n int) {
	var writers sync.WaitGroup
	const each = 8
	for w := range each {
		writers.Go(func() {
			for from := w; from < n; from += 25 * each {
				var writes []types.WriteRequest
				for i := from; i < n && len(writes) < 25; i += each {
					writes = append(writes, types.WriteRequest{PutRequest: &types.PutRequest{Item: map[string]types.AttributeValue{
						"k":   &types.AttributeValueMemberS{Value: fmt.Sprint("k", i)},
						"pad": &types.AttributeValueMemberS{Value: strings.Repeat("x", 400)},
					}}})
				}
				_, err := e.db.BatchWriteItem(context.Background(), &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{table: writes}})
				must(b, err)
			}
		})
	}
	writers.Wait()
}

// filled opens a durable database whose table "events" has n items.
func filled(b *testing.B, n int) *endpoint {
	e := open(b, b.TempDir(), mayfly.Options{})
	e.table(b, "events")
	e.fill(b, "events", n)
	return e
}

// BenchmarkRecords reads records that are there already, in process and durable.
func BenchmarkRecords(b *testing.B) {
	rounds := 0
	for b.Loop() {
		rounds++
		b.StopTimer()
		const n = 50_000
		e := filled(b, n)
		var seen atomic.Int64
		all := make(chan struct{})
		c := &consume.Consumer{
			Name: "bench", Table: "events", DB: e.db, Streams: e.streams, Now: e.Clock().Now, Leases: lease.Options{Exclusive: true},
			Handle: func(_ context.Context, _ string, records []consume.Record) error {
				for _, r := range records {
					r.Done()
				}
				if seen.Add(int64(len(records))) == n {
					close(all)
				}
				return nil
			},
		}
		b.StartTimer()
		stop := run(b, c.Run)
		<-all
		stop()
		b.StopTimer()
		report(b, n*rounds, "record")
		must(b, e.Close())
		b.StartTimer()
	}
}
