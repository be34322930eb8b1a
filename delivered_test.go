package mayfly

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	str "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/mayflydb/mayfly/internal/invariant"
	"github.com/mayflydb/mayfly/internal/store/kv"
	"github.com/mayflydb/mayfly/internal/work/consume"
	"github.com/mayflydb/mayfly/internal/work/deliver"
	"github.com/mayflydb/mayfly/internal/work/lease"
	"github.com/mayflydb/mayfly/target"
)

// post brings the records of the table "events" to a target that outlives the database, like a
// target outside.
type post struct {
	mu      sync.Mutex
	random  *rand.Rand
	arrived map[string]int    // accepted deliveries, by id
	refused map[string]bool   // permanently refused ones
	bodies  map[string]string // by id
	ended   map[string]bool   // by id: the origin received the end
	wrong   []string

	overHTTP bool // the database is used over HTTP
	// except in the last round, some deliveries end with their round, and later ones overtake them
	stuck bool
	last  bool // it is the last round
}

func (p *post) broke(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wrong = append(p.wrong, fmt.Sprintf(format, args...))
}

func newPost(seed uint64) *post {
	return &post{random: rand.New(rand.NewPCG(seed, 0)), arrived: map[string]int{}, refused: map[string]bool{}, bodies: map[string]string{}, ended: map[string]bool{}}
}

// below returns a random number.
func (p *post) below(n int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.random.IntN(n)
}

// Deliver accepts half of the deliveries, refuses the marked ones, and fails the others.
func (p *post) Deliver(ctx context.Context, deliveries []target.Delivery) []error {
	p.mu.Lock()
	stuck := p.stuck && !p.last && p.random.IntN(10) == 0
	p.mu.Unlock()
	if stuck {
		<-ctx.Done()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	results := make([]error, len(deliveries))
	for i, d := range deliveries {
		body := string(d.Body)
		if before, known := p.bodies[d.ID]; known && before != body || d.ID != "id-of-"+body || d.Attempt < 1 {
			p.wrong = append(p.wrong, fmt.Sprintf("%s attempt %d: body %q after %q", d.ID, d.Attempt, body, before))
		}
		p.bodies[d.ID] = body
		switch {
		case d.TargetARN == "arn:refuses":
			p.refused[d.ID] = true
			results[i] = target.Permanent("No", "never")
		case p.random.IntN(2) == 0:
			results[i] = errors.New("not this time")
		default:
			p.arrived[d.ID]++
		}
	}
	return results
}

// run runs the consumer and the courier of a database until ctx is done; they fail with the
// database.
func (p *post) run(ctx context.Context, db *DB, api *dynamodb.Client, records *dynamodbstreams.Client) {
	d := deliver.NewCourier(deliver.Options{
		DB: api, Streams: records, Now: db.Clock().Now, Leases: lease.Options{Exclusive: true}, Registry: consume.Registry(db.Registry()),
		Backoff: deliver.Backoff{First: 20 * time.Millisecond, Most: 100 * time.Millisecond}, Grace: time.Millisecond,
		Resolver: deliver.ResolverFunc(func(string) (deliver.Lane, error) {
			return deliver.Lane{Name: "outside", Target: p, Limits: target.Limits{Batch: 5, Concurrency: 3}}, nil
		}),
	})
	d.OnEnd("events", func(_ context.Context, ended []deliver.Ended) error {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, e := range ended {
			if e.Delivered != (p.arrived[e.Delivery.ID] > 0) || string(e.Origin.Data) != e.Delivery.ID {
				p.wrong = append(p.wrong, fmt.Sprintf("%s is said to have ended as %+v", e.Delivery.ID, e))
			}
			p.ended[e.Delivery.ID] = true
		}
		return nil
	})
	c := &consume.Consumer{
		Name: "post", Table: "events", DB: api, Streams: records, Now: db.Clock().Now, Leases: lease.Options{Exclusive: true}, Registry: consume.Registry(db.Registry()),
		Handle: func(ctx context.Context, _ string, records []consume.Record) error {
			for _, r := range records {
				pk := r.Dynamodb.Keys["pk"].(*str.AttributeValueMemberS).Value
				arn := "arn:takes"
				if pk[len(pk)-1] == '7' {
					arn = "arn:refuses"
				}
				d.Deliver(ctx, deliver.Parcel{
					Delivery: target.Delivery{ID: "id-of-" + pk, TargetARN: arn, Body: []byte(pk)}, Origin: deliver.Origin{Kind: "events", Data: []byte("id-of-" + pk)},
				}, r.Done)
			}
			return nil
		},
	}
	var both sync.WaitGroup
	both.Go(func() { _ = d.Run(ctx) })
	both.Go(func() { _ = c.Run(ctx) })
	both.Wait()
}

// TestDeliveredAtLeastOnce: every record of an acknowledged write reaches its target or the dead
// letters, with the same id and body every time, and its origin receives the end, wherever the
// power is cut.
func TestDeliveredAtLeastOnce(t *testing.T) {
	cuts, repeated := 0, 0
	holdsOver(t, func(t *testing.T, overHTTP bool) []string {
		p := newPost(4)
		p.overHTTP = overHTTP
		rounds, patience := 9, 30*time.Second
		if testing.Short() {
			rounds = 4
		}
		if p.stuck = strings.HasSuffix(t.Name(), invariant.JumpMark.String()); p.stuck {
			rounds, patience = 3, 3*time.Second
		}
		c, r := p.atLeastOnce(t, rounds, patience)
		if !p.stuck {
			cuts, repeated = cuts+c, repeated+r
		}
		return p.wrong
	}, invariant.JumpMark)
	if cuts < 4 || repeated == 0 {
		t.Errorf("the test is too mild: %d cuts in the middle of work, %d deliveries repeated", cuts, repeated)
	}
}

// clients returns clients of a database over the law's transport.
func (p *post) clients(t testing.TB, db *DB) (*dynamodb.Client, *dynamodbstreams.Client) {
	if p.overHTTP {
		return httpClients(serve(t, db))
	}
	return db.DynamoDB(), db.Streams()
}

// atLeastOnce writes, delivers and cuts the power, round after round, and then lets all deliveries
// end. It returns the numbers of power cuts during work, and of repeated deliveries.
func (p *post) atLeastOnce(t *testing.T, rounds int, patience time.Duration) (cuts, repeated int) {
	disk := kv.NewCrashFS()
	acknowledged := map[string]bool{}
	written := 0
	for round := range rounds {
		db, err := Open("data", Options{fs: disk, ClockControl: ClockControlOn, noWork: true})
		if err != nil {
			t.Fatal(err)
		}
		if round == 0 {
			makeTable(t, db.DynamoDB(), "events")
		} else {
			disk.CutAfter(disk.Ops() + 10 + int64(p.below(500)))
		}
		api, records := p.clients(t, db)
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { p.run(ctx, db, api, records) })
		for limit := time.Now().Add(time.Minute); db.Err() == nil; time.Sleep(2 * time.Millisecond) { // until the cut
			if time.Now().After(limit) {
				t.Fatal("the work of a minute does not reach the cut")
			}
			var writes []ddb.WriteRequest
			var keys []string
			for range 1 + p.below(10) {
				pk := fmt.Sprint("k", written)
				written++
				keys = append(keys, pk)
				writes = append(writes, ddb.WriteRequest{PutRequest: &ddb.PutRequest{Item: attrs{"pk": str1(pk)}}})
			}
			out, err := api.BatchWriteItem(t.Context(), &dynamodb.BatchWriteItemInput{RequestItems: map[string][]ddb.WriteRequest{"events": writes}})
			if err != nil {
				continue
			}
			if len(out.UnprocessedItems) > 0 {
				t.Fatal("a part of a batch was not written")
			}
			for _, pk := range keys {
				acknowledged[pk] = true
			}
			if round == 0 {
				break
			}
		}
		if disk.WasCut() {
			cuts++
		}
		disk.CutNow()
		cancel()
		_ = db.Close()
		running.Wait()
		disk = disk.AfterCrash()
	}
	p.mu.Lock()
	p.last = true
	p.mu.Unlock()
	db := open(t, "data", Options{fs: disk, ClockControl: ClockControlOn, noWork: true})
	api, records := p.clients(t, db)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { p.run(ctx, db, api, records) })
	defer running.Wait()
	defer cancel()
	left := func() (keys []string) {
		p.mu.Lock()
		defer p.mu.Unlock()
		for pk := range acknowledged {
			if !p.ended["id-of-"+pk] {
				keys = append(keys, pk)
			}
		}
		return keys
	}
	for limit := time.Now().Add(patience); len(left()) > 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(limit) {
			p.broke("after %d rounds %d of %d have not ended, such as %s", rounds, len(left()), len(acknowledged), left()[0])
			return cuts, repeated
		}
	}
	for pk := range acknowledged {
		id := "id-of-" + pk
		_, dead, err := deliver.GetDeadLetter(t.Context(), api, id)
		if err != nil {
			t.Fatal(err)
		}
		p.mu.Lock()
		arrived, refused := p.arrived[id], p.refused[id]
		p.mu.Unlock()
		if dead != refused || dead == (arrived > 0) {
			p.broke("%s: arrived %d times, refused %v, dead letter %v", id, arrived, refused, dead)
		}
		if arrived > 1 {
			repeated++
		}
	}
	t.Logf("%d writes acknowledged of %d, %d cuts, %d repeated", len(acknowledged), written, cuts, repeated)
	return cuts, repeated
}

// An advance of the clock waits for every attempt: through a day of retries, each happens while the
// clock shows its instant. The dead letter expires two weeks later.
func TestAdvanceThroughRetries(t *testing.T) {
	db := open(t, "", Options{Frozen: true})
	start := db.Clock().Now()
	type attempt struct {
		id string
		n  int
		at time.Duration
	}
	var mu sync.Mutex
	var made []attempt
	ended := map[string]deliver.Ended{}
	d := deliver.NewCourier(deliver.Options{
		DB: db.DynamoDB(), Streams: db.Streams(), Now: db.Clock().Now, Leases: lease.Options{Exclusive: true}, Registry: consume.Registry(db.Registry()),
		Jitter: func() float64 { return 0.5 },
		Resolver: deliver.ResolverFunc(func(string) (deliver.Lane, error) {
			return deliver.Lane{Name: "x", Target: target.Func(func(_ context.Context, d target.Delivery) error {
				mu.Lock()
				defer mu.Unlock()
				made = append(made, attempt{d.ID, d.Attempt, db.Clock().Now().Sub(start)})
				return errors.New("no")
			})}, nil
		}),
	})
	d.OnEnd("test", func(_ context.Context, e []deliver.Ended) error {
		mu.Lock()
		defer mu.Unlock()
		for _, e := range e {
			ended[e.Delivery.ID] = e
		}
		return nil
	})
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- d.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-ran; err != nil {
			t.Error(err)
		}
	}()
	const parcels = 20
	var parked sync.WaitGroup
	for i := range parcels {
		parked.Add(1)
		d.Deliver(t.Context(), deliver.Parcel{
			Delivery: target.Delivery{ID: fmt.Sprint("job", i), TargetARN: "arn:x", Time: start}, Origin: deliver.Origin{Kind: "test"},
		}, parked.Done)
	}
	parked.Wait()
	moved, err := db.Clock().Advance(t.Context(), 24*time.Hour)
	if err != nil || moved.Unfinished {
		t.Fatalf("%+v, %v", moved, err)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(ended) != parcels {
		t.Errorf("%d of %d jobs have ended", len(ended), parcels)
	}
	for _, e := range ended {
		if e.Delivered || e.Exhausted != deliver.ExhaustedAttempts || e.Delivery.Attempt != 186 {
			t.Errorf("ended as %+v", e)
		}
	}
	if len(made) != 186*parcels {
		t.Errorf("%d attempts", len(made))
	}
	due := map[int]time.Duration{1: 0}
	for n := 1; n < 200; n++ {
		due[n+1] = due[n] + min(time.Second<<min(n-1, 20), 15*time.Minute)/2
	}
	for _, a := range made {
		if a.at != due[a.n] {
			t.Fatalf("attempt %d of %s was made after %s, and was due after %s", a.n, a.id, a.at, due[a.n])
		}
	}
	letters := func() int {
		page, next, err := deliver.ListDeadLetters(t.Context(), db.DynamoDB(), deliver.DeadLetterFilter{}, 1000, "")
		if err != nil || next != "" {
			t.Fatal(next, err)
		}
		return len(page)
	}
	if n := letters(); n != parcels {
		t.Errorf("%d dead letters", n)
	}
	if _, err := db.Clock().Advance(t.Context(), deliver.Retention); err != nil {
		t.Fatal(err)
	}
	if n := letters(); n != 0 {
		t.Errorf("%d dead letters after the retention", n)
	}
}
