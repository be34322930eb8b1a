package conformance

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

var attributeValueChecks = []check{
	{"RoundTrip", valuesRoundTrip},
	{"EmptyButAllowed", valuesEmptyButAllowed},
	{"Numbers", valuesNumbers},
	{"NumbersRefused", valuesNumbersRefused},
	{"Refused", valuesRefused},
	{"SetsRefused", valuesSetsRefused},
	{"Nesting", valuesNesting},
	{"NestingAbsurd", valuesNestingAbsurd},
	{"ItemSize", valuesItemSize},
	{"InExpressions", valuesInExpressions},
}

// bigString returns n bytes of text.
func bigString(n int) string { return strings.Repeat("x", n) }

// Every type comes back as it went in.
func valuesRoundTrip(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	full := item("pk", "a",
		"s", "text with \"quotes\", a \\, a newline\n, é, 漢 and 🦋",
		"control", "\x00\x01\x1f\u2028",
		"n", number("-12.5"),
		"b", []byte{0, 1, 254, 255},
		"t", true, "f", false, "null", nil,
		"ss", stringSet{"b", "a"}, "ns", numberSet{"2", "-1", "1.5"}, "bs", binarySet{{2}, {1, 0}},
		"l", []any{"x", 1, nil, []any{true}, item("deep", []byte("b"))},
		"m", item("x.y", 1, "é", item(), " ", "a blank"),
	)
	tb.put(t, full)
	tb.wantStored(t, item("pk", "a"), full)
}

// Empty strings and binaries are values, and so are empty lists and maps; only sets and keys may
// not be empty.
func valuesEmptyButAllowed(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	full := item("pk", "a", "s", "", "b", []byte{}, "l", []any{}, "m", item(), "ss", stringSet{""})
	tb.put(t, full)
	tb.wantStored(t, item("pk", "a"), full)
}

// Numbers are exact over 38 digits and come back in one form, without needless zeros, signs and
// exponents.
func valuesNumbers(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	for _, row := range []struct{ in, out string }{
		{"0", "0"},
		{"-0", "0"},
		{"0.000", "0"},
		{"+1", "1"},
		{"007", "7"},
		{"1.0", "1"},
		{"1.50", "1.5"},
		{".5", "0.5"},
		{"5.", "5"},
		{"1e2", "100"},
		{"1E+2", "100"},
		{"12E-1", "1.2"},
		{"-1.5e1", "-15"},
		{"100000", "100000"},
		{"12345678901234567890123456789012345678", "12345678901234567890123456789012345678"},
		{"0.12345678901234567890123456789012345678", "0.12345678901234567890123456789012345678"},
		{"0.000012345678901234567890123456789012345678", "0.000012345678901234567890123456789012345678"},
		// 38 significant digits, then zeros
		{"123456789012345678901234567890123456780000", "123456789012345678901234567890123456780000"},
	} {
		t.Run(row.in, func(t *testing.T) {
			tb.put(t, item("pk", "a", "n", number(row.in)))
			tb.wantStored(t, item("pk", "a"), item("pk", "a", "n", number(row.out)))
		})
	}
	// The ends of the range, compared as numbers: how many zeros are written out is not part of the
	// contract.
	for _, text := range []string{"1E-130", "9.9999999999999999999999999999999999999E+125", "-1E-130", "-9.9999999999999999999999999999999999999E+125"} {
		tb.put(t, item("pk", "a", "n", number(text)))
		tb.ok(t, "PutItem", `{"Item":{"pk":{"S":"a"}},"ConditionExpression":"n = :n","ExpressionAttributeValues":{":n":{"N":"`+text+`"}}}`)
	}
}

func valuesNumbersRefused(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	const (
		digits    = "Attempting to store more than 38 significant digits in a Number"
		overflow  = "Number overflow. Attempting to store a number with magnitude larger than supported range"
		underflow = "Number underflow. Attempting to store a number with magnitude smaller than supported range"
		notNumber = "The parameter cannot be converted to a numeric value"
	)
	for _, row := range []struct{ in, message string }{
		{"", notNumber},
		{"b", notNumber + ": b"},
		{" 1", notNumber + ":  1"},
		{"1 ", notNumber + ": 1 "},
		{"1e", notNumber + ": 1e"},
		{"-", notNumber + ": -"},
		{".", notNumber + ": ."},
		{"0x1f", notNumber + ": 0x1f"},
		{"1_000", notNumber + ": 1_000"},
		{"NaN", notNumber + ": NaN"},
		{"Infinity", notNumber + ": Infinity"},
		{"123456789012345678901234567890123456789", digits},
		{"-1.23456789012345678901234567890123456789", digits},
		{"1E126", overflow},
		{"-1E126", overflow},
		{"1E999999999999", overflow},
		{"1E-131", underflow},
		{"-1E-131", underflow},
		{"1E-999999999999", underflow},
	} {
		t.Run(row.in, func(t *testing.T) {
			tb.refuse(t, "PutItem", `{"Item":{"pk":{"S":"a"},"n":{"N":"`+row.in+`"}}}`, validation, row.message)
			tb.refuse(t, "PutItem", `{"Item":{"pk":{"S":"a"},"l":{"L":[{"NS":["1","`+row.in+`"]}]}}}`, validation, row.message)
		})
	}
	tb.wantStored(t, item("pk", "a"), nil)
}

func valuesRefused(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	const several = "Supplied AttributeValue has more than one datatypes set, must contain exactly one of the supported datatypes"
	for _, row := range []struct{ value, message string }{
		{`{}`, "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes"},
		{`{"X":"1"}`, "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes"},
		{`{"S":"a","N":"1"}`, several},
		{`{"L":[{"S":"a","N":"1"}]}`, several},
		{`{"M":{"x":{}}}`, "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes"},
		{`{"NULL":false}`, "1 validation error detected: " + invalid + "Null attribute value types must have the value of true"},
	} {
		t.Run(row.value, func(t *testing.T) {
			tb.refuse(t, "PutItem", `{"Item":{"pk":{"S":"a"},"v":`+row.value+`}}`, validation, row.message)
		})
	}
	tb.wantStored(t, item("pk", "a"), nil)
}

// A set must not be empty, and has no element twice. PutItem's message begins with the envelope of
// validation errors, GetItem's does not.
func valuesSetsRefused(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	const envelope = "1 validation error detected: "
	for _, row := range []struct{ value, message string }{
		{`{"SS":[]}`, invalid + "An string set  may not be empty"},
		{`{"NS":[]}`, invalid + "An number set  may not be empty"},
		{`{"BS":[]}`, invalid + "Binary sets should not be empty"},
		{`{"SS":["a","a"]}`, invalid + "Input collection [a, a] contains duplicates."},
		{`{"BS":["Yg==","Yg=="]}`, invalid + "Input collection [Yg==, Yg==]of type BS contains duplicates."},
		{`{"NS":["1","1.0"]}`, "Input collection contains duplicates"},
	} {
		t.Run(row.value, func(t *testing.T) {
			tb.refuse(t, "PutItem", `{"Item":{"pk":{"S":"a"},"v":`+row.value+`}}`, validation, envelope+row.message)
			tb.refuse(t, "GetItem", `{"Key":{"pk":`+row.value+`}}`, validation, row.message)
		})
	}
}

// Values nest to 32 levels.
func valuesNesting(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	nested := func(levels int) string {
		return strings.Repeat(`{"L":[`, levels) + `{"S":"x"}` + strings.Repeat(`]}`, levels)
	}
	tb.ok(t, "PutItem", `{"Item":{"pk":{"S":"a"},"v":`+nested(31)+`}}`)
	for _, levels := range []int{33, 100} {
		tb.refuse(t, "PutItem", `{"Item":{"pk":{"S":"b"},"v":`+nested(levels)+`}}`, validation,
			"Nesting Levels have exceeded supported limits: Attributes in the item have nested levels beyond supported limit")
	}
	tb.wantStored(t, item("pk", "b"), nil)
}

// Ten thousand levels are refused with any message, and do not bring the endpoint down.
func valuesNestingAbsurd(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	for _, deep := range []string{
		strings.Repeat(`{"L":[`, 10_000) + `{"S":"x"}` + strings.Repeat(`]}`, 10_000),
		strings.Repeat(`{"M":{"a":`, 10_000) + `{"S":"x"}` + strings.Repeat(`}}`, 10_000),
	} {
		if _, err := tb.call("PutItem", tb.fill(`{"Item":{"pk":{"S":"b"},"v":`+deep+`}}`)); err == nil {
			t.Error("10,000 levels were accepted")
		}
	}
	tb.wantStored(t, item("pk", "b"), nil)
}

// An item is at most 400 KB, counting names and values.
func valuesItemSize(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	const most = 400 << 10
	room := most - len("pk") - len("a") - len("v")
	tb.put(t, item("pk", "a", "v", bigString(room)))
	_, err := e.DB.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &tb.name, Item: item("pk", "b", "v", bigString(room+1))})
	wantError(t, err, validation, "Item size has exceeded the maximum allowed size")
	_, err = e.DB.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &tb.name, Item: item("pk", "b", strings.Repeat("n", 60_000), bigString(room-59_000))})
	wantError(t, err, validation, "Item size has exceeded the maximum allowed size")
	tb.wantStored(t, item("pk", "b"), nil)
}

// The message about a bad value in ExpressionAttributeValues names its placeholder.
func valuesInExpressions(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	for _, row := range []struct{ value, message string }{
		{`{}`, "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes"},
		{`{"N":"x"}`, "The parameter cannot be converted to a numeric value: x"},
		{`{"SS":[]}`, invalid + "An string set  may not be empty"},
	} {
		tb.refuse(t, "Scan", `{"FilterExpression":"a = :v","ExpressionAttributeValues":{":v":`+row.value+`}}`, validation,
			"ExpressionAttributeValues contains invalid value: "+row.message+" for key :v")
	}
}
