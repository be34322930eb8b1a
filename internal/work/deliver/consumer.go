package deliver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/work/ensure"
	"github.com/mayflydb/mayfly/internal/work/lease"
	"github.com/mayflydb/mayfly/internal/work/retry"
)

// Start says where a consumer begins that has no checkpoint.
type Start int

const (
	TrimHorizon Start = iota // at the oldest record that the stream still has
	Latest                   // behind the records that there are when it first runs; noted at once, so that a restart misses nothing
)

// Consumer reads the records of one stream and hands them over, shard by shard. Its fields are set before Run.
type Consumer struct {
	Name      string                  // key of its leases and checkpoints, such as "schedules.default", "retries" or "trigger.<uuid>": up to 1 KB
	Table     string                  // whose stream is read, and the next one when the stream is switched off and on; or
	StreamARN string                  // the stream that is read
	Start     Start                   // where there is no checkpoint
	DB        *dynamodb.Client        // for leases and checkpoints
	Streams   *dynamodbstreams.Client // for the records
	Now       func() time.Time        // the database's clock
	Leases    lease.Options           // how shards are shared with other workers
	Registry  Registry                // the embedded database's
	Window    int                     // records read ahead of the first that is not done, per shard. Default: 10,000. Range: 1 to 1,000,000
	Logger    *slog.Logger            // Default: nothing is logged

	// Handle gets the records of a shard in their order, a page at a time; calls for different shards may overlap. It calls Done of each record once, then or
	// later. To block is how it holds reading up. After an error the shard is read again from its checkpoint, after a pause.
	Handle func(ctx context.Context, shard string, records []Record) error

	// Settle waits, when Run ends, until nothing more will come of the records of a shard that were handed over, or ctx is done: the last checkpoint is saved behind it, so
	// that what still ends is not repeated. It has a bound of its own. Default: 250 ms are waited.
	Settle func(ctx context.Context, shard string)

	// Restore is asked when the table has no stream to read any more, because somebody has switched it off or has deleted the table, and all records are done. It makes what
	// is missing again, with a warning, and says whether there is to be a stream; after an error it is asked again. Default: there is to be none, and Run ends.
	Restore func(ctx context.Context) (again bool, err error)

	// Renewed is told of the ARN of a table's stream before the first record of it is read, where this consumer has read another one before, in whatever process: what happened
	// between the two is in neither. After an error it is told again.
	Renewed func(ctx context.Context, streamARN string) error

	// Lost is told when records were trimmed before this consumer could read them, or may have been: a place in a shard is no longer there, or all of a shard that was not read to
	// its end. With "" for the shard it is told that a consumer which starts at Latest has begun there anew while it ran, as somebody has deleted the note of where it began: what
	// was written just before may be missing. Default: nobody is told.
	Lost func(shard string)

	mu struct {
		sync.Mutex
		progress Progress // while a stream is read
	}
}

const (
	windowDefault = 10_000
	windowMax     = 1_000_000
	windowBytes   = 64 << 20 // of the records read ahead, as their SizeBytes say: no more are read then
)

// Run reads until ctx is done or the stream is gone for good and all its records are done, and returns nil then. An endpoint that fails is asked again. Before it
// returns, it saves its last checkpoints and releases its leases.
func (c *Consumer) Run(ctx context.Context) error {
	if err := c.check(); err != nil {
		return fmt.Errorf("consumer %q: %w", c.Name, err)
	}
	for last, pauses := "", afterFailure.Start(); ctx.Err() == nil; {
		arn, err := c.stream(ctx)
		if err != nil {
			return err
		}
		if arn == "" || arn == last {
			if !c.restored(ctx) {
				return nil
			}
			pauses.Wait(ctx)
			continue
		}
		if !c.renewed(ctx, arn) {
			return nil
		}
		ran := clock.Stopwatch()
		newWorker(c, arn).run(ctx)
		if ran() > afterFailure.Most {
			pauses.Reset()
		}
		if c.StreamARN != "" {
			return nil
		}
		last = arn
	}
	return nil
}

// rowStream is the row that keeps the ARN of the stream that was read last.
const rowStream = "stream"

// renewed tells Renewed of a stream, where it is to be told. It is false once ctx is done.
func (c *Consumer) renewed(ctx context.Context, arn string) bool {
	if c.Renewed == nil || c.Table == "" {
		return true
	}
	leases := lease.New(c.DB, c.Name, c.Leases)
	return nil == retry.Until(ctx, c.Logger.With("consumer", c.Name), afterFailure, "switch to the table's new stream", func() error {
		rows, err := leases.Rows(ctx)
		row := rows[rowStream]
		if err != nil || row.Checkpoint == arn {
			return err
		}
		if len(rows) > 0 { // else nothing was read before
			if err := c.Renewed(ctx, arn); err != nil {
				return err
			}
		}
		row.Shard, row.Checkpoint = rowStream, arn
		taken, err := leases.Take(ctx, row)
		if err != nil {
			return err
		}
		return taken.Release(ctx)
	})
}

// restored makes a stream that is gone again, where there is to be one.
func (c *Consumer) restored(ctx context.Context) (again bool) {
	if c.Restore == nil || c.Table == "" {
		return false
	}
	err := retry.Until(ctx, c.Logger.With("consumer", c.Name), afterFailure, "enable the stream of a table again", func() (err error) {
		again, err = c.Restore(ctx)
		return err
	})
	return again && err == nil
}

// Restorer gives a Restore for one of mayfly's own tables.
func (c *Consumer) Restorer(spec ensure.Spec) func(ctx context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		_, err := Restore(ctx, c.DB, c.Logger, spec)
		return err == nil, err
	}
}

// Restore makes what is missing of one of mayfly's own tables again, with a warning that says what it was, and gives the ARN of its stream; "" where it has none.
func Restore(ctx context.Context, db *dynamodb.Client, log *slog.Logger, spec ensure.Spec) (streamARN string, err error) {
	d, missing, err := ensure.Restore(ctx, db, spec)
	if len(missing) > 0 {
		log.Warn("a table, stream or TTL that deliveries need was deleted or disabled, and is created again; work that fell due in between and the contents of a deleted table are lost",
			"table", spec.Name, "was missing", strings.Join(missing, ", "), "error", err)
	}
	if err != nil {
		return "", err
	}
	return aws.ToString(d.LatestStreamArn), nil
}

func (c *Consumer) check() error {
	switch {
	case c.Name == "":
		return errors.New("it has no name")
	case (c.Table == "") == (c.StreamARN == ""):
		return errors.New("give either a table or the ARN of a stream")
	case c.DB == nil || c.Streams == nil || c.Handle == nil || c.Now == nil:
		return errors.New("DB, Streams, Now and Handle must be set")
	}
	if c.Window <= 0 {
		c.Window = windowDefault
	}
	c.Window = min(c.Window, windowMax)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return nil
}

// Rest says that what the consumer was handed and is not done with waits for an instant of the database's clock, as a batching window does: until then it
// is busy only with records that are yet to be handed to it, and `advance` stops there. The zero time says that it waits no longer; where Handle begins such work it says
// so before it returns.
func (c *Consumer) Rest(until time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.progress != nil {
		c.mu.progress.Rest(until)
	}
}

// stream gives the ARN of the stream to be read; "" when there is none, or no longer.
func (c *Consumer) stream(ctx context.Context) (string, error) {
	if c.StreamARN != "" {
		return c.StreamARN, nil
	}
	var arn string
	err := retry.Until(ctx, c.Logger.With("consumer", c.Name), afterFailure, "find the stream of a table", func() error {
		out, err := c.DB.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &c.Table})
		if gone(err) {
			return nil
		}
		if err == nil {
			arn = aws.ToString(out.Table.LatestStreamArn)
		}
		return err
	})
	if err != nil {
		return "", nil // ctx is done
	}
	return arn, nil
}

// Forget deletes the checkpoints and leases of a consumer that is not coming back.
func Forget(ctx context.Context, db *dynamodb.Client, consumer string) error {
	return lease.Clear(ctx, db, consumer)
}
