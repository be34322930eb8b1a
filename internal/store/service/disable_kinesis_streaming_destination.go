package service

import (
	"context"

	"github.com/mayflydb/mayfly/internal/store/engine"
)

// DisableKinesisStreamingDestination ends the delivery of a table's changes to a Kinesis stream. The
// changes from before are still delivered.
//
// The order of checks: the table's name, the shape, the configuration, whether the table exists, and
// the destination's state. An unknown stream has the same error as a disabled one, as at AWS.
func (s *Service) DisableKinesisStreamingDestination(ctx context.Context, in *KinesisInput) (*KinesisOutput, error) {
	ref, err := controlTable(in.TableName)
	if err != nil {
		return nil, err
	}
	if err := kinesisShape(in, "enableKinesisStreamingConfiguration", 0); err != nil {
		return nil, err
	}
	if in.Precision.Set {
		return nil, invalid("Stream cannot be disabled using EnableKinesisStreamingConfiguration parameters")
	}
	if err := s.passing.checkSettled(ref.name); err != nil {
		return nil, err
	}
	_, err = s.engine.Alter(ctx, namespace, ref.name, func(d *engine.TableDesc, _ engine.Instant) error {
		k := destination(d, in.StreamARN.V)
		if k == nil || k.Disabled {
			return invalid(msgKinesisState + "KinesisStreamingDestination must be ACTIVE to perform DISABLE operation.")
		}
		k.Disabled, k.Precision = true, ""
		s.feed(d)
		return nil
	})
	if err != nil {
		return nil, apiError(err, ref.name)
	}
	return &KinesisOutput{TableName: ref.name, StreamARN: in.StreamARN.V, Status: stateDisabling}, nil
}
