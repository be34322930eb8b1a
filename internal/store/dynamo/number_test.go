package dynamo

import (
	"bytes"
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/cockroachdb/apd/v3"
	"pgregory.net/rapid"
)

func mustNumber(t testing.TB, text string) Number {
	t.Helper()
	n, err := AppendNumber(nil, []byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return n
}

func mustDecimal(t testing.TB, text string) *apd.Decimal {
	t.Helper()
	d, _, err := apd.NewFromString(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return d
}

// numberText draws texts of valid numbers in many spellings.
var numberText = rapid.Custom(func(t *rapid.T) string {
	digits := rapid.StringMatching(`[0-9]{1,38}`).Draw(t, "digits")
	point := rapid.IntRange(0, len(digits)).Draw(t, "point")
	sign := rapid.SampledFrom([]string{"", "-", "+"}).Draw(t, "sign")
	low, high := -92, 87
	if rapid.Bool().Draw(t, "near") {
		low, high = -3, 3
	}
	exp := rapid.IntRange(low, high).Draw(t, "exp")
	text := sign + digits[:point] + "." + digits[point:]
	switch {
	case exp != 0:
		text += fmt.Sprintf("e%d", exp)
	case point == len(digits):
		text = strings.TrimSuffix(text, ".")
	}
	return text
})

func TestNumberOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		a, b := numberText.Draw(rt, "a"), numberText.Draw(rt, "b")
		got := bytes.Compare(mustNumber(t, a), mustNumber(t, b))
		if want := mustDecimal(t, a).Cmp(mustDecimal(t, b)); got != want {
			rt.Fatalf("%s and %s compare as %d, want %d", a, b, got, want)
		}
	})
}

func TestNumberRoundTrip(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		text := numberText.Draw(rt, "text")
		n := mustNumber(t, text)
		if len(n) > 21 || NumberLen(n) != len(n) {
			rt.Fatalf("%s: %d bytes, NumberLen %d", text, len(n), NumberLen(n))
		}
		plain := n.String()
		if !bytes.Equal(mustNumber(t, plain), n) {
			rt.Fatalf("%s came back as %s, another number", text, plain)
		}
		if mustDecimal(t, plain).Cmp(mustDecimal(t, text)) != 0 {
			rt.Fatalf("%s came back as %s", text, plain)
		}
	})
}

func TestNumberPrefixFree(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		a, b := mustNumber(t, numberText.Draw(rt, "a")), mustNumber(t, numberText.Draw(rt, "b"))
		if !bytes.Equal(a, b) && bytes.HasPrefix(b, a) {
			rt.Fatalf("%x is a prefix of %x", []byte(a), []byte(b))
		}
		for end := range len(a) {
			if NumberLen(a[:end]) != 0 {
				rt.Fatalf("%x cut to %d bytes is still a number", []byte(a), end)
			}
		}
		if got := NumberLen(append(bytes.Clone(a), b...)); got != len(a) {
			rt.Fatalf("NumberLen %d with something behind it, want %d", got, len(a))
		}
	})
}

func TestNumberText(t *testing.T) {
	for _, c := range []struct{ in, out string }{
		{"1", "1"}, {"-5", "-5"}, {"100", "100"}, {"007", "7"}, {"001.23", "1.23"}, {"00", "0"}, {"+3", "3"}, {"+0", "0"},
		{"1.0", "1"}, {"1.10", "1.1"}, {"100.000", "100"}, {"0.10", "0.1"}, {"0.0", "0"},
		{"1e3", "1000"}, {"1E+3", "1000"}, {"-3e2", "-300"}, {"1.23e4", "12300"}, {"1e-3", "0.001"}, {"123e-2", "1.23"},
		{"-0", "0"}, {"-0.0", "0"}, {"0e125", "0"}, {"0.0e126", "0"}, {"0e-130", "0"}, {".5", "0.5"}, {"-.5", "-0.5"}, {"5.", "5"},
		{"1e125", "1" + strings.Repeat("0", 125)}, {"0.1e126", "1" + strings.Repeat("0", 125)},
		{"1e-130", "0." + strings.Repeat("0", 129) + "1"}, {"-273.15", "-273.15"}, {"3.14159", "3.14159"},
		{strings.Repeat("0", 500) + "1" + strings.Repeat("0", 50) + "." + strings.Repeat("0", 500), "1" + strings.Repeat("0", 50)},
		{strings.Repeat("9", 38) + "e88", strings.Repeat("9", 38) + strings.Repeat("0", 88)},
	} {
		if got := mustNumber(t, c.in).String(); got != c.out {
			t.Errorf("%s came back as %s, want %s", c.in, got, c.out)
		}
	}
}

func TestNumberErrors(t *testing.T) {
	for _, c := range []struct{ in, message string }{
		{"", "The parameter cannot be converted to a numeric value"},
		{"abc", "The parameter cannot be converted to a numeric value: abc"},
		{" 1", "The parameter cannot be converted to a numeric value:  1"},
		{"1 ", "The parameter cannot be converted to a numeric value: 1 "},
		{"NaN", "The parameter cannot be converted to a numeric value: NaN"},
		{"-Infinity", "The parameter cannot be converted to a numeric value: -Infinity"},
		{"1.2.3", "The parameter cannot be converted to a numeric value: 1.2.3"},
		{"+-1", "The parameter cannot be converted to a numeric value: +-1"},
		{"-", "The parameter cannot be converted to a numeric value: -"},
		{".", "The parameter cannot be converted to a numeric value: ."},
		{"e5", "The parameter cannot be converted to a numeric value: e5"},
		{"1e", "The parameter cannot be converted to a numeric value: 1e"},
		{"1e+", "The parameter cannot be converted to a numeric value: 1e+"},
		{"1e1.5", "The parameter cannot be converted to a numeric value: 1e1.5"},
		{"0x10", "The parameter cannot be converted to a numeric value: 0x10"},
		{"1_000", "The parameter cannot be converted to a numeric value: 1_000"},
		{"١", "The parameter cannot be converted to a numeric value: ١"},
		{strings.Repeat("1", 39), msgDigits},
		{"3.14159265358979323846264338327950288419", msgDigits},
		{"1" + strings.Repeat("0", 37) + ".1", msgDigits},
		{"1e126", msgOverflow}, {"-11e125", msgOverflow}, {"0e126", msgOverflow}, {"1e99999999999999999999", msgOverflow},
		{strings.Repeat("1", 39) + "e125", msgOverflow},
		{"1e-131", msgUnderflow}, {"-0.9e-130", msgUnderflow}, {"0e-131", msgUnderflow}, {"1e-99999999999999999999", msgUnderflow},
	} {
		dst := []byte("kept")
		out, err := AppendNumber(dst, []byte(c.in))
		want := &Error{Code: CodeValidation, Message: c.message}
		if got, ok := err.(*Error); !ok || got.Code != want.Code || got.Message != want.Message {
			t.Errorf("%q: %v, want %v", c.in, err, want)
		}
		if string(out) != "kept" {
			t.Errorf("%q: left %q behind", c.in, out)
		}
	}
}

func TestNumberSize(t *testing.T) {
	for _, c := range []struct {
		in   string
		size int
	}{
		{"0", 1}, {"1", 2}, {"10", 2}, {"100", 2}, {"123", 3}, {"1000", 2}, {"0.001", 2}, {"100.5", 4}, {"-1", 3}, {"-12.34", 4},
		{"1761667200123", 8}, {strings.Repeat("9", 38), 20}, {"1." + strings.Repeat("9", 37), 21}, {"-1." + strings.Repeat("9", 37), 21},
		{"0.0010203", 4},
	} {
		if got := mustNumber(t, c.in).Size(); got != c.size {
			t.Errorf("%s counts %d bytes, want %d", c.in, got, c.size)
		}
	}
}

func TestNumberScaled(t *testing.T) {
	for _, c := range []struct {
		in string
		v  int64
		ok bool
	}{
		{"0", 0, true}, {"42", 42, true}, {"-42", -42, true}, {"1e3", 1000, true}, {"1.5", 0, false}, {"0.5", 0, false},
		{"9223372036854775807", math.MaxInt64, true}, {"9223372036854775808", 0, false},
		{"-9223372036854775808", math.MinInt64, true}, {"-9223372036854775809", 0, false}, {"1e19", 0, false}, {"1e125", 0, false},
	} {
		var dec decimal
		mustNumber(t, c.in).decimal(&dec)
		v, exact, fits := dec.scaled(0)
		if ok := exact && fits; ok != c.ok || ok && v != c.v {
			t.Errorf("%s: %d, %v; want %d, %v", c.in, v, ok, c.v, c.ok)
		}
	}
}

// Law NeverEarly depends on this: a deadline between two milliseconds is rounded to the later one.
func TestNumberMillis(t *testing.T) {
	for _, c := range []struct {
		in string
		ms int64
		ok bool
	}{
		{"0", 0, true}, {"1", 1000, true}, {"1761667200", 1761667200000, true}, {"1761667200.5", 1761667200500, true},
		{"1.0001", 1001, true}, {"1.001", 1001, true}, {"1.0010000000001", 1002, true}, {"1e-130", 1, true}, {"0.0009", 1, true},
		{"-1", -1000, true}, {"-1.0001", -1000, true}, {"-0.0001", 0, true}, {"-1.5", -1500, true},
		{"9223372036854775.807", math.MaxInt64, true}, {"9223372036854775.8071", 0, false}, {"9223372036854775.808", 0, false},
		{"1e125", 0, false}, {"-1e125", 0, false},
	} {
		if ms, ok := mustNumber(t, c.in).Millis(); ok != c.ok || ok && ms != c.ms {
			t.Errorf("%s: %d, %v; want %d, %v", c.in, ms, ok, c.ms, c.ok)
		}
	}
}

// exact adds and subtracts without rounding.
var exact = apd.BaseContext.WithPrecision(400)

// checkArithmetic compares AddNumbers and SubNumbers with apd.
func checkArithmetic(t testing.TB, a, b string) {
	t.Helper()
	var sum, difference apd.Decimal
	if _, err := exact.Add(&sum, mustDecimal(t, a), mustDecimal(t, b)); err != nil {
		t.Fatal(err)
	}
	if _, err := exact.Sub(&difference, mustDecimal(t, a), mustDecimal(t, b)); err != nil {
		t.Fatal(err)
	}
	x, y := mustNumber(t, a), mustNumber(t, b)
	n, err := AddNumbers(nil, x, y)
	checkResult(t, a+" + "+b, n, err, &sum)
	n, err = SubNumbers(nil, x, y)
	checkResult(t, a+" - "+b, n, err, &difference)
}

func checkResult(t testing.TB, about string, n Number, err error, want *apd.Decimal) {
	t.Helper()
	var reduced apd.Decimal
	reduced.Reduce(want)
	exp := int(reduced.NumDigits()) + int(reduced.Exponent) - 1
	message := ""
	switch {
	case want.IsZero():
	case reduced.NumDigits() > 38 || exp > 125:
		message = msgOverflow
	case exp < -130:
		message = msgUnderflow
	}
	switch {
	case message != "":
		if got, ok := err.(*Error); !ok || got.Message != message {
			t.Fatalf("%s = %s, %v; want %q", about, n, err, message)
		}
	case err != nil:
		t.Fatalf("%s: %v, want %s", about, err, want)
	case NumberLen(n) != len(n) || mustDecimal(t, n.String()).Cmp(want) != 0:
		t.Fatalf("%s = %s, want %s", about, n, want)
	}
}

func TestArithmetic(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		checkArithmetic(t, numberText.Draw(rt, "a"), numberText.Draw(rt, "b"))
	})
}

func TestArithmeticAtTheLimits(t *testing.T) {
	nines := strings.Repeat("9", 38)
	for _, c := range [][2]string{
		{"0", "0"}, {"0", "-5"}, {"5", "5"}, {"1", "10000000000000000000000"}, {"9e125", "9e125"}, {"9e125", "9e124"}, {"1e50", "1"},
		{nines, "1"}, {nines, "0.1"}, {"-" + nines, "1"}, {"1" + strings.Repeat("0", 38), "1"}, {"1", "0." + nines},
		{"10", "9." + nines[1:]}, {"1.5e-130", "1e-130"}, {"1e-130", "1e-130"}, {"1e125", "1e-130"}, {nines + "e88", "1e88"},
		{nines + "e87", "1e88"}, {nines, nines}, {"1e38", nines}, {"1e38", "9"}, {"1e37", "0.1"},
	} {
		checkArithmetic(t, c[0], c[1])
		checkArithmetic(t, c[1], c[0])
	}
}

// The result may be appended to the buffer that holds an operand.
func TestArithmeticInPlace(t *testing.T) {
	buf := append([]byte(nil), mustNumber(t, "41")...)
	sum, err := AddNumbers(buf[:0], Number(buf), mustNumber(t, "1"))
	if err != nil || Number(sum).String() != "42" {
		t.Fatal(Number(sum), err)
	}
}

var numberGrammar = regexp.MustCompile(`^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$`)

func FuzzNumber(f *testing.F) {
	for _, s := range []string{"0", "-1.50", "1e125", "1E-130", "+.5", "5.", "abc", "1e400", "0e126", "12345678901234567890123456789012345678"} {
		f.Add(s, "7")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		if !checkParse(t, a) || !checkParse(t, b) {
			return
		}
		x, y := mustNumber(t, a), mustNumber(t, b)
		if got, want := bytes.Compare(x, y), mustDecimal(t, a).Cmp(mustDecimal(t, b)); got != want {
			t.Fatalf("%s and %s compare as %d, want %d", a, b, got, want)
		}
		checkArithmetic(t, a, b)
		x.Millis()
		x.Size()
	})
}

// checkParse compares AppendNumber with the grammar and apd, and reports whether text is a number
// in range.
func checkParse(t *testing.T, text string) bool {
	n, err := AppendNumber(nil, []byte(text))
	if !numberGrammar.MatchString(text) {
		if err == nil || !strings.HasPrefix(err.(*Error).Message, msgNotNumeric) {
			t.Fatalf("%q: %v, but it is not a number", text, err)
		}
		return false
	}
	d, _, bad := apd.NewFromString(text)
	if bad != nil || d.IsZero() {
		return err == nil && bad == nil // exponents that apd does not support
	}
	var reduced apd.Decimal
	reduced.Reduce(d)
	exp := reduced.NumDigits() + int64(reduced.Exponent) - 1
	fits := reduced.NumDigits() <= 38 && exp <= 125 && exp >= -130
	if fits != (err == nil) {
		t.Fatalf("%q: %v, fits %v", text, err, fits)
	}
	if err != nil {
		return false
	}
	if mustDecimal(t, Number(n).String()).Cmp(d) != 0 {
		t.Fatalf("%q came back as %s", text, Number(n))
	}
	return true
}
