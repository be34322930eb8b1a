package expirybench

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"golang.org/x/sync/errgroup"

	"github.com/mayflydb/mayfly/internal/bench"
	"github.com/mayflydb/mayfly/internal/work/attr"
)

// Events are the faults of a stream whose items have a history: written, changed twice, then expired or
// deleted by a client.
type Events struct {
	Keys     int `json:"keys"`
	Deleted  int `json:"deleted"`  // of them, those that a client deleted
	Expected int `json:"expected"` // records
	Lost     int `json:"lost"`     // of writes and of deletions by clients
	// Unrecorded are expiring items that are not in the table, and have no record of it by the end of the wait.
	Unrecorded int `json:"unrecorded"`
	Doubled    int `json:"doubled"`
	Disordered int `json:"disordered"` // keys whose records are not in the order of the changes
	// Mismarked are removals by the endpoint without the mark of an expiry, and clients' changes with it.
	Mismarked  int `json:"mismarked"`
	NotRemoved int `json:"not_removed"` // expiring items that were still there at the end of the wait

	NotOffered string `json:"not_offered,omitempty"`
}

func (e *Events) faults() int { return e.Lost + e.Doubled + e.Disordered + e.Mismarked }

const (
	eventKeys     = 400
	eventVersions = 3 // writes of an item before its end
	deletedEach   = 4 // every fourth item is deleted by a client
)

// history are the records of a key: the version of each, or gone.
type history []int

const gone = eventVersions + 1

// events measures the records of items with a history.
func (r *run) events(ctx context.Context) error {
	r.step("stream records of %d items with a history", eventKeys)
	return r.prepared(PartEvents, func(lead time.Duration) error { return r.eventsOnce(ctx, lead) })
}

func (r *run) eventsOnce(ctx context.Context, lead time.Duration) error {
	t, err := r.createTable(ctx, "events", design{stream: true})
	if err != nil {
		return err
	}
	defer r.discard(ctx, t)
	found := &Events{Keys: eventKeys}
	if !t.stream {
		found.NotOffered = "the table has no stream: the endpoint refuses one"
		r.report.Events = found
		r.result("%s", found.NotOffered)
		return nil
	}
	histories := make([]history, eventKeys)
	left := eventKeys // keys without a record of their removal
	f, err := t.follow(ctx, types.ShardIteratorTypeTrimHorizon, func(record types.Record, _ time.Time) {
		number, ok := keyNumber(record)
		if !ok || number >= eventKeys {
			return
		}
		version := gone
		if record.EventName != types.OperationTypeRemove {
			version = int(attr.Integer(record.Dynamodb.NewImage[numberName]))
		} else if !slices.Contains(histories[number], gone) {
			left--
		}
		if isExpiry(record) != (version == gone && number%deletedEach != 0) {
			found.Mismarked++
		}
		histories[number] = append(histories[number], version)
	})
	if err != nil {
		return err
	}
	deadline, err := r.writeHistories(ctx, t, lead)
	if err == nil {
		err = r.lookForExpired(ctx, t, deadline)
	}
	if err == nil {
		limit, cancel := context.WithDeadline(ctx, deadline.Add(r.Wait))
		for more := true; more; more = bench.Pause(limit, recordPoll) == nil {
			f.mu.Lock()
			more = left > 0
			f.mu.Unlock()
			if !more {
				_ = bench.Pause(ctx, watchOn) // for records that come again
				break
			}
		}
		cancel()
	}
	inTable := map[int]bool{}
	if err == nil {
		err = t.scan(ctx, func(number int, _ time.Time) { inTable[number] = true })
	}
	if stopped := f.stop(ctx); err == nil {
		err = stopped
	}
	if err != nil {
		return err
	}
	found.count(histories, inTable)
	r.report.Events = found
	r.result("%d lost, %d doubled, %d out of order, %d wrongly marked of %d", found.Lost+found.Unrecorded, found.Doubled, found.Disordered, found.Mismarked, found.Expected)
	return nil
}

// lookForExpired learns by a Scan right after the deadline whether the endpoint shows expired items.
func (r *run) lookForExpired(ctx context.Context, t *table, deadline time.Time) error {
	after := deadline.Add(r.difference().behind() + time.Millisecond)
	if err := bench.Pause(ctx, time.Until(after)); err != nil {
		return err
	}
	return t.scan(ctx, func(number int, sent time.Time) {
		if number%deletedEach != 0 && sent.After(after) {
			r.report.ShowsExpired = true
		}
	})
}

// writeHistories writes all versions of each item, and deletes some. It returns the deadline of the others.
func (r *run) writeHistories(ctx context.Context, t *table, lead time.Duration) (time.Time, error) {
	deadline := r.firstDeadline(lead)
	group, limited := errgroup.WithContext(ctx)
	group.SetLimit(loaders)
	for number := range eventKeys {
		group.Go(func() error {
			for version := range eventVersions {
				i := item{number, deadline}.attributes()
				i[numberName] = attr.Int(version + 1)
				if err := t.put(limited, i); err != nil {
					return err
				}
			}
			if number%deletedEach != 0 {
				return nil
			}
			_, err := t.db.DeleteItem(limited, &dynamodb.DeleteItemInput{TableName: &t.name, Key: attr.Item{keyName: attr.S(keyOf(number))}})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return deadline, fmt.Errorf("write items with a history: %w", err)
	}
	if time.Until(deadline) < r.difference().lead() {
		return deadline, errTooSlow
	}
	return deadline, nil
}

// count compares the histories with the changes that were made.
func (e *Events) count(histories []history, inTable map[int]bool) {
	for number, h := range histories {
		if number%deletedEach == 0 {
			e.Deleted++
		}
		last := gone
		if inTable[number] {
			e.NotRemoved++
			last--
		}
		e.Expected += last
		var times [gone + 1]int
		ordered := true
		highest := 0
		for _, version := range h {
			if version < 1 || version > gone {
				ordered = false
				continue
			}
			times[version]++
			ordered = ordered && version >= highest
			highest = max(highest, version)
		}
		for version := 1; version <= gone; version++ {
			switch {
			case times[version] == 0 && version == gone && version <= last && number%deletedEach != 0:
				e.Unrecorded++
			case times[version] == 0 && version <= last:
				e.Lost++
			case times[version] > 1:
				e.Doubled += times[version] - 1
			}
		}
		if !ordered {
			e.Disordered++
		}
	}
}
