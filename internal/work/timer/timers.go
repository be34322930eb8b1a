package timer

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/consume"
	"github.com/mayflydb/mayfly/internal/work/ensure"
	"github.com/mayflydb/mayfly/internal/work/lease"
	"github.com/mayflydb/mayfly/internal/work/retry"
)

// Options configures timers. Name, Table, DB, Streams, Now and Fire must be set.
type Options struct {
	Name     string      // of the consumer: the key of its leases and checkpoints
	Table    ensure.Spec // has a stream; its TTL attribute is the deadline
	DB       *dynamodb.Client
	Streams  *dynamodbstreams.Client
	Now      func() time.Time // the database's clock
	Leases   lease.Options
	Registry consume.Registry
	Mark     string       // attribute with which guard marks the items that it expires; "": none
	Logger   *slog.Logger // Default: nothing is logged

	// OnDemand leaves the table missing until Make creates it, here or in another process.
	OnDemand bool

	// WithoutImages also fires an expired item whose image the stream lacks, with the key for its
	// Item. Default: such an item is logged and skipped.
	WithoutImages bool

	// Wanted reports whether the table should exist. Default: it should.
	Wanted func(ctx context.Context) (bool, error)

	// Fire handles expired timers in the order of their shard. It calls Done of each, then or
	// later. After an error, the firings that are not done come again.
	Fire func(ctx context.Context, firings []Firing) error

	// Settle waits, when Run ends, until no more firings of a shard are done, or ctx is done.
	Settle func(ctx context.Context, shard string)

	// Search looks for timers that were due before an instant and have not fired, and arms them
	// again. It runs before the first firing of a new stream, if the table had another one before.
	// Default: lost firings stay lost.
	Search func(ctx context.Context, before time.Time) error

	// SearchTrimmed also runs Search after the endpoint has trimmed unread records, in the next
	// process if this one ends before. Then it runs beside Fire and may find timers that are about
	// to fire, so Fire must refuse second firings, by a fence.
	SearchTrimmed bool
}

// Firing is an expired timer.
type Firing struct {
	Item   attr.Item // the timer's item as it expired; see Options.WithoutImages
	record consume.Record
}

// Done marks the firing as complete: its effects are durable. Call it once, from any goroutine.
func (f Firing) Done() { f.record.Done() }

// Timers fires the timers of one table.
type Timers struct {
	o        Options
	made     Bell          // rings after Make and Restore
	ready    chan struct{} // closed by register
	register func()
}

// New returns timers. They do nothing until Run.
func New(o Options) *Timers {
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.Wanted == nil {
		o.Wanted = func(context.Context) (bool, error) { return true, nil }
	}
	t := &Timers{o: o, made: NewBell(), ready: make(chan struct{})}
	t.register = sync.OnceFunc(func() { close(t.ready) })
	return t
}

// Ready returns a channel that is closed when the table exists, and the embedded database knows
// that its stream is read. It is closed at the end of Run at the latest.
func (t *Timers) Ready() <-chan struct{} { return t.ready }

// Run creates the table and fires its timers until ctx is done, or the table is not wanted. It can
// be called once. A failing endpoint is called again.
func (t *Timers) Run(ctx context.Context) error {
	defer t.register()
	if wanted := t.prepare(ctx); !wanted {
		return nil
	}
	return t.consumer().Run(ctx)
}

// lookEvery is the pause between looks for a table that another process may create.
const lookEvery = 10 * time.Second

// prepare waits until the table can be used. It returns false if the table is not wanted, or ctx is
// done.
func (t *Timers) prepare(ctx context.Context) (wanted bool) {
	action := "create the table "
	if t.o.OnDemand {
		action = "look for the table "
	}
	for ctx.Err() == nil {
		exists := false
		t.persist(ctx, action+t.o.Table.Name, func() (err error) {
			if wanted, err = t.o.Wanted(ctx); err == nil && wanted {
				exists, err = t.create(ctx)
			}
			return err
		})
		switch {
		case ctx.Err() != nil || !wanted:
			return false
		case exists:
			return true
		}
		poll := lookEvery
		if t.o.Leases.Exclusive {
			poll = 0 // no other process creates it
		}
		t.made.Wait(ctx, poll, nil)
	}
	return false
}

// create creates the table if it is missing, unless that is done on demand. It enables its stream
// and TTL. exists reports whether the table can be read.
func (t *Timers) create(ctx context.Context) (exists bool, err error) {
	if t.o.OnDemand {
		_, err := t.o.DB.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &t.o.Table.Name})
		if ensure.Missing(err) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
	_, err = ensure.Table(ctx, t.o.DB, t.o.Table)
	if t.o.OnDemand && retry.Invalid(err) { // such as TTL, which Amazon enables once an hour only
		t.o.Logger.Error("timers fire late or not at all", "table", t.o.Table.Name, "error", err)
		return true, nil
	}
	return err == nil, err
}

// Make creates the table if it is missing. It returns when the embedded database knows that its
// stream is read: a timer that is written next fires before the clock passes it. For that, Run must
// run.
func (t *Timers) Make(ctx context.Context) error {
	_, err := ensure.Table(ctx, t.o.DB, t.o.Table)
	t.made.Ring() // even after an error, since the table may exist
	if err != nil || t.o.Registry.Register == nil {
		return err
	}
	select {
	case <-t.ready:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Restore creates what is missing of the table, if its name is table and it is wanted. It returns
// the ARN of its stream, or "".
func (t *Timers) Restore(ctx context.Context, table string) (streamARN string, err error) {
	if table != t.o.Table.Name {
		return "", nil
	}
	streamARN, _, err = t.restore(ctx)
	t.made.Ring()
	return streamARN, err
}

func (t *Timers) restore(ctx context.Context) (streamARN string, wanted bool, err error) {
	if wanted, err = t.o.Wanted(ctx); err != nil || !wanted {
		return "", false, err
	}
	streamARN, err = consume.Restore(ctx, t.o.DB, t.o.Logger, t.o.Table)
	return streamARN, err == nil, err
}

// consumer returns the reader of the table's stream.
func (t *Timers) consumer() *consume.Consumer {
	c := &consume.Consumer{
		Name: t.o.Name, Table: t.o.Table.Name, Start: consume.TrimHorizon,
		DB: t.o.DB, Streams: t.o.Streams, Now: t.o.Now, Leases: t.o.Leases, Registry: t.o.Registry.Notify(t.register), Logger: t.o.Logger,
		Settle: t.o.Settle, Handle: t.handle,
		Restore: func(ctx context.Context) (bool, error) {
			_, wanted, err := t.restore(ctx)
			return wanted, err
		},
	}
	if t.o.Search != nil {
		c.Renewed = func(ctx context.Context, streamARN string) error { return t.o.Search(ctx, t.began(streamARN)) }
	}
	if t.o.SearchTrimmed {
		c.Lost = func(ctx context.Context) error { return t.o.Search(ctx, t.o.Now()) }
	}
	return c
}

var errNoImage = errors.New("the stream has no old images")

// handle fires the expired timers in a page of the stream.
func (t *Timers) handle(ctx context.Context, _ string, records []consume.Record) error {
	var firings []Firing
	for _, r := range records {
		if !consume.Expired(&r.Record, t.o.Table.TTL, t.o.Mark) || r.Dynamodb == nil {
			r.Done()
			continue
		}
		image := r.Dynamodb.OldImage
		if len(image) == 0 && t.o.WithoutImages {
			image = r.Dynamodb.Keys
		}
		it, err := attributevalue.FromDynamoDBStreamsMap(image)
		if err == nil && len(it) == 0 {
			err = errNoImage
		}
		if err != nil { // another attempt would read the same
			t.o.Logger.Error("an expired item cannot be read and is skipped", "table", t.o.Table.Name, "sequence", r.Sequence(), "error", err)
			r.Done()
			continue
		}
		firings = append(firings, Firing{it, r})
	}
	if len(firings) == 0 {
		return nil
	}
	return t.o.Fire(ctx, firings)
}

// began returns the instant at which a stream began, which its ARN contains. Later expiries are in
// the stream. It returns the present instant for any other ARN.
func (t *Timers) began(streamARN string) time.Time {
	_, label, _ := strings.Cut(streamARN, "/stream/")
	if began, err := time.Parse("2006-01-02T15:04:05.999", label); err == nil {
		return began
	}
	return t.o.Now()
}

// persist calls f until it succeeds, or ctx is done.
func (t *Timers) persist(ctx context.Context, action string, f func() error) {
	_ = retry.Until(ctx, t.o.Logger, retry.Calls, action, f) // an error is that of ctx
}
