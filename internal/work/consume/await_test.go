package consume_test

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/work/consume"
)

// counted counts calls.
type counted struct {
	dynamodb.HTTPClient
	calls *atomic.Int64
}

func (c counted) Do(r *http.Request) (*http.Response, error) {
	c.calls.Add(1)
	return c.HTTPClient.Do(r)
}

// A stream that is not there is looked for ever less often, and found within a minute when it
// comes.
func TestAwaitStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := open(t, "", mayfly.Options{})
		o := e.db.Options()
		calls := new(atomic.Int64)
		o.HTTPClient = counted{o.HTTPClient, calls}
		found := make(chan string, 1)
		told := 0
		stop := run(t, func(ctx context.Context) error {
			found <- consume.AwaitStream(ctx, dynamodb.New(o), consume.Registry{}, "events", "", func(error) { told++ })
			return nil
		})
		time.Sleep(time.Hour)
		if n := calls.Load(); n > 70 || told != 1 {
			t.Errorf("%d calls in an hour, told %d times", n, told)
		}
		e.table(t, "events")
		began := time.Now()
		if arn := <-found; arn == "" || time.Since(began) > time.Minute {
			t.Errorf("found %q after %s", arn, time.Since(began))
		}
		stop()
	})
}

// If the database announces changes of tables, waiting for a missing stream costs nothing, and the
// stream is found at once.
func TestAwaitStreamIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := open(t, "", mayfly.Options{})
		o := e.db.Options()
		calls := new(atomic.Int64)
		o.HTTPClient = counted{o.HTTPClient, calls}
		found, changed := make(chan string, 1), make(chan struct{})
		stop := run(t, func(ctx context.Context) error {
			registry := consume.Registry{Changed: func() <-chan struct{} { return changed }}
			found <- consume.AwaitStream(ctx, dynamodb.New(o), registry, "events", "", func(error) {})
			return nil
		})
		time.Sleep(time.Hour)
		if n := calls.Load(); n != 1 {
			t.Errorf("%d calls in an hour", n)
		}
		e.table(t, "events")
		close(changed)
		if arn := <-found; arn == "" {
			t.Error("it is not found")
		}
		stop()
	})
}
