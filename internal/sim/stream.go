package sim

import (
	"context"
	"fmt"
	"hash/fnv"
	"sort"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

// record is a stream record.
type record struct {
	seq      string // all have one length, so they order as the numbers do
	event    types.OperationType
	key      key
	old, new image
	service  bool // by the service, not by a user
	created  time.Time
}

// follower reads a stream to its end, again and again.
type follower struct {
	arn    string
	shards map[string]*shard
}

type shard struct {
	parent string
	last   string // the last sequence number; empty: none
	over   bool   // it is closed and has been read
	sum    uint64 // a hash of all records in their order
	n      int    // records
}

// differs compares two readers that have read all, and says how they differ.
func (f *follower) differs(g *follower) string {
	for id, s := range f.shards {
		if o := g.shards[id]; o == nil {
			return fmt.Sprintf("shard %s is gone", id)
		} else if s.sum != o.sum {
			return fmt.Sprintf("shard %s had %d records, and has %d others now", id, s.n, o.n)
		}
	}
	for id, s := range g.shards {
		if f.shards[id] == nil && s.n > 0 { // a restart begins shards, which are empty
			return fmt.Sprintf("shard %s is new and has %d records", id, s.n)
		}
	}
	return ""
}

// add notes a record as the shard's next one.
func (s *shard) add(r record) {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d %s %s %s %q %q %t %d", s.sum, r.seq, r.event, r.key, r.old.text(), r.new.text(), r.service, r.created.UnixMilli())
	s.last, s.sum, s.n = r.seq, h.Sum64(), s.n+1
}

func newFollower(arn string) *follower { return &follower{arn: arn, shards: map[string]*shard{}} }

// drain returns all further records in their order. It reads until a pass over all shards finds
// nothing: then no older record is missing.
func (f *follower) drain(ctx context.Context, db *dynamodbstreams.Client) ([]record, error) {
	var all []record
	for {
		some, err := f.pass(ctx, db)
		if err != nil {
			return nil, fmt.Errorf("read the stream: %w", err)
		}
		if len(some) == 0 {
			break
		}
		all = append(all, some...)
	}
	sort.Slice(all, func(i, j int) bool { return all[i].seq < all[j].seq })
	return all, nil
}

func (f *follower) pass(ctx context.Context, db *dynamodbstreams.Client) (all []record, err error) {
	var names []string
	in := &dynamodbstreams.DescribeStreamInput{StreamArn: &f.arn}
	for {
		out, err := db.DescribeStream(ctx, in)
		if err != nil {
			return nil, err
		}
		for _, s := range out.StreamDescription.Shards {
			id := aws.ToString(s.ShardId)
			names = append(names, id)
			if f.shards[id] == nil {
				f.shards[id] = &shard{parent: aws.ToString(s.ParentShardId)}
			}
		}
		if in.ExclusiveStartShardId = out.StreamDescription.LastEvaluatedShardId; in.ExclusiveStartShardId == nil {
			break
		}
	}
	for _, id := range names {
		s := f.shards[id]
		if parent := f.shards[s.parent]; s.over || parent != nil && !parent.over {
			continue
		}
		some, err := f.read(ctx, db, id, s)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

func (f *follower) read(ctx context.Context, db *dynamodbstreams.Client, id string, s *shard) (all []record, err error) {
	in := &dynamodbstreams.GetShardIteratorInput{StreamArn: &f.arn, ShardId: &id, ShardIteratorType: types.ShardIteratorTypeTrimHorizon}
	if s.last != "" {
		in.ShardIteratorType, in.SequenceNumber = types.ShardIteratorTypeAfterSequenceNumber, &s.last
	}
	got, err := db.GetShardIterator(ctx, in)
	if err != nil {
		return nil, err
	}
	for at := got.ShardIterator; ; {
		page, err := db.GetRecords(ctx, &dynamodbstreams.GetRecordsInput{ShardIterator: at})
		if err != nil {
			return nil, err
		}
		for _, r := range page.Records {
			d := r.Dynamodb
			next := record{seq: aws.ToString(d.SequenceNumber), event: r.EventName, key: fromRecord(d.Keys).key(), old: fromRecord(d.OldImage), new: fromRecord(d.NewImage),
				created: aws.ToTime(d.ApproximateCreationDateTime)}
			if u := r.UserIdentity; u != nil {
				next.service = aws.ToString(u.Type) == "Service" && aws.ToString(u.PrincipalId) == "dynamodb.amazonaws.com"
			}
			if next.seq <= s.last {
				return nil, fmt.Errorf("OrderPerKey: shard %s has %s behind %s", id, next.seq, s.last)
			}
			s.add(next)
			all = append(all, next)
		}
		if at = page.NextShardIterator; at == nil {
			s.over = true
			return all, nil
		}
		if len(page.Records) == 0 {
			return all, nil
		}
	}
}
