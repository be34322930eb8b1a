package service

import "context"

// DescribeKinesisStreamingDestination returns a table's Kinesis destinations with those that were
// disabled, the latest first.
//
// The order of checks: the table's name; the table's existence.
func (s *Service) DescribeKinesisStreamingDestination(_ context.Context, in *TableNameInput) (*DescribeKinesisOutput, error) {
	ref, err := controlTable(in.TableName)
	if err != nil {
		return nil, err
	}
	_, d, err := s.describedTable(ref.name)
	if err != nil {
		return nil, apiError(err, ref.name)
	}
	out := &DescribeKinesisOutput{TableName: ref.name}
	for _, k := range d.API.Kinesis {
		status := statusActive
		if k.Disabled {
			status = stateDisabled
		}
		out.Destinations = append(out.Destinations, KinesisDestination{StreamARN: k.ARN, Status: status, Precision: k.Precision})
	}
	return out, nil
}
