package deliver

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/mayflydb/mayfly/internal/work/retry"
)

const (
	// headerWait asks GetRecords to hold its answer while there is no record; a server that knows it says in the same header for how many milliseconds it would.
	headerWait = "X-Mayfly-Wait-Ms"
	waitAsked  = time.Hour

	// headerBefore is how a server that knows it says where the iterator of type LATEST begins: behind this sequence number.
	headerBefore = "X-Mayfly-Before"
)

var askToWait = func(o *dynamodbstreams.Options) {
	o.APIOptions = append(o.APIOptions, smithyhttp.SetHeaderValue(headerWait, strconv.FormatInt(waitAsked.Milliseconds(), 10)))
}

// answered gives a header of an answer.
func answered(m middleware.Metadata, header string) string {
	if response, ok := awsmiddleware.GetRawResponse(m).(*smithyhttp.Response); ok {
		return response.Header.Get(header)
	}
	return ""
}

// page reads a page and gives the iterator behind it; that is nil at the shard's end. held says that the server holds calls itself while there is no record. An
// endpoint that fails is asked again. A page may be empty for other reasons too.
func (r *reading) page(ctx context.Context, iterator *string, limit int) (records []types.Record, next *string, held bool, err error) {
	call, cancel := r.untilLeave(ctx)
	defer cancel()
	var out *dynamodbstreams.GetRecordsOutput
	err = retry.Until(call, r.log, afterFailure, "read records", func() (err error) {
		out, err = r.Streams.GetRecords(call, &dynamodbstreams.GetRecordsInput{ShardIterator: iterator, Limit: aws.Int32(int32(limit))}, askToWait)
		if gone(err) || lostPlace(err) {
			return retry.Final(err)
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

// lostPlace reports an error by which an iterator is of no more use: it is too old, or its place was trimmed.
func lostPlace(err error) bool {
	var old *types.ExpiredIteratorException
	return errors.As(err, &old) || trimmed(err)
}

// noPlace reports an error by which a sequence number is none of the shard.
func noPlace(err error) bool {
	var api smithy.APIError
	return errors.As(err, &api) && api.ErrorCode() == "ValidationException"
}

func trimmed(err error) bool {
	var cut *types.TrimmedDataAccessException
	return errors.As(err, &cut)
}

// iterator begins behind what was read.
func (r *reading) iterator(ctx context.Context) (*string, error) {
	at := r.last()
	if at == "" {
		at = r.lease.Checkpoint()
	}
	if at == "" && r.latest != nil {
		from := r.latest
		r.latest = nil // it serves once: another try begins with what is known then
		return from, nil
	}
	in := &dynamodbstreams.GetShardIteratorInput{StreamArn: &r.arn, ShardId: &r.shard, ShardIteratorType: types.ShardIteratorTypeTrimHorizon}
	if at != "" {
		in.ShardIteratorType, in.SequenceNumber = types.ShardIteratorTypeAfterSequenceNumber, &at
	}
	return r.iteratorFor(ctx, in)
}

// iteratorFor asks for an iterator. Where its place was trimmed it begins at the oldest record that there is.
func (r *reading) iteratorFor(ctx context.Context, in *dynamodbstreams.GetShardIteratorInput) (*string, error) {
	var out *dynamodbstreams.GetShardIteratorOutput
	err := retry.Until(ctx, r.log, afterFailure, "find the place in a shard", func() (err error) {
		out, err = r.Streams.GetShardIterator(ctx, in)
		if trimmed(err) || gone(err) || in.SequenceNumber != nil && noPlace(err) {
			return retry.Final(err)
		}
		return err
	})
	switch {
	case in.SequenceNumber != nil && noPlace(err):
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

// iteratorAgain begins where the last iterator was, or, when that place was trimmed, at the oldest record that there is.
func (r *reading) iteratorAgain(ctx context.Context, err error) (*string, error) {
	if !trimmed(err) {
		return r.iterator(ctx)
	}
	r.log.Error("records may have been trimmed before they were read", "after", r.last(), "checkpoint", r.lease.Checkpoint())
	r.lost(r.shard)
	return r.iteratorFor(ctx, &dynamodbstreams.GetShardIteratorInput{
		StreamArn: &r.arn, ShardId: &r.shard, ShardIteratorType: types.ShardIteratorTypeTrimHorizon,
	})
}
