package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"time"
)

// caller makes the requests of one connection, in sequence, and checks the responses.
type caller interface {
	// next returns the next request, or nil at the end. It is valid until the next call.
	next() []byte
	// done checks the body of a 200 response, and returns the number of its items.
	done(body []byte) (items int, err error)
}

// newRandom returns a generator with a sequence of its own for each connection.
func newRandom(connection int) *rand.PCG { return rand.NewPCG(uint64(connection), 0) }

// scenarioCaller makes the calls of a scenario that differ in their items only.
type scenarioCaller struct {
	scenario  *scenario
	table     *table
	host      string
	header    string
	head      string // of the body
	part      pattern
	random    *rand.PCG
	body, raw []byte
}

func newScenarioCaller(s *scenario, host string, t *table, connection int) *scenarioCaller {
	return &scenarioCaller{
		scenario: s, table: t, host: host, header: apiHeader(apiPrefix + s.operation),
		head: withTable(s.head, t.name), part: newPattern(withTable(s.part, t.name)), random: newRandom(connection),
	}
}

func (c *scenarioCaller) next() []byte {
	c.body = append(c.body[:0], c.head...)
	for i := range c.scenario.perRequest() {
		if i > 0 {
			c.body = append(c.body, ',')
		}
		c.body = c.part.append(c.body, c.numbers())
	}
	c.body = append(c.body, c.scenario.tail...)
	c.raw = appendRequest(c.raw[:0], c.host, "POST /", c.header, c.body)
	return c.raw
}

// numbers returns the numbers of the next item.
func (c *scenarioCaller) numbers() numbers {
	n := numbers{value: c.random.Uint64() % 1e10}
	n.when = farDeadline(int(n.value))
	if c.scenario.fresh {
		n.key = c.table.fresh.Add(1)
	} else {
		n.key = c.random.Uint64() % c.table.items
	}
	return n
}

// farDeadline returns a deadline in the day after afterRun, in epoch seconds. It repeats after
// deadlineSpread numbers.
func farDeadline(number int) string {
	return strconv.FormatInt(afterRun.Unix()+int64(number)%deadlineSpread, 10)
}

var (
	errTooShort    = errors.New("an answer lacks items")
	errUnprocessed = errors.New("an answer names unprocessed items")
)

func (c *scenarioCaller) done(body []byte) (int, error) {
	if !c.scenario.write && len(body) < c.scenario.perCall*itemBytes { // JSON is larger than DynamoDB's count
		return 0, fmt.Errorf("%w: %.200q", errTooShort, body)
	}
	if c.scenario.name == scenarioBatch {
		if err := checkProcessed(body); err != nil {
			return 0, err
		}
	}
	return c.scenario.perCall, nil
}

// checkProcessed refuses a BatchWriteItem response with unprocessed items.
func checkProcessed(body []byte) error {
	var left map[string]json.RawMessage
	if member(body, "UnprocessedItems", &left) && len(left) > 0 {
		return fmt.Errorf("%w: %.200q", errUnprocessed, body)
	}
	return nil
}

// scanCaller reads a table page by page, repeatedly.
type scanCaller struct {
	host, table string
	after       json.RawMessage // key before the next page; nil: the first page is next
}

func (c *scanCaller) next() []byte {
	start := ""
	if c.after != nil {
		start = `,"ExclusiveStartKey":` + string(c.after)
	}
	return rawRequest(c.host, apiPrefix+"Scan", `{"TableName":"`+c.table+`"`+start+"}")
}

func (c *scanCaller) done(body []byte) (int, error) {
	var count uint32
	var key json.RawMessage
	c.after = nil
	if member(body, "LastEvaluatedKey", &key) && key[0] == '{' {
		c.after = key
	}
	if !member(body, "Count", &count) || count == 0 && c.after != nil {
		return 0, fmt.Errorf("%w: %.200q", errTooShort, body)
	}
	return int(count), nil
}

// work is a range of numbers that several connections share: each request is for the next ones.
type work struct {
	name    string
	taken   *atomic.Int64
	end     int
	batch   int // numbers in a request; the last one has fewer
	request func(dst []byte, from, to int) []byte
}

// callers returns one caller per connection.
func (w *work) callers(connections int) []caller {
	list := make([]caller, connections)
	for i := range list {
		list[i] = &workCaller{work: w}
	}
	return list
}

// complete makes all requests, over many connections, and fails unless each succeeds.
func (w *work) complete(ctx context.Context, e *endpoint) error {
	wanted := w.end - int(w.taken.Load())
	limit := workLimit + time.Duration(wanted/gracePerS)*time.Second
	total, _, err := load(ctx, e.address, w.callers(workConnections), limit)
	if err != nil {
		return err
	}
	if total.errors > 0 || total.items != wanted {
		return fmt.Errorf("%s at %s: %d of %d done, %d errors: %s", w.name, e.name, total.items, wanted, total.errors, total.problem)
	}
	w.taken.Store(int64(w.end)) // each connection has taken too many at its end
	return nil
}

const (
	workConnections = 16
	workLimit       = 10 * time.Minute // plus time for its size
)

type workCaller struct {
	*work
	count int // numbers in the current request
	raw   []byte
}

func (c *workCaller) next() []byte {
	from := int(c.taken.Add(int64(c.batch))) - c.batch
	to := min(from+c.batch, c.end)
	if from >= to {
		return nil
	}
	c.count = to - from
	c.raw = c.request(c.raw[:0], from, to)
	return c.raw
}

func (c *workCaller) done(body []byte) (int, error) { return c.count, checkProcessed(body) }

// fillTable writes the items from number from up to, but not including, to. when returns an item's
// deadline in epoch seconds, as text.
func (e *endpoint) fillTable(ctx context.Context, t *table, from, to int, when func(item int) string) error {
	key := itemKey
	if t.sorted {
		key = seriesKey
	}
	return e.fillItems(ctx, t.name, item(key), from, to, when)
}

// fillItems is fillTable for items of any pattern.
func (e *endpoint) fillItems(ctx context.Context, table, item string, from, to int, when func(item int) string) error {
	w := &work{name: "fill table " + table, taken: new(atomic.Int64), end: to, batch: batchItems}
	w.taken.Store(int64(from))
	entry, header := newPattern(`{"PutRequest":{"Item":`+item+"}}"), apiHeader(apiPrefix+"BatchWriteItem")
	w.request = func(dst []byte, from, to int) []byte {
		body := []byte(`{"RequestItems":{"` + table + `":[`)
		for i := from; i < to; i++ {
			if i > from {
				body = append(body, ',')
			}
			body = entry.append(body, numbers{key: uint64(i), value: uint64(i), when: when(i)})
		}
		return appendRequest(dst, e.address, "POST /", header, append(body, "]}}"...))
	}
	return w.complete(ctx, e)
}
