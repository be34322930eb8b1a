package deliver

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/mayflydb/mayfly/internal/work/lease"
	"github.com/mayflydb/mayfly/internal/work/retry"
)

const (
	pageMax = 1000 // the most that GetRecords gives

	settleLimit = 250 * time.Millisecond // for records under way when Run ends, where Settle does not say
)

// polling is how often a server is asked that does not hold calls itself.
var polling = retry.Policy{First: 10 * time.Millisecond, Most: time.Second}

// checkpointEnd is the checkpoint of a shard that was read to its end.
const checkpointEnd = "end"

// reading is one stretch of reading a shard under one lease, from its checkpoint on. One goroutine reads, and one keeps the lease and the checkpoint.
type reading struct {
	*Consumer
	*window
	arn      string
	shard    string
	lease    *lease.Lease
	leases   *lease.Leases
	progress Progress
	log      *slog.Logger
	latest   *string       // where to begin if there is no checkpoint; nil: at the horizon
	since    time.Time     // records from before it are passed over; zero: none are
	leave    chan struct{} // closed when the shard is to be left to another worker; nil: never
	stop     context.CancelCauseFunc
}

var (
	errReadEnd = errors.New("the shard was read to its end")
	errLeave   = errors.New("the shard is left to another worker")
	errGone    = errors.New("the shard is gone")
)

// run reads until something ends it, saves the checkpoint, and says what it was: errReadEnd, errLeave, errGone, lease.ErrLost, an error of ctx or one of Handle.
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
		<-reads.Done() // the keeper stops it once all is done
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

// settle waits until no record is under way, ctx is done or the limit is over.
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

// settleLast waits, when Run ends, until no record is under way or nothing more will come of those that are: the checkpoint that is saved then is the last one.
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

// read hands over the records of the shard, until its end: that is nil.
func (r *reading) read(ctx context.Context) error {
	iterator, err := r.iterator(ctx)
	for pauses := polling.Start(); err == nil && iterator != nil; {
		var room int
		if room, err = r.waitForRoom(ctx); err != nil {
			return err
		}
		var page []types.Record
		var held bool
		page, iterator, held, err = r.page(ctx, iterator, min(room, pageMax))
		switch {
		case err != nil:
			return err
		case len(page) > 0:
			pauses.Reset()
			err = r.hand(ctx, page)
		case !held && iterator != nil:
			r.pause(ctx, pauses)
		}
		if err == nil {
			err = r.mayGoOn(ctx)
		}
	}
	return err
}

// mayGoOn is asked at each page's end.
func (r *reading) mayGoOn(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if stopped(r.leave) {
		return errLeave
	}
	return nil
}

// pause waits, or until the shard is to be left.
func (r *reading) pause(ctx context.Context, pauses *retry.Backoff) {
	ctx, cancel := r.untilLeave(ctx)
	defer cancel()
	pauses.Wait(ctx)
}

// untilLeave is a context that is also done when the shard is to be left.
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

// waitForRoom waits until the window takes more records, and says how many.
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

// hand gives a page to Handle.
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

// passOver leaves out what was written before the consumer's beginning. The times of records are whole seconds.
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
