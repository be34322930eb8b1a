package deliver

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/work/ensure"
	"github.com/mayflydb/mayfly/internal/work/retry"
)

// writer puts and deletes items in batches. The next batch gathers while one is written; a full
// batch does not wait. Writes of one key keep their order.
type writer struct {
	db      *dynamodb.Client
	log     *slog.Logger
	missing func(context.Context) error // creates the tables
	wake    chan struct{}
	mu      struct {
		sync.Mutex
		waiting []write
		flying  map[place]bool // places of writes that were taken and are not durable
	}
}

const (
	writesMax  = 25      // maximum of BatchWriteItem
	batchBytes = 8 << 20 // approximate limit of a batch: DynamoDB accepts 16 MB
	flights    = 4       // concurrent batches
)

func newWriter(db *dynamodb.Client, log *slog.Logger) *writer {
	w := &writer{db: db, log: log, wake: make(chan struct{}, 1)}
	w.mu.flying = map[place]bool{}
	return w
}

// add queues writes.
func (w *writer) add(writes ...write) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.waiting = append(w.mu.waiting, writes...)
	nudge(w.wake)
}

// addBehind queues writes, and others that are made when the first are durable. All are queued at
// once, so that later writes of their keys follow them.
func (w *writer) addBehind(first []write, then ...write) {
	b := &base{}
	for i := range first {
		first[i].of = b
		b.places = append(b.places, first[i].at)
	}
	for i := range then {
		then[i].behind = b
	}
	w.add(append(slices.Clip(first), then...)...)
}

// waitsLocked reports whether the next write in the queue must wait for one under way.
func (w *writer) waitsLocked(next *write) bool {
	if w.mu.flying[next.at] {
		return true
	}
	return next.behind != nil && slices.ContainsFunc(next.behind.places, func(p place) bool { return w.mu.flying[p] })
}

// take takes the next batch: the oldest writes, except those whose key or base is being written. If
// another batch is under way, the next one must be full.
func (w *writer) take() []write {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.mu.waiting) > 0 && w.mu.waiting[0].abandoned() {
		w.mu.waiting = w.mu.waiting[1:]
	}
	if len(w.mu.flying) > 0 && len(w.mu.waiting) < writesMax {
		return nil
	}
	n, size := 0, 0
	for n < min(writesMax, len(w.mu.waiting)) {
		next := &w.mu.waiting[n]
		if size += next.bytes(); w.waitsLocked(next) || next.abandoned() || n > 0 && size > batchBytes {
			break
		}
		w.mu.flying[next.at] = true
		n++
	}
	batch := w.mu.waiting[:n:n]
	w.mu.waiting = w.mu.waiting[n:]
	if n > 0 && len(w.mu.waiting) >= writesMax {
		nudge(w.wake)
	}
	return batch
}

// landed is called when a batch is durable.
func (w *writer) landed(batch []write) {
	for _, b := range batch {
		if b.done != nil {
			b.done()
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, b := range batch {
		delete(w.mu.flying, b.at)
	}
	nudge(w.wake)
}

// refuse records that writes behind a base will not be made.
func (w *writer) refuse(of *base) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if of != nil {
		of.refused = true
	}
}

// idle reports whether nothing waits to be written.
func (w *writer) idle() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.mu.waiting) == 0 && len(w.mu.flying) == 0
}

// run writes until ctx is done.
func (w *writer) run(ctx context.Context) {
	var all sync.WaitGroup
	for range flights {
		all.Go(func() { w.fly(ctx) })
	}
	all.Wait()
}

// fly writes batches one after another.
func (w *writer) fly(ctx context.Context) {
	for {
		batch := w.take()
		if len(batch) == 0 {
			select {
			case <-w.wake:
				continue
			case <-ctx.Done():
				return
			}
		}
		if err := w.write(ctx, batch); err != nil {
			return
		}
		w.landed(batch)
	}
}

// write writes a batch until all of it is durable, or ctx is done. If the endpoint refuses the
// batch, its writes are made one by one, so that an impossible one does not prevent the others.
func (w *writer) write(ctx context.Context, batch []write) error {
	in := batchOf(batch)
	err := retry.Until(ctx, w.log, retry.Calls, "write items", func() error { return w.try(ctx, in) })
	if err == nil || ctx.Err() != nil {
		return err
	}
	if len(batch) == 1 {
		w.log.Error("an item cannot be written", "table", batch[0].at.table, "id", batch[0].at.id, "part", batch[0].at.part, "error", err)
		batch[0].done = nil
		w.refuse(batch[0].of)
		return nil
	}
	for i := range batch {
		if err := w.write(ctx, batch[i:i+1]); err != nil {
			return err
		}
	}
	return nil
}

// batchOf returns the call that makes writes.
func batchOf(writes []write) *dynamodb.BatchWriteItemInput {
	in := &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{}}
	for _, w := range writes {
		in.RequestItems[w.at.table] = append(in.RequestItems[w.at.table], w.request)
	}
	return in
}

var errUnprocessed = errors.New("the endpoint is overloaded")

// try makes one call, and removes the completed writes from the input. It creates missing tables.
func (w *writer) try(ctx context.Context, in *dynamodb.BatchWriteItemInput) error {
	out, err := w.db.BatchWriteItem(ctx, in)
	if ensure.Missing(err) && w.missing != nil {
		if err = w.missing(ctx); err == nil {
			out, err = w.db.BatchWriteItem(ctx, in)
		}
	}
	switch {
	case retry.Invalid(err):
		return retry.Final(err)
	case err != nil:
		return err
	case len(out.UnprocessedItems) > 0:
		in.RequestItems = out.UnprocessedItems
		return errUnprocessed
	}
	return nil
}

// nudge wakes the receiver of a channel with room for one element.
func nudge(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
