package engine

import (
	"maps"
	"math"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/keyenc"
	"github.com/mayflydb/mayfly/internal/store/kv"
)

// collections holds the item collections of a table with local indexes within their limit: the items
// of one partition key and their entries in the local indexes, in DynamoDB bytes.
//
// Nothing about it is stored. A counter on disk for each collection would cost every write a key,
// and every reaper, backfill and restore a change, so that a few collections of gigabytes are
// noticed. Instead a write only takes its growth from a number in memory: the bytes that the table
// can gain before any collection of it can be too large. When the number is used up, three steps
// look more closely, each only if the one before cannot rule out that a collection is large:
//
//	the table    less than half of the limit in all its files: the rest is the next number
//	its bucket   likewise for the 4,096th part of the hashes that the collection is in
//	measured     the collection's entries are read once, and later changes are counted
//
// So a table below half of the limit never reads more than the properties of its files, once for
// some gigabytes of growth. The factor two covers what files record otherwise than DynamoDB counts.
// Files also hold overwritten and deleted values until compactions drop them, so a large table and its
// large buckets are looked at again after each eighth of the limit in growth. One write looks, and the
// others go on.
// A measured collection is exact: its stripe is locked from the decision to the commit, and the reaper
// and backfills count what they remove. After a restart everything begins anew.
type collections struct {
	limit    int64
	spare    atomic.Int64 // what the whole table can gain; used up: look at the bucket
	measured atomic.Int64 // the length of sizes

	// looking is held by a look at files, which can take long in a large table. It is taken before mu.
	looking sync.Mutex

	mu      sync.Mutex
	large   bool             // the whole table may reach the limit
	unseen  int64            // of a large table: the growth until the next look at it
	buckets map[uint32]int64 // what each bucket looked at can gain; bucketLarge: it may reach the limit
	sizes   map[string]int64 // of measured collections, by hash and partition key
}

const (
	collectionBytesMax = 10 << 30 // Amazon's limit
	bucketBits         = 12
	bucketLarge        = -1 << 62
	measuredMax        = 10_000 // collections; a further one drops a small one, which is then measured again
	looksPerLimit      = 8      // a large table is looked at again after this part of the limit
)

// newCollections returns nil for a table without local indexes, which has no limit. A table gets its
// local indexes when it is created.
func newCollections(d *TableDesc, limit int64) *collections {
	if !d.hasLocal() {
		return nil
	}
	return &collections{limit: limit, buckets: map[uint32]int64{}, sizes: map[string]int64{}}
}

func (d *TableDesc) hasLocal() bool {
	return d.index(func(ix IndexDesc) bool { return !ix.Global }) != nil
}

// collection returns the part of the key that all items of its collection share.
func (k Key) collection() string { return k.enc[tablePrefixLen:k.partition] }

// collectionBytes returns what an item adds to its collection: its size, and the sizes of its
// entries in the local indexes.
func (d *TableDesc) collectionBytes(key Key, item dynamo.Item, size int) int64 {
	for i := range d.Indexes {
		ix := &d.Indexes[i]
		if ix.Global {
			continue
		}
		if _, indexed := d.appendIndexKey(nil, ix, item, key); indexed {
			size += d.project(ix, item).Size()
		}
	}
	return int64(size)
}

// collected is what a plan, or a slice of the reaper, adds to a collection.
type collected struct {
	in    *collections
	d     *TableDesc
	key   Key
	bytes int64
	write int // the index of the plan's write that grows or shrinks its item
}

// shares reports whether two changes are of one collection.
func (c *collected) shares(other *collected) bool {
	return c.in == other.in && c.key.collection() == other.key.collection()
}

// collect notes what a change of an item adds to its collection.
func (p *plan) collect(w *planned, bytes int64, write int) {
	if c := w.w.Table.collections; c != nil && bytes != 0 {
		p.collected = append(p.collected, collected{c, w.desc, w.w.Key, bytes, write})
	}
}

// growth returns what a write whose changes are in the batch adds to its collection, besides the
// removal of an expired item.
func (w *planned) growth() int64 {
	bytes := w.w.NewBytes - w.w.OldBytes
	for i := range w.w.Indexes {
		if change := &w.w.Indexes[i]; !change.Index.Global {
			bytes += change.NewBytes - change.OldBytes
		}
	}
	return int64(bytes)
}

// checkCollections refuses writes that grow a collection beyond its limit. All changes of a batch
// count together, and one that shrinks its item is never refused.
func (p *plan) checkCollections() error {
	refused := false
	for i := range p.collected {
		first := &p.collected[i]
		sum, seen := int64(0), false
		for j := range p.collected {
			if other := &p.collected[j]; other.shares(first) {
				sum += other.bytes
				seen = seen || j < i
			}
		}
		if seen || sum <= 0 {
			continue
		}
		fits, err := first.in.fits(p.e, first.d, first.key, sum)
		if err != nil {
			return err
		}
		if fits {
			continue
		}
		for j := range p.collected {
			if other := &p.collected[j]; other.bytes > 0 && other.shares(first) {
				p.writes[other.write].w.Err, refused = ErrCollectionFull, true
			}
		}
	}
	if refused {
		return ErrRefused
	}
	return nil
}

// countCollected counts changes that have been committed. The caller holds their stripes.
func countCollected(changes []collected) {
	for _, change := range changes {
		change.in.count(change.key, change.bytes)
	}
}

// count changes the size of a collection, if it was measured.
func (c *collections) count(key Key, bytes int64) {
	if c.measured.Load() == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if size, known := c.sizes[key.collection()]; known {
		c.sizes[key.collection()] = size + bytes
	}
}

// fits reports whether a collection can grow by a positive number of bytes. The caller holds the
// stripe of the collection. A damaged file is no reason to refuse a write.
func (c *collections) fits(e *Engine, d *TableDesc, key Key, growth int64) (bool, error) {
	if c.spare.Add(-growth) >= 0 {
		return true, nil
	}
	small, err := c.ruledOut(e, d, key, growth)
	if err == nil && !small {
		var size int64
		size, err = c.size(e, d, key)
		small = size+growth <= c.limit
	}
	if isDamage(err) {
		return true, nil
	}
	return small, err
}

// ruledOut reports whether the files show that the collection stays below the limit.
func (c *collections) ruledOut(e *Engine, d *TableDesc, key Key, growth int64) (bool, error) {
	if small, err := c.tableRuledOut(e, d, growth); small || err != nil {
		return small, err
	}
	return c.bucketRuledOut(e, d, key.hash()>>(32-bucketBits), growth)
}

// tableRuledOut looks at the files of the whole table, unless they have lately shown that it is large.
func (c *collections) tableRuledOut(e *Engine, d *TableDesc, growth int64) (bool, error) {
	c.mu.Lock()
	was := c.large
	if c.unseen -= growth; was && c.unseen >= 0 {
		c.mu.Unlock()
		return false, nil
	}
	c.unseen = c.limit / looksPerLimit // other writes do not wait for this look at a large table
	c.mu.Unlock()

	c.looking.Lock()
	defer c.looking.Unlock()
	if c.spare.Add(-growth) >= 0 {
		return true, nil // another write has just looked
	}
	c.mu.Lock()
	seen := c.large && !was
	c.mu.Unlock()
	if seen {
		return false, nil
	}
	spare, err := c.gain(e, growth, tableSpans(d)...)
	if err != nil {
		return false, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.large = spare < 0; c.large {
		maps.DeleteFunc(c.buckets, func(_ uint32, spare int64) bool { return spare == bucketLarge })
		return false, nil
	}
	clear(c.buckets) // their numbers do not shrink while the table's does
	c.spare.Store(spare)
	return true, nil
}

// bucketRuledOut takes the growth from what the bucket can gain. It looks at the files of the bucket if
// that is used up.
func (c *collections) bucketRuledOut(e *Engine, d *TableDesc, bucket uint32, growth int64) (bool, error) {
	if fits, known := c.takeFromBucket(bucket, growth); known {
		return fits, nil
	}
	c.looking.Lock()
	defer c.looking.Unlock()
	if fits, known := c.takeFromBucket(bucket, growth); known {
		return fits, nil // another write has just looked
	}
	spare, err := c.gain(e, growth, bucketSpans(d, bucket)...)
	if err != nil {
		return false, err
	}
	if spare < 0 {
		spare = bucketLarge
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.buckets[bucket] = spare
	return spare != bucketLarge, nil
}

// takeFromBucket reports whether a bucket can gain the growth, and takes it. known is false if that
// needs a look at its files.
func (c *collections) takeFromBucket(bucket uint32, growth int64) (fits, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	spare, looked := c.buckets[bucket]
	switch {
	case spare == bucketLarge:
		return false, true
	case !looked || spare < growth:
		return false, false
	}
	c.buckets[bucket] = spare - growth
	return true, true
}

// gain returns what the spans can gain behind a write until a collection in them can reach half of
// the limit; negative: nothing.
func (c *collections) gain(e *Engine, growth int64, spans ...kv.Span) (int64, error) {
	bytes, err := e.kv.BoundBytes(spans...)
	return c.limit/2 - bytes - growth, err
}

// size returns the size of a collection. It measures one that is not known.
func (c *collections) size(e *Engine, d *TableDesc, key Key) (int64, error) {
	c.mu.Lock()
	size, known := c.sizes[key.collection()]
	c.mu.Unlock()
	if known {
		return size, nil
	}
	size, err := e.measure(d, key)
	if err != nil {
		return 0, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.sizes) >= measuredMax {
		c.dropSmall()
	}
	c.sizes[strings.Clone(key.collection())] = size
	c.measured.Store(int64(len(c.sizes)))
	return size, nil
}

// dropSmall drops the smallest of some measured collections, which is soon measured again if need be. The
// largest one is never the smallest of several.
func (c *collections) dropSmall() {
	smallest, least, seen := "", int64(math.MaxInt64), 0
	for part, size := range c.sizes { // in random order
		if size < least {
			smallest, least = part, size
		}
		if seen++; seen == 16 {
			break
		}
	}
	delete(c.sizes, smallest)
}

// measure adds up the sizes of all entries of a collection, expired ones that are still stored
// included.
func (e *Engine) measure(d *TableDesc, key Key) (size int64, err error) {
	for _, span := range collectionSpans(d, key) {
		it := e.kv.NewIter(span.Start, span.End)
		for ok := it.First(); ok && err == nil; ok = it.Next() {
			var h header
			if h, _, err = splitStored(it.Value()); err == nil {
				size += int64(h.size)
			}
		}
		if err == nil {
			err = it.Error()
		}
		it.Close()
		if err != nil {
			return 0, err
		}
	}
	return size, nil
}

// CollectionBytes returns bounds of the size of an item's collection, in DynamoDB bytes: two equal
// ones if it was measured, and otherwise zero and what its files hold at most, or the limit. ok is
// false if the table has no local indexes.
func (t *Table) CollectionBytes(key Key) (least, most int64, ok bool) {
	c := t.collections
	if c == nil {
		return 0, 0, false
	}
	c.mu.Lock()
	size, known := c.sizes[key.collection()]
	c.mu.Unlock()
	if known {
		return size, size, true
	}
	if t.e.enter() != nil {
		return 0, c.limit, true
	}
	defer t.e.leave()
	most, err := t.e.kv.BoundBytes(collectionSpans(t.Desc(), key)...)
	if err != nil {
		return 0, c.limit, true
	}
	return 0, min(most, c.limit), true
}

func tableSpans(d *TableDesc) []kv.Span {
	items, itemsEnd := tableSpan(spaceItems, d.ID)
	entries, entriesEnd := tableSpan(spaceIndexes, d.ID)
	return []kv.Span{{Start: items, End: itemsEnd}, {Start: entries, End: entriesEnd}}
}

// bucketSpans returns where the items and the entries in local indexes of a bucket are. An item and
// its entries have the same partition key, and so the same hash.
func bucketSpans(d *TableDesc, bucket uint32) []kv.Span {
	const width = 32 - bucketBits
	return localSpans(d, func(prefix []byte) kv.Span {
		span := kv.Span{Start: appendHash(prefix, bucket<<width), End: keyenc.PrefixSuccessor(prefix)}
		if bucket+1 < 1<<bucketBits {
			span.End = appendHash(prefix, (bucket+1)<<width)
		}
		return span
	})
}

// collectionSpans returns where the items and the entries in local indexes of a collection are.
func collectionSpans(d *TableDesc, key Key) []kv.Span {
	return localSpans(d, func(prefix []byte) kv.Span {
		lower := append(prefix, key.collection()...)
		return kv.Span{Start: lower, End: keyenc.PrefixSuccessor(lower)}
	})
}

// localSpans returns the spans behind the prefixes of a table's items and of its local indexes.
func localSpans(d *TableDesc, behind func(prefix []byte) kv.Span) []kv.Span {
	spans := []kv.Span{behind(appendTablePrefix(nil, spaceItems, d.ID))}
	for i := range d.Indexes {
		if ix := &d.Indexes[i]; !ix.Global {
			spans = append(spans, behind(indexPrefix(nil, d.ID, ix.ID)))
		}
	}
	return spans
}
