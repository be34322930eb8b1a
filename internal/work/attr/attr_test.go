package attr

import (
	"bytes"
	"maps"
	"math"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	streams "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

// A value reads back as it was made, and as no other type.
func TestRoundTrip(t *testing.T) {
	for _, v := range []any{S("7"), N("7"), B([]byte("7")), Bool(true), M(Item{}), nil,
		&streams.AttributeValueMemberS{Value: "7"}, &streams.AttributeValueMemberN{Value: "7"}, &streams.AttributeValueMemberB{Value: []byte("7")}} {
		kind := ""
		switch v.(type) {
		case *types.AttributeValueMemberS, *streams.AttributeValueMemberS:
			kind = "S"
		case *types.AttributeValueMemberN, *streams.AttributeValueMemberN:
			kind = "N"
		case *types.AttributeValueMemberB, *streams.AttributeValueMemberB:
			kind = "B"
		}
		s, isString := AsString(v)
		n, isNumber := AsNumber(v)
		b, isBinary := AsBinary(v)
		if isString != (kind == "S") || isNumber != (kind == "N") || isBinary != (kind == "B") {
			t.Errorf("%T: string %t, number %t, binary %t", v, isString, isNumber, isBinary)
		}
		if kind != "" && s+n+string(b) != "7" {
			t.Errorf("%T: %q, %q, %q; want 7", v, s, n, b)
		}
		if String(v) != s {
			t.Errorf("%T: String is %q, want %q", v, String(v), s)
		}
		want := []byte(nil)
		if isString || isBinary {
			want = []byte("7")
		}
		if got := Bytes(v); !bytes.Equal(got, want) {
			t.Errorf("%T: Bytes is %q, want %q", v, got, want)
		}
	}
}

// Integers cover all of 64 bits, in any form; a fraction, a larger number and a text are none.
func TestInteger(t *testing.T) {
	for _, n := range []int64{0, 1, -1, math.MaxInt64, math.MinInt64} {
		if got, ok := AsInteger(Int(n)); got != n || !ok || Integer(Int(n)) != n {
			t.Errorf("%d: %d, %t", n, got, ok)
		}
	}
	for text, want := range map[string]int64{"1.6E1": 16, "-2e3": -2000, "7.0": 7, "9.223372036854775807E18": math.MaxInt64, "900E-2": 9} {
		if got, ok := AsInteger(N(text)); got != want || !ok {
			t.Errorf("%s: %d, %t; want %d", text, got, ok, want)
		}
	}
	for _, v := range []any{N("1.5"), N("9223372036854775808"), N("1E99"), N("1.5E0"), N("1E-9999999"), N("Inf"), N("1/1"), N(""), S("1"), nil} {
		if n, ok := AsInteger(v); n != 0 || ok || Integer(v) != 0 {
			t.Errorf("%v: %d, %t; want 0, false", v, n, ok)
		}
	}
}

// A deadline is exact to the millisecond and never early.
func TestSeconds(t *testing.T) {
	for _, c := range []struct {
		t    time.Time
		want string
	}{
		{time.UnixMilli(0), "0"},
		{time.UnixMilli(1_700_000_000_000), "1700000000"},
		{time.UnixMilli(1_700_000_000_120), "1700000000.12"},
		{time.UnixMilli(1_700_000_000_001).Add(time.Nanosecond), "1700000000.002"},
		{time.UnixMilli(-1500), "-1.5"},
		{time.Date(9999, 12, 31, 23, 59, 59, 999_000_000, time.UTC), "253402300799.999"},
	} {
		if got, _ := AsNumber(Seconds(c.t)); got != c.want {
			t.Errorf("%v: %s, want %s", c.t, got, c.want)
		}
	}
	if got := Integer(Millis(time.UnixMilli(1234))); got != 1234 {
		t.Errorf("Millis: %d, want 1234", got)
	}
}

// A map of strings reads back; other types in it are left out.
func TestStrings(t *testing.T) {
	want := map[string]string{"a": "1", "b": ""}
	if got := AsStrings(Strings(want)); !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := AsStrings(M(Item{"a": S("1"), "n": N("1")})); !maps.Equal(got, map[string]string{"a": "1"}) {
		t.Errorf("mixed: %v, want only a", got)
	}
	if got := AsStrings(S("a")); got != nil {
		t.Errorf("no map: %v, want nil", got)
	}
}
