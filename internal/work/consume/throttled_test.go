package consume_test

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/mayflydb/mayfly"
)

// fivePerSecond refuses GetRecords calls beyond five a second, as Amazon does for a shard, and waits
// for no record.
type fivePerSecond struct {
	dynamodbstreams.HTTPClient
	calls, refused atomic.Int64
	tokens         float64
	at             time.Time
}

func (f *fivePerSecond) Do(r *http.Request) (*http.Response, error) {
	r.Header.Del("X-Mayfly-Wait-Ms")
	if !strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".GetRecords") {
		return f.HTTPClient.Do(r)
	}
	now := time.Now()
	f.tokens = min(f.tokens+now.Sub(f.at).Seconds()*5, 5)
	if f.at = now; f.tokens < 1 {
		f.refused.Add(1)
		body := `{"__type":"com.amazonaws.dynamodb.v20120810#LimitExceededException","message":"five a second"}`
		return &http.Response{StatusCode: 400, Proto: "HTTP/1.1", Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
	}
	f.tokens--
	f.calls.Add(1)
	return f.HTTPClient.Do(r)
}

// At an endpoint that throttles the calls for a shard, a consumer calls so rarely that it is refused no
// more: each refused call would cost a pause, and the pauses grow while records wait.
func TestThrottledReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := open(t, "", mayfly.Options{Shards: 1})
		e.table(t, "events")
		s := newSeen()
		c := e.consumer(t, "events", s)
		o := e.streams.Options()
		limited := &fivePerSecond{HTTPClient: o.HTTPClient, tokens: 5, at: time.Now()}
		o.HTTPClient = limited
		c.Streams = dynamodbstreams.New(o)
		stop := run(t, c.Run)
		time.Sleep(time.Second)
		const n = 500
		for i := range n { // 50 a second
			e.put(t, "events", "a", i, i+1)
			time.Sleep(20 * time.Millisecond)
		}
		time.Sleep(500 * time.Millisecond)
		s.once(t, n)
		stop()
		// The first refused call is tried again, with pauses that chance makes longer or shorter, until a fifth of a second is over.
		if refused, calls := limited.refused.Load(), limited.calls.Load(); refused == 0 || refused > 12 || calls > 60 {
			t.Errorf("%d calls were refused, and %d answered", refused, calls)
		}
	})
}
