package guard

import (
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/guard/internal/armed"
	"github.com/mayflydb/mayfly/internal/invariant"
	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/work/attr"
)

const (
	secondsMax = 100_000_000_000 // of the year 5138: larger values are milliseconds
	// ms: a deadline further in the past is a mistake, as with Amazon (docs/spec/ttl.md §1, §9)
	fiveYears = 5 * 365 * 24 * 60 * 60 * 1000
)

// entryOf returns the deadline of an item, or of a projection with its key, TTL attribute and
// version attribute. ok is false if it has none. It reports a value that is not epoch seconds as
// BadValue, once per key for a while.
func (g *Guard) entryOf(item map[string]types.AttributeValue) (e armed.Entry, ok bool) {
	v, has := item[g.o.Attribute]
	if !has {
		return armed.Entry{}, false
	}
	k, err := g.keyOf(item)
	if err != nil {
		g.badValue("", fmt.Errorf("an item lacks the table's key: %w", err))
		return armed.Entry{}, false
	}
	value, at, err := deadline(v)
	if err == nil && at <= g.now()-fiveYears {
		err = fmt.Errorf("%s is more than five years in the past and is taken for a mistake", value)
	}
	if err != nil {
		g.badValue(k, err)
		return armed.Entry{}, false
	}
	e = armed.Entry{Key: k, Value: value, At: at}
	if g.o.Version != "" {
		if e.Version, err = versionOf(item[g.o.Version]); err != nil {
			g.badValue(k, fmt.Errorf("version attribute %s: %w", g.o.Version, err))
			return armed.Entry{}, false
		}
	}
	return e, true
}

// deadline parses a TTL attribute. It returns its text and the instant in ms since the epoch, with
// a fraction rounded up: law NeverEarly.
func deadline(v types.AttributeValue) (value string, at int64, err error) {
	n, isNumber := attr.AsNumber(v)
	if !isNumber {
		return "", 0, errors.New("it is not a number")
	}
	number, err := dynamo.AppendNumber(nil, []byte(n))
	if err != nil {
		return "", 0, err
	}
	at, fits := dynamo.Number(number).Millis()
	if invariant.Injected(invariant.DropFraction) {
		at -= at % 1000
	}
	switch {
	case !fits || at > secondsMax*1000:
		return "", 0, fmt.Errorf("%s is after the year 5138: it looks like milliseconds and must be seconds", n)
	case at <= 0:
		return "", 0, fmt.Errorf("%s is not after 1970", n)
	}
	return n, at, nil
}

// versionOf is the version attribute as an entry keeps it.
func versionOf(v types.AttributeValue) (string, error) {
	if v == nil {
		return "", nil
	}
	text, err := attributevalue.MarshalJSON(v)
	return string(text), err
}

// badValue reports a value, once for a while.
func (g *Guard) badValue(k key, err error) {
	err = fmt.Errorf("TTL attribute %s: %w", g.o.Attribute, err)
	first, last := g.bad.first(string(k)+"\x00"+err.Error(), g.local.Millis())
	if !first {
		return
	}
	g.log.Warn("an item stays: its TTL value is not epoch seconds", "table", g.o.Table, "key", g.keyJSON(k), "error", err)
	if last {
		g.log.Warn("many items have such values; the next ones are not logged one by one", "table", g.o.Table)
	}
	g.observe(Event{What: BadValue, Key: g.keyJSON(k), Err: err})
}
