package service

import (
	"context"

	"github.com/mayflydb/mayfly/internal/store/engine"
)

// The types of shard iterator.
const (
	iteratorHorizon = "TRIM_HORIZON"
	iteratorLatest  = "LATEST"
	iteratorAt      = "AT_SEQUENCE_NUMBER"
	iteratorAfter   = "AFTER_SEQUENCE_NUMBER"
)

// GetShardIterator returns a position in a shard for GetRecords.
//
// The order of checks: the shape; SequenceNumber against the type; the stream; the shard; the
// sequence number's form.
func (s *Service) GetShardIterator(ctx context.Context, in *GetShardIteratorInput) (*GetShardIteratorOutput, error) {
	if err := getShardIteratorShape(in); err != nil {
		return nil, err
	}
	d, err := s.findReadable(ctx, in.ARN.V)
	if err != nil {
		return nil, err
	}
	sh, err := findShard(d, in.ShardID.V)
	if err != nil {
		return nil, err
	}
	from, err := s.position(sh, in)
	if err != nil {
		return nil, err
	}
	out := &GetShardIteratorOutput{Iterator: s.newIterator(in.ARN.V, sh.No, from).String()}
	if in.Type.V == iteratorLatest {
		out.Before = sequenceNumber(from - 1)
	}
	return out, nil
}

func getShardIteratorShape(in *GetShardIteratorInput) error {
	var s shape
	s.Required("streamArn", in.ARN.Set)
	s.length("streamArn", in.ARN, arnLengthMin, arnLengthMax)
	s.Required("shardId", in.ShardID.Set)
	s.length("shardId", in.ShardID, shardIDLengthMin, shardIDLengthMax)
	s.Required("shardIteratorType", in.Type.Set)
	s.enum("shardIteratorType", in.Type, enumIteratorType)
	s.length("sequenceNumber", in.Sequence, sequenceLengthMin, sequenceLengthMax)
	if err := s.err(); err != nil {
		return err
	}
	needed := in.Type.V == iteratorAt || in.Type.V == iteratorAfter
	if needed && !in.Sequence.Set {
		return invalid("SequenceNumber is required for ShardIteratorType " + in.Type.V)
	}
	if !needed && in.Sequence.Set {
		return invalid("SequenceNumber must not be given for ShardIteratorType " + in.Type.V)
	}
	return nil
}

func findShard(d *engine.StreamDesc, id string) (*engine.ShardDesc, error) {
	no, ok := parseShardID(d.ID, id)
	for i := range d.Shards {
		if ok && d.Shards[i].No == no {
			return &d.Shards[i], nil
		}
	}
	return nil, apiError(engine.ErrShardNotFound, "")
}

// position returns the first sequence number that the iterator reads.
func (s *Service) position(sh *engine.ShardDesc, in *GetShardIteratorInput) (uint64, error) {
	oldest := max(sh.First, sh.Trimmed+1)
	switch in.Type.V {
	case iteratorHorizon:
		return oldest, nil
	case iteratorLatest:
		return max(s.engine.NextSeq(), sh.First), nil
	}
	seq, ok := parseSequence(in.Sequence.V)
	if !ok {
		return 0, invalid("Invalid SequenceNumber: " + in.Sequence.V)
	}
	if in.Type.V == iteratorAfter {
		seq++
	}
	if seq <= sh.Trimmed {
		return 0, apiError(engine.ErrTrimmed, "")
	}
	return max(seq, oldest), nil
}
