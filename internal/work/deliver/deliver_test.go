package deliver_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
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

// post is a courier under test that records the events of its parcels.
type post struct {
	*deliver.Courier
	*endpoint
	stop func()

	mu sync.Mutex
	// "<id> <attempt>" of each attempt, in the order of their beginnings
	made   []string
	bodies map[string]string        // by the same
	done   map[string]int           // by id: how often the parcel was done
	ended  map[string]deliver.Ended // by id
	ends   int
	events map[deliver.What]int
}

// answers is the behaviour of a test's target.
type answers func(ctx context.Context, d target.Delivery) error

// courier runs a courier until the end of the test. Its targets are by ARN, or a single one under
// "".
func (e *endpoint) courier(t testing.TB, o deliver.Options, targets map[string]answers, limits target.Limits) *post {
	t.Helper()
	p := &post{endpoint: e, bodies: map[string]string{}, done: map[string]int{}, ended: map[string]deliver.Ended{}, events: map[deliver.What]int{}}
	o.DB, o.Streams, o.Now, o.Logger = e.db, e.streams, e.Clock().Now, logger(t)
	o.Leases.Exclusive = true
	o.Resolver = deliver.ResolverFunc(func(arn string) (deliver.Lane, error) {
		f, ok := targets[arn]
		if !ok {
			f, ok = targets[""]
		}
		if !ok {
			return deliver.Lane{}, deliver.ErrUnmapped
		}
		return deliver.Lane{Name: "lane of " + arn, Limits: limits, Target: target.Func(func(ctx context.Context, d target.Delivery) error {
			p.mu.Lock()
			attempt := fmt.Sprint(d.ID, " ", d.Attempt)
			p.made = append(p.made, attempt)
			p.bodies[attempt] = string(d.Body)
			p.mu.Unlock()
			return f(ctx, d)
		})}, nil
	})
	o.Observe = func(e deliver.Event) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.events[e.What]++
	}
	p.Courier = deliver.NewCourier(o)
	p.OnEnd("test", func(_ context.Context, ended []deliver.Ended) error {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, e := range ended {
			p.ended[e.Delivery.ID] = e
			p.ends++
		}
		return nil
	})
	p.stop = run(t, p.Run)
	return p
}

// startCourier runs a courier until the test ends.
func startCourier(t testing.TB, e *endpoint, o deliver.Options, set func(*deliver.Courier)) *deliver.Courier {
	t.Helper()
	o.DB, o.Streams, o.Now = e.db, e.streams, e.Clock().Now
	o.Leases.Exclusive = true
	d := deliver.NewCourier(o)
	if set != nil {
		set(d)
	}
	run(t, d.Run)
	return d
}

// send hands over a parcel with an id.
func (p *post) send(t testing.TB, id string, change ...func(*deliver.Parcel)) {
	t.Helper()
	parcel := deliver.Parcel{
		Delivery: target.Delivery{ID: id, TargetARN: "arn:x", Source: "arn:source", Body: []byte("body of " + id), Time: p.Clock().Now()},
		Origin:   deliver.Origin{Kind: "test", Data: []byte("data of " + id)},
	}
	for _, c := range change {
		c(&parcel)
	}
	p.Deliver(t.Context(), parcel, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.done[id]++
	})
}

func (p *post) read(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
}

// isDone waits until a parcel is done, and reports it.
func (p *post) isDone(t testing.TB, ids ...string) {
	t.Helper()
	for _, id := range ids {
		await(t, "job "+id+" is done", func() (ok bool) { p.read(func() { ok = p.done[id] == 1 }); return ok })
	}
}

// end waits until a parcel has ended, and returns its end.
func (p *post) end(t testing.TB, id string) (e deliver.Ended) {
	t.Helper()
	await(t, "job "+id+" has ended", func() (ok bool) { p.read(func() { e, ok = p.ended[id] }); return ok })
	return e
}

// attempts returns the attempts so far.
func (p *post) attempts() (made []string) {
	p.read(func() { made = slices.Clone(p.made) })
	return made
}

// body returns the body of an attempt.
func (p *post) body(attempt string) (body string) {
	p.read(func() { body = p.bodies[attempt] })
	return body
}

// items returns the number of items of a table, or -1 if it does not exist.
func (e *endpoint) items(t testing.TB, table string) int {
	t.Helper()
	out, err := e.db.Scan(context.Background(), &dynamodb.ScanInput{TableName: &table, ConsistentRead: aws.Bool(true)})
	if err != nil {
		return -1
	}
	return len(out.Items)
}

// soon is a backoff for tests that run with real time.
var soon = deliver.Backoff{First: 5 * time.Millisecond, Most: 50 * time.Millisecond}

// failUntil fails the attempts before the n-th.
func failUntil(n int) answers {
	return func(_ context.Context, d target.Delivery) error {
		if d.Attempt < n {
			return &target.Error{Code: "NotYet", Message: "later"}
		}
		return nil
	}
}

// A parcel whose attempts fail is parked until the next one, and comes back with its attempt's
// number. Its origin learns the end.
func TestRetry(t *testing.T) {
	everywhere(t, mayfly.Options{}, func(t *testing.T, e *endpoint) {
		p := e.courier(t, deliver.Options{Backoff: soon}, map[string]answers{"": failUntil(3)}, target.Limits{})
		p.send(t, "a")
		p.isDone(t, "a")
		end := p.end(t, "a")
		if !end.Delivered || string(end.Origin.Data) != "data of a" || end.Delivery.Attempt != 3 || end.Delivery.Source != "arn:source" {
			t.Errorf("ended as %+v", end)
		}
		if got := fmt.Sprint(p.attempts()); got != "[a 1 a 2 a 3]" || p.body("a 3") != "body of a" {
			t.Errorf("attempts %s, body %q", got, p.body("a 3"))
		}
		await(t, "nothing is parked", func() bool { return e.items(t, deliver.RetriesTable) == 0 })
		if e.items(t, deliver.DeadLettersTable) != 0 {
			t.Error("there is a dead letter")
		}
	})
}

// gate holds back BatchWriteItem while it is closed.
type gate struct {
	dynamodb.HTTPClient
	closed chan struct{}
}

func (g gate) Do(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".BatchWriteItem") {
		<-g.closed
	}
	return g.HTTPClient.Do(r)
}

// A parcel is not done before its effects are durable.
func TestDoneWhenDurable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := open(t, "", mayfly.Options{})
		o := e.db.Options()
		g := gate{o.HTTPClient, make(chan struct{})}
		o.HTTPClient = g
		e = &endpoint{e.DB, dynamodb.New(o), e.streams}
		p := e.courier(t, deliver.Options{}, map[string]answers{
			"arn:fails":   func(context.Context, target.Delivery) error { return errors.New("no") },
			"arn:refuses": func(context.Context, target.Delivery) error { return target.Permanent("No", "no") },
			"arn:slow":    func(ctx context.Context, d target.Delivery) error { <-ctx.Done(); return ctx.Err() },
		}, target.Limits{})
		for _, arn := range []string{"fails", "refuses", "slow"} {
			p.send(t, arn, to("arn:"+arn))
		}
		time.Sleep(time.Minute)
		p.read(func() {
			if len(p.done) > 0 || p.ends > 0 {
				t.Errorf("done %v, %d ends", p.done, p.ends)
			}
		})
		close(g.closed)
		time.Sleep(time.Second)
		p.read(func() {
			if fmt.Sprint(p.done) != "map[fails:1 refuses:1 slow:1]" || p.ends != 1 {
				t.Errorf("then done %v, %d ends", p.done, p.ends)
			}
		})
	})
}

// A parked parcel that a user deletes does not come back.
func TestUserDeletes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := open(t, "", mayfly.Options{})
		p := e.courier(t, deliver.Options{Backoff: deliver.Backoff{First: time.Hour}, Jitter: func() float64 { return 0.5 }}, map[string]answers{"": failUntil(2)}, target.Limits{})
		p.send(t, "a")
		p.send(t, "b")
		time.Sleep(time.Second)
		_, err := e.db.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: aws.String(deliver.RetriesTable), Key: map[string]types.AttributeValue{
			"id": &types.AttributeValueMemberS{Value: "a"}, "part": &types.AttributeValueMemberS{Value: "job"},
		}})
		must(t, err)
		time.Sleep(time.Hour)
		if got := p.attempts(); !slices.Equal(got[2:], []string{"b 2"}) {
			t.Errorf("attempts %v", got)
		}
	})
}

// A courier that has nothing to park makes no tables.
func TestNoTables(t *testing.T) {
	e := open(t, "", mayfly.Options{})
	p := e.courier(t, deliver.Options{}, map[string]answers{"": failUntil(1)}, target.Limits{})
	p.send(t, "a")
	p.isDone(t, "a")
	p.stop()
	out, err := e.db.ListTables(t.Context(), nil)
	must(t, err)
	if len(out.TableNames) > 0 {
		t.Errorf("there are %v", out.TableNames)
	}
}

// The next attempt begins at the instant set by backoff and jitter, by the database's clock, and
// never before. A target that asks for more time gets it.
func TestBackoff(t *testing.T) {
	e := open(t, "", mayfly.Options{Frozen: true})
	asks := time.Duration(0)
	p := e.courier(t, deliver.Options{Backoff: deliver.Backoff{First: time.Second, Most: 10 * time.Second}, Jitter: func() float64 { return 0.5 }},
		map[string]answers{"": func(context.Context, target.Delivery) error {
			return &target.Error{Code: "Busy", Throttled: true, After: asks}
		}}, target.Limits{})
	p.send(t, "a")
	for attempt, want := range []time.Duration{500, 1000, 2000, 4000, 5000, 5000, 60000} {
		want *= time.Millisecond
		await(t, "the attempt has failed", func() bool { return len(p.attempts()) == attempt+1 })
		p.isDone(t, "a")
		await(t, "it is parked", func() bool { return e.items(t, deliver.RetriesTable) == 1 })
		if attempt == 5 {
			asks = time.Minute
		}
		_, err := e.Clock().Advance(t.Context(), want-time.Millisecond)
		must(t, err)
		time.Sleep(5 * time.Millisecond)
		if n := len(p.attempts()); n != attempt+1 {
			t.Fatalf("attempt %d was made more than 1 ms before %s have passed", n, want)
		}
		_, err = e.Clock().Advance(t.Context(), time.Millisecond)
		must(t, err)
	}
	await(t, "the last attempt", func() bool { return len(p.attempts()) == 8 })
	p.read(func() {
		if p.events[deliver.Throttled] < 7 {
			t.Errorf("events %v", p.events)
		}
	})
}

// A parcel ends as a dead letter when it has had its attempts, when it is too old for another, or
// at once when there is no point in one.
func TestDeadLetter(t *testing.T) {
	e := open(t, "", mayfly.Options{})
	p := e.courier(t, deliver.Options{Backoff: soon}, map[string]answers{
		"arn:fails": func(context.Context, target.Delivery) error { return errors.New("no luck") },
		"arn:refuses": func(context.Context, target.Delivery) error {
			return target.Permanent("AccessDeniedException", "not for you")
		},
		"arn:slow": func(context.Context, target.Delivery) error {
			return &target.Error{Code: "Busy", Message: "come back tomorrow", After: 25 * time.Hour}
		},
	}, target.Limits{})
	for _, test := range []struct {
		id, arn, code, exhausted string
		attempts                 int
	}{
		{"attempts", "arn:fails", "TargetError", "MaximumRetryAttempts", 3},
		{"refused", "arn:refuses", "AccessDeniedException", "", 1},
		{"age", "arn:slow", "Busy", "MaximumEventAgeInSeconds", 1},
		{"unmapped", "arn:nowhere", "ResourceNotFoundException", "", 1},
	} {
		p.send(t, test.id, func(j *deliver.Parcel) {
			j.Delivery.TargetARN, j.Policy.MaxAttempts, j.Group = test.arn, 3, "the group"
			j.Delivery.Time = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
		})
		end := p.end(t, test.id)
		if end.Delivered || end.Last.Code != test.code || end.Exhausted != test.exhausted || end.Delivery.Attempt != test.attempts {
			t.Errorf("%s ended as %+v", test.id, end)
		}
		p.isDone(t, test.id)
		letter, found, err := deliver.GetDeadLetter(t.Context(), e.db, test.id)
		must(t, err)
		if !found || letter.Code != test.code || letter.Attempts != test.attempts || string(letter.Body) != "body of "+test.id || letter.Target != test.arn ||
			letter.Source != "arn:source" || letter.Group != "the group" || time.Since(letter.When).Abs() > time.Minute {
			t.Errorf("%s: the letter is %+v", test.id, letter)
		}
		want := map[string]string{
			"ERROR_CODE": test.code, "ERROR_MESSAGE": letter.Message, "EXECUTION_ID": test.id, "RETRY_ATTEMPTS": fmt.Sprint(test.attempts - 1),
			"SCHEDULED_TIME": "2026-11-21T10:00:00Z", "SCHEDULE_ARN": "arn:source", "TARGET_ARN": test.arn,
		}
		if test.exhausted != "" {
			want["EXHAUSTED_RETRY_CONDITION"] = test.exhausted
		}
		if fmt.Sprint(letter.Attributes) != fmt.Sprint(want) {
			t.Errorf("%s: attributes %v, want %v", test.id, letter.Attributes, want)
		}
	}
	await(t, "nothing is parked", func() bool { return e.items(t, deliver.RetriesTable) == 0 })
	p.read(func() {
		if p.events[deliver.Dropped] != 4 || p.events[deliver.DeadLettered] != 4 || p.events[deliver.Attempted] != 5 || p.events[deliver.Failed] != 6 ||
			p.events[deliver.Parked] != 2 {
			t.Errorf("events %v", p.events)
		}
	})
}

// A dead letter goes to the target in the parcel, with the attributes; a body that is too large is
// cut and marked. If that target fails permanently too, the letter stays in the table.
func TestDeadLetterTarget(t *testing.T) {
	e := open(t, "", mayfly.Options{})
	letters := make(chan target.Delivery, 10)
	p := e.courier(t, deliver.Options{Backoff: soon}, map[string]answers{
		"arn:x": func(context.Context, target.Delivery) error { return target.Permanent("Gone", "it is gone") },
		"arn:queue": func(_ context.Context, d target.Delivery) error {
			if d.Attempt < 3 {
				return errors.New("not yet")
			}
			letters <- d
			return nil
		},
		"arn:broken": func(context.Context, target.Delivery) error { return target.Permanent("Broken", "no") },
	}, target.Limits{})
	p.send(t, "small", func(j *deliver.Parcel) { j.DeadLetter = "arn:queue" })
	d := <-letters
	if d.ID != "small.dead" || string(d.Body) != "body of small" || d.Attributes["ERROR_CODE"] != "Gone" || d.Attributes["IS_PAYLOAD_TRUNCATED"] != "" {
		t.Errorf("the letter is %+v", d)
	}
	p.isDone(t, "small")
	p.send(t, "large", func(j *deliver.Parcel) {
		j.DeadLetter = "arn:queue"
		j.Delivery.Body = []byte(strings.Repeat("ä", 200<<10))
	})
	d = <-letters
	size := len(d.Body)
	for name, value := range d.Attributes {
		size += len(name) + len(value) + len("String")
	}
	if d.Attributes["IS_PAYLOAD_TRUNCATED"] != "true" || size > 256<<10 || size < 256<<10-8 || strings.Trim(string(d.Body), "ä") != "" {
		t.Errorf("%d bytes with %v", size, d.Attributes)
	}
	p.isDone(t, "large")
	p.send(t, "lost", func(j *deliver.Parcel) { j.DeadLetter = "arn:broken" })
	p.isDone(t, "lost")
	for _, id := range []string{"small", "large", "lost"} {
		letter, found, err := deliver.GetDeadLetter(t.Context(), e.db, id)
		must(t, err)
		if !found || id == "large" && len(letter.Body) != 400<<10 {
			t.Errorf("%s: %v, %d bytes", id, found, len(letter.Body))
		}
	}
	await(t, "all has happened", func() (ok bool) {
		p.read(func() {
			ok = p.events[deliver.DeadLetterSent] == 2 && p.events[deliver.DeadLetterFailed] == 1 && p.events[deliver.DeadLetterTruncated] == 1 &&
				p.events[deliver.DeadLettered] == 3
		})
		return ok
	})
}

// If a target misbehaves in any way, its delivery fails with a reason, and the others continue.
func TestBadTargets(t *testing.T) {
	e := open(t, "", mayfly.Options{})
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	p := e.courier(t, deliver.Options{Backoff: soon}, map[string]answers{
		"arn:panics":  func(context.Context, target.Delivery) error { panic("oops") },
		"arn:hangs":   func(context.Context, target.Delivery) error { <-release; return nil },
		"arn:obeys":   func(ctx context.Context, _ target.Delivery) error { <-ctx.Done(); return ctx.Err() },
		"arn:healthy": failUntil(1),
	}, target.Limits{Timeout: 20 * time.Millisecond})
	for arn, code := range map[string]string{"panics": "TargetPanicked", "hangs": "TargetTimeout", "obeys": "TargetTimeout", "healthy": ""} {
		p.send(t, arn, func(j *deliver.Parcel) { j.Delivery.TargetARN, j.Policy.MaxAttempts = "arn:"+arn, 2 })
		if end := p.end(t, arn); end.Last.Code != code || end.Delivered != (code == "") {
			t.Errorf("%s: %+v", arn, end)
		}
	}
}

// short answers for one delivery too few.
type short struct{}

func (short) Deliver(_ context.Context, deliveries []target.Delivery) []error {
	return make([]error, len(deliveries)-1)
}

func TestWrongNumberOfResults(t *testing.T) {
	e := open(t, "", mayfly.Options{})
	d := startCourier(t, e, deliver.Options{
		Resolver: deliver.ResolverFunc(func(string) (deliver.Lane, error) { return deliver.Lane{Name: "short", Target: short{}}, nil }),
	}, nil)
	err := d.Call(t.Context(), parcels("a")...)[0]
	if e := target.AsError(err); e == nil || e.Code != "TargetAnswer" || e.Message != "0 results for 1 deliveries" {
		t.Errorf("got %v", err)
	}
}

// Calls that do not return although their time is over are not made without bound.
func TestHangsAreBounded(t *testing.T) {
	e := open(t, "", mayfly.Options{})
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	var calls atomic.Int64
	p := e.courier(t, deliver.Options{}, map[string]answers{"": func(context.Context, target.Delivery) error {
		calls.Add(1)
		<-release
		return nil
	}}, target.Limits{Timeout: 10 * time.Millisecond, Concurrency: 1})
	for range 10 {
		err := p.Call(t.Context(), parcels("a")...)[0]
		if err == nil {
			t.Fatal("it did not fail")
		}
		if target.AsError(err).Code == "TargetHangs" {
			if calls.Load() != 4 {
				t.Errorf("%d calls", calls.Load())
			}
			return
		}
	}
	t.Errorf("%d calls and no end", calls.Load())
}

// noise returns bytes that do not compress.
func noise(n int) []byte {
	b, x := make([]byte, n), uint32(1)
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = byte(x >> 24)
	}
	return b
}

// Parcels too large for any table become dead letters with the parts that fit. Parcels of any
// allowed size come back whole.
func TestSizes(t *testing.T) {
	e := open(t, "", mayfly.Options{})
	p := e.courier(t, deliver.Options{Backoff: soon}, map[string]answers{"": failUntil(3), "arn:refuses": func(context.Context, target.Delivery) error {
		return target.Permanent("No", "no")
	}}, target.Limits{})
	for name, body := range map[string][]byte{
		"empty": nil, "text": []byte("é"), "bytes": {0xff, 0}, "large": []byte(strings.Repeat("abc", 1<<20)), "noise": noise(1 << 20),
	} {
		p.send(t, name, func(j *deliver.Parcel) { j.Delivery.Body = body })
		if end := p.end(t, name); !end.Delivered {
			t.Errorf("%s: %+v", name, end)
		}
		if got := p.body(name + " 3"); got != string(body) {
			t.Errorf("%s: %d bytes have become %d", name, len(body), len(got))
		}
		p.send(t, name+"-dead", func(j *deliver.Parcel) { j.Delivery.Body, j.Delivery.TargetARN = body, "arn:refuses" })
		p.end(t, name+"-dead")
		letter, found, err := deliver.GetDeadLetter(t.Context(), e.db, name+"-dead")
		must(t, err)
		if !found || string(letter.Body) != string(body) {
			t.Errorf("%s: the dead letter has %d bytes of %d", name, len(letter.Body), len(body))
		}
	}
	// but a word that the one has ended whose body was in parts
	await(t, "no part is left", func() bool {
		return e.parked(t) == 0 && e.items(t, deliver.RetriesTable) == 1
	})
	for name, change := range map[string]func(*deliver.Parcel){
		"body":       func(j *deliver.Parcel) { j.Delivery.Body = make([]byte, 17<<20) },
		"parameters": func(j *deliver.Parcel) { j.Delivery.Parameters = make([]byte, 100<<10) },
		"origin":     func(j *deliver.Parcel) { j.Origin.Data = make([]byte, 3<<10) },
		"group":      func(j *deliver.Parcel) { j.Group = strings.Repeat("x", 100<<10) },
	} {
		p.send(t, name, change)
		if end := p.end(t, name); end.Last.Code != "PayloadTooLarge" {
			t.Errorf("%s: %+v", name, end)
		}
	}
	p.send(t, "", func(j *deliver.Parcel) {})
	await(t, "a job without an id has ended", func() (ok bool) { p.read(func() { ok = p.done[""] == 1 }); return ok })
}

// A hook may prepare the body of an attempt, each time from the original parcel.
func TestOnAttempt(t *testing.T) {
	e := open(t, "", mayfly.Options{})
	bodies := make(chan string, 10)
	d := startCourier(t, e, deliver.Options{
		Backoff: soon,
		Resolver: deliver.ResolverFunc(func(string) (deliver.Lane, error) {
			return deliver.Lane{Name: "x", Target: target.Func(func(ctx context.Context, d target.Delivery) error {
				bodies <- string(d.Body)
				return failUntil(3)(ctx, d)
			})}, nil
		}),
	}, func(d *deliver.Courier) {
		d.OnAttempt("test", func(j deliver.Parcel) target.Delivery {
			j.Delivery.Body = fmt.Append(nil, string(j.Delivery.Body), " ", j.Delivery.Attempt)
			return j.Delivery
		})
	})
	d.Deliver(t.Context(), deliver.Parcel{Delivery: target.Delivery{ID: "a", TargetARN: "arn:x", Body: []byte("attempt")}, Origin: deliver.Origin{Kind: "test"}}, func() {})
	for n := 1; n <= 3; n++ {
		if got := <-bodies; got != fmt.Sprint("attempt ", n) {
			t.Errorf("attempt %d got %q", n, got)
		}
	}
}

// A parcel is done only after its origin has recorded the end. The origin is called again until it
// succeeds.
func TestEndIsTold(t *testing.T) {
	e := open(t, "", mayfly.Options{})
	fails := atomic.Int64{}
	fails.Store(3)
	told := make(chan []deliver.Ended, 10)
	d := startCourier(t, e, deliver.Options{Resolver: deliver.ResolverFunc(func(string) (deliver.Lane, error) {
		return deliver.Lane{Name: "x", Target: target.Func(failUntil(1))}, nil
	})}, func(d *deliver.Courier) {
		d.OnEnd("test", func(_ context.Context, ended []deliver.Ended) error {
			told <- ended
			if fails.Add(-1) >= 0 {
				return errors.New("not now")
			}
			return nil
		})
	})
	done := make(chan struct{})
	d.Deliver(t.Context(), deliver.Parcel{Delivery: target.Delivery{ID: "a", TargetARN: "arn:x"}, Origin: deliver.Origin{Kind: "test"}}, func() { close(done) })
	for range 4 {
		select {
		case <-done:
			t.Error("done although its origin does not know")
		case ended := <-told:
			if len(ended) != 1 || ended[0].Delivery.ID != "a" {
				t.Errorf("told of %+v", ended)
			}
		}
	}
	<-done
}
