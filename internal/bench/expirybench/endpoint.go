package expirybench

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/mayflydb/mayfly/internal/bench"
	"github.com/mayflydb/mayfly/internal/sdk"
	"github.com/mayflydb/mayfly/internal/skew"
)

// endpoint is the measured server. Its clients do not retry: a measured call is one request.
type endpoint struct {
	db      *dynamodb.Client
	streams *dynamodbstreams.Client
	clock   *skew.Clock
	local   bool // all of its addresses are this machine's loopback
	pid     int  // 0: unknown
}

// connect returns the endpoint, unless it is on another machine without permission.
func connect(ctx context.Context, o Options) (*endpoint, error) {
	now := time.Now().UnixMilli()
	e := &endpoint{clock: skew.NewClock(clockMost.Milliseconds(), now, now), pid: o.PID}
	port := ""
	if o.Endpoint.IsAWS() {
		if !o.AllowRemote {
			return nil, fmt.Errorf("the service of Amazon is %w", bench.ErrNotLoopback)
		}
	} else {
		u, err := url.Parse(o.Endpoint.URL)
		if err != nil {
			return nil, &bench.UsageError{Err: err}
		}
		if e.local, err = bench.Allowed(ctx, u, o.AllowRemote); err != nil {
			return nil, err
		}
		port = u.Port()
	}
	if e.pid == 0 && e.local {
		e.pid = bench.ListenerPID(port)
	}
	config := o.Endpoint.Config.Copy()
	config.HTTPClient = dated{config.HTTPClient, e.clock}
	config.Retryer = func() aws.Retryer { return aws.NopRetryer{} }
	watched := sdk.Endpoint{Config: config, URL: o.Endpoint.URL}
	e.db, e.streams = watched.DynamoDB(), watched.Streams()
	return e, nil
}

// dated is an HTTP client that reads the Date of each answer.
type dated struct {
	aws.HTTPClient
	clock *skew.Clock
}

func (d dated) Do(r *http.Request) (*http.Response, error) {
	sent := time.Now()
	answer, err := d.HTTPClient.Do(r)
	if err == nil {
		now := time.Now().UnixMilli()
		d.clock.Saw(answer.Header.Get("Date"), sent.UnixMilli(), now, now)
	}
	return answer, err
}

// Clock is the difference of an endpoint's clock from the client's, from the Date headers of its answers.
type Clock struct {
	// Known is false for an endpoint without Date headers. If its clock may be its own, nothing is early then.
	Known bool `json:"known"`
	// The endpoint's clock is ahead of the client's by this, at least and at most.
	AheadLeastMS int64 `json:"ahead_least_ms"`
	AheadMostMS  int64 `json:"ahead_most_ms"`
	// Own means that the endpoint may have a clock of its own: it is on another machine, its process is not known
	// (it may be in a virtual machine), or the difference is not zero. Only then figures allow for the difference.
	Own bool `json:"own"`
}

const (
	clockMost = 365 * 24 * time.Hour // a greater difference makes the Dates implausible
	aheadMost = time.Minute          // deadlines are put off by the difference
	clockFor  = 1100 * time.Millisecond
	clockEach = 20 * time.Millisecond // between two looks at the Date
)

// readClock compares the clocks for a little more than a second, so that the Date changes once.
func (e *endpoint) readClock(ctx context.Context) error {
	for end := time.Now().Add(clockFor); time.Now().Before(end); {
		if _, err := e.db.ListTables(ctx, &dynamodb.ListTablesInput{Limit: aws.Int32(1)}); err != nil {
			return err
		}
		if err := bench.Pause(ctx, clockEach); err != nil {
			return err
		}
	}
	if lead := e.difference().lead(); lead > aheadMost {
		return fmt.Errorf("its clock is ahead of this machine's by up to %s, more than %s", lead, aheadMost)
	}
	return nil
}

// difference returns the difference of the clocks as far as it is known at present.
func (e *endpoint) difference() Clock {
	low, high, known := e.clock.At(time.Now().UnixMilli())
	if !known {
		return Clock{Own: !e.local || e.pid == 0}
	}
	return Clock{Known: true, AheadLeastMS: low, AheadMostMS: high, Own: !e.local || e.pid == 0 || low > 0 || high < 0}
}

// ahead returns by how much the endpoint's clock may be ahead of the client's: an answer that arrives
// as much before a deadline is not early. An unknown clock may be ahead by any time.
func (c Clock) ahead() time.Duration {
	if c.Own && !c.Known {
		return clockMost
	}
	return c.lead()
}

// lead returns by how much sooner than by the client's clock deadlines may pass at the endpoint.
func (c Clock) lead() time.Duration {
	if !c.Own {
		return 0
	}
	return time.Duration(max(c.AheadMostMS, 0)) * time.Millisecond
}

// firstDeadline returns the first whole second that is at least a lead away, by the endpoint's clock too.
func (r *run) firstDeadline(lead time.Duration) time.Time {
	return time.Now().Add(lead + r.difference().lead() + time.Second).Truncate(time.Second)
}

// behind returns by how much the endpoint's clock may be behind the client's: a request that is sent
// later than that after a deadline must not see the item.
func (c Clock) behind() time.Duration {
	if !c.Own {
		return 0
	}
	return time.Duration(max(-c.AheadLeastMS, 0)) * time.Millisecond
}
