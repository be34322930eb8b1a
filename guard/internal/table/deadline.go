package table

import (
	"errors"
	"fmt"
	"math/big"
	"reflect"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/guard/internal/armed"
	"github.com/mayflydb/mayfly/internal/invariant"
	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/ttl"
	"github.com/mayflydb/mayfly/internal/work/attr"
)

// SecondsMax is the largest TTL value, in seconds.
const SecondsMax = ttl.SecondsMax

// EntryOf returns the deadline of an item, or of a projection of its Fields. has is false if the
// item has none. The error describes a value that is not epoch seconds, or is taken for a mistake
// at the instant now.
func (t *Table) EntryOf(item map[string]types.AttributeValue, now int64) (e armed.Entry, has bool, err error) {
	v, has := item[t.Attribute]
	if !has {
		return armed.Entry{}, false, nil
	}
	if e.Key, err = t.KeyOf(item); err != nil {
		return armed.Entry{}, true, fmt.Errorf("an item lacks the table's key: %w", err)
	}
	e.Value, e.At, err = Deadline(v)
	if err == nil && e.At <= now-ttl.TooOld {
		err = fmt.Errorf("%s is more than five years in the past and is taken for a mistake", e.Value)
	}
	if err == nil && t.Version != "" {
		if e.Version, err = VersionOf(item[t.Version]); err != nil {
			err = fmt.Errorf("version attribute %s: %w", t.Version, err)
		}
	}
	return e, true, err
}

// Deadline parses a TTL attribute. It returns its text and the instant in ms since the epoch, with
// a fraction rounded up: law NeverEarly. The error says why the value is not epoch seconds.
func Deadline(v types.AttributeValue) (value string, at int64, err error) {
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
	case !fits || at > SecondsMax*1000:
		return "", 0, fmt.Errorf("%s is after the year 5138: it looks like milliseconds and must be seconds", n)
	case at <= 0:
		return "", 0, fmt.Errorf("%s is not after 1970", n)
	}
	if invariant.Enabled {
		exact, ok := new(big.Rat).SetString(n)
		invariant.CheckUnless(!ok || big.NewRat(at, 1000).Cmp(exact) >= 0, []invariant.Fault{invariant.DropFraction}, "the deadline %s counts as reached at %d ms", n, at)
	}
	return n, at, nil
}

// WholeSeconds returns the first whole second that is not before an instant in ms.
func WholeSeconds(ms int64) int64 { return (ms + 999) / 1000 }

// VersionOf returns a version attribute in the form of Entry.Version.
func VersionOf(v types.AttributeValue) (string, error) {
	if v == nil {
		return "", nil
	}
	text, err := attributevalue.MarshalJSON(v)
	return string(text), err
}

// Condition returns the condition that an item still has the deadline that armed the entry, with
// its attribute names and values.
func (t *Table) Condition(e armed.Entry) (condition string, names map[string]string, values map[string]types.AttributeValue) {
	names = map[string]string{"#ttl": t.Attribute}
	values = map[string]types.AttributeValue{":armed": attr.N(e.Text())}
	condition = "#ttl = :armed"
	if invariant.Injected(invariant.Unconditional) {
		condition = "(#ttl = :armed OR attribute_exists(#ttl))"
	}
	if t.Version == "" {
		return condition, names, values
	}
	names["#version"] = t.Version
	version, err := attributevalue.UnmarshalJSON([]byte(e.Version))
	if e.Version == "" || err != nil {
		return condition + " AND attribute_not_exists(#version)", names, values
	}
	values[":version"] = version
	return condition + " AND #version = :version", names, values
}

// Armed reports whether an item still has the deadline that armed the entry.
func (t *Table) Armed(item map[string]types.AttributeValue, e armed.Entry) bool {
	value, _, err := Deadline(item[t.Attribute])
	if err != nil || !sameNumber(value, e.Text()) {
		return false
	}
	if t.Version == "" {
		return true
	}
	version, err := VersionOf(item[t.Version])
	return err == nil && sameVersion(version, e.Version)
}

func sameNumber(a, b string) bool {
	x, errX := Canonical(a)
	y, errY := Canonical(b)
	return errX == nil && errY == nil && string(x) == string(y)
}

func sameVersion(a, b string) bool {
	if a == b || a == "" || b == "" {
		return a == b
	}
	x, errX := attributevalue.UnmarshalJSON([]byte(a))
	y, errY := attributevalue.UnmarshalJSON([]byte(b))
	return errX == nil && errY == nil && reflect.DeepEqual(x, y)
}
