package lifecycle

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/mayflydb/mayfly/internal/work/deliver"
	"github.com/mayflydb/mayfly/internal/work/lease"
	"github.com/mayflydb/mayfly/internal/work/resolve"
	"github.com/mayflydb/mayfly/target"
)

// Options says what lifecycles work with. DB and Now must be set, and Streams for Run.
type Options struct {
	DB       *dynamodb.Client
	Streams  *dynamodbstreams.Client
	Now      func() time.Time   // the database's clock: DB.Clock().Now of the embedded database, and time.Now elsewhere
	Handlers map[string]Handler // Go functions, by the names that definitions have
	Targets  []target.Mapping   // whom else definitions name: webhooks, brokers, commands, …, by ARN or name
	Unmapped bool               // handlers that lead nowhere are allowed, and what is to go there is recorded in the table mayfly.recorded, instead of refused
	Observe  func(Change)       // is told of each change that this value has made; must be quick. Default: nobody is told
	Hooks    Hooks              // of the embedded database (DB.Hooks), whose clock then waits for what is due, when it is advanced; zero elsewhere
	Alone    bool               // no other process runs lifecycles at this endpoint. Default: several share the work
	Lease    time.Duration      // time after which a silent worker's share is taken over. Default: 10 s. Range: 100 ms to an hour
	Mark     string             // attribute by which guard marks what it removes, where that gives the endpoint its exact expiry. Default: none
	Region   string             // of ARNs. Default: us-east-1
	Account  string             // twelve digits. Default: 000000000000
	Logger   *slog.Logger       // Default: nothing is logged
}

// Hooks are what the embedded database gives to those who read its streams in its own process.
type Hooks = deliver.Hooks

// Handler is called for a transition. It may be called again with the same [Call.ID], after an error or a crash. An error is followed by another attempt, unless it is permanent: see
// target.Permanent.
type Handler func(ctx context.Context, c Call) error

// Call is what a handler gets. Targets other than Go functions get it as JSON, or its Input in its place where the transition has one.
type Call struct {
	ID         string          `json:"id"` // the same however often it comes
	Lifecycle  string          `json:"lifecycle"`
	Entity     string          `json:"entity"`
	From       string          `json:"from"`
	To         string          `json:"to"`
	Due        time.Time       `json:"due"`             // when the transition was due, or was made by Move
	Generation int64           `json:"generation"`      // of the entity: a later change has a higher one
	Attributes map[string]any  `json:"attributes"`      // the entity's, as they were; nil where they are too large
	Input      json.RawMessage `json:"input,omitempty"` // the transition's, filled in
}

// Change is a change of an entity that was made.
type Change struct {
	Lifecycle string
	Entity    string
	Event
}

// What the methods of Lifecycles run into, for errors.Is.
var (
	ErrNoLifecycle = errors.New("lifecycle not found")
	ErrNoEntity    = errors.New("entity not found")
	ErrExists      = errors.New("the entity exists already")
	ErrEnded       = errors.New("its lifecycle has ended")
	ErrPaused      = errors.New("it is paused")
	ErrNotPaused   = errors.New("it is not paused")
	ErrNothingNext = errors.New("no transition is pending")
	ErrNotAllowed  = errors.New("no transition leads to that state")
	ErrRefused     = errors.New("the condition of the transition does not hold")
	ErrBusy        = errors.New("others keep changing it")
)

// Lifecycles keeps definitions and entities at an endpoint, and runs them. Its methods may be called from any goroutine.
type Lifecycles struct {
	o        Options
	resolver *resolve.Resolver
	recorder *deliver.Lane
	runner   *runner
	plans    struct {
		sync.Mutex
		byName map[string]*plan
	}
}

const (
	regionDefault  = "us-east-1"
	accountDefault = "000000000000"
)

// New makes lifecycles. Nothing runs until Run; the other methods do without.
func New(o Options) (*Lifecycles, error) {
	if o.DB == nil || o.Now == nil {
		return nil, errors.New("lifecycle: DB and Now must be set")
	}
	for _, err := range resolve.Check(o.Targets) {
		return nil, fmt.Errorf("lifecycle: %w", err)
	}
	if o.Observe == nil {
		o.Observe = func(Change) {}
	}
	if o.Region == "" {
		o.Region = regionDefault
	}
	if o.Account == "" {
		o.Account = accountDefault
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	l := &Lifecycles{o: o}
	if o.Unmapped {
		l.recorder = (&resolve.Recorder{DB: o.DB, Now: o.Now}).Lane()
	}
	l.resolver = resolve.New(o.Targets, l.recorder, "add a Go function of that name, or map it in the file of targets")
	l.plans.byName = map[string]*plan{}
	l.runner = newRunner(l)
	return l, nil
}

// now is the database's instant, to the millisecond.
func (l *Lifecycles) now() time.Time { return l.o.Now().UTC().Truncate(time.Millisecond) }

// handler says why there is no handler of a name; nil: there is one.
func (l *Lifecycles) handler(handler string) error {
	_, err := l.lane(handler)
	return err
}

// lane finds what stands behind the name of a handler.
func (l *Lifecycles) lane(handler string) (deliver.Lane, error) {
	if f := l.o.Handlers[handler]; f != nil {
		return deliver.Lane{Name: "function " + handler, Target: target.Func(func(ctx context.Context, d target.Delivery) error {
			var c Call
			if err := json.Unmarshal(d.Body, &c); err != nil {
				return target.Permanent("InvalidCall", err.Error())
			}
			return f(ctx, c)
		})}, nil
	}
	return l.resolver.Resolve(handler)
}

// leases says how work is shared with other processes.
func (l *Lifecycles) leases() lease.Options {
	return lease.Options{Exclusive: l.o.Alone, Duration: l.o.Lease, Logger: l.o.Logger}
}

// arn is the source of a lifecycle's calls.
func (l *Lifecycles) arn(lifecycle string) string {
	return "arn:aws:mayfly:" + l.o.Region + ":" + l.o.Account + ":lifecycle/" + lifecycle
}

// callID is the id of a delivery: of this entity's generation, whatever happens.
func callID(lifecycle, entity, incarnation string, generation int64) string {
	h := sha256.New()
	for _, s := range []string{lifecycle, entity, incarnation, strconv.FormatInt(generation, 10)} {
		h.Write([]byte(s))
		h.Write([]byte{0})
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// newIncarnation names an entity from now on. They order by their beginnings.
func newIncarnation(now time.Time) string {
	return fmt.Sprintf("%015d-%s", now.UnixMilli(), rand.Text()[:8])
}
