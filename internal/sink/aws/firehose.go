package aws

import (
	"context"

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
	there := func(o *firehose.Options) { o.Region = s.region(a) }
	return batcher[types.Record]{
		most: recordsMost, bytes: recordsBytes,
		entry: func(d *target.Delivery) (types.Record, int, error) {
			return types.Record{Data: append([]byte{}, d.Body...)}, len(d.Body), nil
		},
		one: func(ctx context.Context, e types.Record) error {
			_, err := s.firehose.PutRecord(ctx, &firehose.PutRecordInput{DeliveryStreamName: &name, Record: &e}, there)
			return err
		},
		call: func(ctx context.Context, entries []types.Record, results []error) error {
			out, err := s.firehose.PutRecordBatch(ctx, &firehose.PutRecordBatchInput{DeliveryStreamName: &name, Records: entries}, there)
			if err != nil {
				return err
			}
			return inOrder(results, out.RequestResponses, func(e types.PutRecordBatchResponseEntry) error {
				return recordFailure(e.ErrorCode, e.ErrorMessage)
			})
		},
	}.deliver, nil
}
