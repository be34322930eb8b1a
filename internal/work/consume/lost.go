package consume

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/work/lease"
	"github.com/mayflydb/mayfly/internal/work/retry"
)

// rowLost is the row of a loss of records. It is written before a checkpoint passes the loss, and
// deleted when Lost has succeeded. So a worker that is killed in between leaves the row to the next
// one.
const rowLost = "lost"

// retention is the time for which Amazon keeps records, and a margin.
const retention = 25 * time.Hour

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

// makeUp calls Lost in a goroutine if a loss is stored, unless a worker does that already. Lost must
// end with ctx.
func (w *worker) makeUp(ctx context.Context, row lease.Row) error {
	row.Shard = rowLost
	if w.Lost == nil || !row.Exists() || w.makingUp.Load() || !w.leases.Free(row) {
		return nil
	}
	taken, err := w.leases.Take(ctx, row)
	if errors.Is(err, lease.ErrLost) {
		// A further loss was noted, another worker has it, or a late write of an earlier run has
		// changed the row. Only other workers look by themselves.
		clock.AfterFunc(retry.Calls.First, func() { nudge(w.again) })
		return nil
	}
	if err != nil {
		return err
	}
	w.makingUp.Store(true)
	w.readers.Go(func() {
		defer nudge(w.again)
		defer w.makingUp.Store(false)
		err := retry.Until(ctx, w.log, retry.Calls, "make up for lost records", func() error { return w.Lost(ctx) })
		if err == nil { // the row stays if a further loss was noted meanwhile
			err = retry.Until(ctx, w.log, retry.Calls, "store that lost records were made up for", func() error { return w.leases.Forget(ctx, taken.Row()) })
		}
		if err != nil {
			w.release(ctx, taken)
		}
	})
	return nil
}

// predates reports whether records that are trimmed now may be from before the start that a
// consumer has stored as an instant; zero: it has none.
func (c *Consumer) predates(since time.Time) bool {
	return !since.IsZero() && c.Now().Before(since.Add(retention))
}

// orphan reports whether a shard's parent was trimmed before this consumer knew it. The loss of a
// known parent is found by forget.
func (w *worker) orphan(s types.Shard, rows map[string]lease.Row) bool {
	parent := aws.ToString(s.ParentShardId)
	return parent != "" && !rows[parent].Exists() && w.listed.shard(parent).ShardId == nil
}

// checkBegin notes a loss if the first records of a shard without a checkpoint were trimmed. Amazon
// documents neither that StartingSequenceNumber stays the same nor that it is a record's, so the
// number is not read from.
func (r *reading) checkBegin(ctx context.Context) error {
	if r.Lost == nil || r.first == "" || r.predates(r.since) {
		return nil
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

// gap is a loss of records that a shard's readings have found. If Handle fails, each reading finds
// it again.
type gap struct {
	noted bool // it is stored
	ahead bool // the reading has yet to read the first record after it
	again bool // the reading has found it again: more records may have been trimmed meanwhile
	// sequence number of the first record after it, as read last; "": none
	next string
}

// trimmed notes a loss of records of the shard.
func (r *reading) trimmed(ctx context.Context) error {
	if r.gap.noted && r.last() == "" {
		r.gap.ahead, r.gap.again = true, true
		return nil
	}
	r.gap = gap{noted: true, ahead: true}
	return r.noteGap(ctx)
}

// pass notes a loss once more if it was found again and has grown. first is the first record that
// was read after it, or "" at the shard's end.
func (r *reading) pass(ctx context.Context, first string) error {
	if r.gap.again && r.gap.next != first {
		if err := r.noteGap(ctx); err != nil {
			return err
		}
	}
	r.gap.ahead, r.gap.again, r.gap.next = false, false, first
	return nil
}

// noteGap stores a loss. It returns the reason of the reading's end if ctx is done.
func (r *reading) noteGap(ctx context.Context) error {
	r.log.Error("records may have been trimmed before they were read", "after", r.last(), "checkpoint", r.lease.Checkpoint())
	if r.noteLoss(ctx) != nil {
		return context.Cause(ctx)
	}
	return nil
}
