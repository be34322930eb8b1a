package service

import (
	"context"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/engine"
	"github.com/mayflydb/mayfly/internal/store/expr"
)

const (
	// the data that a page evaluates, in DynamoDB bytes: the page ends with the item that crosses
	// this limit
	pageBytesMax  = 1024 * 1024
	pageArenaMin  = 4 * 1024
	pageArenaMax  = 256 * 1024
	pageItemsHint = 16
)

// page is one page of a Query or Scan, from the checked request to the answer. It judges items in
// the engine's memory: it decodes only attributes that a filter or projection names, and copies
// only what the answer keeps.
type page struct {
	table      *engine.Table
	desc       *engine.TableDesc
	index      *engine.IndexDesc // nil: the table
	rng        engine.Range
	filter     *expr.Condition
	projection *expr.Projection
	countOnly  bool
	// each entry's item is read from the table, since a local index lacks requested attributes
	fetch    bool
	expired  Expired
	limit    int // items evaluated; 0: no limit
	spent    int // bytes that earlier pages of the same answer have evaluated
	perBlock float64
	// of a scan: the partitions of the table that a page from its beginning to its end visits; 0: not
	// counted
	partitions int

	items   []dynamo.Item
	count   int
	scanned int
	bytes   int         // of the evaluated entries
	fetched float64     // units of the fetches
	last    dynamo.Item // where the page ended, if there may be more
	arena   []byte      // holds the items; a full arena is left to them
}

// read fills the page. Entries and their items must be of one state, so a page that fetches reads a
// snapshot.
func (p *page) read(ctx context.Context, e *engine.Engine) error {
	read := e.Read
	if p.fetch {
		read = e.ReadSnapshot
	}
	turn := turnOf(ctx)
	err := read(ctx, func(v *engine.View) error {
		v.Show(p.expired)
		p.reset()
		return v.Range(p.table, p.rng, func(entry dynamo.Item) (bool, error) {
			if err := turn.Do(ctx, len(entry)+entryWork); err != nil {
				return false, err
			}
			return p.visit(v, entry)
		})
	})
	return apiError(err, "")
}

// reset drops the results of an earlier pass of the read.
func (p *page) reset() {
	p.items, p.arena = p.items[:0], p.arena[:0]
	p.count, p.scanned, p.bytes, p.fetched, p.last = 0, 0, 0, 0, nil
}

// visit takes one item or index entry, which is valid only during the call. It reports whether the
// page has room for more.
func (p *page) visit(v *engine.View, entry dynamo.Item) (more bool, err error) {
	p.scanned++
	p.bytes += entry.Size()
	if p.filter == nil || p.filter.Eval(entry) {
		item := entry
		if p.fetch {
			if item, err = p.fetchItem(v, entry); err != nil {
				return false, err
			}
		}
		p.keep(item)
	}
	if p.scanned == p.limit || p.spent+p.bytes >= pageBytesMax {
		p.last = p.startKey(entry)
		return false, nil
	}
	return true, nil
}

// fetchItem returns the whole item of a local index's entry.
func (p *page) fetchItem(v *engine.View, entry dynamo.Item) (dynamo.Item, error) {
	key, err := p.desc.KeyOf(entry)
	if err != nil {
		return nil, err
	}
	item, size, err := v.Get(p.table, key)
	p.fetched += readUnits(size, p.perBlock)
	return item, err
}

// keep counts an item of the answer and, unless only the count is wanted, keeps its projection.
func (p *page) keep(item dynamo.Item) {
	p.count++
	if p.countOnly {
		return
	}
	if p.items == nil {
		p.items = make([]dynamo.Item, 0, pageItemsHint)
	}
	if p.projection != nil {
		p.items = append(p.items, p.projection.Apply(nil, item))
		return
	}
	p.items = append(p.items, p.copy(item))
}

// copy returns a copy of an item in the arena.
func (p *page) copy(item dynamo.Item) dynamo.Item {
	if cap(p.arena)-len(p.arena) < len(item) {
		p.arena = make([]byte, 0, max(len(item), min(max(2*cap(p.arena), pageArenaMin), pageArenaMax)))
	}
	at := len(p.arena)
	p.arena = append(p.arena, item...)
	return dynamo.Item(p.arena[at:len(p.arena):len(p.arena)])
}

// startKey returns the entry's LastEvaluatedKey: its keys in the table and the index.
func (p *page) startKey(entry dynamo.Item) dynamo.Item {
	var b dynamo.Builder
	p.startAttributes(func(attr engine.KeyAttr) bool {
		b.Set(attr.Name, entry.Get(attr.Name))
		return true
	})
	return b.Item()
}

// startAttributes yields the attributes of a start key, each once.
func (p *page) startAttributes(yield func(engine.KeyAttr) bool) {
	for attr := range p.desc.Key.Attrs {
		if !yield(attr) {
			return
		}
	}
	if p.index == nil {
		return
	}
	for attr := range p.index.Key.Attrs {
		if !p.desc.Key.Has(attr.Name) && !yield(attr) {
			return
		}
	}
}

// output returns the page as an answer.
func (p *page) output(given, capacity string) *PageOutput {
	out := &PageOutput{
		Items: p.items, CountOnly: p.countOnly, Count: p.count, ScannedCount: p.scanned, LastEvaluatedKey: p.last,
	}
	mode := capacityMode(capacity)
	m := meter{given: given, mode: mode}
	p.meter(&m)
	if mode.asked() {
		out.Capacity = m.result()
	}
	return out
}

// meter counts the units of the page, in m only if the answer shows them.
func (p *page) meter(m *meter) {
	units := readUnits(p.bytes, p.perBlock)
	if p.last == nil { // each partition costs at least one block
		units = max(units, float64(p.partitions)*p.perBlock)
	}
	p.countRead(units)
	if !m.mode.asked() {
		return
	}
	m.read(p.fetched)
	if p.index != nil {
		m.index(p.index, units)
	} else {
		m.read(units)
	}
}
