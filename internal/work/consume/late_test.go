package consume_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/work/lease"
)

// late does something before the first item is put.
type late struct {
	dynamodb.HTTPClient
	what func()
}

func (l late) Do(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".PutItem") {
		l.what()
	}
	return l.HTTPClient.Do(r)
}

// A run that was ended while it took its leases may have them written after the next run has read
// them. That one takes them nevertheless.
func TestTakenLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := open(t, "", mayfly.Options{Shards: 4})
		e.table(t, "events")
		s := newSeen()
		stop := run(t, e.consumer(t, "events", s).Run)
		time.Sleep(time.Second)
		stop()
		o := e.db.Options()
		o.HTTPClient = late{o.HTTPClient, sync.OnceFunc(func() {
			earlier := lease.New(e.db, "test", lease.Options{Exclusive: true})
			for _, row := range e.rows(t) {
				if _, err := earlier.Take(t.Context(), row); err != nil {
					t.Error(err)
				}
			}
		})}
		c := e.consumer(t, "events", s)
		c.DB = dynamodb.New(o)
		stop = run(t, c.Run)
		e.put(t, "events", "a", 0, 40)
		time.Sleep(time.Second)
		s.once(t, 40)
		stop()
	})
}
