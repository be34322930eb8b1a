package stream

import (
	"context"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/mayflydb/mayfly/guard/internal/armed"
	"github.com/mayflydb/mayfly/guard/internal/strategy"
	"github.com/mayflydb/mayfly/guard/internal/table"
	"github.com/mayflydb/mayfly/internal/invariant"
	"github.com/mayflydb/mayfly/internal/work/consume"
)

// Handle updates the deadline table with a page of a shard's records.
func (s *Strategy) Handle(ctx context.Context, shard string, records []consume.Record) error {
	s.lag.Note(s.Now(), records)
	written := false
	done := func() {
		invariant.CheckUnless(written, []invariant.Fault{invariant.DoneEarly}, "records of shard %s are done before their deadlines are written", shard)
		for i := range records {
			records[i].Done()
		}
	}
	if invariant.Injected(invariant.DoneEarly) {
		done()
	}
	if records = s.unhandled(shard, records); len(records) == 0 {
		return nil
	}
	puts, gone := s.changes(records)
	var drops, past []*row
	now := s.Now()
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
	if written = true; !invariant.Injected(invariant.DoneEarly) {
		done()
	}
	s.handled(shard, records)
	return nil
}

// handledMax is the number of shards whose last handled record is remembered.
const handledMax = 10_000

// unhandled returns the records that this worker has not handled yet, and marks the others as done.
// A page may come again after newer ones, and its records are outdated then. This worker does not
// know the records that another one has handled; there, the condition on by prevents that an older
// record undoes a newer one.
func (s *Strategy) unhandled(shard string, records []consume.Record) []consume.Record {
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

// handled records that the deadline table contains the changes of these records.
func (s *Strategy) handled(shard string, records []consume.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.handled == nil || len(s.mu.handled) >= handledMax {
		s.mu.handled = map[string]string{}
	}
	s.mu.handled[shard] = max(s.mu.handled[shard], byOf(s.set.epoch, records[len(records)-1].Sequence()))
}

// disarm takes deadlines out of memory.
func (s *Strategy) disarm(drops []*row) {
	for _, r := range drops {
		for _, left := range s.drop(r) {
			s.clean(left)
		}
	}
}

// changes sums the records up by item. It returns the rows to put, at most one for an item, and the
// rows to delete.
func (s *Strategy) changes(records []consume.Record) (puts, drops []*row) {
	last := map[armed.Key]string{} // the last record of each item
	put, drop := map[armed.Key]armed.Entry{}, map[armed.Entry]bool{}
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
		k := before.Key
		if has {
			k = after.Key
		}
		last[k] = byOf(s.set.epoch, records[i].Sequence())
		if had && (!has || before.At != after.At) {
			drop[armed.Entry{Key: k, At: before.At}] = true
			delete(put, k)
		}
		same := armed.Entry{Key: k, At: after.At}
		// some endpoints show a replacement as a removal and a modification
		if has && (!had || drop[same] || before.At != after.At || before.Value != after.Value || before.Version != after.Version) {
			delete(drop, same)
			put[k] = after
		}
	}
	now := s.Now()
	for k, e := range put {
		puts = append(puts, rowOf(e, last[k], now))
	}
	for e := range drop {
		drops = append(drops, &row{key: e.Key, at: e.At, by: last[e.Key]})
	}
	return puts, drops
}

// entryOf returns the deadline of an image.
func (s *Strategy) entryOf(image map[string]streamtypes.AttributeValue) (armed.Entry, bool) {
	if image[s.Table.Attribute] == nil {
		return armed.Entry{}, false
	}
	item, err := attributevalue.FromDynamoDBStreamsMap(table.Pick(s.Table, image))
	if err != nil {
		return armed.Entry{}, false
	}
	return s.EntryOf(item)
}

// write puts rows into the table and deletes others. It arms those that an owner would see too
// late. A record that is read again may show a deadline whose attempt has ended: it needs no row.
func (s *Strategy) write(ctx context.Context, puts, drops []*row) error {
	puts = slices.DeleteFunc(puts, s.ended.has)
	d, soon := s.store.newest(), s.Now()+s.soon
	for _, e := range puts {
		e.p = d.parts[d.partitionOf(e.key)]
		e.mine = !s.alone && (e.inbox || e.at < soon)
	}
	if err := s.noteBuckets(ctx, puts); err != nil {
		return err
	}
	if s.local || len(puts) == 0 {
		return s.putAndArm(ctx, puts, drops)
	}
	if puts[0].by == "" && s.transacts() {
		return inTransactions(ctx, puts, func(ctx context.Context, part []*row) error { return s.putAndArm(ctx, part, nil) })
	}
	return s.eachTogether(ctx, puts, drops, s.putAndArm)
}

// putAndArm puts rows, and arms them only then: in a fleet, one that took many attempts delays no
// other outside its transaction.
func (s *Strategy) putAndArm(ctx context.Context, puts, drops []*row) error {
	if err := s.put(ctx, puts, drops); err != nil {
		return err
	}
	var slow []*row // rows that took so long to write that their owners may have polled past them
	now := s.Now()
	for _, e := range puts {
		if !e.inbox && e.at < now+margin {
			e.inbox, e.mine = true, !s.alone
			slow = append(slow, e)
		}
	}
	if err := s.put(ctx, slow, nil); err != nil {
		return err
	}
	for _, e := range puts {
		// an owner that found the row meanwhile may have ended it already
		if (e.inbox || e.mine || e.p.arms(e.at, now+s.soon)) && !s.ended.has(e) {
			if err := s.AwaitRoom(ctx, 1); err != nil {
				return err
			}
			e.p.arm(e)
		}
	}
	return nil
}

// noteBuckets writes the buckets into the directory that may be missing there.
func (s *Strategy) noteBuckets(ctx context.Context, puts []*row) error {
	unknown := map[note]bool{}
	for _, e := range puts {
		if e.inbox {
			continue
		}
		at := note{e.p, e.p.d.bucketOf(e.key, e.at)}
		if !at.p.knows(at.bucket) {
			unknown[at] = true
		}
	}
	all := slices.Collect(maps.Keys(unknown))
	if len(all) >= notesTogether && puts[0].by == "" && s.transacts() {
		return s.noteTogether(ctx, all)
	}
	return s.noteSingly(ctx, all)
}

func (s *Strategy) noteSingly(ctx context.Context, all []note) error {
	return strategy.Parallel(ctx, len(all), parallel, func(ctx context.Context, i int) error {
		at := all[i]
		err := s.persist(ctx, "PutItem", func() error { return s.store.noteBucket(ctx, at) })
		if err == nil {
			at.p.learn(at.bucket)
		}
		return err
	})
}

// put writes and deletes rows. A worker with its own table does it in batches, if they are of records;
// in a fleet each write is conditional, so that a late one undoes nothing.
func (s *Strategy) put(ctx context.Context, puts, drops []*row) error {
	switch {
	case len(puts) > 0 && puts[0].by == "":
		return s.insert(ctx, puts)
	case s.local:
		return s.storeBatches(ctx, puts, drops)
	}
	return s.eachTogether(ctx, puts, drops, func(ctx context.Context, puts, drops []*row) error {
		if len(puts)+len(drops) > 1 {
			var err error
			if puts, drops, err = s.changeTogether(ctx, puts, drops); err != nil {
				return err
			}
		}
		return strategy.Parallel(ctx, len(puts)+len(drops), parallel, func(ctx context.Context, i int) error {
			if i < len(puts) {
				return s.persist(ctx, "PutItem", func() error { return s.store.put(ctx, puts[i]) })
			}
			return s.persist(ctx, "DeleteItem", func() error { return s.store.drop(ctx, drops[i-len(puts)]) })
		})
	})
}

func (s *Strategy) storeBatches(ctx context.Context, puts, drops []*row) error {
	n := len(puts) + len(drops)
	return strategy.Parallel(ctx, (n+batchMax-1)/batchMax, parallel, func(ctx context.Context, i int) error {
		from, to := i*batchMax, min((i+1)*batchMax, n)
		putsHere, dropsHere := puts[min(from, len(puts)):min(to, len(puts))], drops[max(from-len(puts), 0):max(to-len(puts), 0)]
		var again []types.WriteRequest
		return s.persist(ctx, "BatchWriteItem", func() (err error) {
			if again == nil {
				again, err = s.store.batch(ctx, putsHere, dropsHere)
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
