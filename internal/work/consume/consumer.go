package consume

import (
	"cmp"
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

// Start is where a consumer without checkpoints begins.
type Start int

const (
	TrimHorizon Start = iota // at the oldest record in the stream
	// after the records that exist at its first run. The position is stored at once, so a restart
	// misses nothing
	Latest
	// at the oldest record of a stream that is younger than the consumer. To later runs with Latest,
	// this was the first
	SinceCreation
)

// Consumer reads the records of one stream and hands them over, shard by shard. Its fields are set
// before Run.
type Consumer struct {
	// key of its leases and checkpoints, such as "schedules.default", "retries" or
	// "trigger.<uuid>": up to 1 KB
	Name string
	// table whose current stream is read; after a change of streams, the new one
	Table     string
	StreamARN string                  // alternative to Table: the one stream to read
	Start     Start                   // where there is no checkpoint
	DB        *dynamodb.Client        // has the leases and checkpoints
	Streams   *dynamodbstreams.Client // has the records
	Now       func() time.Time        // the database's clock
	Leases    lease.Options           // how shards are shared with other workers
	Registry  Registry                // the embedded database's
	// records read ahead of the first record that is not done, for each shard. Default: 10,000.
	// Range: 1 to 1,000,000
	Window int
	Logger *slog.Logger // Default: nothing is logged

	// Handle receives the records of a shard in order, a page at a time. Calls for different shards
	// may overlap. It must call each record's Done once, immediately or later; it may block to slow
	// reading down. After an error the shard is read again from its checkpoint, after a pause.
	Handle func(ctx context.Context, shard string, records []Record) error

	// Settle waits, when Run ends, until no more records of a shard can become done, or until ctx
	// is done. The last checkpoint is saved afterwards. Settle must have a limit of its own.
	// Default: a wait of 250 ms.
	Settle func(ctx context.Context, shard string)

	// Restore is called when all records are done and the table has no further stream, because the
	// stream was disabled or the table deleted. It recreates the missing parts with a warning, and
	// reports whether there is a stream to read. It is called again after an error. Default: Run
	// ends.
	Restore func(ctx context.Context) (again bool, err error)

	// Renewed is called with a new stream's ARN before its first record is read, if this consumer
	// has read another stream before, in any process. Changes between the two streams are in
	// neither. It is called again after an error.
	Renewed func(ctx context.Context, streamARN string) error

	// Lost is called, beside Handle, when records were, or may have been, trimmed before this
	// consumer read them, or when the stored start of a consumer with Start Latest was deleted while
	// it ran. It makes up for them. It is called until it succeeds, by the next worker if this one
	// or its stream ends before, and again after a further loss. Several workers may call it at
	// once. Default: the loss is only logged, if it is noticed at all.
	Lost func(ctx context.Context) error

	// Stalled is called with the reason when part of the stream could not be followed for Patience:
	// its shards could not be listed or read, or it is enabled and has no unfinished shard. It is
	// called with nil when all can be followed again. Attempts go on meanwhile. It must not block.
	// Default: failed calls are only logged.
	Stalled  func(reason error)
	Patience time.Duration // see Stalled. Default: 2 minutes

	mu struct {
		sync.Mutex
		progress Progress // set while a stream is read
	}
}

const (
	windowDefault = 10_000
	windowMax     = 1_000_000
	windowBytes   = 64 << 20 // limit of the records read ahead, by their SizeBytes
)

// Run reads until ctx is done, or until the stream is gone for good and its records are done. Then
// it returns nil. It retries calls that fail. Before it returns, it saves its last checkpoints and
// releases its leases.
func (c *Consumer) Run(ctx context.Context) error {
	if err := c.check(); err != nil {
		return fmt.Errorf("consumer %q: %w", c.Name, err)
	}
	for last, pauses := "", retry.Calls.Start(); ctx.Err() == nil; {
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
		if ran() > retry.Calls.Most {
			pauses.Reset()
		}
		if c.StreamARN != "" {
			return nil
		}
		last = arn
	}
	return nil
}

// rowStream is the row with the ARN of the stream that was read last.
const rowStream = "stream"

// renewed calls Renewed if the stream is not the one of the last run. It returns false once ctx is
// done.
func (c *Consumer) renewed(ctx context.Context, arn string) bool {
	if c.Renewed == nil || c.Table == "" {
		return true
	}
	leases := lease.New(c.DB, c.Name, c.Leases)
	return nil == retry.Until(ctx, c.Logger.With("consumer", c.Name), retry.Calls, "switch to the table's new stream", func() error {
		rows, err := leases.Rows(ctx)
		row := rows[rowStream]
		if err != nil || row.Checkpoint == arn {
			return err
		}
		if len(rows) > 0 { // no rows: this is the first stream
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

// restored calls Restore, and reports whether there is a stream to read.
func (c *Consumer) restored(ctx context.Context) (again bool) {
	if c.Restore == nil || c.Table == "" {
		return false
	}
	err := retry.Until(ctx, c.Logger.With("consumer", c.Name), retry.Calls, "enable the stream of a table again", func() (err error) {
		again, err = c.Restore(ctx)
		return err
	})
	return again && err == nil
}

// Restorer returns a Restore function for one of mayfly's own tables.
func (c *Consumer) Restorer(spec ensure.Spec) func(ctx context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		_, err := Restore(ctx, c.DB, c.Logger, spec)
		return err == nil, err
	}
}

// Restore recreates the missing parts of one of mayfly's own tables, with a warning that names
// them. It returns the ARN of the table's stream, or "" if the table has none.
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
	c.Window = cmp.Or(max(c.Window, 0), windowDefault)
	c.Window = min(c.Window, windowMax)
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	return nil
}

// Rest reports that the handed-over records that are not done wait for an instant of the database's
// clock, for example the end of a batching window. Until then the consumer is busy only with
// records that are not handed over yet, and an advance of the clock stops there. The zero time ends
// the wait. If Handle starts such work, it calls Rest before it returns.
func (c *Consumer) Rest(until time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.progress != nil {
		c.mu.progress.Rest(until)
	}
}

// stream returns the ARN of the stream to read, or "" if there is none.
func (c *Consumer) stream(ctx context.Context) (string, error) {
	if c.StreamARN != "" {
		return c.StreamARN, nil
	}
	var arn string
	err := retry.Until(ctx, c.Logger.With("consumer", c.Name), retry.Calls, "find the stream of a table", func() error {
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

// Forget deletes the checkpoints and leases of a consumer that will not return. Of the options it
// needs the table.
func Forget(ctx context.Context, db *dynamodb.Client, consumer string, leases lease.Options) error {
	return lease.Clear(ctx, db, consumer, leases)
}
