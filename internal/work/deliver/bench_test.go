package deliver_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/work/consume"
	"github.com/mayflydb/mayfly/internal/work/deliver"
	"github.com/mayflydb/mayfly/internal/work/lease"
	"github.com/mayflydb/mayfly/target"
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

// BenchmarkParcels makes a parcel of each record and delivers it to a function: the cost of a
// firing besides its own writes.
func BenchmarkParcels(b *testing.B) {
	rounds := 0
	for b.Loop() {
		rounds++
		b.StopTimer()
		const n = 50_000
		e := filled(b, n)
		var delivered, parked atomic.Int64
		d := startCourier(b, e, deliver.Options{
			Resolver: deliver.ResolverFunc(func(string) (deliver.Lane, error) {
				return deliver.Lane{Name: "x", Target: target.Func(func(context.Context, target.Delivery) error { delivered.Add(1); return nil })}, nil
			}),
			Observe: func(e deliver.Event) {
				if e.What == deliver.LaneFull {
					parked.Add(1)
				}
			},
		}, func(d *deliver.Courier) {
			d.OnEnd("bench", func(context.Context, []deliver.Ended) error { return nil })
		})
		c := &consume.Consumer{
			Name: "bench", Table: "events", DB: e.db, Streams: e.streams, Now: e.Clock().Now, Leases: lease.Options{Exclusive: true},
			Handle: func(ctx context.Context, shard string, records []consume.Record) error {
				for _, r := range records {
					d.Deliver(ctx, deliver.Parcel{
						Delivery: target.Delivery{ID: *r.EventID, TargetARN: "arn:x", Time: e.Clock().Now(), Body: []byte(`{"detail":"something to do"}`)},
						Origin:   deliver.Origin{Kind: "bench"}, Group: "default",
					}, r.Done)
				}
				return nil
			},
		}
		b.StartTimer()
		stop := run(b, c.Run)
		for delivered.Load() < n {
			time.Sleep(time.Millisecond)
		}
		stop()
		b.StopTimer()
		report(b, n*rounds, "job")
		b.ReportMetric(float64(parked.Load()), "parked")
		b.StartTimer()
	}
}

// BenchmarkRetries has the first attempt of each parcel fail: it is parked, comes due and is read
// again.
func BenchmarkRetries(b *testing.B) {
	rounds := 0
	for b.Loop() {
		rounds++
		b.StopTimer()
		const n = 20_000
		e := open(b, b.TempDir(), mayfly.Options{})
		var delivered atomic.Int64
		d := startCourier(b, e, deliver.Options{
			Backoff: deliver.Backoff{First: time.Second}, Jitter: func() float64 { return 0 },
			Resolver: deliver.ResolverFunc(func(string) (deliver.Lane, error) {
				return deliver.Lane{Name: "x", Target: target.Func(func(_ context.Context, d target.Delivery) error {
					if d.Attempt == 1 {
						return &target.Error{Code: "NotYet"}
					}
					delivered.Add(1)
					return nil
				})}, nil
			}),
		}, nil)
		b.StartTimer()
		for id := range ids("job-", n) {
			d.Deliver(b.Context(), deliver.Parcel{
				Delivery: target.Delivery{ID: id, TargetARN: "arn:x", Time: e.Clock().Now(), Body: []byte(`{"detail":"something to do"}`)}, Group: "default",
			}, func() {})
		}
		for delivered.Load() < n {
			time.Sleep(time.Millisecond)
		}
		b.StopTimer()
		report(b, n*rounds, "job")
		b.StartTimer()
	}
}
