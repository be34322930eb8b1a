package consume

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
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
// The goroutine of run owns the fields outside mu, except again, stale, open and makingUp, which the
// goroutines of the readers also use.
type worker struct {
	*Consumer
	arn      string
	leases   *lease.Leases
	crew     *lease.Crew
	progress Progress
	log      *slog.Logger
	// first iterators by shard, if the consumer starts now and at the end of the stream
	latest    map[string]*string
	missing   map[string]int // by shard with a row: consecutive listings without it
	workers   []string       // all workers, by the last look
	again     chan struct{}  // has an element when the shards should be checked again
	changed   bool           // a lease differed from the row that was read
	label     string         // the stream's
	listed    listing        // the last list of the shards, with the children found since
	partial   *listing       // a list that is not complete; nil: none
	stale     atomic.Bool    // all shards are to be listed, for example because a reader has found its shard gone
	started   time.Duration  // when this worker began
	nextList  time.Duration  // when to list all shards next, if scheduled is set
	scheduled bool
	childless map[string]int  // finished shards whose children are unknown: further tries
	born      map[string]bool // children that have no row yet
	askAgain  time.Duration   // when to ask for them again
	unshared  bool            // the last listing has shards that may be neither taken nor published
	// the endpoint does not list the children of a shard alone
	unfiltered bool
	// an unfinished shard is missing from the list; listed again soon, because one listing may omit
	// it
	vanished bool
	begun    bool // the consumer's start is stored
	anew     bool // the stored start was deleted, and the loss is still to be noted
	stalls   *stalls
	readers  sync.WaitGroup
	makingUp atomic.Bool  // Lost is under way
	open     atomic.Int64 // number of unfinished shards
	mu       struct {
		sync.Mutex
		reading  map[string]*held // by shard: the shards that this worker reads
		finished []string         // shards that were read to their end since the last look
	}
}

// held is a shard that a worker reads.
type held struct {
	leave   chan struct{} // closed when another worker is to get the shard; nil: never
	leaving bool
}

const (
	lostPause = time.Second // before a lost shard is tried again
	listSoon  = time.Second // before another listing for which a worker pays
)

func newWorker(c *Consumer, arn string) *worker {
	w := &worker{
		Consumer: c, arn: arn, leases: lease.New(c.DB, c.Name, c.Leases), log: c.Logger.With("consumer", c.Name),
		latest: map[string]*string{}, missing: map[string]int{}, again: make(chan struct{}, 1), stalls: newStalls(c),
		label: labelOf(arn), childless: map[string]int{}, born: map[string]bool{},
	}
	w.crew, w.started = lease.NewCrew(w.leases), w.leases.Elapsed()
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

// wait waits until the shards should be checked again. A worker in the database's own process learns
// of all changes by itself, except a write that an earlier run had begun: it changes a lease between
// reading and taking it; and the first shard of a stream without any, or a child that is listed later
// than the end of its parent.
func (w *worker) wait(ctx context.Context) {
	if next := w.nextLook(); next >= 0 {
		timer := clock.AfterFunc(next, func() { nudge(w.again) })
		defer timer.Stop()
	}
	select {
	case <-w.again:
	case <-ctx.Done():
	}
}

// nextLook returns the time until the shards should be checked again without an event, or -1.
func (w *worker) nextLook() time.Duration {
	next := w.leases.Duration() / lookParts
	soon := retry.Calls.First
	if !w.listsAlways() {
		soon = listSoon
	}
	switch {
	case w.partial != nil:
		return min(next, pagePause)
	case w.changed || w.vanished || w.stale.Load():
		return min(next, soon)
	case len(w.childless) > 0:
		return min(next, listSoon)
	case w.listed.left == 0 || !w.leases.Exclusive():
		return next
	case !w.listsAlways():
		return max(w.nextList-w.leases.Elapsed(), 0)
	}
	return -1
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
	if !fresh && (w.partial != nil && w.listed.left == 0 || w.Start != TrimHorizon && rows[rowStart].Term == 0) {
		_, err := w.crew.Meet(ctx, rows)
		return false, err // what follows needs the whole list
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
	ready, left := w.ready(rows, fresh)
	w.open.Store(int64(left))
	if w.listed.left = left; fresh {
		w.noteShards()
		w.scheduleList(rows)
	}
	workers, err := w.crew.Meet(ctx, rows)
	if err != nil {
		return false, err
	}
	if w.departed(workers) {
		w.stale.Store(true)
	}
	if err := w.share(ctx, ready, workers, rows); err != nil {
		return false, err
	}
	clear(w.born)
	w.unshared = w.unshared && !fresh
	if !fresh {
		return false, nil
	}
	return left == 0 && !w.listed.open, w.forget(ctx, shards, rows)
}

// departed reports whether another worker has gone since the last look and this one is the first of
// the others: it lists all shards. The one that has gone may have finished a shard, and not have
// published the children.
func (w *worker) departed(workers []string) bool {
	before := w.workers
	w.workers = workers
	return workers[0] == w.leases.Owner() && slices.ContainsFunc(before, func(name string) bool { return !slices.Contains(workers, name) })
}

// noteShards notes whether the listed stream can be followed.
func (w *worker) noteShards() {
	var reason error
	if w.listed.left == 0 && w.listed.open {
		reason = errNoShard
	}
	w.stalls.note(listOfShards, reason)
}

// ready returns the rows of the unfinished shards whose parents are finished or gone, and the number
// of unfinished shards. It reports the checkpoints to the progress. A list that is not fresh may
// contain shards that were trimmed since. So a shard without a row counts only if it is in a fresh
// list, or was born; a row is written only when the shard can be read.
func (w *worker) ready(rows map[string]lease.Row, fresh bool) (ready []lease.Row, left int) {
	finished := func(id string) bool { return rows[id].Checkpoint == checkpointEnd }
	for i := range w.listed.shards {
		s := &w.listed.shards[i]
		id, parent := aws.ToString(s.ShardId), aws.ToString(s.ParentShardId)
		row := rows[id]
		row.Shard = id
		if finished(id) {
			w.progress.Checkpoint(id, lastOf(*s))
			continue
		}
		if !fresh && !w.born[id] && !row.Exists() {
			continue
		}
		left++
		if row.Checkpoint != "" && !w.reads(id) {
			w.progress.Checkpoint(id, row.Checkpoint)
		}
		_, listed := w.listed.byID[parent]
		if !listed || finished(parent) || !fresh && !rows[parent].Exists() {
			ready = append(ready, row)
		}
	}
	for id, row := range rows {
		if _, listed := w.listed.byID[id]; listed || !IsShard(id) || finished(id) || !w.knows(row) {
			continue
		}
		left++
		if !fresh && w.missing[id] == 0 { // another worker has listed it since
			ready = append(ready, row)
		}
	}
	return ready, left
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

// share takes free shards up to this worker's share, leaves those beyond it, and publishes the rest.
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
			var err error
			if row.Owner == w.leases.Owner() {
				err = w.leases.Disown(ctx, row)
			} else if !row.Exists() {
				err = w.publish(ctx, row, rows)
			}
			if err != nil {
				return err
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
	if !row.Exists() {
		var err error
		if row, err = w.origin(ctx, row, rows); err != nil {
			return false, err
		}
	} else if row.Origin == "" {
		row.Origin = w.originOf(w.listed.shard(row.Shard)) // the row is of an older version
	}
	_, first, _ := strings.Cut(row.Origin, " ")
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
		finished := w.readShard(ctx, taken, h, first, latest, since)
		w.stalls.note(row.Shard, nil)
		w.mu.Lock()
		delete(w.mu.reading, row.Shard)
		if finished {
			w.mu.finished = append(w.mu.finished, row.Shard)
		}
		w.mu.Unlock()
		nudge(w.again)
	})
	return true, nil
}

// readShard reads a shard until it is finished, ctx is done, or another worker has or is to get it.
// After a failure it continues from the checkpoint. It reports whether the shard is finished.
func (w *worker) readShard(ctx context.Context, taken *lease.Lease, h *held, first string, latest *string, since time.Time) (finished bool) {
	log := w.log.With("shard", taken.Shard(), "term", taken.Term())
	var loss gap
	for pauses := retry.Calls.Start(); ; pauses.Wait(ctx) {
		before := taken.Checkpoint()
		r := &reading{
			Consumer: w.Consumer, window: newWindow(), arn: w.arn, shard: taken.Shard(), lease: taken, leases: w.leases, progress: w.progress, log: log,
			first: first, latest: latest, since: since, leave: h.leave, gap: loss, noteLoss: w.noteLoss, stalls: w.stalls, open: &w.open,
		}
		err := r.run(ctx)
		latest, loss = r.latest, r.gap
		switch {
		case ctx.Err() != nil, errors.Is(err, errLeave):
			w.release(ctx, taken)
			return false
		case errors.Is(err, errReadEnd):
			return true
		case errors.Is(err, lease.ErrLost):
			log.Warn("this worker was silent for longer than its lease and has given up the shard; it, or another worker, continues from the checkpoint")
			clock.Pause(lostPause, ctx.Done())
			w.stale.Store(true) // the shard's end may be saved all the same
			return false
		case errors.Is(err, errGone):
			log.Warn("the shard is gone")
			clock.Pause(lostPause, ctx.Done())
			w.stale.Store(true)
			return false
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

// forget deletes the rows of shards that no longer exist. It keeps the rows of a newer stream. If an unfinished shard has no reader, its
// remaining records were trimmed, and that is noted first.
func (w *worker) forget(ctx context.Context, shards []types.Shard, rows map[string]lease.Row) error {
	for _, s := range shards {
		delete(w.missing, aws.ToString(s.ShardId))
		delete(rows, aws.ToString(s.ShardId))
	}
	w.vanished = false
	for id, row := range rows {
		finished := row.Checkpoint == checkpointEnd
		if label, _, _ := strings.Cut(row.Origin, " "); label > w.label || !IsShard(id) || !finished && (w.reads(id) || !w.leases.Free(row)) {
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
