package service

import (
	"cmp"
	"context"

	"github.com/mayflydb/mayfly/internal/store/engine"
)

// UpdateKinesisStreamingDestination changes the precision of the times in the records for a Kinesis
// stream.
//
// The order of checks: the table's name, the shape, the configuration, whether the table exists, the
// destination's state, and whether the precision changes.
func (s *Service) UpdateKinesisStreamingDestination(ctx context.Context, in *KinesisInput) (*KinesisOutput, error) {
	ref, err := controlTable(in.TableName)
	if err != nil {
		return nil, err
	}
	if err := kinesisShape(in, "updateKinesisStreamingConfiguration", kinesisARNMin); err != nil {
		return nil, err
	}
	if !in.Precision.Set {
		return nil, invalid("Streaming destination cannot be updated with given parameters: UpdateKinesisStreamingConfiguration cannot be null or contain only null values")
	}
	if err := s.passing.checkSettled(ref.name); err != nil {
		return nil, err
	}
	_, err = s.engine.Alter(ctx, namespace, ref.name, func(d *engine.TableDesc, _ engine.Instant) error {
		if err := updateDestination(d, in.StreamARN.V, in.Precision.V); err != nil {
			return err
		}
		s.feed(d)
		return nil
	})
	if err != nil {
		return nil, apiError(err, ref.name)
	}
	return &KinesisOutput{
		TableName: ref.name, StreamARN: in.StreamARN.V, Status: statusUpdating, Precision: in.Precision.V,
	}, nil
}

func updateDestination(d *engine.TableDesc, arn, precision string) error {
	k := destination(d, arn)
	switch {
	case k == nil:
		return invalid(msgKinesisState + "No streaming destination with streamArn: " + arn + " found for table with tableName: " + d.Name)
	case k.Disabled:
		return invalid(msgKinesisState + "Kinesis streaming is not in ACTIVE state. Updates are only allowed in ACTIVE state. TableName: " + d.Name + ", kdsArn: " + arn)
	case cmp.Or(k.Precision, precisionMillis) == precision:
		return invalid("Invalid Request: Precision is already set to the desired value of " + precision + " for tableId: " + d.UUID + ", kdsArn: " + arn)
	}
	k.Precision = precision
	return nil
}
