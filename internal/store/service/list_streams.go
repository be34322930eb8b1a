package service

import (
	"context"
	"slices"

	"github.com/mayflydb/mayfly/internal/store/engine"
)

const streamsPageMax = 100

// ListStreams returns the readable streams of one table or of all, oldest first: those that are
// enabled, and disabled ones until their records age out.
//
// The order of checks: the shape, with TableName; the table's existence; ExclusiveStartStreamArn.
func (s *Service) ListStreams(_ context.Context, in *ListStreamsInput) (*ListStreamsOutput, error) {
	table, err := listStreamsShape(in)
	if err != nil {
		return nil, err
	}
	streams, err := s.engine.Streams()
	if err != nil {
		return nil, apiError(err, "")
	}
	streams = slices.DeleteFunc(streams, func(d *engine.StreamDesc) bool {
		return d.Namespace != namespace || table != "" && d.Table != table
	})
	if table != "" && len(streams) == 0 {
		if _, err := s.table(table); err != nil {
			return nil, apiError(err, table)
		}
	}
	if streams, err = s.streamsAfter(streams, in.StartARN); err != nil {
		return nil, err
	}
	out := &ListStreamsOutput{}
	limit := int(in.Limit.Or(streamsPageMax))
	for _, d := range streams[:min(limit, len(streams))] {
		out.Streams = append(out.Streams, s.streamRef(d))
	}
	if len(streams) >= limit {
		out.LastARN = out.Streams[limit-1].ARN
	}
	return out, nil
}

func listStreamsShape(in *ListStreamsInput) (table string, err error) {
	var sh shape
	sh.limit(in.Limit, streamsPageMax)
	sh.length("exclusiveStartStreamArn", in.StartARN, arnLengthMin, arnLengthMax)
	var ref tableRef
	if in.TableName.Set {
		ref = sh.dataTable("tableName", in.TableName)
	}
	if err := sh.err(); err != nil {
		return "", err
	}
	ref, err = ref.resolve()
	return ref.name, err
}

func (s *Service) streamRef(d *engine.StreamDesc) StreamRef {
	return StreamRef{ARN: s.streamARN(d.Table, d.Label), Table: d.Table, Label: d.Label}
}

// streamsAfter returns the streams after the last one of the previous page, whose table may be
// gone.
func (s *Service) streamsAfter(streams []*engine.StreamDesc, start Opt[string]) ([]*engine.StreamDesc, error) {
	if !start.Set {
		return streams, nil
	}
	table, label, err := parseStreamARN(start.V)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(streams, func(d *engine.StreamDesc) bool { return d.Table == table && d.Label == label })
	if at < 0 {
		return nil, invalid(msgInvalidStreamARN + start.V)
	}
	return streams[at+1:], nil
}
