package guard

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/smithy-go/middleware"

	"github.com/mayflydb/mayfly/guard/internal/table"
	"github.com/mayflydb/mayfly/internal/work/retry"
)

// All parts of guard share one identity and its permissions, and some parts would retry for ever.
// So every call is judged in one place:
//
//	refused   the endpoint rejects the credentials, or forbids the action: guard ends
//	expired   the credentials are renewable, or renewing them fails: guard retries with growing
//	          pauses, logs it once, and ends after credentialsPatience. Nothing is lost
//	          meanwhile, since only finished work is recorded as done
//
// guard retries without limit if the endpoint does not respond or has a fault of its own: a restart
// would not help.

// credentialsPatience is how long guard continues without valid credentials. Their source (a
// machine's metadata, a token service, a person who logs in) is often unavailable for some minutes.
const credentialsPatience = 15 * time.Minute

// watchedCredentials are the credentials of one or more of guard's clients, and the outcome of
// calls with them.
type watchedCredentials struct {
	g         *Guard
	from      aws.CredentialsProvider
	renewable atomic.Bool // the last ones expire, and can be renewed then
	mu        struct {
		sync.Mutex
		without bool
		// ms by the local clock: while without is true, no call since then had valid credentials
		since int64
		turns int // how often without has changed
	}
}

// watchCredentials wraps a client's credentials and adds a middleware that judges its calls.
func (g *Guard) watchCredentials(from *aws.CredentialsProvider, stack *[]func(*middleware.Stack) error) {
	w := g.watchedOf(*from)
	if w.from != nil {
		*from = w
	}
	all := *stack
	*stack = append(slices.Clip(all), func(s *middleware.Stack) error {
		return s.Initialize.Add(middleware.InitializeMiddlewareFunc("GuardCredentials", w.see), middleware.Before)
	})
}

// watchedOf returns the watchedCredentials of some credentials. Most clients share the same.
func (g *Guard) watchedOf(from aws.CredentialsProvider) *watchedCredentials {
	kind := reflect.TypeOf(from)
	for _, w := range g.watched {
		if reflect.TypeOf(w.from) == kind && (kind == nil || kind.Comparable() && w.from == from) {
			return w
		}
	}
	w := &watchedCredentials{g: g, from: from}
	g.watched = append(g.watched, w)
	return w
}

// noCredentials is the error of a call without credentials. It does not unwrap: the response of a
// token service must not be mistaken for the endpoint's.
type noCredentials struct{ table.Lapse }

// Retrieve implements aws.CredentialsProvider.
func (w *watchedCredentials) Retrieve(ctx context.Context) (aws.Credentials, error) {
	c, err := w.from.Retrieve(ctx)
	if err != nil {
		return c, &noCredentials{table.Lapse{Cause: err}}
	}
	w.renewable.Store(c.CanExpire)
	return c, nil
}

// see judges the outcome of a call.
func (w *watchedCredentials) see(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
	w.mu.Lock()
	turns := w.mu.turns
	w.mu.Unlock()
	out, meta, err := next.HandleInitialize(ctx, in)
	if ctx.Err() == nil {
		err = w.judge(ctx, in.Parameters, err, turns)
	}
	return out, meta, err
}

// judge returns the error for the caller. A permanent one ends guard. turns is how often the
// credentials had come and gone before the call.
func (w *watchedCredentials) judge(ctx context.Context, in any, err error, turns int) error {
	var none *noCredentials
	switch missing := errors.As(err, &none); {
	case missing && !stays(none.Cause), !missing && table.HasExpired(err) && w.renewable.Load():
		return w.lapsed(err, turns)
	case missing:
		p := &Problem{Code: Credentials, Message: "the credentials have expired and cannot be renewed", Next: table.NextCredentials, Err: none}
		w.g.fail(p)
		return p
	}
	service := middleware.GetServiceID(ctx)
	p := table.NotAllowed(middleware.GetOperationName(ctx), w.g.subject(service, in), err)
	if err == nil || retry.Code(err) != "" && (p == nil || p.Code != Credentials) {
		w.work(turns)
	}
	if p == nil || isOptional(ctx) {
		return err
	}
	w.g.fail(p)
	return p
}

// stays reports whether renewing credentials fails until a person acts: their source does not know
// the identity, or refuses it.
func stays(err error) bool {
	switch retry.Code(err) {
	case "AccessDenied", "AccessDeniedException", "InvalidClientTokenId", "UnrecognizedClientException", "SignatureDoesNotMatch":
		return true
	}
	return false
}

// lapsed records a call without valid credentials, and returns the error for its caller. After
// credentialsPatience it ends guard. A call that began before they were valid again proves nothing.
func (w *watchedCredentials) lapsed(err error, turns int) error {
	now := w.g.local.Millis()
	var lasts time.Duration
	w.mu.Lock()
	first := !w.mu.without && w.mu.turns == turns
	if first {
		w.mu.without, w.mu.since, w.mu.turns = true, now, w.mu.turns+1
	}
	if w.mu.without {
		lasts = time.Duration(now-w.mu.since) * time.Millisecond
	}
	w.mu.Unlock()
	l := &table.Lapse{Cause: err}
	if first {
		w.g.o.Logger.Warn("the endpoint accepts none of the credentials; guard waits for new ones", "table", w.g.o.Table, "atMost", credentialsPatience, "error", l)
	}
	if lasts < credentialsPatience {
		return l
	}
	p := &Problem{Code: Credentials, Message: fmt.Sprintf("the endpoint accepted no credentials for %s", lasts.Round(time.Second)), Next: table.NextCredentials, Err: l}
	w.g.fail(p)
	return p
}

// work records a call with valid credentials. A call that began before they were missing proves
// nothing.
func (w *watchedCredentials) work(turns int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.mu.without && w.mu.turns == turns {
		w.mu.without, w.mu.turns = false, w.mu.turns+1
		w.g.o.Logger.Info("the endpoint accepts the credentials again", "table", w.g.o.Table)
	}
}

// subject returns the thing that a call is about, in words.
func (g *Guard) subject(service string, in any) string {
	v := reflect.Indirect(reflect.ValueOf(in))
	text := func(field string) string {
		if v.Kind() != reflect.Struct || !v.FieldByName(field).IsValid() {
			return ""
		}
		name, _ := reflect.TypeAssert[*string](v.FieldByName(field))
		return aws.ToString(name)
	}
	switch in := in.(type) {
	case *dynamodb.BatchWriteItemInput:
		return g.o.Tables.Deadlines
	case *dynamodb.TransactWriteItemsInput:
		if len(in.TransactItems) > 0 && in.TransactItems[0].Put != nil {
			return g.o.Tables.Deadlines
		}
	}
	switch table := text("TableName"); {
	case service == scheduler.ServiceID:
		return "the schedules of " + g.o.Table
	case service == dynamodbstreams.ServiceID:
		return "the stream of " + g.o.Table
	case table != "" && text("IndexName") != "":
		return "the index " + text("IndexName") + " of " + table
	case table != "":
		return table
	}
	return g.o.Table
}

// optional returns a context for calls that guard can do without. If the endpoint forbids such a
// call, the caller gets the error and guard goes on.
func optional(ctx context.Context) context.Context {
	return context.WithValue(ctx, optionalKey{}, true)
}

type optionalKey struct{}

func isOptional(ctx context.Context) bool { return ctx.Value(optionalKey{}) != nil }

// quietly drops log records whose only cause is missing credentials. Every part of guard would
// repeat them; one message at the beginning is enough.
type quietly struct{ slog.Handler }

func (q quietly) Handle(ctx context.Context, r slog.Record) error {
	told := false
	r.Attrs(func(a slog.Attr) bool {
		var l *table.Lapse
		err, is := a.Value.Any().(error)
		told = is && errors.As(err, &l)
		return !told
	})
	if told {
		return nil
	}
	return q.Handler.Handle(ctx, r)
}

func (q quietly) WithAttrs(all []slog.Attr) slog.Handler { return quietly{q.Handler.WithAttrs(all)} }
func (q quietly) WithGroup(name string) slog.Handler     { return quietly{q.Handler.WithGroup(name)} }
