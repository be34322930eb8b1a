package consume

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/mayflydb/mayfly/internal/work/lease"
	"github.com/mayflydb/mayfly/internal/work/retry"
)

// rowLost is the row of a loss of records. It is written before a checkpoint passes the loss, and
// deleted when Lost has succeeded. So a worker that is killed in between leaves the row to the next
// one.
const rowLost = "lost"

// noteLoss stores that records were lost. It fails only if ctx is done.
func (w *worker) noteLoss(ctx context.Context) error {
	if w.Lost == nil {
		return nil
	}
	err := retry.Until(ctx, w.log, retry.Calls, "store that records were lost", func() error { return w.leases.Mark(ctx, rowLost) })
	if err == nil {
		nudge(w.again)
	}
	return err
}

// owes reports whether Lost is still to be called, or is under way.
func (w *worker) owes(rows map[string]lease.Row) bool {
	return w.Lost != nil && (rows[rowLost].Term != 0 || w.making.Load())
}

// makeUp calls Lost in a goroutine if a loss is stored, unless a worker does that already.
func (w *worker) makeUp(ctx context.Context, row lease.Row) error {
	if w.Lost == nil || row.Term == 0 || w.making.Load() || !w.leases.Free(row) {
		return nil
	}
	taken, err := w.leases.Take(ctx, row)
	if errors.Is(err, lease.ErrLost) {
		return nil // another worker has it, or a further loss was noted, which nudges this worker
	}
	if err != nil {
		return err
	}
	w.making.Store(true)
	w.readers.Go(func() {
		defer nudge(w.again)
		defer w.making.Store(false)
		err := retry.Until(ctx, w.log, retry.Calls, "make up for lost records", func() error { return w.Lost(ctx) })
		if err == nil { // unless the row tells of a further loss meanwhile
			err = retry.Until(ctx, w.log, retry.Calls, "store that lost records were made up for", func() error { return w.leases.Forget(ctx, taken.Row()) })
		}
		if err != nil {
			w.release(ctx, taken)
		}
	})
	return nil
}

// orphan reports whether a shard, which has no row, has a parent that was trimmed before this
// consumer knew it. A known parent is found by forget.
func orphan(s types.Shard, shards []types.Shard, rows map[string]lease.Row) bool {
	parent := aws.ToString(s.ParentShardId)
	if parent == "" || rows[parent].Term != 0 {
		return false
	}
	for i := range shards {
		if aws.ToString(shards[i].ShardId) == parent {
			return false
		}
	}
	return true
}

// checkBegin notes a loss if the first records of a shard without a checkpoint were trimmed. Amazon
// documents neither that StartingSequenceNumber stays the same nor that it is a record's, so the
// number is not read from.
func (r *reading) checkBegin(ctx context.Context) error {
	if r.first == "" || !r.since.IsZero() {
		return nil // unknown, or the first records may be from before the consumer's start
	}
	err := retry.Until(ctx, r.log, retry.Calls, "find the first record of a shard", func() error {
		_, err := r.Streams.GetShardIterator(ctx, &dynamodbstreams.GetShardIteratorInput{
			StreamArn: &r.arn, ShardId: &r.shard, ShardIteratorType: types.ShardIteratorTypeAtSequenceNumber, SequenceNumber: &r.first,
		})
		if trimmed(err) || gone(err) || retry.Classify(err) == retry.Permanent {
			return retry.Final(err)
		}
		return err
	})
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case trimmed(err):
		return r.trimmed(ctx)
	}
	return nil
}

// trimmed notes a loss of records of the shard.
func (r *reading) trimmed(ctx context.Context) error {
	r.log.Error("records may have been trimmed before they were read", "after", r.last(), "checkpoint", r.lease.Checkpoint())
	if r.noteLoss(ctx) != nil {
		return context.Cause(ctx)
	}
	return nil
}
