package main

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/guard"
	"github.com/mayflydb/mayfly/internal/clock"
)

const (
	writers   = 8  // of batches
	changers  = 16 // of single items
	batchMost = 25 // items, by the API
)

// wave is the load of a fleet: items with evenly spread deadlines. It writes them in batches, and
// later changes some of them.
type wave struct {
	*load
	count  int64 // of items
	rate   int64 // deadlines a second
	ahead  int64 // ms from write to deadline
	whole  bool  // deadlines are whole seconds
	first  int64 // the first deadline
	behind atomic.Int64
}

func (f *fleetRun) newWave() *wave {
	return &wave{
		load:  &load{db: f.e.once, table: fleetTable, strategy: guard.Stream, faultsAt: clock.Never, ledger: f.ledger, clock: f.clock},
		count: int64(f.Rate) * f.For.Milliseconds() / 1000, rate: int64(f.Rate), ahead: f.Ahead.Milliseconds(), whole: f.WholeSeconds,
	}
}

// begin sets the first deadline: a whole second.
func (w *wave) begin(now int64) { w.first = now + w.ahead + 1000 - now%1000 }

// evenly returns the instant of the n-th item, before it is rounded.
func (w *wave) evenly(n int64) int64 { return w.first + n*1000/w.rate }

// deadline returns the deadline of the n-th item.
func (w *wave) deadline(n int64) int64 {
	at := w.evenly(n)
	if w.whole {
		at += 999 - (at+999)%1000
	}
	return at
}

// renewedBy returns by how much a renewal moves a deadline.
func (w *wave) renewedBy() int64 {
	if w.whole {
		return (w.ahead/2 + 999) / 1000 * 1000
	}
	return w.ahead / 2
}

// last returns an instant after the last deadline of all items, with their renewals.
func (w *wave) last() int64 { return w.deadline(w.count-1) + w.renewedBy() + 1000 }

// run writes and changes the items, until all is done or ctx is.
func (w *wave) run(ctx context.Context) {
	batches, changes := make(chan int64), make(chan int64)
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			for n := range batches {
				w.putBatch(ctx, n, min(n+batchMost, w.count))
			}
		})
	}
	for range changers {
		all.Go(func() {
			for n := range changes {
				w.change(ctx, n)
			}
		})
	}
	all.Go(func() {
		defer close(batches)
		for n := int64(0); n < w.count && w.clock.Sleep(ctx, w.evenly(n)-w.ahead, nil) == nil; n += batchMost {
			batches <- n
		}
	})
	all.Go(func() {
		defer close(changes)
		for n := range w.count {
			if at := w.changeAt(n); at != 0 {
				if w.clock.Sleep(ctx, at, nil) != nil {
					return
				}
				changes <- n
			}
		}
	})
	all.Wait()
}

// changeAt returns the instant of the change of the n-th item; 0: it has none. A change comes from
// 100 ms before the deadline to 50 ms after it; the distance is the same for a second.
func (w *wave) changeAt(n int64) int64 {
	if n%10 != 3 && n%100 != 50 && n%100 != 51 {
		return 0
	}
	at := w.deadline(n)
	return at - 100 + at/1000*3%7*25
}

// change renews, frees or deletes an item that was written and is not known to be gone.
func (w *wave) change(ctx context.Context, n int64) {
	one := &life{load: w.load, ctx: ctx, key: w.key(n)}
	if !w.ledger.awaits(one.key) {
		return
	}
	switch {
	case n%10 == 3:
		one.update(w.deadline(n) + w.renewedBy())
	case n%100 == 50:
		one.update(0)
	default:
		one.delete()
	}
}

func (w *wave) key(n int64) string { return fmt.Sprint("item-", n) }

// putBatch writes the items from n to m, and notes them in the ledger.
func (w *wave) putBatch(ctx context.Context, n, m int64) {
	now := w.clock.Millis()
	late := now - (w.evenly(n) - w.ahead)
	for most := w.behind.Load(); late > most && !w.behind.CompareAndSwap(most, late); {
		most = w.behind.Load()
	}
	var items []types.WriteRequest
	for i := n; i < m; i++ {
		one := write{number: w.number.Add(1), deadline: w.deadline(i), sent: now}
		w.ledger.begin(w.key(i), one)
		items = append(items, putOf(w.key(i), strconv.FormatInt(one.number, 10), seconds(one.deadline)))
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	err := writeBatch(ctx, w.db, items)
	now = w.clock.Millis()
	for i := n; i < m; i++ {
		if err != nil {
			w.ledger.failed(w.key(i), err)
		} else {
			w.ledger.written(w.key(i), now)
		}
	}
}

// putOf returns the request that writes an item whole.
func putOf(key, number, deadline string) types.WriteRequest {
	return types.WriteRequest{PutRequest: &types.PutRequest{Item: map[string]types.AttributeValue{
		keyAttribute:      &types.AttributeValueMemberS{Value: key},
		writeAttribute:    &types.AttributeValueMemberN{Value: number},
		deadlineAttribute: &types.AttributeValueMemberN{Value: deadline},
	}}}
}

// writeBatch writes items of the fleet's table until none is unprocessed.
func writeBatch(ctx context.Context, db *dynamodb.Client, items []types.WriteRequest) error {
	for len(items) > 0 {
		out, err := db.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{fleetTable: items}})
		if err != nil {
			return fmt.Errorf("write items: %w", err)
		}
		items = out.UnprocessedItems[fleetTable]
	}
	return nil
}
