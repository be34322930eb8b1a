package policy

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// value is a value of a condition, in the form that the operator's family compares.
type value struct {
	pattern pattern      // String operators
	arn     []pattern    // Arn operators
	number  float64      // Numeric and Date operators: seconds since 1970
	prefix  netip.Prefix // IpAddress and NotIpAddress
	truth   bool         // Bool and Null
	written string
}

func (v *value) unresolved(r *Request) bool {
	return v.pattern.unresolved(r) || slices.ContainsFunc(v.arn, func(p pattern) bool { return p.unresolved(r) })
}

// parseValue reads one value. Only numbers, dates and Booleans may lack quotes: other operators
// would have to choose a text for 1.0.
func (p *parser) parseValue(op operator, raw json.RawMessage) (v value, err error) {
	text, quoted := textOf(raw)
	if !quoted {
		text = string(raw)
		bare := op.family == numberFamily || op.family == dateFamily || op.family == boolFamily || op.family == nullFamily
		if !bare || raw[0] == '{' || raw[0] == '[' || raw[0] == 'n' {
			return v, fmt.Errorf("%s is not a string; write it in double quotes", excerpt(raw))
		}
	}
	v.written = text
	ok := true
	switch op.family {
	case textFamily:
		v.pattern, err = p.compile(text, op.wildcard)
	case arnFamily:
		v.arn, err = p.compileARN(text)
	case numberFamily:
		if v.number, ok = parseNumber(text); !ok {
			err = fmt.Errorf("%q is not a number; write for example 1577836800", text)
		}
	case dateFamily:
		if v.number, ok = parseDate(text); !ok {
			err = fmt.Errorf("%q is not a date; write for example 2030-01-01T12:00:00Z, or seconds since 1970", text)
		}
	case addressFamily:
		if v.prefix, ok = parsePrefix(text); !ok {
			err = fmt.Errorf("%q is not an IP address or range; write for example 203.0.113.0/24 or 2001:db8::/32", text)
		}
	default:
		if v.truth = text == "true"; !v.truth && text != "false" {
			err = fmt.Errorf("%q is not a Boolean; write true or false", text)
		}
	}
	return v, err
}

// parseNumber reads a decimal number without an exponent.
func parseNumber(text string) (float64, bool) {
	n, err := strconv.ParseFloat(text, 64)
	return n, err == nil && strings.Trim(text, "-.0123456789") == ""
}

// parseDate reads a date of W3C's profile of ISO 8601, or seconds since 1970. A number of four
// digits is refused, because it could be a year.
func parseDate(text string) (float64, bool) {
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04Z07:00", time.DateOnly, "2006-01"} {
		if t, err := time.Parse(layout, text); err == nil {
			return float64(t.Unix()) + float64(t.Nanosecond())/1e9, true // UnixNano ends in 2262
		}
	}
	if len(text) == 4 {
		return 0, false
	}
	return parseNumber(text)
}

// parsePrefix reads an address, which stands for itself alone, or a range in CIDR form.
func parsePrefix(text string) (netip.Prefix, bool) {
	prefix, err := netip.ParsePrefix(text)
	if err != nil {
		address, err := netip.ParseAddr(text)
		if err != nil || address.Zone() != "" {
			return prefix, false
		}
		prefix = netip.PrefixFrom(address, address.BitLen())
	}
	return prefix, !prefix.Addr().Is4In6()
}
