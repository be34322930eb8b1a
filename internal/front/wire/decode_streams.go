package wire

import (
	"context"
	"strconv"
	"time"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/service"
)

func decodeListStreams(d *decoder, in *service.ListStreamsInput) {
	d.read(members{
		{"TableName", &in.TableName},
		{"Limit", &in.Limit},
		{"ExclusiveStartStreamArn", &in.StartARN},
	})
}

func decodeDescribeStream(d *decoder, in *service.DescribeStreamInput) {
	d.read(members{
		{"StreamArn", &in.ARN},
		{"Limit", &in.Limit},
		{"ExclusiveStartShardId", &in.StartShardID},
		{"ShardFilter", func() {
			if d.Struct("ShardFilter") {
				in.Filtered, in.FilterType, in.ParentOnly = true, service.Opt[string]{}, service.Opt[string]{} // the last one counts
				d.read(members{{"Type", &in.FilterType}, {"ShardId", &in.ParentOnly}})
			}
		}},
	})
}

func decodeGetShardIterator(d *decoder, in *service.GetShardIteratorInput) {
	d.read(members{
		{"StreamArn", &in.ARN},
		{"ShardId", &in.ShardID},
		{"ShardIteratorType", &in.Type},
		{"SequenceNumber", &in.Sequence},
	})
}

func decodeGetRecords(d *decoder, in *service.GetRecordsInput) {
	d.read(members{
		{"ShardIterator", &in.Iterator},
		{"Limit", &in.Limit},
	})
	in.Wait = d.wait()
}

// headerBefore is in an answer of GetShardIterator for the type LATEST: the last sequence number
// before the iterator. A consumer can store it as its position, which it cannot do with an
// iterator.
const headerBefore = "X-Mayfly-Before"

// getShardIterator is the operation GetShardIterator, made by hand because only its method knows
// the value of headerBefore.
func getShardIterator(ctx context.Context, s *service.Service, d *decoder, w *writer) error {
	method := func(s *service.Service, ctx context.Context, in *service.GetShardIteratorInput) (*service.GetShardIteratorOutput, error) {
		out, err := s.GetShardIterator(ctx, in)
		if err == nil && out.Before != "" {
			d.response.set(headerBefore, out.Before)
		}
		return out, err
	}
	return bind(decodeGetShardIterator, method, encodeGetShardIterator)(ctx, s, d, w)
}

// getRecords reads records. If it waits for some, it waits at most until the server releases held
// answers.
func getRecords(s *service.Service, ctx context.Context, in *service.GetRecordsInput) (*service.GetRecordsOutput, error) {
	if in.Wait > 0 {
		released, stop := Releasing(ctx)
		defer stop()
		ctx = released
	}
	return s.GetRecords(ctx, in)
}

// headerWait asks GetRecords to wait up to so many milliseconds for a record. The answer has the
// wait that applied, which may be shorter, so that a client knows that the endpoint supports it.
const headerWait = "X-Mayfly-Wait-Ms"

// The longest wait; longer ones are shortened to it. A device on a network may drop a silent
// connection. In process nothing does, so the bound is the life of a shard iterator, less a margin.
const (
	waitMax          = 20 * time.Second
	waitMaxInProcess = 15*time.Minute - 30*time.Second
)

// wait returns the wait that applies and writes it into the answer's headerWait. Without the header
// it returns 0. The error for a bad value waits in d.invalid.
func (d *decoder) wait() time.Duration {
	value := d.request.Header.Get(headerWait)
	if value == "" {
		return 0
	}
	ms, err := strconv.ParseUint(value, 10, 32)
	if err != nil {
		d.invalid = dynamo.Invalid(headerWait + " must be a number of milliseconds: " + value)
		return 0
	}
	most := waitMax
	if d.request.InProcess {
		most = waitMaxInProcess
	}
	wait := min(time.Duration(ms)*time.Millisecond, most)
	d.response.set(headerWait, strconv.FormatInt(wait.Milliseconds(), 10))
	return wait
}
