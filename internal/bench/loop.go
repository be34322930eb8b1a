package bench

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
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

// Keyspaces of the loop's store, like an engine's: items, entries by deadline, and the stream's
// records by sequence number.
const (
	spaceItem  = 2
	spaceDue   = 4
	spaceLog   = 5
	keyRest    = "item-0000000000"
	entryBytes = 4
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
		"checked", "1", "expires_at", "123456", "grp", "group-0000000000", "n", "123456", "pk", keyRest, "state", "open", "text", "title",
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

// appendItemKey appends a key as long as the engine's; items lie in the order of a hash.
func appendItemKey(dst []byte, space byte, n uint64) []byte {
	dst = append(dst, space, 0, 0, 0, 1)
	return appendRest(dst, n)
}

func appendRest(dst []byte, n uint64) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(n*0x9e3779b97f4a7c15>>32))
	at := len(dst) + len("item-")
	dst = append(dst, keyRest...)
	putDigits(dst[at:at+markBytes], n)
	return append(dst, 0, 1)
}

func appendDueKey(dst []byte, when, n uint64) []byte {
	dst = append(dst, spaceDue, 0, 0, 0, 1)
	dst = binary.BigEndian.AppendUint64(dst, when)
	return appendRest(dst, n)
}

func appendLogKey(dst []byte, shard uint32, n uint64) []byte {
	dst = append(dst, spaceLog, 0, 0, 0, 1)
	dst = binary.BigEndian.AppendUint32(dst, shard)
	return binary.BigEndian.AppendUint64(dst, n)
}

// fill stores items 0 to n-1 with deadlines when + their number, and with stream their records.
func (l *loop) fill(ctx context.Context, n int, when uint64, stream bool) error {
	const perBatch = 1000
	for at := 0; at < n; at += perBatch {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := l.commit(func(b *kv.Batch, buf []byte) {
			var image []byte
			for i := at; i < min(at+perBatch, n); i++ {
				image = l.appendImage(image[:0], uint64(i))
				buf = appendItemKey(buf[:0], spaceItem, uint64(i))
				b.Set(buf, image)
				buf = appendDueKey(buf[:0], when+uint64(i), uint64(i))
				b.Set(buf, l.image[:entryBytes])
				if stream {
					buf = appendLogKey(buf[:0], uint32(i%4), uint64(i))
					b.Set(buf, image)
				}
			}
		}); err != nil {
			return err
		}
	}
	l.items = uint64(n)
	l.fresh.Store(l.items)
	return nil
}

// commit applies the writes of write and waits for the disk.
func (l *loop) commit(write func(b *kv.Batch, buf []byte)) error {
	b := l.store.NewBatch()
	var buf [64]byte
	write(b, buf[:0])
	if err := l.store.Apply(b); err != nil {
		return errors.Join(err, b.Close())
	}
	return errors.Join(l.store.Wait(b), b.Close())
}

// put returns an operation that commits n new items, on request with the entries of their deadlines
// and with records.
func (l *loop) put(n int, deadline, stream bool) func(*randomState) error {
	return func(random *randomState) error {
		return l.commit(func(b *kv.Batch, buf []byte) {
			var image []byte
			for range n {
				key := l.fresh.Add(1)
				image = l.appendImage(image[:0], key)
				buf = appendItemKey(buf[:0], spaceItem, key)
				b.Set(buf, image)
				if deadline {
					buf = appendDueKey(buf[:0], random.next()>>20, key)
					b.Set(buf, l.image[:entryBytes])
				}
				if stream {
					buf = appendLogKey(buf[:0], uint32(key%4), key)
					b.Set(buf, image)
				}
			}
		})
	}
}

// putIndexed commits a new item with an index entry that contains all of it.
func (l *loop) putIndexed(random *randomState) error {
	return l.commit(func(b *kv.Batch, buf []byte) {
		key := l.fresh.Add(1)
		image := l.appendImage(nil, key)
		buf = appendItemKey(buf[:0], spaceItem, key)
		b.Set(buf, image)
		buf = appendItemKey(append(buf[:0], "group-0000000000"...), spaceItem+1, random.next())
		b.Set(buf, image)
		buf = appendDueKey(buf[:0], random.next()>>20, key)
		b.Set(buf, image[:entryBytes])
		buf = appendLogKey(buf[:0], uint32(key%4), key)
		b.Set(buf, image)
	})
}

// update reads an item and commits it changed, with a record of both images.
func (l *loop) update(random *randomState) error {
	n := random.next() % min(l.items, updatedMost)
	if err := l.getItem(n); err != nil {
		return err
	}
	return l.commit(func(b *kv.Batch, buf []byte) {
		image := l.appendImage(nil, n)
		buf = appendItemKey(buf[:0], spaceItem, n)
		b.Set(buf, image)
		buf = appendLogKey(buf[:0], uint32(n%4), l.fresh.Add(1))
		b.Set(buf, append(image, image...))
	})
}

func (l *loop) getItem(n uint64) error {
	var buf [64]byte
	_, closer, err := l.store.Get(appendItemKey(buf[:0], spaceItem, n))
	if err != nil {
		return err
	}
	return closer.Close()
}

// operation returns the loop's operation for a scenario, or nil if it has none.
func (l *loop) operation(scenario string) func(*randomState) error {
	switch scenario {
	case scenarioPut:
		return l.put(1, true, true)
	case scenarioPutNoTTL:
		return l.put(1, false, true)
	case scenarioPutPlain:
		return l.put(1, false, false)
	case scenarioPutIndexed:
		return l.putIndexed
	case scenarioBatch:
		return l.put(batchItems, true, true)
	case scenarioTransact:
		return l.put(transactItems, true, true)
	case scenarioUpdate:
		return l.update
	}
	return nil
}

// load runs an operation in n goroutines until d is over.
func (l *loop) load(ctx context.Context, operation func(*randomState) error, perCall, n int, d time.Duration) (*tally, time.Duration, error) {
	tallies := make([]tally, n)
	var running sync.WaitGroup
	start := time.Now()
	end := start.Add(d)
	for i := range tallies {
		running.Go(func() { tallies[i].repeat(ctx, operation, perCall, newRandom(i), end) })
	}
	running.Wait()
	took := time.Since(start)
	total := new(tally)
	for i := range tallies {
		total.merge(&tallies[i])
	}
	return total, took, ctx.Err()
}

func (t *tally) repeat(ctx context.Context, operation func(*randomState) error, perCall int, random randomState, end time.Time) {
	for now := time.Now(); t.calls < callsMax && ctx.Err() == nil; {
		err := operation(&random)
		then := time.Now()
		if err != nil {
			t.fail(err)
			return
		}
		t.calls++
		t.items += perCall
		t.latency.add(then.Sub(now))
		if now = then; !now.Before(end) {
			return
		}
	}
}
