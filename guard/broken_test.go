package guard

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"

	"github.com/mayflydb/mayfly/guard/internal/stream"
	"github.com/mayflydb/mayfly/internal/work/lease"
)

// The reactions of guard to faults, from the start or later: the table in docs/guard.md, "When
// something is broken".

// site is a world with a guard of one of the strategies behind a line on which all can be broken.
type site struct {
	*world
	strategy Strategy
	options  Options
	line     *line
	keys     *keys
	events   *recorder
	log      *logged
	running  *guarding
	items    int          // written so far
	refused  atomic.Int64 // requests that the test has refused
	refusals atomic.Int64 // requests that were refused, except by a condition
}

// logged collects a guard's log.
type logged struct {
	t   testing.TB
	mu  sync.Mutex
	all []string // guarded by mu
}

func (l *logged) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, string(line))
	return writerTo{l.t}.Write(line)
}

// count returns the number of log lines that contain a text.
func (l *logged) count(text string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.all {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

// keys are credentials that are renewed at each call, or cannot be.
type keys struct {
	mu     sync.Mutex
	broken error // guarded by mu
	asked  int   // guarded by mu
	fixed  bool  // they never expire
}

func (k *keys) Retrieve(context.Context) (aws.Credentials, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.asked++
	return aws.Credentials{AccessKeyID: "k", SecretAccessKey: "s", CanExpire: !k.fixed, Expires: time.Now().Add(time.Hour)}, k.broken
}

func (k *keys) breaks(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.broken = err
}

// newSite makes a world whose table suits every strategy, unless options change it.
func newSite(t *testing.T, strategy Strategy, with ...func(*world)) *site {
	s := &site{world: newWorld(t, append([]func(*world){overHTTP, withWindows}, with...)...), strategy: strategy, keys: &keys{}, line: newLine(nil), events: &recorder{}, log: &logged{t: t}}
	t.Cleanup(func() { // readers of the stream that have gone are noticed with the next record
		for i := range 12 {
			s.DynamoDB().PutItem(context.Background(), &dynamodb.PutItemInput{TableName: aws.String(worldTable), Item: s.key(fmt.Sprint("end", i))})
		}
	})
	o := s.world.options(strategy)
	o.Alone, o.Lease, o.Segments, o.Period, o.Observe = false, time.Second, 2, time.Second, s.events.observe
	o.Logger = slog.New(slog.NewTextHandler(s.log, nil))
	if strategy == Schedule {
		over := o.DB.Options()
		o.Scheduler, o.Role = scheduler.New(scheduler.Options{Region: over.Region, BaseEndpoint: over.BaseEndpoint, HTTPClient: over.HTTPClient, Credentials: s.keys, Retryer: aws.NopRetryer{}}), testRole
	}
	o.DB = dynamodb.New(o.DB.Options(), func(c *dynamodb.Options) { c.Credentials, c.Retryer = s.keys, aws.NopRetryer{} })
	o.Streams = dynamodbstreams.New(o.Streams.Options(), func(c *dynamodbstreams.Options) { c.Credentials, c.Retryer = s.keys, aws.NopRetryer{} })
	s.options = s.line.lay(o)
	s.line.set(s.pass)
	return s
}

func (s *site) start() {
	s.t.Helper()
	g, err := New(s.options)
	must(s.t, err)
	g.checkEach = 50 * time.Millisecond
	s.running = s.run(g, nil)
}

// live makes items of each kind: new, renewed, without a deadline, due.
func (s *site) live() {
	s.items++
	near, far, gone, past := s.name("near"), s.name("far"), s.name("gone"), s.name("past")
	put := func(name string, seconds int64) { s.put(name, s.in(seconds), windowed(s.in(seconds), time.Minute)) }
	put(past, 0)
	put(near, 2)
	put(far, 30)
	put(gone, 3600)
	s.renew(far, s.in(3600))
	s.remove(gone)
	s.advance(time.Second)
}

func (s *site) name(of string) string { return fmt.Sprintf("%s%05d", of, s.items) }

// guarding waits until an item that is due has gone.
func (s *site) works() {
	s.t.Helper()
	s.items++
	name := s.name("works")
	s.put(name, s.in(1), windowed(s.in(1), time.Minute))
	s.running.await("an item goes", func() bool {
		if s.has(name) {
			s.advance(time.Second) // a scan or a schedule may need another round
			time.Sleep(20 * time.Millisecond)
		}
		return !s.has(name)
	})
}

// ends waits until guard has ended with one of these problems.
func (s *site) ends(codes ...Code) *Problem {
	s.t.Helper()
	return s.endsWhile(func() bool { return true }, codes...)
}

// endsWhile calls meanwhile repeatedly until guard ends, and returns its problem. If meanwhile
// returns false, it stops guard, and there is no problem.
func (s *site) endsWhile(meanwhile func() bool, codes ...Code) *Problem {
	s.t.Helper()
	began := time.Now()
	for ended := false; !ended; {
		select {
		case <-s.running.over:
			ended = true
		case <-time.After(20 * time.Millisecond):
			if time.Since(began) > patience {
				s.t.Fatalf("guard goes on, and should end with %s", codes)
			}
			if !meanwhile() {
				must(s.t, s.running.stop())
				return nil
			}
		}
	}
	var p *Problem
	if err := s.running.stop(); !errors.As(err, &p) || !slices.Contains(codes, p.Code) {
		s.t.Fatalf("guard has ended with %v, and not with %s", err, codes)
	}
	if p.Message == "" || p.Next == "" || strings.Contains(p.Error(), "%!") {
		s.t.Errorf("the problem does not say what to do: %q; %q", p.Message, p.Next)
	}
	s.bounded(began)
	return p
}

// asked returns the number of requests for credentials: one for each call, whether it was sent or
// not.
func (s *site) asked() int {
	s.keys.mu.Lock()
	defer s.keys.mu.Unlock()
	return s.keys.asked
}

// bounded checks that guard made no more useless requests than necessary.
func (s *site) bounded(began time.Time) {
	s.t.Helper()
	if n, most := s.refusals.Load(), 200+int64(60*time.Since(began).Seconds()); n > most {
		s.t.Errorf("%d refused requests in %v", n, time.Since(began))
	}
}

// pass sends a request, and counts a refusal.
func (s *site) pass(r *request) (*http.Response, error) {
	answer, err := r.pass()
	if err != nil || answer.StatusCode < 400 {
		return answer, err
	}
	body, err := io.ReadAll(answer.Body)
	must(s.t, err)
	answer.Body = io.NopCloser(bytes.NewReader(body))
	if !bytes.Contains(body, []byte("ConditionalCheckFailed")) {
		s.refusals.Add(1)
	}
	return answer, nil
}

// answers has all of some calls answered with an error of the API.
func (s *site) answers(code string, is func(*request) bool) {
	s.refusals.Store(0)
	s.line.set(func(r *request) (*http.Response, error) {
		if is(r) {
			s.refusals.Add(1)
			s.refused.Add(1)
			return r.refuse(map[bool]int{true: 500, false: 400}[code == "InternalServerError"], code)
		}
		return s.pass(r)
	})
}

func every(*request) bool { return true }

// in all strategies, side by side: most of the time is waiting.
func inAll(t *testing.T, test func(t *testing.T, strategy Strategy)) {
	for _, strategy := range allStrategies {
		t.Run(string(strategy), func(t *testing.T) {
			t.Parallel()
			test(t, strategy)
		})
	}
}

func noStream(w *world) {
	withTable(func(in *dynamodb.CreateTableInput) { in.StreamSpecification = nil })(w)
}

func keysOnly(w *world) {
	withTable(func(in *dynamodb.CreateTableInput) {
		in.StreamSpecification.StreamViewType = types.StreamViewTypeKeysOnly
	})(w)
}

func noIndex(w *world) {
	withTable(func(in *dynamodb.CreateTableInput) {
		in.GlobalSecondaryIndexes, in.AttributeDefinitions = nil, in.AttributeDefinitions[:1]
	})(w)
}

// From the start.
func TestBrokenAtStart(t *testing.T) {
	streamed := map[Strategy][]Code{Stream: {NoStream}, Schedule: {NoStream}}
	all := func(codes ...Code) map[Strategy][]Code {
		return map[Strategy][]Code{Stream: codes, Index: codes, Schedule: codes, Scan: codes}
	}
	refuse := func(code string) func(*site) { return func(s *site) { s.answers(code, every) } }
	for _, c := range []struct {
		name   string
		with   func(*world)
		breaks func(*site)
		want   map[Strategy][]Code // guarding continues for strategies without an entry
	}{
		{name: "no table", breaks: func(s *site) { s.options.Table = "another" }, want: all(NoTable)},
		{name: "no TTL attribute", breaks: func(s *site) { s.disableTTL(); s.options.Attribute = "" }, want: all(NoAttribute)},
		{name: "no stream", with: noStream, want: streamed},
		{name: "keys only", with: keysOnly, want: streamed},
		{name: "no index", with: noIndex, want: map[Strategy][]Code{Index: {NoIndex}}},
		{name: "not allowed", breaks: refuse("AccessDeniedException"), want: all(AccessDenied)},
		{name: "unknown credentials", breaks: refuse("UnrecognizedClientException"), want: all(Credentials)},
		{name: "expired credentials", breaks: refuse("ExpiredTokenException"), want: all(Credentials)},
		{name: "expired credentials that stay", breaks: func(s *site) { s.keys.fixed = true; s.answers("ExpiredTokenException", every) }, want: all(Credentials)},
		{name: "no credentials", breaks: func(s *site) { s.keys.breaks(errors.New("no role is attached to this machine")) }, want: all(Credentials)},
		{name: "its own tables refuse writes", breaks: func(s *site) {
			s.live() // the index strategy waits for an item
			s.answers("ValidationException", ownWrite)
		}, want: all(Misconfigured)},
		{name: "its own tables refuse empty strings", breaks: func(s *site) { s.answers("ValidationException", emptyString) }},
		{name: "trouble", breaks: refuse("InternalServerError"), want: all(Unavailable)},
		{name: "no endpoint", breaks: func(s *site) { s.line.kill() }, want: all(Unavailable)},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			inAll(t, func(t *testing.T, strategy Strategy) {
				with := c.with
				if with == nil {
					with = func(*world) {}
				}
				s := newSite(t, strategy, with)
				if c.breaks != nil {
					c.breaks(s)
				}
				s.start()
				if codes := c.want[strategy]; codes != nil {
					s.ends(codes...)
				} else if strategy != Index || c.name != "no index" {
					s.works()
				}
			})
		})
	}
}

// ownWrite reports whether a request writes into one of guard's own tables.
func ownWrite(r *request) bool {
	return strings.Contains(r.body, `"mayfly.`) && slices.Contains([]string{"PutItem", "BatchWriteItem", "TransactWriteItems", "UpdateItem"}, r.operation)
}

// emptyString reports whether a request writes an empty string, which DynamoDB refused until 2020.
func emptyString(r *request) bool { return strings.Contains(r.body, `{"S":""}`) }

// While guard runs.
func TestBrokenWhileRunning(t *testing.T) {
	streamed := map[Strategy][]Code{Stream: {NoStream}, Schedule: {NoStream}}
	all := func(codes ...Code) map[Strategy][]Code {
		return map[Strategy][]Code{Stream: codes, Index: codes, Schedule: codes, Scan: codes}
	}
	refuse := func(code string) func(*site) { return func(s *site) { s.answers(code, every) } }
	for _, c := range []struct {
		name   string
		found  bool // the TTL attribute is the table's
		fixed  bool // the credentials never expire
		breaks func(*site)
		want   map[Strategy][]Code // guarding continues for strategies without an entry
	}{
		{name: "the table is deleted", breaks: func(s *site) { s.deleteTable() }, want: all(NoTable)},
		{name: "the table is made again", breaks: func(s *site) {
			s.deleteTable()
			s.createTable(worldTable)
		}, want: all(NewTable, NoTable)}, // it may check in between
		{name: "the stream is switched off", breaks: func(s *site) { s.stream(false) }, want: streamed},
		{name: "the stream has only keys by now", breaks: func(s *site) {
			s.stream(false)
			s.streamOf(types.StreamViewTypeKeysOnly)
		}, want: streamed},
		{name: "TTL is switched off", found: true, breaks: func(s *site) { s.disableTTL() }, want: all(NoAttribute)},
		{name: "TTL has another attribute", found: true, breaks: func(s *site) { s.disableTTL(); s.enableTTL("other") }, want: all(NoAttribute)},
		{name: "TTL is switched off, and the attribute is in the options", breaks: func(s *site) { s.disableTTL() }},
		{name: "the index is deleted", breaks: func(s *site) { s.deleteIndex() }, want: map[Strategy][]Code{Index: {Misconfigured, NoIndex, NoTable}}},
		{name: "the leases are deleted", breaks: func(s *site) { s.deleteTableNamed(lease.TableName) }},
		{name: "the deadlines are deleted", breaks: func(s *site) {
			if s.strategy == Stream {
				s.deleteTableNamed(stream.TableName)
			}
		}, want: map[Strategy][]Code{Stream: {Misconfigured}}},
		{name: "its own tables refuse writes", breaks: func(s *site) { s.answers("ValidationException", ownWrite) }, want: all(Misconfigured)},
		{name: "its own tables refuse empty strings", breaks: func(s *site) { s.answers("ValidationException", emptyString) }},
		{name: "not allowed", breaks: refuse("AccessDeniedException"), want: all(AccessDenied)},
		{name: "unknown credentials", breaks: refuse("UnrecognizedClientException"), want: all(Credentials)},
		{name: "expired credentials that stay", fixed: true, breaks: refuse("ExpiredTokenException"), want: all(Credentials)},
		{name: "no role any more", breaks: func(s *site) { s.keys.breaks(refusal("AccessDenied")) }, want: all(Credentials)},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			inAll(t, func(t *testing.T, strategy Strategy) {
				s := newSite(t, strategy)
				s.keys.fixed = c.fixed
				if c.found {
					s.options.Attribute = ""
				}
				s.start()
				s.works()
				c.breaks(s)
				if codes := c.want[strategy]; codes != nil {
					s.ends(codes...)
				} else {
					s.works()
				}
			})
		})
	}
}

// guard waits for transient faults to pass: it loses nothing, asks rarely, and logs them once.
func TestBrokenForAWhile(t *testing.T) {
	for _, c := range []struct {
		name          string
		breaks, mends func(*site)
		ends          Code // after a quarter of an hour; "": never
	}{
		{"no credentials", func(s *site) { s.keys.breaks(errors.New("failed to refresh cached credentials")) }, func(s *site) { s.keys.breaks(nil) }, Credentials},
		{"expired credentials", func(s *site) { s.answers("ExpiredTokenException", every) }, func(s *site) { s.line.set(s.pass) }, Credentials},
		{"no answer", func(s *site) {
			s.line.set(func(*request) (*http.Response, error) {
				s.refusals.Add(1)
				return nil, errors.New("connection refused")
			})
		}, func(s *site) { s.line.set(s.pass) }, ""},
		{"trouble", func(s *site) { s.answers("InternalServerError", every) }, func(s *site) { s.line.set(s.pass) }, ""},
	} {
		for _, lasts := range []bool{false, true} {
			name := c.name
			if lasts {
				name += " for long"
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				inAll(t, func(t *testing.T, strategy Strategy) {
					s := newSite(t, strategy)
					s.start()
					s.works()
					before, began := s.asked(), time.Now()
					c.breaks(s)
					s.live() // during the fault
					s.advance(time.Minute)
					await(t, "guard has asked without success", func() bool { return s.asked() > before+3 })
					if lasts {
						s.advance(credentialsPatience)
						if c.ends != "" {
							s.ends(c.ends)
							return
						}
					}
					s.bounded(began)
					c.mends(s)
					s.works()
					s.advance(30 * time.Second)
					s.running.await("all that came meanwhile has gone", func() bool {
						s.advance(time.Second)
						names := s.names()
						return !strings.Contains(names, "near") && !strings.Contains(names, "past")
					})
					if c.ends != "" && (s.log.count("accepts none of the credentials") != 1 || s.log.count("accepts the credentials again") != 1 || s.log.count("refresh") > 1) {
						t.Error("that there are no credentials, and that there are again, is not logged once")
					}
					if !strings.Contains(s.names(), "far") {
						t.Error("a renewed item is gone")
					}
				})
			})
		}
	}
}

// Any missing permission ends guard with a message that names it, from the start and when it is
// withdrawn later. Permissions lists them all.
func TestBrokenPermissions(t *testing.T) {
	inAll(t, func(t *testing.T, strategy Strategy) {
		sound := newSite(t, strategy)
		sound.start()
		sound.works()
		atStart := sound.sent()
		for range 5 {
			sound.live()
			sound.works()
		}
		later := sound.sent()
		must(t, sound.running.stop())
		list := Permissions(UseRun, Options{Strategy: strategy})
		for _, call := range slices.Sorted(maps.Keys(later)) {
			operation, _, _ := strings.Cut(call, " ")
			action := operation
			if operation == "TransactWriteItems" { // IAM checks its parts
				action = "PutItem"
			}
			if !slices.ContainsFunc(list, func(p Permission) bool { return strings.HasSuffix(p.Action, ":"+action) }) {
				t.Errorf("no permission for %s is listed", operation)
			}
			is := func(r *request) bool { return r.operation+" "+r.table() == call }
			for _, running := range []bool{false, true} {
				if running && later[call] == atStart[call] || operation == "DescribeTimeToLive" {
					continue // it was asked for at the start only, or guard can do without
				}
				t.Run(fmt.Sprintf("%s while running: %v", call, running), func(t *testing.T) {
					t.Parallel()
					s := newSite(t, strategy)
					if !running {
						s.answers("AccessDeniedException", is)
					}
					s.start()
					if running {
						s.works()
						s.answers("AccessDeniedException", is)
					}
					rounds := 0
					p := s.endsWhile(func() bool {
						if rounds++; rounds > 50 && s.refused.Load() == 0 {
							return false
						}
						s.live()
						return true
					}, AccessDenied)
					if p == nil {
						// rare requests were repeated in the sound world, but not in this one
						return
					}
					if !strings.Contains(p.Message, operation) {
						t.Errorf("%q does not name %s", p.Message, operation)
					}
				})
			}
		}
	})
}

// sent returns the number of requests by operation.
func (s *site) sent() map[string]int {
	s.line.mu.Lock()
	defer s.line.mu.Unlock()
	return maps.Clone(s.line.sent)
}

func (w *world) streamOf(view types.StreamViewType) {
	w.t.Helper()
	_, err := w.DynamoDB().UpdateTable(w.t.Context(), &dynamodb.UpdateTableInput{TableName: aws.String(worldTable),
		StreamSpecification: &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: view}})
	must(w.t, err)
}

// enableTTL enables a TTL that is off. In aws expiry that takes an hour from the last change, and in
// strict expiry none.
func (w *world) enableTTL(attribute string) {
	w.t.Helper()
	arn := aws.String("arn:aws:dynamodb:us-east-1:000000000000:table/" + worldTable)
	_, err := w.DynamoDB().TagResource(context.Background(), &dynamodb.TagResourceInput{ResourceArn: arn,
		Tags: []types.Tag{{Key: aws.String("mayfly:expiry"), Value: aws.String("strict")}}})
	must(w.t, err)
	w.changeTTL(attribute, true)
	_, err = w.DynamoDB().UntagResource(context.Background(), &dynamodb.UntagResourceInput{ResourceArn: arn, TagKeys: []string{"mayfly:expiry"}})
	must(w.t, err)
}

func (w *world) changeTTL(attribute string, on bool) {
	w.t.Helper()
	_, err := w.DynamoDB().UpdateTimeToLive(context.Background(), &dynamodb.UpdateTimeToLiveInput{
		TableName: aws.String(worldTable), TimeToLiveSpecification: &types.TimeToLiveSpecification{Enabled: &on, AttributeName: &attribute},
	})
	must(w.t, err)
}

func (w *world) deleteIndex() {
	w.t.Helper()
	_, err := w.DynamoDB().UpdateTable(w.t.Context(), &dynamodb.UpdateTableInput{TableName: aws.String(worldTable),
		GlobalSecondaryIndexUpdates: []types.GlobalSecondaryIndexUpdate{{Delete: &types.DeleteGlobalSecondaryIndexAction{IndexName: aws.String(windowIndex)}}}})
	must(w.t, err)
}

func (w *world) deleteTableNamed(name string) {
	w.t.Helper()
	_, err := w.DynamoDB().DeleteTable(context.Background(), &dynamodb.DeleteTableInput{TableName: &name})
	must(w.t, err)
}
