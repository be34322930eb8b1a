package fromkinesis

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/work/lease"
	"github.com/mayflydb/mayfly/timeseries"
)

// Options say which records are read. Client, Stream, DB and Name are required.
type Options struct {
	Client *kinesis.Client
	Stream string           // its name
	DB     *dynamodb.Client // for leases and checkpoints: that of the series
	// Name is whose checkpoints they are: one for each series that the stream is read into. Up to 500 bytes.
	Name string
	// Lease is after how long a silent process's shards are taken over. Default: 10 s. Range: 100 ms to an hour.
	Lease time.Duration
	// UntilCaughtUp ends Ingest when nothing of the stream is left to read; shards that another process reads are its business. Default: it goes on until its context is done.
	UntilCaughtUp bool
	// Saved is told after each batch that is durable and behind a checkpoint. Calls of it do not overlap. Default: nobody is.
	Saved func()
	// Lost is told in a sentence of records that were deleted, or may have been, before they were read. Default: the logger is.
	Lost func(what string)
	// Logger is told what an operator has to know. Default: nobody is.
	Logger *slog.Logger
}

const (
	nameMax    = 500 // bytes
	pagesMax   = 4   // that are read and written at one time, of all shards
	pageMax    = 2000
	listEvery  = 10 * time.Second // the shards are listed; an account may list only so often
	idleSave   = 10 * time.Minute // after which it is noted that a shard had nothing new
	callsPause = 200 * time.Millisecond
	idlePause  = time.Second // between calls for a shard that has nothing new
	againFirst = 200 * time.Millisecond
	againMost  = 10 * time.Second
	saveLimit  = 5 * time.Second
)

func (o *Options) complete() error {
	switch {
	case o.Client == nil || o.Stream == "" || o.DB == nil || o.Name == "":
		return errors.New("the options Client, Stream, DB and Name must be set")
	case len(o.Name) > nameMax:
		return fmt.Errorf("the option Name has %d bytes; the limit is %d", len(o.Name), nameMax)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Saved == nil {
		o.Saved = func() {}
	}
	if o.Lost == nil {
		o.Lost = func(what string) { o.Logger.Error("records were lost", "what", what) }
	}
	return nil
}

// Ingest hands a stream's records to a receiver until ctx is done, or all are done where that is asked for, and returns nil then.
func Ingest(ctx context.Context, r *timeseries.Receiver, o Options) error {
	if err := o.complete(); err != nil {
		return err
	}
	in := &ingesting{o: o, r: r, now: clock.New().Now, pages: make(chan struct{}, pagesMax), listed: clock.Stopwatch(), missing: map[string]int{}, beats: map[string]int64{}}
	in.mu.caughtUp = map[string]bool{}
	made, err := in.describe(ctx)
	if ctx.Err() != nil {
		return nil
	}
	var lasting *lastingError
	if errors.As(err, &lasting) {
		return lasting.error
	}
	if err != nil {
		return fmt.Errorf("the stream %q: %w", o.Stream, err)
	}
	// A stream that is made again has shards of the same names, and other records in them.
	in.leases = lease.New(o.DB, fmt.Sprintf("%s/%s@%d", o.Name, o.Stream, made.UnixMilli()), lease.Options{Duration: o.Lease, Logger: o.Logger, Fatal: fatal})
	err = lease.HoldListed(ctx, in.leases, in.list, in.shard)
	switch {
	case ctx.Err() != nil:
		return nil
	case errors.As(err, &lasting):
		return lasting.error
	case err == nil && !o.UntilCaughtUp: // a stream that is there has a shard that is open
		return fmt.Errorf("%w: all shards of %q have ended", ErrNoStream, o.Stream)
	}
	return err
}

type ingesting struct {
	o      Options
	r      *timeseries.Receiver
	now    func() time.Time
	leases *lease.Leases
	pages  chan struct{} // has an element for each page that is being read or written

	// Of list only, which is not called twice at once.
	shards   map[string]parents // as they were listed last; nil: not yet
	listed   clock.Elapsed
	ended    int              // rows that said then that their shard was read to its end
	missing  map[string]int   // how often in a row a shard that has a row was not listed
	vanished bool             // a shard that was not read to its end is missing: it is looked for again soon, for it may have been passed over once
	beats    map[string]int64 // of other workers, as they were when this one had nothing left

	mu struct {
		sync.Mutex
		caughtUp map[string]bool // by shard
	}
	telling sync.Mutex // held while Saved or Lost is called
}

func (in *ingesting) saved() {
	in.telling.Lock()
	defer in.telling.Unlock()
	in.o.Saved()
}

func (in *ingesting) lost(format string, args ...any) {
	in.telling.Lock()
	defer in.telling.Unlock()
	in.o.Lost(fmt.Sprintf("of the stream %q, "+format, append([]any{in.o.Stream}, args...)...))
}

// describe asks when the stream was made.
func (in *ingesting) describe(ctx context.Context) (made time.Time, err error) {
	out, err := in.o.Client.DescribeStreamSummary(ctx, &kinesis.DescribeStreamSummaryInput{StreamName: &in.o.Stream})
	if err != nil {
		return made, in.explain(err)
	}
	return aws.ToTime(out.StreamDescriptionSummary.StreamCreationTimestamp), nil
}

// retention asks for how long the stream keeps its records.
func (in *ingesting) retention(ctx context.Context) (time.Duration, error) {
	out, err := in.o.Client.DescribeStreamSummary(ctx, &kinesis.DescribeStreamSummaryInput{StreamName: &in.o.Stream})
	if err != nil {
		return 0, err
	}
	return time.Duration(aws.ToInt32(out.StreamDescriptionSummary.RetentionPeriodHours)) * time.Hour, nil
}
