package guard

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// Each mistake ends Run with a problem that names the next step, whether it exists from the start
// or occurs later, and without repeated requests.
func TestProblems(t *testing.T) {
	t.Parallel()
	refuse := func(name, code string) func(*world) {
		return func(w *world) {
			w.via(func(r *http.Request, send func(*http.Request) (*http.Response, error)) (*http.Response, error) {
				if operation(r) == name {
					return fault(r, 400, code), nil
				}
				return send(r)
			})
		}
	}
	for _, c := range []struct {
		name    string
		breaks  func(*world) // before guard starts
		options func(*Options)
		later   func(*world) // while it runs, with a removal due
		want    Code
	}{
		{name: "no table", options: func(o *Options) { o.Table = "another" }, want: NoTable},
		{name: "no TTL attribute", breaks: func(w *world) { w.disableTTL() }, options: func(o *Options) { o.Attribute = "" }, want: NoAttribute},
		{name: "may not describe", breaks: refuse("DescribeTable", "AccessDeniedException"), want: AccessDenied},
		{name: "expired credentials", breaks: refuse("DescribeTable", "ExpiredTokenException"), want: Credentials},
		{name: "unknown credentials", breaks: refuse("DescribeTable", "UnrecognizedClientException"), want: Credentials},
		{name: "may not delete", breaks: refuse("DeleteItem", "AccessDeniedException"), later: func(*world) {}, want: AccessDenied},
		{name: "credentials expire", breaks: refuse("DeleteItem", "ExpiredTokenException"), later: func(*world) {}, want: Credentials},
		{name: "no endpoint", breaks: func(w *world) {
			w.via(func(*http.Request, func(*http.Request) (*http.Response, error)) (*http.Response, error) {
				return nil, errors.New("connection refused")
			})
		}, want: Unavailable},
		{name: "the table is deleted", later: func(w *world) { w.deleteTable() }, want: NoTable},
		{name: "the table is made again", later: func(w *world) {
			w.deleteTable()
			w.createTable(worldTable)
		}, want: NewTable},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, overHTTP)
			w.put("a", w.in(1))
			if c.breaks != nil {
				c.breaks(w)
			}
			var calls atomic.Int64
			w.via(func(r *http.Request, send func(*http.Request) (*http.Response, error)) (*http.Response, error) {
				calls.Add(1)
				return send(r)
			})
			o := w.options(Auto)
			o.DB = dynamodb.New(w.db.Options(), func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} })
			if c.options != nil {
				c.options(&o)
			}
			g := must1(New(o))(t)
			g.checkEach = 20 * time.Millisecond
			ready := make(chan struct{})
			r := w.run(g, func(ctx context.Context) error {
				if err := g.prepare(ctx); err != nil {
					return err
				}
				return g.work(ctx, &idle{ready})
			})
			if c.later != nil {
				<-ready
				r.arm(r.entry(w, "a"))
				c.later(w)
				w.advance(time.Second)
			}
			p := r.problem()
			if p == nil || p.Code != c.want || p.Message == "" || p.Next == "" || strings.Contains(p.Error(), "%!") {
				t.Fatalf("%v", p)
			}
			if calls.Load() > 200 {
				t.Errorf("%d calls", calls.Load())
			}
		})
	}
}

func (w *world) deleteTable() {
	w.t.Helper()
	_, err := w.DynamoDB().DeleteTable(context.Background(), &dynamodb.DeleteTableInput{TableName: aws.String(worldTable)})
	must(w.t, err)
	await(w.t, "the table is gone", func() bool {
		_, err := w.DynamoDB().DescribeTable(context.Background(), &dynamodb.DescribeTableInput{TableName: aws.String(worldTable)})
		return err != nil
	})
}

// disableTTL switches the table's own TTL off: the one change that a world allows.
func (w *world) disableTTL() { w.changeTTL("ttl", false) }

// Without an attribute in Options, guard uses the attribute of the table's native TTL.
func TestAttributeOfTheTable(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("a", w.in(1))
	o := w.options(Auto)
	o.Attribute = ""
	r := w.startIdle(o)
	r.arm(r.entry(w, "a"))
	w.advance(time.Second)
	r.awaitCount(Removed, 1)
}

// An endpoint that is away for a while, while guard runs, is no problem.
func TestEndpointAwayForAWhile(t *testing.T) {
	t.Parallel()
	w := newWorld(t, overHTTP)
	var away atomic.Bool
	w.via(func(r *http.Request, send func(*http.Request) (*http.Response, error)) (*http.Response, error) {
		if away.Load() {
			return nil, errors.New("no route to host")
		}
		return send(r)
	})
	w.put("a", w.in(1))
	o := w.options(Auto)
	o.DB = dynamodb.New(w.db.Options(), func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} })
	r := w.startIdle(o)
	r.arm(r.entry(w, "a"))
	away.Store(true)
	w.advance(time.Second)
	r.awaitCount(Retried, 3)
	away.Store(false)
	r.awaitCount(Removed, 1)
}

// All faults of options are reported together, by the options' names.
func TestOptionsErrors(t *testing.T) {
	t.Parallel()
	_, err := New(Options{Strategy: Schedule, Batch: 101, Concurrency: -1, MaxWCU: -1, MaxSkew: time.Millisecond})
	for _, name := range []string{"DB:", "Table:", "Streams:", "Scheduler:", "Batch:", "Concurrency:", "MaxWCU:", "MaxSkew:"} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s is not complained of: %v", name, err)
		}
	}
}
