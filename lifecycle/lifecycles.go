package lifecycle

import (
	"cmp"
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

	"github.com/mayflydb/mayfly/internal/work/consume"
	"github.com/mayflydb/mayfly/internal/work/deliver"
	"github.com/mayflydb/mayfly/internal/work/lease"
	"github.com/mayflydb/mayfly/internal/work/resolve"
	"github.com/mayflydb/mayfly/target"
)

// Options configure Lifecycles. DB and Now must be set, and Streams for Run.
type Options struct {
	DB      *dynamodb.Client
	Streams *dynamodbstreams.Client
	// the database's clock: DB.Clock().Now for the embedded database, and time.Now elsewhere
	Now      func() time.Time
	Handlers map[string]Handler // Go functions by their names in definitions
	Targets  []target.Mapping   // other targets: webhooks, brokers, commands, …, by ARN or name
	// accept handlers without a target, and record their calls in the table mayfly.recorded.
	// Default: refuse them
	Unmapped bool
	// called for each change that this value makes; must return quickly. Default: none
	Observe func(Change)
	// DB.Registry of the embedded database: an advance of its clock then waits for due transitions;
	// zero elsewhere
	Registry struct {
		Register func(consumer, streamARN string) consume.Progress
		Changed  func() (changed <-chan struct{}, looked func())
	}
	// this is the only process that runs lifecycles at the endpoint. Default: several processes
	// share the work
	Alone bool
	// how soon others take over the share of a silent worker. Default: 10 s. Range: 100 ms to an
	// hour
	Lease time.Duration
	// the attribute with which guard marks items before it removes them, at an endpoint that guard
	// serves. Default: none
	Mark    string
	Region  string       // of ARNs. Default: us-east-1
	Account string       // twelve digits. Default: 000000000000
	Logger  *slog.Logger // Default: no log
}

// Handler is called for a transition. After an error or a crash it is called again with the same
// [Call.ID], unless the error is permanent: see target.Permanent.
type Handler func(ctx context.Context, c Call) error

// Call is the argument of a handler. Other targets receive it as JSON, or the transition's Input in
// its place.
type Call struct {
	ID        string `json:"id"` // the same at each attempt
	Lifecycle string `json:"lifecycle"`
	Entity    string `json:"entity"`
	From      string `json:"from"`
	To        string `json:"to"`
	// the instant at which the transition was due, or at which Move made it
	Due time.Time `json:"due"`
	// of the entity: a later change has a higher one
	Generation int64 `json:"generation"`
	// the entity's attributes at the transition; nil if they are too large
	Attributes map[string]any  `json:"attributes"`
	Input      json.RawMessage `json:"input,omitempty"` // the transition's input, filled in
}

// Change is a completed change of an entity.
type Change struct {
	Lifecycle string
	Entity    string
	Event
}

// Errors of the methods of Lifecycles, for errors.Is.
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

// Lifecycles stores definitions and entities at an endpoint, and runs them. Its methods are safe
// for concurrent use.
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

// New returns Lifecycles. Transitions are made only while Run runs; the other methods work without
// it.
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
	o.Region = cmp.Or(o.Region, regionDefault)
	o.Account = cmp.Or(o.Account, accountDefault)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	l := &Lifecycles{o: o}
	if o.Unmapped {
		l.recorder = (&resolve.Recorder{DB: o.DB, Now: o.Now}).Lane()
	}
	l.resolver = resolve.New(o.Targets, l.recorder, "add a Go function of that name, or map it in the file of targets")
	l.plans.byName = map[string]*plan{}
	l.runner = newRunner(l)
	return l, nil
}

// now returns the database's time, to the millisecond.
func (l *Lifecycles) now() time.Time { return l.o.Now().UTC().Truncate(time.Millisecond) }

// handler returns an error if no target has the handler's name.
func (l *Lifecycles) handler(handler string) error {
	_, err := l.lane(handler)
	return err
}

// lane returns the lane to a handler's target.
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

// leases returns the options of the leases that share work with other processes.
func (l *Lifecycles) leases() lease.Options {
	return lease.Options{Exclusive: l.o.Alone, Duration: l.o.Lease, Logger: l.o.Logger}
}

// arn returns the source of a lifecycle's calls.
func (l *Lifecycles) arn(lifecycle string) string {
	return "arn:aws:mayfly:" + l.o.Region + ":" + l.o.Account + ":lifecycle/" + lifecycle
}

// callID returns the ID of a delivery. It depends only on the entity and its generation.
func callID(lifecycle, entity, incarnation string, generation int64) string {
	h := sha256.New()
	for _, s := range []string{lifecycle, entity, incarnation, strconv.FormatInt(generation, 10)} {
		h.Write([]byte(s))
		h.Write([]byte{0})
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// newIncarnation returns the identity of a new entity. Incarnations order by their creation.
func newIncarnation(now time.Time) string {
	return fmt.Sprintf("%015d-%s", now.UnixMilli(), rand.Text()[:8])
}
