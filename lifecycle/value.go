package lifecycle

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/template"
)

// Item is an item's attributes, in the AWS SDK's types.
type Item = map[string]types.AttributeValue

// binary converts a value to the form that conditions read.
func binary(v types.AttributeValue) (dynamo.Value, error) {
	b, invalid, fatal := dynamo.NewJSON(template.AppendTyped(nil, v)).AppendValue(nil)
	switch {
	case fatal != nil:
		return nil, fatal
	case invalid != nil:
		return nil, invalid
	}
	return b, nil
}

// plainItem returns attributes in the form that encoding/json writes without types: numbers
// unchanged, binary values in base64, sets as arrays.
func plainItem(it Item) map[string]any {
	all := make(map[string]any, len(it))
	for name, v := range it {
		all[name] = json.RawMessage(template.AppendPlain(nil, v))
	}
	return all
}

// Value converts a text, number, boolean, nil, list or object of encoding/json or YAML to an
// attribute value.
func Value(v any) (types.AttributeValue, error) {
	switch v := v.(type) {
	case nil:
		return &types.AttributeValueMemberNULL{Value: true}, nil
	case string:
		return attr.S(v), nil
	case bool:
		return attr.Bool(v), nil
	case int, int64, uint64, float64, json.Number:
		n := attr.N(fmt.Sprint(v))
		_, err := binary(n)
		return n, err
	case []any:
		list := &types.AttributeValueMemberL{}
		for _, element := range v {
			e, err := Value(element)
			if err != nil {
				return nil, err
			}
			list.Value = append(list.Value, e)
		}
		return list, nil
	case map[string]any:
		m := Item{}
		for name, element := range v {
			e, err := Value(element)
			if err != nil {
				return nil, err
			}
			m[name] = e
		}
		return attr.M(m), nil
	}
	return nil, fmt.Errorf("%v is not a string, number, true, false, null, list or object", v)
}

// kindOf returns the API's name of a value's type.
func kindOf(v types.AttributeValue) string {
	switch v.(type) {
	case *types.AttributeValueMemberS:
		return "S"
	case *types.AttributeValueMemberN:
		return "N"
	case *types.AttributeValueMemberB:
		return "B"
	case *types.AttributeValueMemberBOOL:
		return "BOOL"
	case *types.AttributeValueMemberSS:
		return "SS"
	case *types.AttributeValueMemberNS:
		return "NS"
	case *types.AttributeValueMemberBS:
		return "BS"
	case *types.AttributeValueMemberL:
		return "L"
	case *types.AttributeValueMemberM:
		return "M"
	}
	return "NULL"
}

var kinds = []string{"S", "N", "B", "BOOL", "NULL", "SS", "NS", "BS", "L", "M"}

// The range of years of an instant.
var (
	earliest = time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC)
	latest   = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
)

// instantOf parses the instant in an attribute: epoch seconds, or ISO 8601 with a zone, rounded up
// to the millisecond.
func instantOf(v types.AttributeValue) (time.Time, error) {
	var t time.Time
	switch v := v.(type) {
	case *types.AttributeValueMemberN:
		b, err := binary(v)
		if err != nil {
			return t, err
		}
		ms, ok := b.Number().Millis()
		if !ok {
			return t, fmt.Errorf("%s is not a time in epoch seconds", v.Value)
		}
		t = time.UnixMilli(ms).UTC()
	case *types.AttributeValueMemberS:
		var err error
		if t, err = time.Parse(time.RFC3339Nano, strings.Replace(strings.TrimSpace(v.Value), " ", "T", 1)); err != nil {
			return t, fmt.Errorf("invalid time %q; use ISO 8601 with a zone, such as 2030-01-01T09:00:00Z", v.Value[:min(len(v.Value), spanText)])
		}
	default:
		return t, fmt.Errorf("a time must be epoch seconds (N) or ISO 8601 (S), not %s", kindOf(v))
	}
	if t.Before(earliest) || t.After(latest) {
		return t, fmt.Errorf("the time is not between the years 1970 and 9999; is it in milliseconds?")
	}
	return ceil(t), nil
}

// ceil rounds up to the millisecond.
func ceil(t time.Time) time.Time {
	return t.Add(time.Millisecond - time.Nanosecond).Truncate(time.Millisecond).UTC()
}

// spanOf parses the duration in an attribute: a text like Transition.After, or seconds. It must be
// positive.
func spanOf(v types.AttributeValue) (s span, err error) {
	switch v := v.(type) {
	case *types.AttributeValueMemberN:
		var b dynamo.Value
		if b, err = binary(v); err != nil {
			return s, err
		}
		ms, ok := b.Number().Millis()
		if !ok || ms > int64(exactMost/time.Millisecond) {
			return s, fmt.Errorf("%s is not a length of time in seconds", v.Value)
		}
		s.exact = time.Duration(ms) * time.Millisecond
	case *types.AttributeValueMemberS:
		if s, err = parseSpan(v.Value); err != nil {
			return s, err
		}
	default:
		return s, fmt.Errorf("a length of time must be seconds (N) or a string (S), not %s", kindOf(v))
	}
	if s.negative || s.exact < 0 || s.zero() {
		return s, fmt.Errorf("it must be above 0")
	}
	return s, nil
}
