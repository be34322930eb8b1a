package service

import (
	"context"
	"errors"
	"time"

	"github.com/mayflydb/mayfly/internal/store/engine"
)

const (
	recordsMax      = 1000
	recordsBytesMax = 1024 * 1024
)

// GetRecords returns stream records from a position on. With a Wait it waits until there is a
// durable record, the shard ends or the time is up.
//
// The order of checks: the shape; the largest Limit; the iterator's form and age; the stream; the
// shard; whether the position was trimmed.
func (s *Service) GetRecords(ctx context.Context, in *GetRecordsInput) (*GetRecordsOutput, error) {
	if err := getRecordsShape(in); err != nil {
		return nil, err
	}
	it, err := s.parseIterator(in.Iterator.V)
	if err != nil {
		return nil, err
	}
	d, err := s.findReadable(ctx, it.arn)
	if err != nil {
		return nil, err
	}
	page, err := s.engine.Records(ctx, d.ID, it.shard, it.from, int(in.Limit.Or(recordsMax)), recordsBytesMax, in.Wait)
	if errors.Is(err, engine.ErrShardNotFound) {
		err = engine.ErrTrimmed // an iterator is proof that its shard did exist
	}
	if err != nil {
		return nil, apiError(err, it.arn)
	}
	out := &GetRecordsOutput{Records: make([]StreamRecord, len(page.Records))}
	ids := newEventIDs(d)
	for i := range page.Records {
		out.Records[i] = s.streamRecord(d, ids, &page.Records[i])
	}
	s.countRecords(d, out.Records)
	if !page.End {
		out.Next = s.newIterator(it.arn, it.shard, page.Next).String()
	}
	return out, nil
}

func getRecordsShape(in *GetRecordsInput) error {
	var s shape
	s.Required("shardIterator", in.Iterator.Set)
	s.length("shardIterator", in.Iterator, 1, iteratorLengthMax)
	s.limit(in.Limit, recordsMax)
	return s.err()
}

// streamRecord returns a record in the API's form. Its time is rounded down to the second, as at
// AWS; in a feed it is exact.
func (s *Service) streamRecord(d *engine.StreamDesc, ids eventIDs, r *engine.Record) StreamRecord {
	created := r.At.Time()
	if !d.Feed() {
		created = created.Truncate(time.Second)
	}
	return StreamRecord{
		EventID:   ids.id(r.Seq),
		EventName: eventNames[r.Event],
		Region:    s.region,
		Created:   created,
		Keys:      r.Keys,
		New:       r.New,
		Old:       r.Old,
		Sequence:  sequenceNumber(r.Seq),
		SizeBytes: int64(r.Size()),
		ViewType:  d.ViewType,
		Service:   r.Service,
	}
}

var eventNames = map[engine.Event]string{engine.Insert: "INSERT", engine.Modify: "MODIFY", engine.Remove: "REMOVE"}
