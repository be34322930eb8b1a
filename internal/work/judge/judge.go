// Package judge says what TTL values mean: whether and when an item expires, and why not (Explain);
// and how the items of a table are spread over time, with the values that look like mistakes (Survey).
// It reads items as any endpoint returns them.
package judge

import (
	"slices"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/ttl"
	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/transfer"
)

const (
	textMost  = 200 // characters of a key
	valueMost = 60  // characters of a value
)

// KeyText returns the key of an item in DynamoDB JSON, shortened.
func KeyText(item attr.Item, keys []string) string {
	key := attr.Item{}
	for _, name := range keys {
		if v, ok := item[name]; ok {
			key[name] = v
		}
	}
	return Clip(string(transfer.AppendItem(nil, key)), textMost)
}

// Judgement is what an item's TTL value means.
type Judgement struct {
	Reason ttl.Reason
	At     int64                // ms; valid if Reason is Good
	Name   string               // the attribute that has the value, also if it is another one
	Value  types.AttributeValue // nil: absent
}

// Of judges the TTL value of an item at an instant in milliseconds.
func Of(item attr.Item, attribute string, now int64) Judgement {
	j := Judgement{Name: attribute, Value: item[attribute]}
	switch v := j.Value.(type) {
	case nil:
		return misplaced(item, attribute)
	case *types.AttributeValueMemberN:
		j.At, j.Reason = ttl.Deadline(v.Value, now)
	case *types.AttributeValueMemberS:
		j.Reason = ttl.String
	case *types.AttributeValueMemberNULL: // how object mappers write an absent value
		j.Reason = ttl.Absent
	default:
		j.Reason = ttl.Type
	}
	return j
}

// misplaced looks for a deadline in an item without the attribute: under the name in other letters,
// or in a map.
func misplaced(item attr.Item, attribute string) Judgement {
	names := make([]string, 0, len(item))
	for name := range item {
		names = append(names, name)
	}
	slices.Sort(names) // the same answer for the same item
	for _, name := range names {
		if ttl.SameButCase(name, attribute) && mayBeDeadline(item[name]) {
			return Judgement{Reason: ttl.Case, Name: name, Value: item[name]}
		}
	}
	outer, inner, isPath := ttl.Path(attribute)
	for _, name := range names {
		m, ok := item[name].(*types.AttributeValueMemberM)
		if !ok {
			continue
		}
		if v, ok := m.Value[attribute].(*types.AttributeValueMemberN); ok {
			return Judgement{Reason: ttl.Nested, Name: name + "." + attribute, Value: v}
		}
		if v := numberAt(m.Value, inner); isPath && name == outer && v != nil {
			return Judgement{Reason: ttl.Nested, Name: attribute, Value: v}
		}
	}
	return Judgement{Reason: ttl.Absent, Name: attribute}
}

// mayBeDeadline reports whether a value under a similar name may be meant as a deadline, as the server
// judges it: a number, or a text of digits.
func mayBeDeadline(v types.AttributeValue) bool {
	switch v := v.(type) {
	case *types.AttributeValueMemberN:
		return true
	case *types.AttributeValueMemberS:
		return ttl.IsDigits(v.Value)
	}
	return false
}

// numberAt returns the number at a path of names with dots, or nil.
func numberAt(m attr.Item, path string) types.AttributeValue {
	if v, ok := m[path].(*types.AttributeValueMemberN); ok {
		return v
	}
	outer, inner, isPath := ttl.Path(path)
	if next, ok := m[outer].(*types.AttributeValueMemberM); ok && isPath {
		return numberAt(next.Value, inner)
	}
	return nil
}

// Text returns the attribute and its value, such as expires = {"N":"1"}.
func (j Judgement) Text() string {
	if j.Value == nil {
		return "no " + j.Name
	}
	one := string(transfer.AppendItem(nil, attr.Item{"": j.Value}))
	return Clip(j.Name, valueMost) + " = " + Clip(one[len(`{"":`):len(one)-1], valueMost)
}

// Clip shortens a text to so many characters.
func Clip(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most]) + "…"
}
