package bench

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"
)

const (
	fillConnections = 16
	fillLimit       = 10 * time.Minute
)

// fillTable writes the items from number from up to, but not including, to. when returns an item's
// deadline in epoch seconds, as text.
func (e *endpoint) fillTable(ctx context.Context, t *table, kind tableKind, from, to int, when func(item int) string) error {
	key := itemKey
	if designs[kind].sorted {
		key = seriesKey
	}
	var taken atomic.Int64
	taken.Store(int64(from))
	callers := make([]caller, fillConnections)
	for i := range callers {
		callers[i] = &fillCaller{host: e.address, table: t.name, item: item(key), end: to, taken: &taken, when: when}
	}
	total, _, err := load(ctx, e.address, callers, fillLimit)
	if err != nil {
		return err
	}
	if total.errors > 0 || total.items != to-from {
		return fmt.Errorf("fill table %s of %s: %d of %d items written, %d errors: %s", t.name, e.name, total.items, to-from, total.errors, total.problem)
	}
	return nil
}

// fillCaller writes items in ascending order, in batches. Callers with the same taken share the
// items.
type fillCaller struct {
	host, table string
	item        string // with marks
	end         int
	taken       *atomic.Int64
	when        func(item int) string
	batch       int // items in the current request
}

func (c *fillCaller) next() []byte {
	from := int(c.taken.Add(batchItems)) - batchItems
	to := min(from+batchItems, c.end)
	if from >= to {
		return nil
	}
	c.batch = to - from
	var body strings.Builder
	body.WriteString(`{"RequestItems":{"` + c.table + `":[`)
	for i := from; i < to; i++ {
		if i > from {
			body.WriteByte(',')
		}
		body.WriteString(`{"PutRequest":{"Item":`)
		body.WriteString(strings.ReplaceAll(fillMarks(c.item, uint64(i)), markWhen, c.when(i)))
		body.WriteString("}}")
	}
	body.WriteString("]}}")
	return rawRequest(c.host, apiPrefix+"BatchWriteItem", body.String())
}

// fillMarks replaces the marks that depend on the item's number.
func fillMarks(item string, n uint64) string {
	for _, m := range marks {
		if m != markWhen {
			value := make([]byte, markLength(m))
			numbers{key: n, value: n}.fill(value, m)
			item = strings.ReplaceAll(item, room(m, len(value)), string(value))
		}
	}
	return item
}

func (c *fillCaller) done(body []byte) (int, error) { return c.batch, checkProcessed(body) }

// farDeadline returns a function for deadlines after the run.
func farDeadline(start time.Time) func(item int) string {
	return func(item int) string { return fmt.Sprint(deadlineOf(start, uint64(item))) }
}
