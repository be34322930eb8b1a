package bench

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/mayflydb/mayfly/internal/store/kv"
)

// loop is the loop reference: the bare store, without a server, locks, expressions or checks.
type loop struct {
	store *kv.DB
	image []byte        // an item's bytes, without its texts
	items uint64        // number of initial items
	fresh atomic.Uint64 // the last number used by a write
}

// Keyspaces of the loop's store, like an engine's: items, index entries, entries by deadline, and
// the stream's records by sequence number.
const (
	spaceItem  = 2
	spaceIndex = 3
	spaceDue   = 4
	spaceLog   = 5
	entryBytes = 4
	headBytes  = 5 // of a key: space and table
	dueHead    = headBytes + 8
)

func openLoop(dir string, durability kv.Durability) (*loop, error) {
	store, err := kv.Open(kv.Options{Dir: dir, Durability: durability})
	if err != nil {
		return nil, fmt.Errorf("open the store of the loop: %w", err)
	}
	return &loop{store: store, image: itemImage()}, nil
}

func (l *loop) close() error { return l.store.Close() }

// itemImage returns an item's bytes without its texts: names and values, with two bytes of framing each.
func itemImage() []byte {
	image := bytes.Repeat([]byte{3, 8}, 8)
	for _, s := range []string{
		"checked", "1", "expires_at", "123456", "grp", "group-0000000000", "n", "123456", "pk", "item-0000000000", "state", "open", "text", "title",
	} {
		image = append(image, s...)
	}
	return image
}

// appendImage appends the bytes of the n-th item.
func (l *loop) appendImage(dst []byte, n uint64) []byte {
	dst = append(append(dst, l.image...), textOf(n, textBytes)...)
	return append(dst, textOf(n, titleBytes)...)
}

// appendHead appends the start of a key, as long as the engine's.
func appendHead(dst []byte, space byte) []byte { return append(dst, space, 0, 0, 0, 1) }

// appendItem appends the part of a key that belongs to an item; items lie in the order of a hash.
func appendItem(dst []byte, n uint64) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(n*0x9e3779b97f4a7c15>>32))
	return append(appendDigits(append(dst, "item-"...), n), 0, 1)
}

func appendItemKey(dst []byte, n uint64) []byte { return appendItem(appendHead(dst, spaceItem), n) }

func appendDueKey(dst []byte, when, n uint64) []byte {
	return appendItem(binary.BigEndian.AppendUint64(appendHead(dst, spaceDue), when), n)
}

func appendLogKey(dst []byte, n uint64) []byte {
	dst = binary.BigEndian.AppendUint32(appendHead(dst, spaceLog), uint32(n%4)) // a shard
	return binary.BigEndian.AppendUint64(dst, n)
}

// add adds a new item to a batch, with the entries and the record that a table of the design has.
func (l *loop) add(b *kv.Batch, d *design, n, when uint64) {
	var buf [64]byte
	image := l.appendImage(nil, n)
	b.Set(appendItemKey(buf[:0], n), image)
	if d.indexed {
		index := append(appendHead(buf[:0], spaceIndex), "group-0000000000"...)
		b.Set(appendItem(index, when), image)
	}
	if d.ttl {
		b.Set(appendDueKey(buf[:0], when, n), l.image[:entryBytes])
	}
	if d.stream {
		b.Set(appendLogKey(buf[:0], n), image)
	}
}

// fill stores items 0 to n-1 with deadlines when + their number.
func (l *loop) fill(ctx context.Context, n int, when uint64, d *design) error {
	const perBatch = 1000
	for at := 0; at < n && ctx.Err() == nil; at += perBatch {
		if err := l.commit(func(b *kv.Batch) {
			for i := at; i < min(at+perBatch, n); i++ {
				l.add(b, d, uint64(i), when+uint64(i))
			}
		}); err != nil {
			return err
		}
	}
	l.items = uint64(n)
	l.fresh.Store(l.items)
	return ctx.Err()
}

// commit applies the writes of write and waits for the disk.
func (l *loop) commit(write func(b *kv.Batch)) error {
	b := l.store.NewBatch()
	write(b)
	if err := l.store.Apply(b); err != nil {
		return errors.Join(err, b.Close())
	}
	return errors.Join(l.store.Wait(b), b.Close())
}

// put commits n new items of a table.
func (l *loop) put(random *rand.PCG, n int, d *design) error {
	return l.commit(func(b *kv.Batch) {
		for range n {
			l.add(b, d, l.fresh.Add(1), random.Uint64()>>20)
		}
	})
}

// update reads an item and commits it changed, with a record of both images.
func (l *loop) update(random *rand.PCG) error {
	n := random.Uint64() % min(l.items, updatedMost)
	var buf [64]byte
	_, closer, err := l.store.Get(appendItemKey(buf[:0], n))
	if err == nil {
		err = closer.Close()
	}
	if err != nil {
		return err
	}
	return l.commit(func(b *kv.Batch) {
		image := l.appendImage(nil, n)
		b.Set(appendItemKey(buf[:0], n), image)
		b.Set(appendLogKey(buf[:0], l.fresh.Add(1)), append(image, image...))
	})
}

// load runs a scenario that writes in n goroutines until d is over, in each at least once.
func (l *loop) load(ctx context.Context, s *scenario, n int, d time.Duration) (*tally, time.Duration, error) {
	end := time.Now().Add(d)
	total, took := inParallel(n, func(i int, t *tally) {
		random := newRandom(i)
		for now := time.Now(); t.calls < callsMax && ctx.Err() == nil && (t.calls == 0 || now.Before(end)); {
			var err error
			if s.name == scenarioUpdate {
				err = l.update(random)
			} else {
				err = l.put(random, s.perCall, s.table)
			}
			then := time.Now()
			if err != nil {
				t.fail(err)
				return
			}
			t.success(s.perCall, then.Sub(now))
			now = then
		}
	})
	return total, took, ctx.Err()
}

// drainBatch is the number of items in a batch of the drain.
const drainBatch = 1000

// drainLoop fills a store in dir with items that are all due, and removes them in the order of
// their deadlines, in batches: read the first deadlines, read the item, delete item and entry,
// write the record, sync. For a table without a stream it reads no item and writes no record. It returns the
// removals per second and the CPU time of each.
func drainLoop(ctx context.Context, dir string, durability kv.Durability, items int, d *design) (perS float64, cpu time.Duration, err error) {
	l, err := openLoop(dir, durability)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, l.close()) }()
	const when = 1000
	if err := l.fill(ctx, items, when, d); err != nil {
		return 0, 0, err
	}
	before, start := selfCPU(), time.Now()
	mark := appendDueKey(nil, 0, 0)
	for left := items; left > 0; {
		if ctx.Err() != nil {
			return 0, 0, ctx.Err()
		}
		n, next, err := l.drainSlice(mark, d.stream)
		if err == nil && n == 0 {
			err = fmt.Errorf("the loop lost %d entries", left)
		}
		if err != nil {
			return 0, 0, err
		}
		left, mark = left-n, next
	}
	took := time.Since(start)
	return float64(items) / took.Seconds(), since(before, selfCPU()) / time.Duration(items), nil
}

// drainSlice removes the first items with entries from mark on, and returns the mark for the next
// slice.
func (l *loop) drainSlice(mark []byte, record bool) (n int, next []byte, err error) {
	it := l.store.NewIter(mark, []byte{spaceDue + 1})
	defer func() { err = errors.Join(err, it.Close()) }()
	committed := l.commit(func(b *kv.Batch) {
		var buf [64]byte
		for ok := it.First(); ok && n < drainBatch && err == nil; ok = it.Next() {
			item := append(appendHead(buf[:0], spaceItem), it.Key()[dueHead:]...)
			if record {
				err = l.record(b, item)
			}
			b.Delete(item)
			b.Delete(it.Key())
			next = append(append(next[:0], it.Key()...), 0)
			n++
		}
	})
	return n, next, errors.Join(err, committed)
}

// record reads an item and writes it as the record of its removal.
func (l *loop) record(b *kv.Batch, key []byte) error {
	image, closer, err := l.store.Get(key)
	if err != nil {
		return err
	}
	var buf [64]byte
	b.Set(appendLogKey(buf[:0], l.fresh.Add(1)), image)
	return closer.Close()
}
