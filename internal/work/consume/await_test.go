package consume_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/testkit"
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
			arn, looked := consume.AwaitStream(ctx, dynamodb.New(o), consume.Registry{}, "events", "", func(error) { told++ })
			looked()
			found <- arn
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

// AwaitStream reports each reason for its wait when it begins: here a refused call, and then a missing
// table.
func TestAwaitStreamReasons(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := open(t, "", mayfly.Options{})
		o := e.db.Options()
		refuses := new(atomic.Bool)
		refuses.Store(true)
		o.HTTPClient = testkit.Refusals{Next: o.HTTPClient.Do, Code: func(string, []byte) string {
			if refuses.Load() {
				return "AccessDeniedException"
			}
			return ""
		}}
		var reasons []string
		stop := run(t, func(ctx context.Context) error {
			_, looked := consume.AwaitStream(ctx, dynamodb.New(o), consume.Registry{}, "events", "", func(err error) {
				api, _ := errors.AsType[smithy.APIError](err)
				reasons = append(reasons, api.ErrorCode())
			})
			looked()
			return nil
		})
		time.Sleep(time.Hour)
		refuses.Store(false)
		time.Sleep(time.Hour)
		stop()
		if want := []string{"AccessDeniedException", "ResourceNotFoundException"}; !slices.Equal(reasons, want) {
			t.Errorf("reported %v, want %v", reasons, want)
		}
	})
}

// If the database announces changes of tables, waiting for a missing stream costs nothing, and the
// stream is found at once. A change without a stream is looked at by then, and the one that made
// the stream when the caller says so.
func TestAwaitStreamIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := open(t, "", mayfly.Options{})
		o := e.db.Options()
		calls := new(atomic.Int64)
		o.HTTPClient = counted{o.HTTPClient, calls}
		var changes []chan struct{}
		looked := make([]bool, 3)
		registry := consume.Registry{Changed: func() (<-chan struct{}, func()) {
			n := len(changes)
			changes = append(changes, make(chan struct{}))
			return changes[n], func() { looked[n] = true }
		}}
		found := make(chan struct{})
		var arn string
		var registered func()
		stop := run(t, func(ctx context.Context) error {
			arn, registered = consume.AwaitStream(ctx, dynamodb.New(o), registry, "events", "", func(error) {})
			close(found)
			return nil
		})
		time.Sleep(time.Hour)
		if n := calls.Load(); n != 1 {
			t.Errorf("%d calls in an hour", n)
		}
		close(changes[0]) // of another table
		synctest.Wait()
		if !looked[0] || looked[1] {
			t.Errorf("after another table's change, looked is called: %t", looked)
		}
		e.table(t, "events")
		close(changes[1])
		<-found
		if arn == "" || looked[1] || looked[2] {
			t.Errorf("found %q; looked is called before the reader registers: %t", arn, looked)
		}
		registered()
		if !looked[1] || !looked[2] {
			t.Errorf("after the reader has registered, looked is called: %t", looked)
		}
		stop()
	})
}
