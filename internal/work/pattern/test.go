package pattern

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// The tests by their names in a pattern.
const (
	opExactly          = "exactly" // undocumented, but EventBridge's compiler knows it
	opPrefix           = "prefix"
	opSuffix           = "suffix"
	opEqualsIgnoreCase = "equals-ignore-case"
	opWildcard         = "wildcard"
	opAnythingBut      = "anything-but"
	opNumeric          = "numeric"
	opExists           = "exists"
	opCIDR             = "cidr"
)

// kind is the type of a leaf.
type kind byte

const (
	kindString kind = iota + 1
	kindNumber
	kindTrue
	kindFalse
	kindNull
)

// leaf is a value of the event for a test: a decoded string, or a number as text.
type leaf struct {
	kind kind
	text []byte
}

// test reports whether a leaf passes.
type test func(leaf) bool

// ofString returns a test of strings; no other leaf passes.
func ofString(passes func(s []byte) bool) test {
	return func(l leaf) bool { return l.kind == kindString && passes(l.text) }
}

// exactly returns a test for this string. Different spellings of an IP address are equal.
func exactly(s string) test {
	want := []byte(s)
	if address, err := netip.ParseAddr(s); err == nil && address.Zone() == "" {
		return ofString(func(s []byte) bool {
			return bytes.Equal(s, want) || within(netip.PrefixFrom(address, address.BitLen()), s)
		})
	}
	return ofString(func(s []byte) bool { return bytes.Equal(s, want) })
}

// literal returns a test for true, false or null.
func literal(k kind) test { return func(l leaf) bool { return l.kind == k } }

// number returns a test for a number. Within the range of parseFixed, its spelling does not matter.
func number(text string) test {
	want, comparable := parseFixed(text)
	written := []byte(text)
	return func(l leaf) bool {
		if l.kind != kindNumber {
			return false
		}
		if bytes.Equal(l.text, written) {
			return true
		}
		got, ok := parseFixed(string(l.text))
		return ok && comparable && got == want
	}
}

// compileTest returns the test with a name and operand, except for {"exists": false}.
func compileTest(op string, operand json.RawMessage) (test, error) {
	switch op {
	case opExactly, opPrefix, opSuffix, opEqualsIgnoreCase, opWildcard:
		passes, err := stringTest(op, operand, true)
		if err != nil {
			return nil, err
		}
		return ofString(passes), nil
	case opAnythingBut:
		return anythingBut(operand)
	case opNumeric:
		return numeric(operand)
	case opExists:
		if string(operand) != "true" {
			return nil, errors.New("exists takes true or false")
		}
		return func(leaf) bool { return true }, nil
	case opCIDR:
		return cidr(operand)
	}
	return nil, fmt.Errorf("unknown test %q", op)
}

// stringTest returns one of the tests of strings. If nested is set, a prefix and a suffix may
// ignore case: {"prefix": {"equals-ignore-case": "x"}}.
func stringTest(op string, operand json.RawMessage, nested bool) (func([]byte) bool, error) {
	if nested && (op == opPrefix || op == opSuffix) && operand[0] == '{' {
		inner, value, err := single(operand)
		if err != nil || inner != opEqualsIgnoreCase {
			return nil, fmt.Errorf("%s takes a string or {%q: a string}", op, opEqualsIgnoreCase)
		}
		s, err := text(op, value)
		if err != nil {
			return nil, err
		}
		return ignoringCase(op, s), nil
	}
	s, err := text(op, operand)
	if err != nil {
		return nil, err
	}
	want := []byte(s)
	switch op {
	case opPrefix:
		return func(s []byte) bool { return bytes.HasPrefix(s, want) }, nil
	case opSuffix:
		return func(s []byte) bool { return bytes.HasSuffix(s, want) }, nil
	case opEqualsIgnoreCase:
		return func(s []byte) bool { return bytes.EqualFold(s, want) }, nil
	case opWildcard:
		return wildcard(s)
	}
	return func(s []byte) bool { return bytes.Equal(s, want) }, nil
}

// ignoringCase returns a test for a prefix or suffix that ignores case. It counts characters, since
// folding can change their length in bytes.
func ignoringCase(op, s string) func([]byte) bool {
	want := []rune(s)
	return func(s []byte) bool {
		got := bytes.Runes(s)
		if len(got) < len(want) {
			return false
		}
		if op == opPrefix {
			got = got[:len(want)]
		} else {
			got = got[len(got)-len(want):]
		}
		return strings.EqualFold(string(got), string(want))
	}
}

// anythingBut returns the test that excludes its operand: strings, numbers, or strings that pass a
// test, as in {"prefix": "x"}.
func anythingBut(operand json.RawMessage) (test, error) {
	if operand[0] == '{' {
		op, value, err := single(operand)
		if err != nil || !slices.Contains([]string{opPrefix, opSuffix, opEqualsIgnoreCase, opWildcard}, op) {
			return nil, errors.New("anything-but takes strings, numbers, or an object with one of prefix, suffix, equals-ignore-case and wildcard")
		}
		values, err := elements(value)
		if err != nil {
			return nil, err
		}
		return notOneOf(op, values)
	}
	values, err := elements(operand)
	if err != nil {
		return nil, err
	}
	if values[0][0] == '"' { // the first value sets the type of all
		return notOneOf(opExactly, values)
	}
	return notOneOfNumbers(values)
}

// notOneOf passes leaves that are no strings, and strings that fail all of the tests. An empty
// prefix or suffix would exclude every string.
func notOneOf(op string, values []json.RawMessage) (test, error) {
	var refused []func([]byte) bool
	for _, value := range values {
		if string(value) == `""` && (op == opPrefix || op == opSuffix) {
			return nil, fmt.Errorf("anything-but takes no empty %s", op)
		}
		passes, err := stringTest(op, value, false)
		if err != nil {
			return nil, fmt.Errorf("anything-but: %w", err)
		}
		refused = append(refused, passes)
	}
	return func(l leaf) bool {
		return l.kind != kindString || !slices.ContainsFunc(refused, func(passes func([]byte) bool) bool { return passes(l.text) })
	}, nil
}

// notOneOfNumbers passes leaves that are no numbers, and all numbers but these.
func notOneOfNumbers(values []json.RawMessage) (test, error) {
	var refused []int64
	for _, value := range values {
		n, ok := parseFixed(string(value))
		if !ok {
			return nil, fmt.Errorf("anything-but takes strings only or numbers only; %s", outOfRange(value))
		}
		refused = append(refused, n)
	}
	return func(l leaf) bool {
		if l.kind != kindNumber {
			return true
		}
		n, ok := parseFixed(string(l.text))
		return !ok || !slices.Contains(refused, n)
	}, nil
}

// numeric returns the test of a number: ["=", n], a bound such as [">", n], or a lower and then an
// upper bound.
func numeric(operand json.RawMessage) (test, error) {
	var list []json.RawMessage
	if json.Unmarshal(operand, &list) != nil || len(list) != 2 && len(list) != 4 {
		return nil, errors.New(`numeric takes ["=", n], one bound such as [">", n], or two such as [">", n, "<=", m]`)
	}
	low, high := int64(minFixed), int64(maxFixed)
	for i := 0; i < len(list); i += 2 {
		n, ok := parseFixed(string(list[i+1]))
		if !ok {
			return nil, fmt.Errorf("numeric: %s", outOfRange(list[i+1]))
		}
		op, _ := text(opNumeric, list[i])
		switch {
		case op == "=" && len(list) == 2:
			low, high = n, n
		case op == ">" && i == 0:
			low = n + 1
		case op == ">=" && i == 0:
			low = n
		case op == "<" && i == len(list)-2:
			high = n - 1
		case op == "<=" && i == len(list)-2:
			high = n
		default:
			return nil, fmt.Errorf("numeric: %s is not an operator that can stand there", list[i])
		}
	}
	if low > high && len(list) == 4 {
		return nil, errors.New("numeric: no number lies between the bounds")
	}
	return func(l leaf) bool {
		if l.kind != kindNumber {
			return false
		}
		n, ok := parseFixed(string(l.text))
		return ok && low <= n && n <= high
	}, nil
}

// cidr returns the test for an IP address in a block.
func cidr(operand json.RawMessage) (test, error) {
	s, err := text(opCIDR, operand)
	if err != nil {
		return nil, err
	}
	block, err := netip.ParsePrefix(s)
	if err != nil {
		return nil, fmt.Errorf("cidr takes a block of addresses such as 10.0.0.0/24, not %q", s)
	}
	return ofString(func(s []byte) bool { return within(block, s) }), nil
}

func within(block netip.Prefix, s []byte) bool {
	if len(s) > 45 { // the length of the longest address without a zone
		return false
	}
	address, err := netip.ParseAddr(string(s))
	return err == nil && block.Contains(address)
}

// text decodes an operand that must be a string.
func text(op string, operand json.RawMessage) (string, error) {
	var s *string
	if json.Unmarshal(operand, &s) != nil || s == nil {
		return "", fmt.Errorf("%s takes a string", op)
	}
	return *s, nil
}

// single returns an object's only member.
func single(object json.RawMessage) (name string, value json.RawMessage, err error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(object, &members); err != nil {
		return "", nil, err
	}
	if len(members) != 1 {
		return "", nil, errors.New("expected an object with one member")
	}
	for name, value = range members {
	}
	return name, value, nil
}

// elements returns the values of a list, or a single value.
func elements(operand json.RawMessage) ([]json.RawMessage, error) {
	if operand[0] != '[' {
		return []json.RawMessage{operand}, nil
	}
	var list []json.RawMessage
	if err := json.Unmarshal(operand, &list); err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, errors.New("anything-but takes no empty list")
	}
	return list, nil
}
