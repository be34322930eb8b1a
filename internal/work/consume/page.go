package consume

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	dynamodbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/work/retry"
)

const (
	// headerWait asks GetRecords to wait for a record. A server that supports it returns its
	// waiting time, in milliseconds, in the same header.
	headerWait = "X-Mayfly-Wait-Ms"
	waitAsked  = time.Hour

	// headerBefore is the header in which a server reports the start of a LATEST iterator: the
	// sequence number before it.
	headerBefore = "X-Mayfly-Before"
)

var askToWait = func(o *dynamodbstreams.Options) {
	o.APIOptions = append(o.APIOptions, smithyhttp.SetHeaderValue(headerWait, strconv.FormatInt(waitAsked.Milliseconds(), 10)))
}

// answered returns a header of an answer.
func answered(m middleware.Metadata, header string) string {
	if response, ok := awsmiddleware.GetRawResponse(m).(*smithyhttp.Response); ok {
		return response.Header.Get(header)
	}
	return ""
}

// page reads a page, and returns it with the next iterator, which is nil at the shard's end. held
// reports whether the server waits for records by itself. page retries calls that fail. A page may
// be empty.
func (r *reading) page(ctx context.Context, iterator *string, limit int) (records []types.Record, next *string, held bool, err error) {
	call, cancel := r.untilLeave(ctx)
	defer cancel()
	var out *dynamodbstreams.GetRecordsOutput
	err = retry.Until(call, r.log, retry.Calls, "read records", func() (err error) {
		out, err = r.Streams.GetRecords(call, &dynamodbstreams.GetRecordsInput{ShardIterator: iterator, Limit: aws.Int32(int32(limit))}, askToWait)
		if gone(err) || lostPlace(err) {
			return retry.Final(err)
		}
		if call.Err() == nil {
			r.stalls.note(r.shard, err)
		}
		if err != nil && retry.Classify(err) == retry.Throttled {
			r.throttled = clock.Stopwatch()
		}
		return err
	})
	switch {
	case lostPlace(err):
		next, err = r.iteratorAgain(ctx, err)
		return nil, next, true, err
	case gone(err):
		return nil, nil, false, errGone
	case err != nil && stopped(r.leave):
		return nil, iterator, true, nil
	case err != nil:
		return nil, nil, false, context.Cause(ctx)
	}
	granted := answered(out.ResultMetadata, headerWait)
	return out.Records, out.NextShardIterator, granted != "" && granted != "0", nil
}

// gone reports whether an error says that a table, a stream or a shard does not exist.
func gone(err error) bool {
	var noTable *dynamodbtypes.ResourceNotFoundException
	var noStream *types.ResourceNotFoundException
	return errors.As(err, &noTable) || errors.As(err, &noStream)
}

// lostPlace reports whether an error makes an iterator useless: it has expired, or its place was
// trimmed.
func lostPlace(err error) bool {
	var old *types.ExpiredIteratorException
	return errors.As(err, &old) || trimmed(err)
}

func trimmed(err error) bool {
	var cut *types.TrimmedDataAccessException
	return errors.As(err, &cut)
}

// iterator returns an iterator after the records that were read.
func (r *reading) iterator(ctx context.Context) (*string, error) {
	at := cmp.Or(r.last(), r.lease.Checkpoint())
	if at == "" && r.latest != nil {
		from := r.latest
		r.latest = nil // usable once: a later call starts from what is known then
		return from, nil
	}
	in := &dynamodbstreams.GetShardIteratorInput{StreamArn: &r.arn, ShardId: &r.shard, ShardIteratorType: types.ShardIteratorTypeTrimHorizon}
	if at != "" {
		in.ShardIteratorType, in.SequenceNumber = types.ShardIteratorTypeAfterSequenceNumber, &at
		return r.iteratorFor(ctx, in)
	}
	iterator, err := r.iteratorFor(ctx, in)
	if err == nil {
		err = r.checkBegin(ctx) // after the iterator, so that nothing is trimmed in between
	}
	return iterator, err
}

// iteratorFor requests an iterator. If its place was trimmed, the iterator begins at the oldest
// record.
func (r *reading) iteratorFor(ctx context.Context, in *dynamodbstreams.GetShardIteratorInput) (*string, error) {
	var out *dynamodbstreams.GetShardIteratorOutput
	err := retry.Until(ctx, r.log, retry.Calls, "find the place in a shard", func() (err error) {
		out, err = r.Streams.GetShardIterator(ctx, in)
		if trimmed(err) || gone(err) || in.SequenceNumber != nil && retry.Invalid(err) {
			return retry.Final(err)
		}
		if err != nil && ctx.Err() == nil { // a page shows whether the shard can be read
			r.stalls.note(r.shard, err)
		}
		return err
	})
	switch {
	case in.SequenceNumber != nil && retry.Invalid(err): // the number is not of the shard
		r.log.Warn("the checkpoint is not a sequence number of the shard; it is read from its oldest record", "checkpoint", *in.SequenceNumber, "error", err)
		return r.iteratorFor(ctx, &dynamodbstreams.GetShardIteratorInput{
			StreamArn: &r.arn, ShardId: &r.shard, ShardIteratorType: types.ShardIteratorTypeTrimHorizon,
		})
	case trimmed(err) && in.SequenceNumber != nil:
		return r.iteratorAgain(ctx, err)
	case trimmed(err), gone(err):
		return nil, errGone
	case err != nil:
		return nil, context.Cause(ctx)
	}
	return out.ShardIterator, nil
}

// iteratorAgain returns an iterator at the place of the last one, or at the oldest record if that
// place was trimmed.
func (r *reading) iteratorAgain(ctx context.Context, err error) (*string, error) {
	if !trimmed(err) {
		return r.iterator(ctx)
	}
	if err := r.trimmed(ctx); err != nil {
		return nil, err
	}
	return r.iteratorFor(ctx, &dynamodbstreams.GetShardIteratorInput{
		StreamArn: &r.arn, ShardId: &r.shard, ShardIteratorType: types.ShardIteratorTypeTrimHorizon,
	})
}
