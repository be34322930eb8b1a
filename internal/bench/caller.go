package bench

import (
	"bytes"
	"errors"
	"fmt"
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

// randomState is a small generator (xorshift64): a call needs one number within a few nanoseconds.
type randomState uint64

func (r *randomState) next() uint64 {
	x := uint64(*r)
	x ^= x << 13
	x ^= x >> 7
	x ^= x << 17
	*r = randomState(x)
	return x
}

// newRandom returns a generator with a sequence of its own for each connection.
func newRandom(connection int) randomState {
	return randomState(0x9e3779b97f4a7c15 * uint64(connection+1))
}

// keys chooses the items of calls.
type keys struct {
	stored         uint64         // items 0 to stored-1 exist: reads and updates choose among them
	fresh          *atomic.Uint64 // the last number used by a write
	deadlinesAfter time.Time      // deadlines of written items are later
}

// templateCaller fills a request template.
type templateCaller struct {
	keys
	scenario *scenario
	template *template
	raw      []byte
	of       []numbers
	random   randomState
}

func newTemplateCaller(s *scenario, t *template, k keys, connection int) *templateCaller {
	return &templateCaller{
		keys: k, scenario: s, template: t, raw: bytes.Clone(t.raw), of: make([]numbers, t.items), random: newRandom(connection),
	}
}

func (c *templateCaller) next() []byte {
	for i := range c.of {
		c.of[i] = c.numbers(c.scenario.fresh)
	}
	c.template.fill(c.raw, c.of)
	return c.raw
}

// numbers returns the numbers of the next item.
func (c *templateCaller) numbers(fresh bool) numbers {
	n := numbers{value: c.random.next() % 1e10}
	n.when = deadlineOf(c.deadlinesAfter, n.value)
	if fresh {
		n.key = c.fresh.Add(1)
	} else {
		n.key = c.random.next() % c.stored
	}
	return n
}

// deadlineOf returns an item's deadline in epoch seconds; anything spreads the deadlines.
func deadlineOf(start time.Time, anything uint64) uint64 {
	return uint64(start.Add(deadlineAfter).Unix()) + anything%deadlineSpread
}

var (
	errTooShort    = errors.New("an answer lacks items")
	errUnprocessed = errors.New("an answer names unprocessed items")
)

func (c *templateCaller) done(body []byte) (int, error) {
	if len(body) < c.scenario.answerAtMin {
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
	if left := objectMember(body, "UnprocessedItems"); len(left) > len("{}") {
		return fmt.Errorf("%w: %.200q", errUnprocessed, left)
	}
	return nil
}

// scanCaller reads a table page by page, repeatedly.
type scanCaller struct {
	host, table string
	raw         []byte
}

func newScanCaller(host, table string) *scanCaller {
	c := &scanCaller{host: host, table: table}
	c.continueAt(nil)
	return c
}

func (c *scanCaller) next() []byte { return c.raw }

// continueAt builds the request for the page after the key, or for the first one.
func (c *scanCaller) continueAt(key []byte) {
	start := ""
	if key != nil {
		start = `,"ExclusiveStartKey":` + string(key)
	}
	c.raw = rawRequest(c.host, apiPrefix+"Scan", `{"TableName":"`+c.table+`"`+start+"}")
}

func (c *scanCaller) done(body []byte) (int, error) {
	count, err := numberMember(body, "Count")
	if err != nil {
		return 0, err
	}
	key := objectMember(body, "LastEvaluatedKey")
	if count == 0 && key != nil {
		return 0, fmt.Errorf("%w: %.200q", errTooShort, body)
	}
	c.continueAt(key)
	return count, nil
}

// numberMember returns a numeric member of a response whose items cannot contain its name.
func numberMember(body []byte, name string) (int, error) {
	value := memberValue(body, name)
	n, digits := 0, 0
	for digits < len(value) && digits < 9 && '0' <= value[digits] && value[digits] <= '9' {
		n = 10*n + int(value[digits]-'0')
		digits++
	}
	if digits == 0 {
		return 0, fmt.Errorf("an answer has no %s: %.200q", name, body)
	}
	return n, nil
}

// objectMember returns a member that is an object without braces in its strings, or nil.
func objectMember(body []byte, name string) []byte {
	value := memberValue(body, name)
	if len(value) == 0 || value[0] != '{' {
		return nil
	}
	depth := 0
	for i, c := range value {
		switch c {
		case '{':
			depth++
		case '}':
			depth--
		}
		if depth == 0 {
			return value[:i+1]
		}
	}
	return nil
}

// memberValue returns the text after the member's name and colon.
func memberValue(body []byte, name string) []byte {
	i := bytes.Index(body, []byte(`"`+name+`"`))
	if i < 0 {
		return nil
	}
	rest := bytes.TrimLeft(body[i+len(name)+2:], " \t\r\n")
	if len(rest) == 0 || rest[0] != ':' {
		return nil
	}
	return bytes.TrimLeft(rest[1:], " \t\r\n")
}
