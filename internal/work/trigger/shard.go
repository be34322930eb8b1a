package trigger

import (
	"context"
	"hash/maphash"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/mayflydb/mayfly/internal/work/consume"
	"github.com/mayflydb/mayfly/internal/work/timer"
)

// payloadMax is the limit of a synchronous invocation of a function.
const payloadMax = 6 << 20

// queuedMax bounds the records in the lanes of a shard, in bytes.
const queuedMax = 32 << 20

// parkingMax bounds the records of a shard at the courier, if they need no order. It exceeds the
// queue of the courier's lane, so the lane is never idle while the shard has records.
const parkingMax = 1000

// shard is one reading of a shard, with its lanes.
type shard struct {
	*run
	ctx     context.Context // of this reading
	name    string          // the shard's id
	lanes   []*lane
	seed    maphash.Seed
	ends    sync.WaitGroup // of the lanes
	parking gate           // for records at the courier
	room    timer.Bell     // rings when bytes has fallen
	bytes   struct {
		sync.Mutex
		queued int
	}
}

// entry is a record in a lane.
type entry struct {
	json     []byte
	done     func()
	sequence string
	id       string // eventID
	written  time.Time
	key      []byte // its keys as JSON
}

func newShard(ctx context.Context, r *run, id string) *shard {
	s := &shard{
		run: r, ctx: ctx, name: id, seed: maphash.MakeSeed(), room: timer.NewBell(), parking: make(gate, max(parkingMax, r.batch)),
		lanes: make([]*lane, r.parallel),
	}
	for i := range s.lanes {
		s.lanes[i] = &lane{shard: s, bell: timer.NewBell()}
	}
	return s
}

// take filters a page of records and adds the others to the lanes. It blocks while the lanes are
// full.
func (s *shard) take(ctx context.Context, records []consume.Record) error {
	var page []byte // one buffer for all records, since most pages are done together
	byLane := make([][]entry, len(s.lanes))
	appendEvent := s.form()
	for i := range records {
		r := &records[i]
		start := len(page)
		page = appendEvent(page, &r.Record)
		matches, err := s.filter.Match(page[start:])
		// the filter reads this package's own JSON; in case of an error, one record too many is
		// better than a blocked shard
		if err != nil {
			s.log.Error("a record cannot be filtered and is delivered", "sequence", r.Sequence(), "error", err)
			matches = true
		}
		if !matches {
			page = page[:start]
			r.Done()
			continue
		}
		size := len(page) - start
		done := func() {
			r.Done()
			s.count(-size)
		}
		e := entry{json: page[start:len(page):len(page)], done: done, sequence: r.Sequence(), id: aws.ToString(r.EventID)}
		if d := r.Dynamodb; d != nil {
			e.written = aws.ToTime(d.ApproximateCreationDateTime)
			e.key = keysOf(d)
		}
		lane := maphash.Bytes(s.seed, e.key) % uint64(len(s.lanes))
		byLane[lane] = append(byLane[lane], e)
	}
	for i, entries := range byLane {
		if len(entries) > 0 {
			s.lanes[i].add(entries)
		}
	}
	return s.waitForRoom(ctx)
}

// form returns the function that appends a record as the target receives it.
func (s *shard) form() func(dst []byte, r *types.Record) []byte {
	if s.feed != nil {
		return s.feedForm()
	}
	return func(dst []byte, r *types.Record) []byte { return appendRecord(dst, r, s.reading) }
}

// keysOf returns an item's keys as JSON.
func keysOf(r *types.StreamRecord) []byte { return appendAttributes(nil, r.Keys) }

// count adds to the bytes in the lanes.
func (s *shard) count(change int) {
	s.bytes.Lock()
	defer s.bytes.Unlock()
	s.bytes.queued += change
	if change < 0 {
		s.room.Ring()
	}
}

func (s *shard) waitForRoom(ctx context.Context) error {
	for {
		s.bytes.Lock()
		queued := s.bytes.queued
		s.bytes.Unlock()
		if queued <= queuedMax {
			return nil
		}
		select {
		case <-s.room:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
