package demo

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/clock"
)

// In both forms, every item is observed before and after its deadline, and no law is broken. In a
// bubble, work takes no time, so that no read is too slow to prove something.
func TestRun(t *testing.T) {
	for _, unit := range []Unit{Seconds, Milliseconds} {
		t.Run(string(unit), func(t *testing.T) {
			const items = 2000
			r := runInBubble(t, Options{Items: items, Spread: 2 * time.Second, Unit: unit}, 0)
			for what, n := range map[string]int{
				"written": r.Written, "read before": r.Before, "read after": r.Gone, "insertions": r.Inserts, "removals": r.Removes,
			} {
				if n != items {
					t.Errorf("%s: %d of %d", what, n, items)
				}
			}
			if want := map[Unit]int{Seconds: 1000, Milliseconds: 1}[unit]; r.Unit != unit || r.AtOnce != want {
				t.Errorf("%d items are due at once, at whole %s", r.AtOnce, r.Unit)
			}
		})
	}
}

// Thousands of items that are due at one instant are all read before it, although reading them
// takes longer than lookAhead.
func TestReadBeforeAnInstant(t *testing.T) {
	const items, callTime = 5000, 2 * time.Millisecond
	if callTime*items/readItems < 2*lookAhead {
		t.Fatal("the reads are too fast for this test")
	}
	r := runInBubble(t, Options{Items: items, Spread: time.Second, Unit: Seconds}, callTime)
	if r.AtOnce != items || r.Before != items || r.Gone != items {
		t.Errorf("%d are due at once; %d were read before and %d after", r.AtOnce, r.Before, r.Gone)
	}
}

// runInBubble runs the experiment with a database in memory, where each BatchGetItem takes
// callTime. It fails the test if a law is broken.
func runInBubble(t *testing.T, o Options, callTime time.Duration) (r Report) {
	synctest.Test(t, func(t *testing.T) {
		db, err := mayfly.Open("", mayfly.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		o.Streams, o.Now = db.Streams(), db.Clock().Now
		o.DB = dynamodb.New(db.DynamoDB().Options(), func(c *dynamodb.Options) {
			c.HTTPClient = slowReads{c.HTTPClient, callTime}
		})
		d, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		if r, err = d.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if broken := r.Broken(); len(broken) > 0 {
			t.Error(broken)
		}
	})
	return r
}

// slowReads is a client whose BatchGetItem takes callTime.
type slowReads struct {
	dynamodb.HTTPClient
	callTime time.Duration
}

func (c slowReads) Do(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".BatchGetItem") {
		clock.Pause(c.callTime, r.Context().Done())
	}
	return c.HTTPClient.Do(r)
}
