package deliver_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/work/deliver"
	"github.com/mayflydb/mayfly/internal/work/lease"
	"github.com/mayflydb/mayfly/target"
)

var errCut = errors.New("network is unreachable")

type cuttable struct {
	to  dynamodb.HTTPClient
	cut *atomic.Bool
}

func (c cuttable) Do(r *http.Request) (*http.Response, error) {
	if c.cut.Load() {
		return nil, errCut
	}
	response, err := c.to.Do(r)
	if c.cut.Load() {
		return nil, errCut
	}
	return response, err
}

// If a courier dies, another one delivers its parked parcels. While both live, one of them brings
// back each parcel.
func TestCouriers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := open(t, "", mayfly.Options{})
		var mu sync.Mutex
		got := map[string]int{} // attempts, by worker
		parcels := map[string]int{}
		start := func(name string) (d *deliver.Courier, cut *atomic.Bool, stop func()) {
			cut = new(atomic.Bool)
			db, streams := e.db.Options(), e.streams.Options()
			db.HTTPClient, streams.HTTPClient = cuttable{db.HTTPClient, cut}, cuttable{streams.HTTPClient, cut}
			d = deliver.NewCourier(deliver.Options{
				DB: dynamodb.New(db), Streams: plain(dynamodbstreams.New(streams)), Now: e.Clock().Now, Leases: lease.Options{Owner: name},
				Backoff: deliver.Backoff{First: time.Second, Most: time.Minute}, Jitter: func() float64 { return 0.9 },
				Resolver: deliver.ResolverFunc(func(string) (deliver.Lane, error) {
					return deliver.Lane{Name: "x", Target: target.Func(func(_ context.Context, d target.Delivery) error {
						mu.Lock()
						defer mu.Unlock()
						got[name]++
						parcels[fmt.Sprint(d.ID, " ", d.Attempt)]++
						if d.Attempt < 8 {
							return errors.New("not yet")
						}
						return nil
					})}, nil
				}),
			})
			ctx, cancel := context.WithCancel(context.Background())
			var ran sync.WaitGroup
			ran.Go(func() { _ = d.Run(ctx) })
			return d, cut, func() { cancel(); ran.Wait() }
		}
		a, cut, stopA := start("a")
		_, _, stopB := start("b")
		for id := range ids("job", 20) {
			a.Deliver(t.Context(), deliver.Parcel{Delivery: target.Delivery{ID: id, TargetARN: "arn:x"}}, func() {})
		}
		time.Sleep(20 * time.Second)
		mu.Lock()
		before := got["b"]
		mu.Unlock()
		cut.Store(true)
		time.Sleep(10 * time.Minute)
		mu.Lock()
		for id := range ids("job", 20) {
			for n := 1; n <= 8; n++ {
				if attempt := fmt.Sprint(id, " ", n); parcels[attempt] == 0 {
					t.Errorf("%s was not made", attempt)
				} else if parcels[attempt] > 2 {
					t.Errorf("%s was made %d times", attempt, parcels[attempt])
				}
			}
		}
		if got["b"] <= before {
			t.Errorf("the one that lives has made no attempt: %v", got)
		}
		mu.Unlock()
		stopA()
		stopB()
	})
}
