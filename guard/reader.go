package guard

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/invariant"
	"github.com/mayflydb/mayfly/internal/work/deliver"
)

// handle brings the deadline table up to what a page of a shard's records says.
func (s *stream) handle(ctx context.Context, shard string, records []deliver.Record) error {
	if invariant.Injected(invariant.DoneEarly) {
		for i := range records {
			records[i].Done()
		}
	}
	if records = s.unhandled(shard, records); len(records) == 0 {
		return nil
	}
	puts, gone := s.changes(records)
	var drops, past []*row
	now := s.g.now()
	for _, r := range gone {
		if r.at <= now && !s.local {
			past = append(past, r)
		} else {
			drops = append(drops, r)
		}
	}
	s.disarm(drops)
	s.disarm(past)
	err := s.write(ctx, puts, append(drops, s.cleanLater(past)...))
	s.disarm(drops) // an owner may have found them meanwhile
	if err != nil {
		if ctx.Err() == nil {
			s.fail(err)
		}
		return err
	}
	for i := range records {
		if !invariant.Injected(invariant.DoneEarly) {
			records[i].Done()
		}
	}
	s.handled(shard, records)
	return nil
}

// handledMax bounds of how many shards it is remembered what was handled.
const handledMax = 10_000

// unhandled leaves out, and is done with, what this worker has handled of a shard before: a page may come again, alone and after newer ones, and what an older record says of an item is no
// longer so. That of another worker, which this one does not know of, is undone by no older record because by tells.
func (s *stream) unhandled(shard string, records []deliver.Record) []deliver.Record {
	s.mu.Lock()
	last := s.mu.handled[shard]
	s.mu.Unlock()
	fresh := records[:0:0]
	for i := range records {
		if byOf(s.set.epoch, records[i].Sequence()) <= last {
			records[i].Done()
			continue
		}
		fresh = append(fresh, records[i])
	}
	return fresh
}

// handled notes that what some records of a shard say is in the deadline table.
func (s *stream) handled(shard string, records []deliver.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.handled == nil || len(s.mu.handled) >= handledMax {
		s.mu.handled = map[string]string{}
	}
	s.mu.handled[shard] = max(s.mu.handled[shard], byOf(s.set.epoch, records[len(records)-1].Sequence()))
}

// disarm takes deadlines out of memory.
func (s *stream) disarm(drops []*row) {
	for _, r := range drops {
		if inbox := s.parts[s.store.partitionOf(r.key)].drop(r); inbox != nil {
			s.clean(inbox)
		}
	}
}

// changes sums the records up by item: the rows to put, at most one for an item, and those to delete.
func (s *stream) changes(records []deliver.Record) (puts, drops []*row) {
	last := map[key]string{} // the last record of each item
	put, drop := map[key]entry{}, map[entry]bool{}
	for i := range records {
		r := records[i].Dynamodb
		if r == nil {
			continue
		}
		before, had := s.entryOf(r.OldImage)
		after, has := s.entryOf(r.NewImage)
		if !had && !has {
			continue
		}
		k := before.key
		if has {
			k = after.key
		}
		last[k] = byOf(s.set.epoch, records[i].Sequence())
		if had && (!has || before.at != after.at) {
			drop[entry{key: k, at: before.at}] = true
			delete(put, k)
		}
		if has && (!had || before.at != after.at || before.value != after.value || before.version != after.version) {
			delete(drop, entry{key: k, at: after.at})
			put[k] = after
		}
	}
	now := s.g.now()
	for k, e := range put {
		puts = append(puts, rowOf(e, last[k], now))
	}
	for e := range drop {
		drops = append(drops, &row{key: e.key, at: e.at, by: last[e.key]})
	}
	return puts, drops
}

// entryOf gives the deadline of an image.
func (s *stream) entryOf(image map[string]streamtypes.AttributeValue) (entry, bool) {
	if image[s.g.o.Attribute] == nil {
		return entry{}, false
	}
	item := map[string]types.AttributeValue{}
	for _, name := range append(s.g.table.names(), s.g.o.Attribute, s.g.o.Version) {
		if v := image[name]; v != nil {
			converted, err := attributevalue.FromDynamoDBStreams(v)
			if err != nil {
				return entry{}, false
			}
			item[name] = converted
		}
	}
	return s.g.entryOf(item)
}

// write puts deadlines into the table and takes others out, and arms those that an owner would not see in time.
func (s *stream) write(ctx context.Context, puts, drops []*row) error {
	if err := s.noteMinutes(ctx, puts); err != nil {
		return err
	}
	if err := s.put(ctx, puts, drops); err != nil {
		return err
	}
	var slow []*row // those for which it took so long that their owners may have gone past them
	now := s.g.now()
	for _, e := range puts {
		if !e.inbox && e.at < now+margin {
			e.inbox = true
			slow = append(slow, e)
		}
	}
	if err := s.put(ctx, slow, nil); err != nil {
		return err
	}
	for _, e := range puts {
		p := s.parts[s.store.partitionOf(e.key)]
		if e.inbox || p.arms(e.at, now+s.soon) {
			if err := s.waitForRoom(ctx); err != nil {
				return err
			}
			p.arm(e)
		}
	}
	return nil
}

// waitForRoom waits until a deadline may be armed. What is armed is due soon, so that removals make room before long; what is written meanwhile waits in the stream.
func (s *stream) waitForRoom(ctx context.Context) error {
	for s.g.room() == 0 {
		clock.Pause(roomPause, ctx.Done())
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// noteMinutes puts those minutes into the directory that are not known to be there.
func (s *stream) noteMinutes(ctx context.Context, puts []*row) error {
	type part struct {
		p      *partition
		minute int64
	}
	unknown := map[part]bool{}
	for _, e := range puts {
		if e.inbox {
			continue
		}
		at := part{s.parts[s.store.partitionOf(e.key)], minuteOf(e.at)}
		if !at.p.knows(at.minute) {
			unknown[at] = true
		}
	}
	var all []part
	for at := range unknown {
		all = append(all, at)
	}
	return inParallel(len(all), func(i int) error {
		at := all[i]
		err := s.persist(ctx, "PutItem", func() error { return s.store.noteMinute(ctx, at.p.number, at.minute) })
		if err == nil {
			at.p.learn(at.minute)
		}
		return err
	})
}

// put makes the writes. A worker with a table of its own makes them by batches; among others each is conditional, so that one which comes late undoes nothing.
func (s *stream) put(ctx context.Context, puts, drops []*row) error {
	if s.local && (len(puts) == 0 || puts[0].by != "") {
		return s.storeBatches(ctx, puts, drops)
	}
	return inParallel(len(puts)+len(drops), func(i int) error {
		if i < len(puts) {
			return s.persist(ctx, "PutItem", func() error { return s.store.put(ctx, puts[i]) })
		}
		return s.persist(ctx, "DeleteItem", func() error { return s.store.drop(ctx, drops[i-len(puts)]) })
	})
}

func (s *stream) storeBatches(ctx context.Context, puts, drops []*row) error {
	n := len(puts) + len(drops)
	return inParallel((n+batchMax-1)/batchMax, func(i int) error {
		from, to := i*batchMax, min((i+1)*batchMax, n)
		some, others := puts[min(from, len(puts)):min(to, len(puts))], drops[max(from-len(puts), 0):max(to-len(puts), 0)]
		var again []types.WriteRequest
		return s.persist(ctx, "BatchWriteItem", func() (err error) {
			if again == nil {
				again, err = s.store.batch(ctx, some, others)
			} else {
				again, err = s.store.write(ctx, again)
			}
			if err == nil && len(again) > 0 {
				err = errUnprocessed
			}
			return err
		})
	})
}
