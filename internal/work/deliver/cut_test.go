package deliver_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/work/deliver"
	"github.com/mayflydb/mayfly/target"
)

// cutter lets calls through up to one, and none from then on. That one may be made, and its answer
// lost.
type cutter struct {
	dynamodb.HTTPClient
	at   int  // the first call that fails
	made bool // it is made

	mu      sync.Mutex
	calls   int
	attempt int // the newest that was written and acknowledged
}

var storedAttempt = regexp.MustCompile(`\\"attempt\\":(\d+)`)

func (c *cutter) Do(r *http.Request) (*http.Response, error) {
	c.mu.Lock()
	c.calls++
	n := c.calls
	c.mu.Unlock()
	if n > c.at || n == c.at && !c.made {
		return nil, errCut
	}
	var body []byte
	if strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".BatchWriteItem") {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	response, err := c.HTTPClient.Do(r)
	if n == c.at {
		if err == nil {
			response.Body.Close()
		}
		return nil, errCut
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, found := range storedAttempt.FindAllSubmatch(body, -1) {
		attempt, _ := strconv.Atoi(string(found[1]))
		c.attempt = max(c.attempt, attempt)
	}
	return response, err
}

// state returns the number of calls, and the latest acknowledged attempt.
func (c *cutter) state() (calls, attempt int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls, c.attempt
}

// Wherever a courier is cut off from its tables, one that follows brings the parcel to its end: it
// is delivered with all of its body, or a dead letter with all of it, and no attempt is made that
// is older than the newest that was written.
func TestCutOff(t *testing.T) {
	body := noise(400 << 10) // two parts
	slow := func(f answers) answers {
		return func(ctx context.Context, d target.Delivery) error {
			time.Sleep(6 * time.Second) // so that it is secured
			return f(ctx, d)
		}
	}
	step := 1
	if testing.Short() { // under the race detector all of them take three minutes
		step = 10
	}
	for _, test := range []struct {
		name string
		f    answers
		made bool
	}{
		{"fails", failUntil(3), false},
		{"slow", slow(failUntil(2)), false},
		{"slow, and the call is made", slow(failUntil(2)), true},
		{"buried, and the call is made", slow(func(_ context.Context, d target.Delivery) error {
			if d.Attempt < 2 {
				return errors.New("no")
			}
			return target.Permanent("No", "no")
		}), true},
	} {
		t.Run(test.name, func(t *testing.T) {
			for at, over := 1, false; !over; at += step {
				synctest.Test(t, func(t *testing.T) { over = cutOff(t, body, test.f, &cutter{at: at, made: test.made}) })
				if t.Failed() {
					t.Fatalf("with call %d", at)
				}
			}
		})
	}
}

// cutOff runs a parcel with a courier that is cut off, and then with one that is not. It reports
// whether the first one was not either.
func cutOff(t *testing.T, body []byte, f answers, c *cutter) (over bool) {
	e := open(t, "", mayfly.Options{})
	o := e.db.Options()
	c.HTTPClient, o.HTTPClient, o.RetryMaxAttempts = o.HTTPClient, c, 1
	options := deliver.Options{Backoff: deliver.Backoff{First: 2 * time.Second, Most: 2 * time.Second}}
	limits := target.Limits{Timeout: 10 * time.Second}
	send := func(p *post) {
		p.send(t, "a", func(j *deliver.Parcel) { j.Delivery.Body, j.Policy.MaxAttempts = body, 3 })
	}
	first := (&endpoint{e.DB, dynamodb.New(o), e.streams}).courier(t, options, map[string]answers{"": f}, limits)
	send(first)
	time.Sleep(time.Minute)
	first.stop()
	calls, newest := c.state()
	done, before := false, 0
	first.read(func() { done, before = first.done["a"] > 0, len(first.ended) })
	second := e.courier(t, options, map[string]answers{"": f}, limits)
	if !done {
		send(second)
	}
	time.Sleep(2 * time.Minute)
	for _, item := range e.scan(t, deliver.RetriesTable) {
		if item["part"].(*types.AttributeValueMemberS).Value == "job" {
			t.Error("it is still parked")
		}
	}
	time.Sleep(49 * time.Hour)
	letter, dead, err := deliver.GetDeadLetter(t.Context(), e.db, "a")
	must(t, err)
	second.read(func() {
		if before == 0 && len(second.ended) == 0 {
			t.Error("the job has no end")
		}
		for attempt, got := range second.bodies {
			n, _ := strconv.Atoi(strings.TrimPrefix(attempt, "a "))
			if got != string(body) || done && n < newest {
				t.Errorf("attempt %s was made with %d bytes, although attempt %d was kept", attempt, len(got), newest)
			}
		}
	})
	if dead && (letter.Code == "UnreadableJob" || !bytes.Equal(letter.Body, body)) {
		t.Errorf("the dead letter is of %s %s with %d bytes", letter.Code, letter.Message, len(letter.Body))
	}
	for _, item := range e.scan(t, deliver.RetriesTable) {
		// the parts of a parcel that was never parked have no owner
		if part := item["part"].(*types.AttributeValueMemberS).Value; done || !strings.HasPrefix(part, "body#") {
			t.Errorf("%s is left", part)
		}
	}
	second.stop()
	return calls < c.at
}

// scan returns the items of a table, or none if it does not exist.
func (e *endpoint) scan(t testing.TB, table string) []map[string]types.AttributeValue {
	t.Helper()
	out, err := e.db.Scan(context.Background(), &dynamodb.ScanInput{TableName: aws.String(table), ConsistentRead: aws.Bool(true)})
	if err != nil {
		return nil
	}
	return out.Items
}

// A parked parcel that was made unreadable becomes a dead letter with the reason and the readable
// parts.
func TestDamaged(t *testing.T) {
	inBubble(t, func(t *testing.T, e *endpoint) {
		p := e.courier(t, deliver.Options{Backoff: deliver.Backoff{First: time.Hour}, Jitter: func() float64 { return 0.5 }}, map[string]answers{"": failUntil(2)}, target.Limits{})
		for id, body := range map[string][]byte{"no part": noise(400 << 10), "no job": []byte("text"), "no JSON": nil, "no packing": nil, "whole": noise(400 << 10)} {
			p.send(t, id, func(j *deliver.Parcel) { j.Delivery.Body = body })
		}
		time.Sleep(time.Second)
		for _, item := range e.scan(t, deliver.RetriesTable) {
			id, part := item["id"].(*types.AttributeValueMemberS).Value, item["part"].(*types.AttributeValueMemberS).Value
			switch {
			case id == "no part" && strings.HasSuffix(part, "#0001"):
				_, err := e.db.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{
					TableName: aws.String(deliver.RetriesTable), Key: map[string]types.AttributeValue{"id": item["id"], "part": item["part"]},
				})
				must(t, err)
				continue
			case id == "no job":
				delete(item, "job")
			case id == "no JSON":
				item["job"] = &types.AttributeValueMemberS{Value: "{"}
			case id == "no packing":
				item["encoding"] = &types.AttributeValueMemberS{Value: "zip"}
			default:
				continue
			}
			_, err := e.db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String(deliver.RetriesTable), Item: item})
			must(t, err)
		}
		time.Sleep(time.Hour)
		for id, want := range map[string]string{
			"no part": "part 2 of the 2 of its body is missing", "no job": `attribute "job" is missing`, "no JSON": "a stored job: unexpected end of JSON input",
			"no packing": `its body cannot be unpacked: its encoding is "zip"`,
		} {
			letter, found, err := deliver.GetDeadLetter(t.Context(), e.db, id)
			must(t, err)
			if !found || letter.Code != "UnreadableJob" || letter.Message != want || id == "no job" && string(letter.Body) != "text" {
				t.Errorf("%s: %v, %+v", id, found, letter)
			}
		}
		if end := p.end(t, "whole"); !end.Delivered {
			t.Errorf("what is whole has ended as %+v", end)
		}
		p.stop()
	})
}

// parked counts the items of parked parcels and the parts of their bodies.
func (e *endpoint) parked(t testing.TB) (n int) {
	for _, item := range e.scan(t, deliver.RetriesTable) {
		if !strings.HasPrefix(item["part"].(*types.AttributeValueMemberS).Value, "ended#") {
			n++
		}
	}
	return n
}
