// Package attr makes and reads attribute values of the AWS SDK.
//
// The constructors return values of the DynamoDB client. The readers also take values of the
// streams client, which has the same types under other names.
package attr

import (
	"math"
	"math/big"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	streams "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

// Item is an item, a key, or the values of an expression.
type Item = map[string]types.AttributeValue

// S returns a string.
func S(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

// N returns a number from its decimal text.
func N(s string) types.AttributeValue { return &types.AttributeValueMemberN{Value: s} }

// Int returns an integer as a number.
func Int[I int | int64](n I) types.AttributeValue { return N(strconv.FormatInt(int64(n), 10)) }

// B returns binary data. The value shares b.
func B(b []byte) types.AttributeValue { return &types.AttributeValueMemberB{Value: b} }

// Bool returns a boolean.
func Bool(b bool) types.AttributeValue { return &types.AttributeValueMemberBOOL{Value: b} }

// M returns a map. The value shares m.
func M(m Item) types.AttributeValue { return &types.AttributeValueMemberM{Value: m} }

// Strings returns a map of strings.
func Strings(m map[string]string) types.AttributeValue {
	item := make(Item, len(m))
	for name, s := range m {
		item[name] = S(s)
	}
	return M(item)
}

// Millis returns an instant as a number of milliseconds since the epoch.
func Millis(t time.Time) types.AttributeValue { return Int(t.UnixMilli()) }

// Seconds returns an instant in the form of a TTL attribute; see SecondsText.
func Seconds(t time.Time) types.AttributeValue { return N(SecondsText(t)) }

// SecondsText returns an instant as seconds since the epoch, with a fraction if it needs one. It is
// rounded up to the millisecond, so that a deadline is never early. The year has at most four
// digits.
func SecondsText(t time.Time) string {
	ms := t.Add(time.Millisecond - time.Nanosecond).UnixMilli()
	return strconv.FormatFloat(float64(ms)/1000, 'f', -1, 64) // exact: 15 digits at most
}

// String returns the text of a string; "" if v is no string.
func String(v any) string {
	s, _ := AsString(v)
	return s
}

// AsString returns the text of a string; ok is false if v is no string.
func AsString(v any) (s string, ok bool) {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return v.Value, true
	case *streams.AttributeValueMemberS:
		return v.Value, true
	}
	return "", false
}

// AsNumber returns the text of a number; ok is false if v is no number.
func AsNumber(v any) (text string, ok bool) {
	switch v := v.(type) {
	case *types.AttributeValueMemberN:
		return v.Value, true
	case *streams.AttributeValueMemberN:
		return v.Value, true
	}
	return "", false
}

// Integer returns the value of a number; 0 if v is no integer of 64 bits.
func Integer(v any) int64 {
	n, _ := AsInteger(v)
	return n
}

// AsInteger returns the value of a number; ok is false if v is no integer of 64 bits.
func AsInteger(v any) (n int64, ok bool) {
	text, ok := AsNumber(v)
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return integerIn(text)
	}
	return n, true
}

// integerIn parses an integer in another form, such as 1.6E1: the API does not promise the form of
// a number. The float bounds the size before the exact value is computed.
func integerIn(text string) (n int64, ok bool) {
	f, err := strconv.ParseFloat(text, 64)
	if size := math.Abs(f); err != nil || size < 1 || size > math.MaxInt64 {
		return 0, false
	}
	exact, ok := new(big.Rat).SetString(text)
	if !ok || !exact.IsInt() || !exact.Num().IsInt64() {
		return 0, false
	}
	return exact.Num().Int64(), true
}

// AsBinary returns binary data; ok is false if v has another type. The result shares v's bytes.
func AsBinary(v any) (b []byte, ok bool) {
	switch v := v.(type) {
	case *types.AttributeValueMemberB:
		return v.Value, true
	case *streams.AttributeValueMemberB:
		return v.Value, true
	}
	return nil, false
}

// Bytes returns the contents of a string or of binary data; nil for any other type.
func Bytes(v any) []byte {
	if s, ok := AsString(v); ok {
		return []byte(s)
	}
	b, _ := AsBinary(v)
	return b
}

// AsStrings returns the strings of a map; it leaves out the other types. It returns nil if v is no
// map.
func AsStrings(v types.AttributeValue) map[string]string {
	m, ok := v.(*types.AttributeValueMemberM)
	if !ok {
		return nil
	}
	all := make(map[string]string, len(m.Value))
	for name, v := range m.Value {
		if s, ok := AsString(v); ok {
			all[name] = s
		}
	}
	return all
}
