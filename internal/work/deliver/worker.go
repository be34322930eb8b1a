package deliver

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/work/lease"
	"github.com/mayflydb/mayfly/internal/work/retry"
)

// worker reads the shards of one stream for a consumer: those that it has leases of, parents before their children.
//
// Among several workers each has a fair share. They find each other by leases of their own (lease.Crew); every worker reckons everybody's share from the same rows, takes what is
// free up to its share, and leaves what it has beyond it at a page's end.
type worker struct {
	*Consumer
	arn      string
	leases   *lease.Leases
	crew     *lease.Crew
	progress Progress
	log      *slog.Logger
	latest   map[string]*string // iterators to begin with, by shard, where the consumer begins now and at the end of the stream
	missing  map[string]int     // how often in a row a shard that has a row was not listed
	again    chan struct{}      // has an element when the shards should be looked at again
	changed  bool               // a lease was not as the last look had read it
	listed   listing
	ends     int         // how many of the rows that were read last say that their shard was read to its end
	ended    atomic.Bool // a reader has ended, perhaps because its shard is gone
	vanished bool        // a shard that was not read to its end is missing from the list: looked at again soon, for it may have been passed over once
	begun    bool        // this worker has seen that the consumer has noted where it begins
	anew     bool        // that note was gone, and Lost is yet to be told
	readers  sync.WaitGroup
	mu       struct {
		sync.Mutex
		reading map[string]*held // by shard: those that this worker reads
	}
}

// held is a shard that a worker reads.
type held struct {
	leave   chan struct{} // closed when it is to be left to another worker; nil: never
	leaving bool
}

const lostPause = time.Second // before a shard that was lost is looked at again

func newWorker(c *Consumer, arn string) *worker {
	w := &worker{
		Consumer: c, arn: arn, leases: lease.New(c.DB, c.Name, c.Leases), log: c.Logger.With("consumer", c.Name),
		latest: map[string]*string{}, missing: map[string]int{}, again: make(chan struct{}, 1),
	}
	w.crew = lease.NewCrew(w.leases)
	w.mu.reading = map[string]*held{}
	return w
}

// run reads until ctx is done or the stream is at its end.
func (w *worker) run(ctx context.Context) {
	w.progress = w.Registry.register(w.Name, w.arn)
	w.setProgress(w.progress)
	for over := false; !over; {
		err := retry.Until(ctx, w.log, afterFailure, "look at the shards", func() (err error) {
			over, err = w.look(ctx)
			return err
		})
		if err != nil {
			break
		}
		if !over {
			w.wait(ctx)
		}
	}
	w.readers.Wait()
	w.depart(ctx)
	w.setProgress(nil)
	w.progress.Close()
}

// depart tells the other workers that this one ends.
func (w *worker) depart(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveLimit)
	defer cancel()
	w.crew.Leave(ctx)
}

// wait waits until the shards should be looked at again. A worker that is alone is told of all that can happen to them, but for what a run before it had begun to write and
// what came through only when that had ended: that changes a lease between the look and the taking.
func (w *worker) wait(ctx context.Context) {
	next := w.leases.Duration() / lookParts
	if w.changed || w.vanished {
		next = min(next, afterFailure.First)
	}
	if w.changed || w.vanished || !w.leases.Exclusive() {
		timer := clock.AfterFunc(next, func() { tell(w.again) })
		defer timer.Stop()
	}
	select {
	case <-w.again:
	case <-ctx.Done():
	}
}

func (c *Consumer) setProgress(p Progress) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.progress = p
}

// look starts to read what can be read. over says that the stream is gone, or has been read to its end.
func (w *worker) look(ctx context.Context) (over bool, err error) {
	rows, fresh, err := w.read(ctx)
	if gone(err) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	shards := w.listed.shards
	for shard, row := range rows {
		if row.Damaged() {
			w.log.Warn("the row of a lease is damaged and is written again with a new term", "shard", shard)
		}
	}
	if w.Start == Latest {
		if rows, err = w.begin(ctx, shards, rows); err != nil {
			return false, err
		}
	}
	ready, left := w.ready(shards, rows)
	w.listed.left = left
	workers, err := w.crew.Meet(ctx, rows)
	if err != nil {
		return false, err
	}
	if err := w.share(ctx, ready, workers, sinceOf(rows)); err != nil {
		return false, err
	}
	if !fresh {
		return false, nil
	}
	return left == 0 && !w.listed.open, w.forget(ctx, shards, rows)
}

// listing is the stream's shards as they were listed last.
type listing struct {
	shards []types.Shard
	open   bool          // there may be more to come
	at     time.Duration // when
	ends   int           // how many rows said then that their shard was read to its end
	left   int           // how many of the shards were not
}

// listEvery is after how long the shards are listed again where nothing tells that there are others: an account may list shards only ten times a second, for all that read streams.
const listEvery = 10 * time.Second

// read lists the shards where that is due, and reads the rows, which are newer than the list. The list is due, too, when a shard was read to its end, by whichever worker: there
// may be children of it.
func (w *worker) read(ctx context.Context) (rows map[string]lease.Row, fresh bool, err error) {
	if w.ended.Swap(false) || w.vanished || w.listed.left == 0 || w.leases.Exclusive() || w.leases.Elapsed()-w.listed.at >= listEvery {
		if err := w.list(ctx); err != nil {
			return nil, false, err
		}
		fresh = true
	}
	if err := w.readRows(ctx, &rows); err != nil || fresh || w.ends == w.listed.ends {
		return rows, fresh, err
	}
	if err := w.list(ctx); err != nil {
		return nil, false, err
	}
	return rows, true, w.readRows(ctx, &rows)
}

func (w *worker) list(ctx context.Context) (err error) {
	next := listing{at: w.leases.Elapsed(), ends: w.ends}
	if next.shards, next.open, err = w.shards(ctx); err != nil {
		w.ended.Store(true)
		return err
	}
	w.listed = next
	return nil
}

func (w *worker) readRows(ctx context.Context, rows *map[string]lease.Row) (err error) {
	if *rows, err = w.leases.Rows(ctx); err != nil {
		return err
	}
	w.ends = 0
	for _, r := range *rows {
		if r.Checkpoint == checkpointEnd {
			w.ends++
		}
	}
	return nil
}

// shards lists the stream's shards. open says that there may be more to come.
func (w *worker) shards(ctx context.Context) (all []types.Shard, open bool, err error) {
	in := &dynamodbstreams.DescribeStreamInput{StreamArn: &w.arn}
	for {
		out, err := w.Streams.DescribeStream(ctx, in)
		if err != nil {
			return nil, false, err
		}
		all = append(all, out.StreamDescription.Shards...)
		if in.ExclusiveStartShardId = out.StreamDescription.LastEvaluatedShardId; in.ExclusiveStartShardId == nil {
			return all, out.StreamDescription.StreamStatus != types.StreamStatusDisabled, nil
		}
	}
}

// ready gives the shards that can be read now: they are not read to their end, and their parents are, or are no longer there. left is how many shards are not
// read to their end. The progress is told of the checkpoints.
func (w *worker) ready(shards []types.Shard, rows map[string]lease.Row) (ready []lease.Row, left int) {
	listed := map[string]bool{}
	for _, s := range shards {
		listed[aws.ToString(s.ShardId)] = true
	}
	for _, s := range shards {
		id, parent := aws.ToString(s.ShardId), aws.ToString(s.ParentShardId)
		row := rows[id]
		row.Shard = id
		if row.Checkpoint == checkpointEnd {
			w.progress.Checkpoint(id, lastOf(s))
			continue
		}
		left++
		if row.Checkpoint != "" && !w.reads(id) {
			w.progress.Checkpoint(id, row.Checkpoint)
		}
		if !listed[parent] || rows[parent].Checkpoint == checkpointEnd {
			ready = append(ready, row)
		}
	}
	return ready, left
}

// lastOf is the sequence number at which a closed shard ends.
func lastOf(s types.Shard) string {
	if s.SequenceNumberRange == nil {
		return ""
	}
	return aws.ToString(s.SequenceNumberRange.EndingSequenceNumber)
}

// share takes what is free, up to this worker's share of what is ready, and leaves what is beyond it.
func (w *worker) share(ctx context.Context, ready []lease.Row, workers []string, since time.Time) error {
	share := lease.Share(len(ready), workers, w.leases.Owner())
	if w.leases.Exclusive() {
		share = len(ready)
	}
	mine := w.own(share)
	w.changed = false
	for _, row := range lease.Shuffled(ready, w.leases.Owner()) {
		if w.reads(row.Shard) || !w.leases.Free(row) {
			continue
		}
		if mine >= share {
			if row.Owner == w.leases.Owner() {
				if err := w.leases.Disown(ctx, row); err != nil {
					return err
				}
			}
			continue
		}
		taken, err := w.take(ctx, row, since)
		if err != nil {
			return err
		}
		if taken {
			mine++
		}
		w.changed = w.changed || !taken && w.leases.Exclusive() // others look often enough
	}
	return nil
}

// own gives how many shards this worker reads and means to keep, after telling those beyond its share to be left.
func (w *worker) own(share int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	var staying []string
	for shard, h := range w.mu.reading {
		if !h.leaving {
			staying = append(staying, shard)
		}
	}
	slices.Sort(staying)
	for _, shard := range staying[min(share, len(staying)):] {
		if h := w.mu.reading[shard]; h.leave != nil {
			h.leaving = true
			close(h.leave)
		}
	}
	return min(share, len(staying))
}

func (w *worker) reads(shard string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.mu.reading[shard] != nil
}

// take takes a shard's lease and starts to read it.
func (w *worker) take(ctx context.Context, row lease.Row, since time.Time) (bool, error) {
	taken, err := w.leases.Take(ctx, row)
	if errors.Is(err, lease.ErrLost) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	h := &held{}
	if !w.leases.Exclusive() {
		h.leave = make(chan struct{})
	}
	w.mu.Lock()
	w.mu.reading[row.Shard] = h
	w.mu.Unlock()
	latest := w.latest[row.Shard]
	delete(w.latest, row.Shard)
	w.readers.Go(func() {
		w.readShard(ctx, taken, h, latest, since)
		w.mu.Lock()
		delete(w.mu.reading, row.Shard)
		w.mu.Unlock()
		w.ended.Store(true)
		tell(w.again)
	})
	return true, nil
}

// readShard reads a shard until its end, until ctx is done, or until another worker is to have the shard or has it. After a failure it goes on from the checkpoint.
func (w *worker) readShard(ctx context.Context, taken *lease.Lease, h *held, latest *string, since time.Time) {
	log := w.log.With("shard", taken.Shard(), "term", taken.Term())
	for pauses := afterFailure.Start(); ; pauses.Wait(ctx) {
		before := taken.Checkpoint()
		r := &reading{
			Consumer: w.Consumer, window: newWindow(), arn: w.arn, shard: taken.Shard(), lease: taken, leases: w.leases, progress: w.progress, log: log,
			latest: latest, since: since, leave: h.leave,
		}
		err := r.run(ctx)
		latest = r.latest
		switch {
		case ctx.Err() != nil, errors.Is(err, errLeave):
			w.release(ctx, taken)
			return
		case errors.Is(err, errReadEnd):
			return
		case errors.Is(err, lease.ErrLost):
			log.Warn("this worker was silent for longer than its lease and has given up the shard; it, or another worker, continues from the checkpoint")
			clock.Pause(lostPause, ctx.Done())
			return
		case errors.Is(err, errGone):
			log.Warn("the shard is gone")
			clock.Pause(lostPause, ctx.Done())
			return
		}
		if taken.Checkpoint() != before {
			pauses.Reset()
		}
		log.Warn("reading a shard failed; continuing from the checkpoint", "error", err, "after", pauses.Next())
	}
}

// release gives a lease up, where other workers may be waiting for it.
func (w *worker) release(ctx context.Context, taken *lease.Lease) {
	if w.leases.Exclusive() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveLimit)
	defer cancel()
	if err := taken.Release(ctx); err != nil {
		w.log.Warn("a lease was not released; other workers wait until it ends", "shard", taken.Shard(), "error", err)
	}
}

// forgetAfter is how many looks in a row a shard is missing from the list before its row is deleted.
const forgetAfter = 3

// forget deletes the rows of shards that are no longer there. Where one was not read to its end, and nobody reads it, what was left of it has been trimmed: Lost is told first.
func (w *worker) forget(ctx context.Context, shards []types.Shard, rows map[string]lease.Row) error {
	for _, s := range shards {
		delete(w.missing, aws.ToString(s.ShardId))
		delete(rows, aws.ToString(s.ShardId))
	}
	w.vanished = false
	for id, row := range rows {
		finished := row.Checkpoint == checkpointEnd
		if !isShard(id) || !finished && (w.reads(id) || !w.leases.Free(row)) {
			delete(w.missing, id)
			continue
		}
		if w.missing[id]++; w.missing[id] < forgetAfter {
			w.vanished = w.vanished || !finished
			continue
		}
		if !finished {
			w.log.Error("a shard is gone that was not read to its end: records may have been trimmed before they were read", "shard", id, "checkpoint", row.Checkpoint)
			w.lost(id)
		}
		delete(w.missing, id)
		if err := w.leases.Forget(ctx, row); err != nil {
			return err
		}
	}
	return nil
}

// isShard reports whether a row is a shard's: others say where the consumer begins, what it reads, and who works.
func isShard(row string) bool { return row != rowStart && row != rowStream && !lease.IsCrew(row) }

// lost tells Lost.
func (c *Consumer) lost(shard string) {
	if c.Lost != nil {
		c.Lost(shard)
	}
}
