package service

import (
	"context"

	"github.com/mayflydb/mayfly/internal/store/engine"
)

const (
	streamEnabled  = "ENABLED"
	streamDisabled = "DISABLED"

	filterChildShards = "CHILD_SHARDS"
)

// DescribeStream returns a stream and its readable shards, in the order of their creation.
// It checks the shape, then the stream's existence.
func (s *Service) DescribeStream(ctx context.Context, in *DescribeStreamInput) (*StreamDescription, error) {
	if err := describeStreamShape(in); err != nil {
		return nil, err
	}
	d, err := s.findReadable(ctx, in.ARN.V)
	if err != nil {
		return nil, err
	}
	out := &StreamDescription{
		StreamRef: s.streamRef(d),
		Status:    streamEnabled,
		ViewType:  d.ViewType,
		Created:   d.Created.Time(),
		KeySchema: describeKey(d.Key),
	}
	if d.Disabled != 0 {
		out.Status = streamDisabled
	}
	shards := shardsAskedFor(d, in)
	limit := int(in.Limit.Or(streamsPageMax))
	for _, sh := range shards[:min(limit, len(shards))] {
		out.Shards = append(out.Shards, describeShard(d.ID, sh))
	}
	if len(shards) > limit {
		out.LastShardID = out.Shards[limit-1].ID
	}
	return out, nil
}

func describeStreamShape(in *DescribeStreamInput) error {
	var s shape
	s.Required("streamArn", in.ARN.Set)
	s.length("streamArn", in.ARN, arnLengthMin, arnLengthMax)
	s.limit(in.Limit, streamsPageMax)
	s.length("exclusiveStartShardId", in.StartShardID, shardIDLengthMin, shardIDLengthMax)
	if in.Filtered {
		s.Required("shardFilter.type", in.FilterType.Set)
		s.Required("shardFilter.shardId", in.ParentOnly.Set)
	}
	s.enum("shardFilter.type", in.FilterType, []string{filterChildShards})
	s.length("shardFilter.shardId", in.ParentOnly, shardIDLengthMin, shardIDLengthMax)
	return s.err()
}

// shardsAskedFor returns the shards after the start shard; with a filter, only the children of one
// shard. It returns none for a start shard that does not exist.
func shardsAskedFor(d *engine.StreamDesc, in *DescribeStreamInput) []engine.ShardDesc {
	var shards []engine.ShardDesc
	parent, _ := parseShardID(d.ID, in.ParentOnly.V)
	started := !in.StartShardID.Set
	for _, sh := range d.Shards {
		if started && (!in.ParentOnly.Set || sh.Parent == parent && parent != 0) {
			shards = append(shards, sh)
		}
		started = started || shardID(d.ID, sh.No) == in.StartShardID.V
	}
	return shards
}

// describeShard returns a shard in the API's form. A closed shard without records ends at its
// start.
func describeShard(stream uint32, sh engine.ShardDesc) ShardDescription {
	out := ShardDescription{ID: shardID(stream, sh.No), Start: sequenceNumber(sh.First)}
	if sh.Parent != 0 {
		out.Parent = shardID(stream, sh.Parent)
	}
	if !sh.Open() {
		out.End = sequenceNumber(max(sh.First, sh.Last))
	}
	return out
}
