package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/lifecycle"
)

// Two workers at an endpoint over HTTP, which does not know them, share the work by leases. When
// one leaves, the other continues. Each transition happens once, and each call has one ID.
func TestElsewhere(t *testing.T) {
	t.Parallel()
	db, err := mayfly.Open("", mayfly.Options{DatabaseOnly: true})
	must(t, err)
	t.Cleanup(func() { must(t, db.Close()) })
	server := httptest.NewServer(db.Handler())
	// after the workers end: a worker without a server would retry for a while
	t.Cleanup(server.Close)
	w := &world{DB: db, t: t}
	identity := credentials.NewStaticCredentialsProvider("any", "any", "")
	o := lifecycle.Options{
		DB:       dynamodb.New(dynamodb.Options{Region: "us-east-1", BaseEndpoint: &server.URL, Credentials: identity, HTTPClient: server.Client()}),
		Streams:  dynamodbstreams.New(dynamodbstreams.Options{Region: "us-east-1", BaseEndpoint: &server.URL, Credentials: identity, HTTPClient: server.Client()}),
		Now:      time.Now,
		Handlers: map[string]lifecycle.Handler{"note": w.note},
		Lease:    time.Second,
	}
	first, err := lifecycle.New(o)
	must(t, err)
	stopFirst := background(t, first.Run)
	_, err = first.Apply(bg, read(t, `
lifecycle: quick
states:
  - {name: a, next: [{to: b, after: 500ms, handler: note}]}
  - {name: b, next: [{to: c, after: 500ms, handler: note}]}
  - {name: c, next: [{to: d, after: 1s, handler: note}]}
  - {name: d}
`), lifecycle.ApplyOptions{})
	must(t, err)
	w.Lifecycles, err = lifecycle.New(o)
	must(t, err)
	background(t, w.Run)
	const entities = 30
	for i := range entities {
		w.create("quick", fmt.Sprint(i))
	}
	await(t, "half of the transitions are made", func() bool { return len(w.calls()) >= entities })
	stopFirst()
	await(t, "all are at their end", func() bool {
		finished := 0
		must(t, w.Each(bg, "quick", func(e lifecycle.Entity) error {
			if e.Ended != "" {
				finished++
			}
			return nil
		}))
		return finished == entities
	})
	await(t, "all calls are made", func() bool { return len(ids(w)) == 3*entities })
	for i := range entities {
		events, err := w.History(bg, "quick", fmt.Sprint(i))
		must(t, err)
		if len(events) != 4 || events[3].To != "d" || events[3].Due.Sub(events[0].At) != 2*time.Second {
			t.Errorf("%d: %+v", i, events)
		}
	}
}

// ids returns the IDs of the calls.
func ids(w *world) map[string]bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := map[string]bool{}
	for _, c := range w.mu.calls {
		all[c.ID] = true
	}
	return all
}

func background(t *testing.T, run func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- run(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ran; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	t.Cleanup(stop)
	return stop
}
