package deliver

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

// A consumer with Start Latest notes at its first run where it begins, so that a restart misses nothing. A server that says where that is, as mayfly does, lets it be
// a checkpoint for each shard. Elsewhere an iterator is all that one gets, and it cannot be kept: so the instant is noted, a run that follows before there is
// a checkpoint reads from the horizon, and what was written before the instant is passed over. The row of shard "start" says that this has been done.
const (
	rowStart    = "start"
	startNoted  = "noted"          // each shard has a checkpoint
	startSince  = "since:"         // with the instant in milliseconds since the epoch
	startMargin = 30 * time.Second // clocks may differ: rather some records too many than one too few
)

// begin notes where the consumer begins, unless it has before, and gives the rows that there are then. Where somebody has deleted the note under this worker, what was written
// until there is another one may have been passed over, so that Lost is told.
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
		w.anew = false
		w.log.Error("the checkpoint was deleted: records may have been skipped; reading continues with new records")
		w.lost("")
	}
	return rows, nil
}

// note notes where the consumer begins, and gives the rows that there are then.
func (w *worker) note(ctx context.Context, shards []types.Shard, rows map[string]lease.Row) (map[string]lease.Row, error) {
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
		if rows[id], err = w.leases.Note(ctx, id, checkpoint); err != nil {
			return nil, err
		}
	}
	row, err := w.leases.Note(ctx, rowStart, start)
	if err != nil {
		return nil, err
	}
	if row.Checkpoint != start { // another worker was faster
		clear(w.latest)
		return w.leases.Rows(ctx)
	}
	rows[rowStart] = row
	return rows, nil
}

// end gives a checkpoint behind all that is in a shard now, or, where the endpoint does not tell, an iterator that begins there.
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

// sinceOf gives the instant from which a consumer reads that has noted one.
func sinceOf(rows map[string]lease.Row) time.Time {
	text, ok := strings.CutPrefix(rows[rowStart].Checkpoint, startSince)
	ms, err := strconv.ParseInt(text, 10, 64)
	if !ok || err != nil {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

// Begun reports whether a consumer that starts at Latest has noted where it begins: what is written from then on is read.
func (c *Consumer) Begun(ctx context.Context) (bool, error) {
	rows, err := lease.New(c.DB, c.Name, c.Leases).Rows(ctx)
	return rows[rowStart].Term != 0, err
}
