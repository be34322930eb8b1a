package consume

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

// worker reads shards of one stream for a consumer: those whose leases it has, parents before their
// children.
//
// Several workers get fair shares. They find each other by leases (lease.Crew). Each computes all
// shares from the same rows, takes free shards up to its share, and leaves the excess after a page.
//
// The goroutine of run owns the fields outside mu, except again, ended and makingUp, which
// the goroutines of the readers also use.
type worker struct {
	*Consumer
	arn      string
	leases   *lease.Leases
	crew     *lease.Crew
	progress Progress
	log      *slog.Logger
	// first iterators by shard, if the consumer starts now and at the end of the stream
	latest  map[string]*string
	missing map[string]int // by shard with a row: consecutive listings without it
	again   chan struct{}  // has an element when the shards should be checked again
	changed bool           // a lease differed from the row that was read
	listed  listing
	ends    int         // number of rows of finished shards, when last read
	ended   atomic.Bool // a reader has ended, perhaps because its shard is gone
	// an unfinished shard is missing from the list; listed again soon, because one listing may omit
	// it
	vanished bool
	begun    bool // the consumer's start is stored
	anew     bool // the stored start was deleted, and the loss is still to be noted
	stalls   *stalls
	readers  sync.WaitGroup
	makingUp atomic.Bool // Lost is under way
	mu       struct {
		sync.Mutex
		reading map[string]*held // by shard: the shards that this worker reads
	}
}

// held is a shard that a worker reads.
type held struct {
	leave   chan struct{} // closed when another worker is to get the shard; nil: never
	leaving bool
}

const lostPause = time.Second // before a lost shard is tried again

func newWorker(c *Consumer, arn string) *worker {
	w := &worker{
		Consumer: c, arn: arn, leases: lease.New(c.DB, c.Name, c.Leases), log: c.Logger.With("consumer", c.Name),
		latest: map[string]*string{}, missing: map[string]int{}, again: make(chan struct{}, 1), stalls: newStalls(c),
	}
	w.crew = lease.NewCrew(w.leases)
	w.mu.reading = map[string]*held{}
	return w
}

// run reads until ctx is done or the stream has ended.
func (w *worker) run(ctx context.Context) {
	w.progress = w.Registry.register(w.Name, w.arn)
	w.setProgress(w.progress)
	lost, stop := context.WithCancel(ctx)
	defer stop()
	for over := false; !over; {
		err := retry.Until(ctx, w.log, retry.Calls, "look at the shards", func() (err error) {
			over, err = w.look(ctx, lost)
			return err
		})
		if err != nil {
			break
		}
		if !over {
			w.wait(ctx)
		}
	}
	stop() // Lost may wait for the table, which may come back only after this
	w.readers.Wait()
	w.depart(ctx)
	w.setProgress(nil)
	w.progress.Close()
}

// depart deletes this worker's presence, so that others take its shards at once.
func (w *worker) depart(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveLimit)
	defer cancel()
	w.crew.Leave(ctx)
}

// wait waits until the shards should be checked again. An exclusive worker learns of all changes by
// itself, except a write that an earlier run had begun: it changes a lease between reading and
// taking it; and the first shard of a stream without any, or a child that is listed later than the
// end of its parent.
func (w *worker) wait(ctx context.Context) {
	next := w.leases.Duration() / lookParts
	if w.changed || w.vanished {
		next = min(next, retry.Calls.First)
	}
	if w.changed || w.vanished || w.listed.left == 0 || !w.leases.Exclusive() {
		timer := clock.AfterFunc(next, func() { nudge(w.again) })
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

// look starts readers for the shards that can be read. over reports that the stream is gone or
// finished. lost is the context of Lost, which ends with the stream.
func (w *worker) look(ctx, lost context.Context) (over bool, err error) {
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
	if w.Start != TrimHorizon {
		if rows, err = w.begin(ctx, shards, rows); err != nil {
			return false, err
		}
	}
	if err := w.makeUp(lost, rows[rowLost]); err != nil {
		return false, err
	}
	ready, left := w.ready(shards, rows)
	if w.listed.left = left; fresh {
		w.noteShards()
	}
	workers, err := w.crew.Meet(ctx, rows)
	if err != nil {
		return false, err
	}
	if err := w.share(ctx, ready, workers, rows); err != nil {
		return false, err
	}
	if !fresh {
		return false, nil
	}
	return left == 0 && !w.listed.open, w.forget(ctx, shards, rows)
}

// noteShards notes whether the listed stream can be followed.
func (w *worker) noteShards() {
	var reason error
	if w.listed.left == 0 && w.listed.open {
		reason = errNoShard
	}
	w.stalls.note(listOfShards, reason)
}

// listing is the last list of the stream's shards.
type listing struct {
	shards []types.Shard
	open   bool          // more shards may appear
	at     time.Duration // time of the listing
	ends   int           // number of rows of finished shards at that time
	left   int           // number of unfinished shards
}

// listEvery is the interval of listings if nothing indicates new shards. An account may list shards
// only ten times a second, over all streams.
const listEvery = 10 * time.Second

// read reads the rows, after listing the shards if that is due. A listing is also due when any
// worker has finished a shard, which may have children.
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
		if ctx.Err() == nil && !gone(err) {
			w.stalls.note(listOfShards, err)
		}
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

// shards lists the stream's shards. open reports that more may appear.
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

// ready returns the rows of the unfinished shards whose parents are finished or gone, and the
// number of unfinished shards. It reports the checkpoints to the progress.
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

// shard returns a listed shard, or the zero shard.
func (l *listing) shard(id string) types.Shard {
	for _, s := range l.shards {
		if aws.ToString(s.ShardId) == id {
			return s
		}
	}
	return types.Shard{}
}

// firstOf returns the sequence number at which a shard begins.
func firstOf(s types.Shard) string {
	if s.SequenceNumberRange == nil {
		return ""
	}
	return aws.ToString(s.SequenceNumberRange.StartingSequenceNumber)
}

// lastOf returns the sequence number at which a closed shard ends.
func lastOf(s types.Shard) string {
	if s.SequenceNumberRange == nil {
		return ""
	}
	return aws.ToString(s.SequenceNumberRange.EndingSequenceNumber)
}

// share takes free shards up to this worker's share, and leaves those beyond it.
func (w *worker) share(ctx context.Context, ready []lease.Row, workers []string, rows map[string]lease.Row) error {
	share := lease.Share(len(ready), workers, w.leases.Owner())
	if w.leases.Exclusive() {
		share = len(ready)
	}
	mine := w.leaveExcess(share)
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
		taken, err := w.take(ctx, row, rows)
		if err != nil {
			return err
		}
		if taken {
			mine++
		}
		w.changed = w.changed || !taken && w.leases.Exclusive() // other workers check often enough
	}
	return nil
}

// leaveExcess asks the readers beyond the share to leave, and returns the number of shards that this
// worker keeps.
func (w *worker) leaveExcess(share int) int {
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

// take takes a shard's lease and starts to read the shard.
func (w *worker) take(ctx context.Context, row lease.Row, rows map[string]lease.Row) (bool, error) {
	latest, since := w.latest[row.Shard], sinceOf(rows)
	shard := w.listed.shard(row.Shard)
	first := firstOf(shard)
	if w.Lost != nil && !row.Exists() && latest == nil && !w.predates(since) && w.orphan(shard, rows) {
		w.log.Error("the shard before this one is gone and was never read: records may have been trimmed before they were read",
			"shard", row.Shard, "before", aws.ToString(shard.ParentShardId))
		if err := w.noteLoss(ctx); err != nil {
			return false, err
		}
		first = "" // that loss includes the shard's first records
	}
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
	delete(w.latest, row.Shard)
	w.readers.Go(func() {
		w.readShard(ctx, taken, h, first, latest, since)
		w.stalls.note(row.Shard, nil)
		w.mu.Lock()
		delete(w.mu.reading, row.Shard)
		w.mu.Unlock()
		w.ended.Store(true)
		nudge(w.again)
	})
	return true, nil
}

// readShard reads a shard until it is finished, ctx is done, or another worker has or is to get it.
// After a failure it continues from the checkpoint.
func (w *worker) readShard(ctx context.Context, taken *lease.Lease, h *held, first string, latest *string, since time.Time) {
	log := w.log.With("shard", taken.Shard(), "term", taken.Term())
	var loss gap
	for pauses := retry.Calls.Start(); ; pauses.Wait(ctx) {
		before := taken.Checkpoint()
		r := &reading{
			Consumer: w.Consumer, window: newWindow(), arn: w.arn, shard: taken.Shard(), lease: taken, leases: w.leases, progress: w.progress, log: log,
			first: first, latest: latest, since: since, leave: h.leave, gap: loss, noteLoss: w.noteLoss, stalls: w.stalls,
		}
		err := r.run(ctx)
		latest, loss = r.latest, r.gap
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

// release releases a lease for which other workers may be waiting.
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

// forgetAfter is the number of consecutive listings without a shard after which its row is deleted.
const forgetAfter = 3

// forget deletes the rows of shards that no longer exist. If an unfinished shard has no reader, its
// remaining records were trimmed, and that is noted first.
func (w *worker) forget(ctx context.Context, shards []types.Shard, rows map[string]lease.Row) error {
	for _, s := range shards {
		delete(w.missing, aws.ToString(s.ShardId))
		delete(rows, aws.ToString(s.ShardId))
	}
	w.vanished = false
	for id, row := range rows {
		finished := row.Checkpoint == checkpointEnd
		if !IsShard(id) || !finished && (w.reads(id) || !w.leases.Free(row)) {
			delete(w.missing, id)
			continue
		}
		if w.missing[id]++; w.missing[id] < forgetAfter {
			w.vanished = w.vanished || !finished
			continue
		}
		if !finished {
			w.log.Error("a shard is gone that was not read to its end: records may have been trimmed before they were read", "shard", id, "checkpoint", row.Checkpoint)
			if err := w.noteLoss(ctx); err != nil {
				return err
			}
		}
		delete(w.missing, id)
		if err := w.leases.Forget(ctx, row); err != nil {
			return err
		}
	}
	return nil
}

// IsShard reports whether a row of a consumer is of a shard. Other rows have the consumer's start, its
// stream, a loss of records and its workers.
func IsShard(row string) bool {
	return row != rowStart && row != rowStream && row != rowLost && !lease.IsCrew(row)
}
