package consume

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/mayflydb/mayfly/internal/work/lease"
)

// A consumer with Start Latest stores its start at its first run, so that a restart misses nothing.
// If the server reports sequence numbers, as mayfly does, the start is a checkpoint for each shard.
// Elsewhere there are only iterators, which cannot be stored. Then the instant is stored: until
// there is a checkpoint, a later run reads from the oldest record and skips earlier ones. The row
// of shard "start" records that this was done.
const (
	rowStart   = "start"
	startNoted = "noted"  // each shard has a checkpoint
	startSince = "since:" // followed by the instant in milliseconds since the epoch
	// for differences between clocks: extra records are better than missing ones
	startMargin = 30 * time.Second
)

// begin stores the start, unless that was done before, and returns the present rows. If the stored
// start was deleted while this worker ran, changes may have been skipped, which counts as a loss.
func (w *worker) begin(ctx context.Context, shards []types.Shard, rows map[string]lease.Row) (map[string]lease.Row, error) {
	if rows[rowStart].Term == 0 {
		w.anew = w.anew || w.begun
		var err error
		if rows, err = w.note(ctx, shards, rows); err != nil {
			return nil, err
		}
	}
	w.begun = true
	if w.anew {
		w.log.Error("the checkpoint was deleted: records may have been skipped; reading continues with new records")
		if err := w.noteLoss(ctx); err != nil {
			return nil, err
		}
		w.anew = false
	}
	return rows, nil
}

// note stores the start and returns the present rows.
func (w *worker) note(ctx context.Context, shards []types.Shard, rows map[string]lease.Row) (map[string]lease.Row, error) {
	if w.Start == SinceCreation && !w.begun {
		shards = nil // each is read from its oldest record
	}
	start := startNoted
	since := startSince + strconv.FormatInt(w.Now().Add(-startMargin).UnixMilli(), 10)
	for _, s := range shards {
		id := aws.ToString(s.ShardId)
		checkpoint, iterator, err := w.end(ctx, s)
		if err != nil {
			return nil, err
		}
		if checkpoint == "" {
			w.latest[id] = iterator
			start = since
			continue
		}
		if rows[id], err = w.leases.Create(ctx, lease.Row{Shard: id, Checkpoint: checkpoint, Origin: w.label}); err != nil {
			return nil, err
		}
	}
	row, err := w.leases.Note(ctx, rowStart, start)
	if err != nil {
		return nil, err
	}
	if row.Checkpoint != start { // another worker was first
		clear(w.latest)
		return w.leases.Rows(ctx)
	}
	rows[rowStart] = row
	return rows, nil
}

// end returns a checkpoint after all records of a shard, or, if the endpoint does not report one,
// an iterator that begins there.
func (w *worker) end(ctx context.Context, s types.Shard) (checkpoint string, iterator *string, err error) {
	if lastOf(s) != "" {
		return checkpointEnd, nil, nil
	}
	out, err := w.Streams.GetShardIterator(ctx, &dynamodbstreams.GetShardIteratorInput{
		StreamArn: &w.arn, ShardId: s.ShardId, ShardIteratorType: types.ShardIteratorTypeLatest,
	})
	if gone(err) {
		return checkpointEnd, nil, nil
	}
	if err != nil {
		return "", nil, err
	}
	return answered(out.ResultMetadata, headerBefore), out.ShardIterator, nil
}

// sinceOf returns the stored start as an instant, or the zero time.
func sinceOf(rows map[string]lease.Row) time.Time {
	text, ok := strings.CutPrefix(rows[rowStart].Checkpoint, startSince)
	ms, err := strconv.ParseInt(text, 10, 64)
	if !ok || err != nil {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

// Begun reports whether a consumer with Start Latest has stored its start: it will read all later
// changes.
func (c *Consumer) Begun(ctx context.Context) (bool, error) {
	rows, err := lease.New(c.DB, c.Name, c.Leases).Rows(ctx)
	return rows[rowStart].Term != 0, err
}
