package dynamo

import (
	"math"
	"strconv"
)

// Text reads a string and returns a view of it. It returns nil for null or an error; an empty
// string is not nil.
func (j *JSON) Text() []byte {
	if c := j.next(); c != '"' {
		j.notScalar(c, "String")
		return nil
	}
	return j.str()
}

// CopyText reads a string and returns a copy of it.
func (j *JSON) CopyText() string { return string(j.Text()) }

// notConvertible stands between the names of a token and of a type in an error.
const notConvertible = " cannot be converted to "

// notScalar reads another value in place of a scalar of type typ: null, or an error.
func (j *JSON) notScalar(c byte, typ string) {
	switch c {
	case 'n':
		j.literal("null")
	case '{':
		j.wrongType(msgUnexpectedStart)
	case '[':
		j.wrongType("Unrecognized collection type class " + javaType(typ))
	default:
		if typ == "Blob" {
			j.wrongType("only base-64-encoded strings are convertible to bytes")
			return
		}
		j.wrongType(j.tokenName(c) + notConvertible + typ)
	}
}

// tokenName returns the name that AWS's parser has for the scalar that begins with c.
func (j *JSON) tokenName(c byte) string {
	switch c {
	case 't':
		return "TRUE_VALUE"
	case 'f':
		return "FALSE_VALUE"
	case '"':
		return "STRING_VALUE"
	}
	if _, decimal := j.number(); decimal {
		return "DECIMAL_VALUE"
	}
	return "NUMBER_VALUE"
}

// Bool reads a Boolean: true, false, or a string that spells one (true, yes, 1, false, no, 0 in any
// case).
func (j *JSON) Bool() bool {
	switch c := j.next(); c {
	case 't':
		return j.literal("true")
	case 'f':
		j.literal("false")
		return false
	case '"':
		return j.spelledBool(j.str())
	default:
		j.notScalar(c, "Boolean")
		return false
	}
}

func (j *JSON) spelledBool(s []byte) bool {
	if len(s) <= len("false") {
		var lower [5]byte
		for i, c := range s {
			if c-'A' < 26 {
				c |= 0x20
			}
			lower[i] = c
		}
		switch string(lower[:len(s)]) {
		case "true", "yes", "1":
			return true
		case "false", "no", "0":
			return false
		}
	}
	j.wrongType(msgUnexpectedToken)
	return false
}

// Int reads an Integer, and its errors name that type. It rounds a decimal down. A value outside
// the range of an Integer is an error: some members, such as the Limit of a Query, have no upper
// bound that would refuse the nearest Integer.
func (j *JSON) Int() int { return int(j.integer("Integer", math.MinInt32, math.MaxInt32)) }

// Long reads a Long, as Int does an Integer.
func (j *JSON) Long() int64 { return j.integer("Long", math.MinInt64, math.MaxInt64) }

// Instant reads a Timestamp, a number of seconds, as milliseconds. It rounds to the nearest one, and
// a value that is out of range to the bound.
func (j *JSON) Instant() int64 {
	c := j.next()
	if c != '-' && c-'0' > 9 {
		j.notScalar(c, "Date")
		return 0
	}
	text, _ := j.number()
	seconds, _ := strconv.ParseFloat(string(text), 64) // infinite if it does not fit
	const most = 1 << 52
	return int64(max(-most, min(math.Round(seconds*1000), most)))
}

// integer reads an integer from least to most.
func (j *JSON) integer(typ string, least, most int64) int64 {
	c := j.next()
	if c != '-' && c-'0' > 9 {
		j.notScalar(c, typ)
		return 0
	}
	text, decimal := j.number()
	v, fits := int64(0), true
	switch {
	case decimal:
		v, fits = floor(text)
	case len(text) > 18:
		n, err := strconv.ParseInt(string(text), 10, 64)
		v, fits = n, err == nil
	default:
		v = smallInteger(text)
	}
	if !fits || v < least || v > most {
		name := "NUMBER_VALUE"
		if decimal {
			name = "DECIMAL_VALUE"
		}
		j.wrongType(name + notConvertible + typ)
		return 0
	}
	return v
}

// floor reads a decimal and rounds it down, and reports whether an int64 can hold it. Only the first
// 53 bits are exact, which is enough for every member that is an Integer or a Long.
func floor(text []byte) (v int64, fits bool) {
	f, _ := strconv.ParseFloat(string(text), 64) // infinite if it does not fit
	f = math.Floor(f)
	return int64(f), f >= math.MinInt64 && f < math.MaxInt64
}

// smallInteger reads at most 18 characters of JSON integer.
func smallInteger(text []byte) int64 {
	var v int64
	for _, c := range text {
		if c != '-' {
			v = v*10 + int64(c-'0')
		}
	}
	if len(text) > 0 && text[0] == '-' {
		return -v
	}
	return v
}

// number consumes a JSON number; decimal reports that it has a point or an exponent.
func (j *JSON) number() (text []byte, decimal bool) {
	b, start := j.body, j.pos
	i := start
	if i < len(b) && b[i] == '-' {
		i++
	}
	whole := i
	i = skipDigits(b, i)
	if i == whole || i > whole+1 && b[whole] == '0' {
		j.malformed()
		return nil, false
	}
	if i < len(b) && b[i] == '.' {
		decimal = true
		fraction := i + 1
		if i = skipDigits(b, fraction); i == fraction {
			j.malformed()
			return nil, false
		}
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		decimal = true
		if i++; i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		exponent := i
		if i = skipDigits(b, i); i == exponent {
			j.malformed()
			return nil, false
		}
	}
	j.pos = i
	return b[start:i], decimal
}

func skipDigits(b []byte, i int) int {
	for i < len(b) && b[i]-'0' <= 9 {
		i++
	}
	return i
}
