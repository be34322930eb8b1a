package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mayflydb/mayfly/internal/store/kv"
)

// drainBatch is the number of items in a batch of the drain.
const drainBatch = 1000

// drainLoop fills a store in dir with items that are all due, and removes them in the order of
// their deadlines, in batches: read the first deadlines, read the item, delete item and entry,
// write the record, sync. Without images it reads no item and writes no record. It returns the
// removals per second and the CPU time of each.
func drainLoop(ctx context.Context, dir string, durability kv.Durability, items int, images bool) (perS float64, cpu time.Duration, err error) {
	l, err := openLoop(dir, durability)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, l.close()) }()
	const when = 1000
	if err := l.fill(ctx, items, when, images); err != nil {
		return 0, 0, err
	}
	before, start := selfCPU(), time.Now()
	mark := appendDueKey(nil, 0, 0)
	for left := items; left > 0; {
		if ctx.Err() != nil {
			return 0, 0, ctx.Err()
		}
		n, next, err := l.drainSlice(mark, images)
		if err != nil {
			return 0, 0, err
		}
		if n == 0 {
			return 0, 0, fmt.Errorf("the loop lost %d entries", left)
		}
		left, mark = left-n, next
	}
	took := time.Since(start)
	return float64(items) / took.Seconds(), (selfCPU() - before) / time.Duration(items), nil
}

// dueHead is the length of an entry's key before the item's own part.
const dueHead = 5 + 8

// drainSlice removes the first items with entries from mark on, and returns the mark for the next
// slice.
func (l *loop) drainSlice(mark []byte, images bool) (n int, next []byte, err error) {
	it := l.store.NewIter(mark, []byte{spaceDue + 1})
	defer func() { err = errors.Join(err, it.Close()) }()
	err = l.commit(func(b *kv.Batch, buf []byte) {
		for ok := it.First(); ok && n < drainBatch && err == nil; ok = it.Next() {
			buf = append(append(buf[:0], spaceItem, 0, 0, 0, 1), it.Key()[dueHead:]...)
			if images {
				err = l.record(b, buf)
			}
			b.Delete(buf)
			b.Delete(it.Key())
			next = append(append(next[:0], it.Key()...), 0)
			n++
		}
	})
	return n, next, err
}

// record reads an item and writes it as the record of its removal.
func (l *loop) record(b *kv.Batch, key []byte) error {
	image, closer, err := l.store.Get(key)
	if err != nil {
		return err
	}
	var buf [64]byte
	seq := l.fresh.Add(1)
	b.Set(appendLogKey(buf[:0], uint32(seq%4), seq), image)
	return closer.Close()
}
