package aws

import (
	"cmp"
	"context"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/mayflydb/mayfly/target"
)

// The limits of Kinesis and Firehose for a call. Firehose accepts 4 MB, Kinesis more.
const (
	recordsMost  = 500
	recordsBytes = 4 << 20
	partitionMax = 256 // characters of a partition key
)

// toStream puts records. The data is the delivery's body. The partition key comes from the
// KinesisParameters, or else is the delivery's key, or else its ID. The stream is named both ways:
// Amazon's Kinesis goes by the ARN, local ones may know only names.
func (s *clients) toStream(a arn) (sender, error) {
	name, err := a.name("stream/")
	if err != nil {
		return nil, err
	}
	there := func(o *kinesis.Options) { o.Region = s.region(a) }
	return batcher[types.PutRecordsRequestEntry]{
		most: recordsMost, bytes: recordsBytes, ordered: true,
		entry: streamEntry,
		one: func(ctx context.Context, e types.PutRecordsRequestEntry) error {
			_, err := s.kinesis.PutRecord(ctx, &kinesis.PutRecordInput{
				StreamARN: &a.text, StreamName: &name, Data: e.Data, PartitionKey: e.PartitionKey,
			}, there)
			return err
		},
		call: func(ctx context.Context, entries []types.PutRecordsRequestEntry, results []error) error {
			out, err := s.kinesis.PutRecords(ctx, &kinesis.PutRecordsInput{StreamARN: &a.text, StreamName: &name, Records: entries}, there)
			if err != nil {
				return err
			}
			return inOrder(results, out.Records, func(e types.PutRecordsResultEntry) error {
				return recordFailure(e.ErrorCode, e.ErrorMessage)
			})
		},
	}.deliver, nil
}

func streamEntry(d *target.Delivery) (e types.PutRecordsRequestEntry, size int, err error) {
	given, err := parametersOf(d)
	if err != nil {
		return e, 0, err
	}
	key := cmp.Or(given.KinesisParameters.PartitionKey, d.Key)
	key = cmp.Or(key, d.ID)
	e.Data, e.PartitionKey = d.Body, sdk.String(firstRunes(key, partitionMax))
	if e.Data == nil {
		e.Data = []byte{}
	}
	return e, len(d.Body) + len(key), nil
}

// firstRunes cuts a text to so many characters. Deliveries of one key still share a partition then.
func firstRunes(text string, most int) string {
	n := 0
	for i := range text {
		if n++; n > most {
			return text[:i]
		}
	}
	return text
}

// recordFailure returns the failure of a record in a batch, or nil without a code. These services
// refuse a whole batch for a faulty record, and a single record only temporarily. Missing access is
// the exception: it is permanent.
func recordFailure(code, message *string) error {
	return entryFailure(code, message, strings.Contains(sdk.ToString(code), "AccessDenied"))
}
