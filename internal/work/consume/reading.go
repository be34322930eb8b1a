package consume

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/work/lease"
	"github.com/mayflydb/mayfly/internal/work/retry"
)

const (
	pageMax = 1000 // maximum of GetRecords

	// for unfinished records when Run ends; the default of Settle
	settleLimit = 250 * time.Millisecond
)

// polling is the policy of calls to a server that answers at once if there is no record.
var polling = retry.Policy{First: 10 * time.Millisecond, Most: time.Second}

// throttledEach is the shortest time between two calls for a shard for throttledFor after the endpoint
// has throttled one, unless the page before was full. Amazon allows five calls a second for each shard;
// each refused one costs a pause, and the pauses grow while records wait.
const (
	throttledEach = 250 * time.Millisecond
	throttledFor  = 5 * time.Minute
)

// checkpointEnd is the checkpoint of a finished shard.
const checkpointEnd = "end"

// reading reads a shard under one lease, from its checkpoint on. One goroutine reads; another one
// keeps the lease and the checkpoint.
type reading struct {
	*Consumer
	*window
	arn       string
	shard     string
	lease     *lease.Lease
	leases    *lease.Leases
	progress  Progress
	log       *slog.Logger
	first     string        // sequence number at which the shard begins; "": unknown
	latest    *string       // start without a checkpoint; nil: the oldest record
	since     time.Time     // earlier records are skipped; zero: none
	leave     chan struct{} // closed when another worker is to get the shard; nil: never
	gap       gap
	throttled func() time.Duration // since the endpoint has throttled a call; nil: never
	noteLoss  func(context.Context) error
	stalls    *stalls
	open      *atomic.Int64 // number of unfinished shards of the stream
	stop      context.CancelCauseFunc
}

var (
	errReadEnd = errors.New("the shard was read to its end")
	errLeave   = errors.New("the shard is left to another worker")
	errGone    = errors.New("the shard is gone")
)

// run reads and then saves the checkpoint. It returns the reason of the end: errReadEnd, errLeave,
// errGone, lease.ErrLost, ctx's error or an error of Handle.
func (r *reading) run(ctx context.Context) error {
	reads, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	r.stop = stop
	keeps, end := context.WithCancel(context.WithoutCancel(ctx))
	kept := make(chan struct{})
	go func() {
		defer close(kept)
		r.keep(keeps)
	}()
	err := r.read(reads)
	switch {
	case err == nil:
		r.end()
		<-reads.Done() // the keeper stops the reading when all records are done
	case errors.Is(err, errLeave), errors.Is(err, errGone):
		r.settle(reads, r.leases.Duration())
	}
	if ctx.Err() != nil {
		r.settleLast(keeps)
	}
	end()
	<-kept
	if cause := context.Cause(reads); cause != nil {
		return cause
	}
	return err
}

// settle waits until all records are done, ctx is done or the limit has passed.
func (r *reading) settle(ctx context.Context, limit time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for r.position().held > 0 && ctx.Err() == nil {
		select {
		case <-r.room:
		case <-ctx.Done():
		}
	}
}

// settleLast waits, when Run ends, until all records are done or no further one can become done.
// The checkpoint saved afterwards is the last one.
func (r *reading) settleLast(ctx context.Context) {
	if r.Settle == nil {
		r.settle(ctx, settleLimit)
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	settled := make(chan struct{})
	go func() {
		defer close(settled)
		defer cancel()
		r.Settle(ctx, r.shard)
	}()
	for r.position().held > 0 && ctx.Err() == nil {
		select {
		case <-r.room:
		case <-ctx.Done():
		}
	}
	cancel()
	<-settled
}

// read hands over the records of the shard. It returns nil at the shard's end.
func (r *reading) read(ctx context.Context) error {
	iterator, err := r.iterator(ctx)
	for pauses := polling.Start(); err == nil && iterator != nil; {
		var room int
		if room, err = r.waitForRoom(ctx); err != nil {
			return err
		}
		var page []types.Record
		var held bool
		asked := clock.Stopwatch()
		page, iterator, held, err = r.page(ctx, iterator, min(room, pageMax))
		if err == nil && r.gap.ahead && (len(page) > 0 || iterator == nil) {
			first := ""
			if len(page) > 0 {
				first = Record{Record: page[0]}.Sequence()
			}
			err = r.pass(ctx, first)
		}
		switch {
		case err != nil:
			return err
		case len(page) > 0:
			pauses.Reset()
			err = r.hand(ctx, page)
		case !held && iterator != nil:
			r.pause(ctx, pauses)
		}
		if r.throttled != nil && r.throttled() < throttledFor && err == nil && iterator != nil && len(page) < min(room, pageMax) {
			r.rest(ctx, throttledEach-asked())
		}
		if err == nil {
			err = r.mayGoOn(ctx)
		}
	}
	return err
}

// mayGoOn returns an error if the reading is to end. It is called after each page.
func (r *reading) mayGoOn(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if stopped(r.leave) {
		return errLeave
	}
	return nil
}

// pause pauses, at most until the shard is to be left.
func (r *reading) pause(ctx context.Context, pauses *retry.Backoff) {
	ctx, cancel := r.untilLeave(ctx)
	defer cancel()
	pauses.Wait(ctx)
}

// rest waits, at most until the shard is to be left.
func (r *reading) rest(ctx context.Context, wait time.Duration) {
	if wait <= 0 {
		return
	}
	ctx, cancel := r.untilLeave(ctx)
	defer cancel()
	clock.Pause(wait, ctx.Done())
}

// untilLeave returns a context that is also done when the shard is to be left.
func (r *reading) untilLeave(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	if r.leave == nil {
		return ctx, cancel
	}
	go func() {
		select {
		case <-r.leave:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// waitForRoom waits until the window has room, and returns the number of records that fit.
func (r *reading) waitForRoom(ctx context.Context) (int, error) {
	for {
		if at := r.position(); at.held < r.Window && at.bytes < windowBytes {
			return r.Window - at.held, nil
		}
		select {
		case <-r.room:
		case <-r.leave:
			return 0, errLeave
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
}

// hand passes a page to Handle.
func (r *reading) hand(ctx context.Context, page []types.Record) error {
	records := make([]Record, len(page))
	for i := range page {
		records[i] = Record{Record: page[i], reading: r}
	}
	first, last := r.add(records), records[len(records)-1].Sequence()
	for i := range records {
		records[i].place = first + int64(i)
	}
	if !r.since.IsZero() {
		records = r.passOver(records)
	}
	if len(records) > 0 {
		if err := r.Handle(ctx, r.shard, records); err != nil {
			return err
		}
	}
	r.progress.Taken(r.shard, last)
	return nil
}

// passOver skips records from before the consumer's start. Times of records are whole seconds.
func (r *reading) passOver(records []Record) []Record {
	kept := records[:0:0]
	for _, record := range records {
		at := record.Dynamodb.ApproximateCreationDateTime
		if at != nil && at.Before(r.since.Truncate(time.Second)) {
			record.Done()
			continue
		}
		kept = append(kept, record)
	}
	return kept
}

// stopped reports whether a channel is closed; a nil channel is not.
func stopped(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
