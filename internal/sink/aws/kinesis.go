package aws

import (
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
// KinesisParameters, or else is the delivery's key, or else its ID.
func (s *clients) toStream(a arn) (sender, error) {
	name, err := a.name("stream/")
	if err != nil {
		return nil, err
	}
	return batcher[types.PutRecordsRequestEntry]{
		most: recordsMost, bytes: recordsBytes, ordered: true,
		entry: streamEntry,
		call: func(ctx context.Context, entries []types.PutRecordsRequestEntry, results []error) error {
			return s.putRecords(ctx, a, name, entries, results)
		},
	}.deliver, nil
}

func streamEntry(d *target.Delivery) (e types.PutRecordsRequestEntry, size int, err error) {
	given, err := parametersOf(d)
	if err != nil {
		return e, 0, err
	}
	key := given.KinesisParameters.PartitionKey
	if key == "" {
		key = d.Key
	}
	if key == "" {
		key = d.ID
	}
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

// putRecords names the stream both ways: Amazon's Kinesis goes by the ARN, local ones may know only
// names.
func (s *clients) putRecords(ctx context.Context, a arn, name string, entries []types.PutRecordsRequestEntry, results []error) error {
	if err := s.unnamed["kinesis"]; err != nil {
		return err
	}
	there := func(o *kinesis.Options) { o.Region = s.region(a) }
	if len(entries) == 1 {
		_, err := s.kinesis.PutRecord(ctx, &kinesis.PutRecordInput{StreamARN: &a.text, StreamName: &name, Data: entries[0].Data, PartitionKey: entries[0].PartitionKey}, there)
		return err
	}
	out, err := s.kinesis.PutRecords(ctx, &kinesis.PutRecordsInput{StreamARN: &a.text, StreamName: &name, Records: entries}, there)
	if err != nil {
		return err
	}
	for i := range results {
		switch {
		case i >= len(out.Records):
			results[i] = unanswered()
		case sdk.ToString(out.Records[i].ErrorCode) != "":
			results[i] = recordFailure(out.Records[i].ErrorCode, out.Records[i].ErrorMessage)
		}
	}
	return nil
}

// recordFailure returns the failure of a record in a batch. These services refuse a whole batch for
// a faulty record, and a single record only temporarily.
func recordFailure(code, message *string) error {
	return entryFailure(sdk.ToString(code), sdk.ToString(message), strings.Contains(sdk.ToString(code), "AccessDenied"))
}
