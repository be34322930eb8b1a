package fromkinesis

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/work/lease"
	"github.com/mayflydb/mayfly/internal/work/retry"
	"github.com/mayflydb/mayfly/timeseries"
)

// reader reads one shard under one lease.
type reader struct {
	*ingesting
	lease    *lease.Lease
	at       checkpoint
	written  string // the saved checkpoint
	since    clock.Elapsed
	unsaved  bool    // records lie between the saved checkpoint and the current one
	iterator *string // nil: request one
	ended    bool    // the shard is finished
	pauses   *retry.Backoff
}

// shard reads a shard until its end, until ctx is done, or with UntilCaughtUp until it has caught
// up.
func (in *ingesting) shard(ctx context.Context, l *lease.Lease) error {
	r := &reader{ingesting: in, lease: l, written: l.Checkpoint(), since: clock.Stopwatch(), pauses: retry.Policy{First: againFirst, Most: againMost, Jitter: true}.Start()}
	at, ok := readCheckpoint(l.Checkpoint())
	if !ok {
		in.o.Logger.Warn("the checkpoint of a shard is damaged; it is read from its beginning", "shard", l.Shard(), "checkpoint", l.Checkpoint())
	}
	r.at = at
	if err := r.persist(ctx, r.checkRetention); err != nil {
		return err
	}
	for ctx.Err() == nil && !r.ended {
		var read page
		err := r.persist(ctx, func(ctx context.Context) (err error) {
			read, err = r.page(ctx)
			return err
		})
		switch {
		case err != nil:
			return err
		case ctx.Err() != nil:
		case read.caughtUp && in.o.UntilCaughtUp:
			err := r.save(ctx, r.at.String())
			in.mu.Lock()
			in.mu.caughtUp[l.Shard()] = err == nil
			in.mu.Unlock()
			return err
		case read.records == 0 && !r.ended:
			clock.Pause(idlePause, ctx.Done())
		case read.atEnd:
			clock.Pause(callsPause, ctx.Done())
		}
	}
	if r.ended {
		return r.save(ctx, lease.Done)
	}
	return r.save(ctx, r.at.String())
}

// persist retries a call of Kinesis until it succeeds or fails for good. It returns nil once ctx is
// done.
func (r *reader) persist(ctx context.Context, do func(context.Context) error) error {
	for {
		err := do(ctx)
		var lasting *lastingError
		var expired *types.ExpiredIteratorException
		switch {
		case err == nil:
			r.pauses.Reset()
			return nil
		case ctx.Err() != nil:
			return nil
		case errors.As(err, &lasting), errors.Is(err, lease.ErrLost):
			return err
		case errors.As(err, &expired):
			r.iterator = nil
			clock.Pause(callsPause, ctx.Done())
			continue
		}
		r.o.Logger.Warn("reading a shard failed; trying again", "shard", r.lease.Shard(), "error", err, "after", r.pauses.Next())
		r.pauses.Wait(ctx)
	}
}

// checkRetention reports a possible loss, once, if the checkpoint is older than the stream's
// retention: records that arrived after it may have been deleted.
func (r *reader) checkRetention(ctx context.Context) error {
	if r.at.until.IsZero() {
		return nil
	}
	keeps, err := r.retention(ctx)
	if err != nil {
		return r.explain(err)
	}
	if first := r.now().Add(-keeps); r.at.until.Before(first) {
		r.lost("shard %s may have had records from %s to %s that were deleted before they were read", r.lease.Shard(), r.at.until.Format(time.RFC3339), first.Format(time.RFC3339))
		r.at.until = first // report once
	}
	return nil
}

// page is the outcome of reading a page.
type page struct {
	records  int
	caughtUp bool // the page was empty, and no record follows
	atEnd    bool // no record follows
}

// page reads a page, writes its samples, and saves the checkpoint after records, and otherwise
// every idleSave. At the end of the shard it sets ended and leaves the saving to its caller.
func (r *reader) page(ctx context.Context) (read page, err error) {
	select {
	case r.pages <- struct{}{}:
		defer func() { <-r.pages }()
	case <-ctx.Done():
		return read, ctx.Err()
	}
	if r.iterator == nil {
		if err := r.begin(ctx); err != nil || r.ended {
			return read, err
		}
	}
	asked := r.now()
	out, err := r.o.Client.GetRecords(ctx, &kinesis.GetRecordsInput{ShardIterator: r.iterator, Limit: aws.Int32(pageMax)})
	if err != nil {
		return read, r.failed(ctx, err)
	}
	read.records = len(out.Records)
	read.atEnd = aws.ToInt64(out.MillisBehindLatest) == 0
	next := r.at
	next.until = asked.Add(-time.Duration(aws.ToInt64(out.MillisBehindLatest)) * time.Millisecond)
	if read.records > 0 {
		last := out.Records[read.records-1]
		if next.sequence = aws.ToString(last.SequenceNumber); last.ApproximateArrivalTimestamp != nil {
			next.until = *last.ApproximateArrivalTimestamp
		}
		if _, err := r.r.Receive(ctx, r.messages(out.Records)...); err != nil {
			r.iterator = nil
			return read, &lastingError{err} // its writer has retried already
		}
	}
	r.at, r.iterator, r.ended = next, out.NextShardIterator, aws.ToString(out.NextShardIterator) == ""
	r.unsaved = r.unsaved || read.records > 0
	// a finished shard may have children to read
	read.caughtUp = read.atEnd && read.records == 0 && !r.ended
	if r.ended || !r.unsaved && r.since() < idleSave {
		return read, nil
	}
	return read, r.save(ctx, r.at.String())
}

// begin requests an iterator after the checkpoint, or at the shard's beginning without one. If the
// shard no longer has the checkpoint, begin reports a loss and starts at the beginning.
func (r *reader) begin(ctx context.Context) error {
	request := &kinesis.GetShardIteratorInput{StreamName: &r.o.Stream, ShardId: aws.String(r.lease.Shard()), ShardIteratorType: types.ShardIteratorTypeTrimHorizon}
	if r.at.sequence != "" {
		request.ShardIteratorType, request.StartingSequenceNumber = types.ShardIteratorTypeAfterSequenceNumber, &r.at.sequence
	}
	out, err := r.o.Client.GetShardIterator(ctx, request)
	var invalid *types.InvalidArgumentException
	switch {
	case err == nil:
		r.iterator = out.ShardIterator
		return nil
	case errors.As(err, &invalid) && r.at.sequence != "":
		r.lost("shard %s no longer has the checkpoint (%v); it is read from its beginning", r.lease.Shard(), err)
		r.at = checkpoint{}
		return r.begin(ctx)
	}
	return r.failed(ctx, err)
}

// failed interprets an error of a call for the shard. A missing shard of an existing stream was
// deleted at the end of its retention: failed reports its records as lost, and ends the reader
// without an error. Other errors it returns, as explain does.
func (r *reader) failed(ctx context.Context, err error) error {
	if _, ok := errors.AsType[*types.ResourceNotFoundException](err); !ok {
		return r.explain(err)
	}
	if _, err := r.describe(ctx); err != nil {
		return err
	}
	r.lost("shard %s is gone and was not read to its end", r.lease.Shard())
	r.ended = true
	return nil
}

// aggregated is the prefix of records into which the Kinesis Producer Library packs several.
var aggregated = []byte{0xf3, 0x89, 0x9a, 0xc2}

func (r *reader) messages(records []types.Record) []timeseries.Message {
	messages := make([]timeseries.Message, len(records))
	for i, record := range records {
		messages[i] = timeseries.Message{Text: record.Data, From: fmt.Sprintf("%s %s %s", r.o.Stream, r.lease.Shard(), aws.ToString(record.SequenceNumber))}
		if bytes.HasPrefix(record.Data, aggregated) {
			messages[i].Unfit = "aggregated records of the Kinesis Producer Library are not supported; set AggregationEnabled to false"
		}
	}
	return messages
}

// save stores text as the checkpoint, unless it is stored already or has no position. It does so
// even after ctx is done, because the records before it are durable, and retries for saveLimit. If
// another process holds the lease, it stores nothing and returns lease.ErrLost.
func (r *reader) save(ctx context.Context, text string) error {
	if text == r.written || text == (checkpoint{}).String() {
		return nil
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveLimit)
	defer cancel()
	for {
		err := r.lease.Save(limited, text)
		switch {
		case err == nil:
			r.written, r.since = text, clock.Stopwatch()
			if r.unsaved {
				r.unsaved = false
				r.saved()
			}
			return nil
		case errors.Is(err, lease.ErrLost), limited.Err() != nil:
			return err
		case fatal(err):
			return &lastingError{fmt.Errorf("save the checkpoint of the shard %s: %w", r.lease.Shard(), err)}
		}
		clock.Pause(againFirst, limited.Done())
	}
}
