package fromkinesis

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/work/lease"
)

// parents are the shards from which a shard was split or merged: none, one or two.
type parents []string

const (
	shardsMax   = 20_000 // of a stream
	forgetAfter = 3      // consecutive lists without a shard before its row is deleted
)

// list returns the shards that can be read now: unfinished ones whose parents are finished. With
// UntilCaughtUp it omits those that have caught up, and at last those that other live processes
// read. It lists the stream's shards again from time to time, and after any process has finished
// one, which may have children.
func (in *ingesting) list(ctx context.Context, rows map[string]lease.Row) ([]string, error) {
	ended := 0
	for _, row := range rows {
		if row.Checkpoint == lease.Done {
			ended++
		}
	}
	if in.shards == nil || in.ended != ended || in.vanished || in.listed() >= listEvery {
		shards, err := in.listShards(ctx)
		if err != nil {
			return nil, in.explain(err)
		}
		in.shards, in.ended, in.listed = shards, ended, clock.Stopwatch()
		if err := in.forget(ctx, rows); err != nil {
			return nil, err
		}
	}
	var names []string
	for id, from := range in.shards {
		if rows[id].Checkpoint == lease.Done || slices.ContainsFunc(from, func(parent string) bool { return in.open(parent, rows) }) {
			continue
		}
		if !in.isCaughtUp(id) {
			names = append(names, id)
		}
	}
	slices.Sort(names)
	if in.o.UntilCaughtUp {
		names = in.withoutOthers(names, rows)
	}
	return names, nil
}

// open reports whether a shard may have unread records.
func (in *ingesting) open(id string, rows map[string]lease.Row) bool {
	row, noted := rows[id]
	_, listed := in.shards[id]
	return (listed || noted) && row.Checkpoint != lease.Done
}

// listShards returns all shards of the stream.
func (in *ingesting) listShards(ctx context.Context) (map[string]parents, error) {
	all := map[string]parents{}
	request := &kinesis.ListShardsInput{StreamName: &in.o.Stream}
	for {
		out, err := in.o.Client.ListShards(ctx, request)
		if err != nil {
			return nil, err
		}
		for _, s := range out.Shards {
			var from parents
			for _, parent := range []*string{s.ParentShardId, s.AdjacentParentShardId} {
				if aws.ToString(parent) != "" {
					from = append(from, *parent)
				}
			}
			all[aws.ToString(s.ShardId)] = from
		}
		if len(all) > shardsMax {
			return nil, &lastingError{fmt.Errorf("the stream %q has more than %d shards", in.o.Stream, shardsMax)}
		}
		if aws.ToString(out.NextToken) == "" {
			return all, nil
		}
		request = &kinesis.ListShardsInput{NextToken: out.NextToken}
	}
}

// forget deletes the rows of deleted shards. It first reports an unfinished one without a reader:
// its unread records are lost.
func (in *ingesting) forget(ctx context.Context, rows map[string]lease.Row) error {
	in.vanished = false
	for _, id := range slices.Sorted(maps.Keys(rows)) {
		row := rows[id]
		_, listed := in.shards[id]
		done := row.Checkpoint == lease.Done
		if listed || lease.IsCrew(id) || !done && !in.leases.Free(row) {
			delete(in.missing, id)
			continue
		}
		if in.missing[id]++; in.missing[id] < forgetAfter {
			in.vanished = in.vanished || !done
			continue
		}
		delete(in.missing, id)
		if !done {
			in.lost("shard %s is gone and was not read to its end", id)
		}
		if err := in.leases.Forget(ctx, row); err != nil {
			return err
		}
	}
	return nil
}

// withoutOthers returns the shards for which this process must wait before it has caught up. It
// drops a shard of another process once that process has proved to be alive, by renewing its row
// after this process had no shards of its own left.
func (in *ingesting) withoutOthers(names []string, rows map[string]lease.Row) []string {
	beats := map[string]int64{} // by worker
	for id, row := range rows {
		if lease.IsCrew(id) {
			beats[row.Owner] = row.Beat
		}
	}
	var left []string
	for _, id := range names {
		owner := rows[id].Owner
		beat, there := beats[owner]
		if owner == in.leases.Owner() || !there {
			clear(in.beats) // work is left
			return names
		}
		if before, seen := in.beats[owner]; !seen || beat == before {
			left = append(left, id)
		}
	}
	for _, id := range left {
		if owner := rows[id].Owner; in.beats[owner] == 0 {
			in.beats[owner] = beats[owner]
		}
	}
	return left
}

func (in *ingesting) isCaughtUp(shard string) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.mu.caughtUp[shard]
}
