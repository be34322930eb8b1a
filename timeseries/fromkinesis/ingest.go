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

// Options select the records. Client, Stream, DB and Name are required.
type Options struct {
	Client *kinesis.Client
	Stream string           // its name
	DB     *dynamodb.Client // the series' endpoint, for leases and checkpoints
	// Name identifies the checkpoints: one name per series that reads the stream. Up to 500 bytes.
	Name string
	// Lease is the time after which others take over the shards of a silent process. Default: 10 s.
	// Range: 100 ms to an hour.
	Lease time.Duration
	// UntilCaughtUp ends Ingest when the stream has nothing left to read, apart from shards of
	// other processes. Default: Ingest continues until its context is done.
	UntilCaughtUp bool
	// Saved is called after each durable batch with a checkpoint. Calls never overlap. Default: no
	// calls.
	Saved func()
	// Lost receives a sentence about records that were, or may have been, deleted before they were
	// read. Default: the logger.
	Lost func(what string)
	// Logger receives messages for operators. Default: none.
	Logger *slog.Logger
}

const (
	nameMax    = 500 // bytes
	pagesMax   = 4   // concurrent pages of all shards
	pageMax    = 2000
	listEvery  = 10 * time.Second // between lists of the shards; an account has a rate limit
	idleSave   = 10 * time.Minute // between checkpoints of a shard without new records
	callsPause = 200 * time.Millisecond
	idlePause  = time.Second // between calls for a shard without new records
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

// Ingest passes a stream's records to a receiver. It returns nil when ctx is done, or, with
// UntilCaughtUp, when it has caught up. It returns an error if Kinesis does not describe the stream
// at the start, the receiver fails, a checkpoint cannot be saved within seconds, a service refuses
// a call for good, or the stream is gone. It retries other failures.
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
	// A stream created again has shards of the same names with other records.
	in.leases = lease.New(o.DB, fmt.Sprintf("%s/%s@%d", o.Name, o.Stream, made.UnixMilli()), lease.Options{Duration: o.Lease, Logger: o.Logger, Fatal: fatal})
	err = lease.HoldListed(ctx, in.leases, in.list, in.shard)
	switch {
	case ctx.Err() != nil:
		return nil
	case errors.As(err, &lasting):
		return lasting.error
	case err == nil && !o.UntilCaughtUp: // an active stream always has an open shard
		return fmt.Errorf("%w: all shards of %q have ended", ErrNoStream, o.Stream)
	}
	return err
}

type ingesting struct {
	o      Options
	r      *timeseries.Receiver
	now    func() time.Time
	leases *lease.Leases
	pages  chan struct{} // a semaphore for reading and writing a page

	// The following are for list only, which never runs concurrently.
	shards  map[string]parents // as they were listed last; nil: not yet
	listed  clock.Elapsed
	ended   int            // rows of finished shards in that list
	missing map[string]int // consecutive lists without a shard that has a row
	// an unfinished shard is missing: list again soon, since one list may skip it
	vanished bool
	beats    map[string]int64 // of other workers, when this one had nothing left

	mu struct {
		sync.Mutex
		caughtUp map[string]bool // by shard
	}
	telling sync.Mutex // held during calls of Saved and Lost
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

// describe returns the creation time of the stream.
func (in *ingesting) describe(ctx context.Context) (made time.Time, err error) {
	out, err := in.o.Client.DescribeStreamSummary(ctx, &kinesis.DescribeStreamSummaryInput{StreamName: &in.o.Stream})
	if err != nil {
		return made, in.explain(err)
	}
	return aws.ToTime(out.StreamDescriptionSummary.StreamCreationTimestamp), nil
}

// retention returns the retention of the stream.
func (in *ingesting) retention(ctx context.Context) (time.Duration, error) {
	out, err := in.o.Client.DescribeStreamSummary(ctx, &kinesis.DescribeStreamSummaryInput{StreamName: &in.o.Stream})
	if err != nil {
		return 0, err
	}
	return time.Duration(aws.ToInt32(out.StreamDescriptionSummary.RetentionPeriodHours)) * time.Hour, nil
}
