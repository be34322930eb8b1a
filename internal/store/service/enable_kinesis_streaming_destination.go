package service

import (
	"context"
	"slices"
	"strings"

	"github.com/mayflydb/mayfly/internal/store/engine"
)

// EnableKinesisStreamingDestination makes a Kinesis stream the destination of a table's changes. A
// table has at most one; the disabled ones stay in its list. The changes from now on are delivered if
// a target is mapped to the stream; otherwise the setting is only stored and shown, and the log says
// so.
//
// The order of checks: the table's name, the shape, whether the table is mayfly's own, whether it
// exists, and the state of its destinations.
func (s *Service) EnableKinesisStreamingDestination(ctx context.Context, in *KinesisInput) (*KinesisOutput, error) {
	ref, err := controlTable(in.TableName)
	if err != nil {
		return nil, err
	}
	if err := kinesisShape(in, "enableKinesisStreamingConfiguration", kinesisARNMin); err != nil {
		return nil, err
	}
	if strings.HasPrefix(ref.name, ownTables) { // the deliveries change these, so each would cause another
		return nil, invalid("A Kinesis stream cannot be a destination of the tables of mayfly itself: " + ref.name)
	}
	if err := s.passing.checkSettled(ref.name); err != nil {
		return nil, err
	}
	if s.isMapped(in.StreamARN.V) { // until the feed has a reader: an advance could trim its records
		defer s.engine.HoldAll()()
	}
	_, err = s.engine.Alter(ctx, namespace, ref.name, func(d *engine.TableDesc, _ engine.Instant) error {
		if err := enableDestination(d, in); err != nil {
			return err
		}
		s.feed(d)
		return nil
	})
	if err != nil {
		return nil, apiError(err, ref.name)
	}
	if s.isMapped(in.StreamARN.V) {
		s.feedsChanged(ctx)
	} else {
		s.logUnmapped(ref.name, in.StreamARN.V)
	}
	return &KinesisOutput{
		TableName: ref.name, StreamARN: in.StreamARN.V, Status: stateEnabling, Precision: in.Precision.V,
	}, nil
}

func enableDestination(d *engine.TableDesc, in *KinesisInput) error {
	if slices.ContainsFunc(d.API.Kinesis, func(k engine.KinesisDestination) bool { return !k.Disabled }) {
		return invalid(msgKinesisState + "EnableKinesisStreamingDestination must be DISABLED or ENABLE_FAILED to perform ENABLE operation.")
	}
	enabled := engine.KinesisDestination{ARN: in.StreamARN.V, Precision: in.Precision.V}
	d.API.Kinesis = slices.DeleteFunc(d.API.Kinesis, func(k engine.KinesisDestination) bool { return k.ARN == enabled.ARN })
	d.API.Kinesis = slices.Insert(d.API.Kinesis, 0, enabled)
	d.API.Kinesis = d.API.Kinesis[:min(len(d.API.Kinesis), kinesisMax)]
	return nil
}
