package aws

import (
	"context"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/firehose"
	"github.com/aws/aws-sdk-go-v2/service/firehose/types"

	"github.com/mayflydb/mayfly/target"
)

// toFirehose puts records whose data are the delivery's body.
func (s *clients) toFirehose(a arn) (sender, error) {
	name, err := a.name("deliverystream/")
	if err != nil {
		return nil, err
	}
	return batcher[types.Record]{
		most: recordsMost, bytes: recordsBytes,
		entry: func(d *target.Delivery) (types.Record, int, error) {
			return types.Record{Data: append([]byte{}, d.Body...)}, len(d.Body), nil
		},
		call: func(ctx context.Context, entries []types.Record, results []error) error {
			return s.putFirehose(ctx, a, name, entries, results)
		},
	}.deliver, nil
}

func (s *clients) putFirehose(ctx context.Context, a arn, name string, entries []types.Record, results []error) error {
	if err := s.unnamed["firehose"]; err != nil {
		return err
	}
	there := func(o *firehose.Options) { o.Region = s.region(a) }
	if len(entries) == 1 {
		_, err := s.firehose.PutRecord(ctx, &firehose.PutRecordInput{DeliveryStreamName: &name, Record: &entries[0]}, there)
		return err
	}
	out, err := s.firehose.PutRecordBatch(ctx, &firehose.PutRecordBatchInput{DeliveryStreamName: &name, Records: entries}, there)
	if err != nil {
		return err
	}
	for i := range results {
		switch {
		case i >= len(out.RequestResponses):
			results[i] = unanswered()
		case sdk.ToString(out.RequestResponses[i].ErrorCode) != "":
			results[i] = recordFailure(out.RequestResponses[i].ErrorCode, out.RequestResponses[i].ErrorMessage)
		}
	}
	return nil
}
