package dynamo

import (
	"math"
	"strings"
)

// Number is a number in canonical binary form. The zero Number (nil) means "no number".
//
//	number = sign exponent pair+    sign 0xC0: positive; 0x40: negative, and then every byte after the sign is inverted
//	       | 0x80                   zero
//
// The digits of d.ddd × 10^e, without zeros at the end, stand two to a byte: 2*dd+1 each, and 2*dd
// for the last, where an odd digit is followed by a zero. The exponent byte is e+130, for e from
// -130 to 125. So
//
//	Order:      bytes.Compare(a, b) == compare(number of a, number of b)
//	RoundTrip:  AppendNumber(text of n) == n
//	PrefixFree: no number is a proper prefix of another
//
// and equal numbers have equal bytes. A Number has 1 to 21 bytes; methods expect one that
// AppendNumber, AddNumbers or CheckItem has passed.
type Number []byte

// Limits of DynamoDB's numbers (docs/spec/limits-and-capacity.md §2).
const (
	maxDigits   = 38   // significant digits
	maxExponent = 125  // of the first significant digit
	minExponent = -130 // of the first significant digit
)

const (
	signNegative = 0x40
	signZero     = 0x80
	signPositive = 0xC0
)

// The texts of docs/spec/errors.md §9.
const (
	msgNotNumeric = "The parameter cannot be converted to a numeric value"
	msgDigits     = "Attempting to store more than 38 significant digits in a Number"
	msgOverflow   = "Number overflow. Attempting to store a number with magnitude larger than supported range"
	msgUnderflow  = "Number underflow. Attempting to store a number with magnitude smaller than supported range"
)

// decimal is a number in parts: ±d[0].d[1]d[2]… × 10^exp. n is 0 for zero; otherwise d[0] is not 0.
type decimal struct {
	negative bool
	exp      int
	n        int
	d        [maxDigits + 4]byte // each 0 to 9; room for the aligned operands of add
}

// AppendNumber appends the number that a decimal text denotes: optional sign, digits with an
// optional point, optional exponent, no blanks. Errors are ValidationExceptions with the texts of
// docs/spec/errors.md §9.
//
// The exponent of a zero is checked too, as in DynamoDB: 0e125 is zero and 0e126 an overflow.
func AppendNumber(dst, text []byte) ([]byte, error) {
	var dec decimal
	if err := dec.parse(text); err != nil {
		return dst, err
	}
	return dec.append(dst), nil
}

// parse reads decimal text into dec, which must be the zero decimal. It returns an *Error, so a
// caller that returns an error must convert nil itself.
func (dec *decimal) parse(text []byte) *Error {
	if len(text) == 0 {
		return invalidValue(FaultNumber, msgNotNumeric)
	}
	i := 0
	if text[0] == '-' || text[0] == '+' {
		dec.negative = text[0] == '-'
		i = 1
	}
	var (
		digits    int // digits seen, leading zeros included
		point     = -1
		first     = -1 // the position of the first digit that is not zero
		lastKept  int  // significant digits up to the last that is not zero
		mantissaN int  // significant digits, trailing zeros included
	)
	for ; i < len(text); i++ {
		c := text[i]
		if c == '.' && point < 0 {
			point = digits
			continue
		}
		c -= '0'
		if c > 9 {
			break
		}
		if first < 0 && c != 0 {
			first = digits
		}
		digits++
		if first < 0 {
			continue
		}
		if mantissaN < maxDigits {
			dec.d[mantissaN] = c
		}
		mantissaN++
		if c != 0 {
			lastKept = mantissaN
		}
	}
	if digits == 0 {
		return notNumeric(text)
	}
	if point < 0 {
		point = digits
	}
	exp := 0
	if i < len(text) {
		var ok bool
		if exp, ok = parseExponent(text[i:]); !ok {
			return notNumeric(text)
		}
	}
	if first < 0 {
		dec.negative = false
		return checkExponent(exp - (digits - point))
	}
	dec.exp = point - first - 1 + exp
	dec.n = lastKept
	if err := checkExponent(dec.exp); err != nil {
		return err
	}
	if lastKept > maxDigits {
		return invalidValue(FaultNumber, msgDigits)
	}
	return nil
}

// parseExponent reads e, an optional sign and digits. A huge exponent stops growing once no text of
// digits could bring the number back into range.
func parseExponent(text []byte) (int, bool) {
	if text[0]|0x20 != 'e' || len(text) < 2 {
		return 0, false
	}
	i, sign := 1, 1
	if text[i] == '-' || text[i] == '+' {
		if text[i] == '-' {
			sign = -1
		}
		i++
	}
	if i == len(text) {
		return 0, false
	}
	exp := 0
	for ; i < len(text); i++ {
		c := text[i] - '0'
		if c > 9 {
			return 0, false
		}
		if exp < 1<<40 {
			exp = exp*10 + int(c)
		}
	}
	return sign * exp, true
}

func notNumeric(text []byte) *Error {
	return invalidValue(FaultNumber, msgNotNumeric+": "+string(text))
}

func checkExponent(exp int) *Error {
	switch {
	case exp > maxExponent:
		return invalidValue(FaultNumber, msgOverflow)
	case exp < minExponent:
		return invalidValue(FaultNumber, msgUnderflow)
	}
	return nil
}

// append appends the binary form. d[:n] must end in a digit that is not zero, and exp must be in
// range.
func (dec *decimal) append(dst []byte) []byte {
	if dec.n == 0 {
		return append(dst, signZero)
	}
	sign, invert := byte(signPositive), byte(0)
	if dec.negative {
		sign, invert = signNegative, 0xFF
	}
	dst = append(dst, sign, byte(dec.exp-minExponent)^invert)
	if dec.n&1 == 1 {
		dec.d[dec.n] = 0
	}
	i := 0
	for ; i+2 < dec.n; i += 2 {
		dst = append(dst, (dec.d[i]*20+dec.d[i+1]*2+1)^invert)
	}
	return append(dst, (dec.d[i]*20+dec.d[i+1]*2)^invert)
}

// decimal splits the number into its parts.
func (n Number) decimal(dec *decimal) {
	if len(n) < 3 {
		dec.negative, dec.exp, dec.n = false, 0, 0
		return
	}
	invert := byte(0)
	dec.negative = n[0] == signNegative
	if dec.negative {
		invert = 0xFF
	}
	dec.exp = int(n[1]^invert) + minExponent
	at := 0
	for _, b := range n[2:] {
		pair := (b ^ invert) >> 1
		dec.d[at] = pair / 10
		dec.d[at+1] = pair % 10
		at += 2
		if at == maxDigits {
			break
		}
	}
	if dec.d[at-1] == 0 {
		at--
	}
	dec.n = at
}

// AppendText appends the number as DynamoDB returns it: plain decimal digits without exponent and
// without redundant zeros: "1000", "1.5", "-0.001".
func (n Number) AppendText(dst []byte) []byte {
	var dec decimal
	n.decimal(&dec)
	if dec.n == 0 {
		return append(dst, '0')
	}
	if dec.negative {
		dst = append(dst, '-')
	}
	if dec.exp < 0 {
		dst = append(dst, '0', '.')
		dst = append(dst, zeros[:-dec.exp-1]...)
		return appendDigits(dst, dec.d[:dec.n])
	}
	whole := min(dec.exp+1, dec.n)
	dst = appendDigits(dst, dec.d[:whole])
	if dec.n > whole {
		dst = append(dst, '.')
		return appendDigits(dst, dec.d[whole:dec.n])
	}
	return append(dst, zeros[:dec.exp+1-dec.n]...)
}

func appendDigits(dst, digits []byte) []byte {
	for _, d := range digits {
		dst = append(dst, '0'+d)
	}
	return dst
}

// zeros is the longest run of zeros in a number's text.
var zeros = strings.Repeat("0", -minExponent)

func (n Number) String() string { return string(n.AppendText(nil)) }

// Size returns the number's size in DynamoDB bytes: one, half the number of significant digits on
// each side of the point, each rounded up, and one more if it is negative; 21 at most
// (docs/spec/limits-and-capacity.md §5).
func (n Number) Size() int {
	var dec decimal
	n.decimal(&dec)
	whole := min(max(dec.exp+1, 0), dec.n)
	size := 1 + (whole+1)/2 + (dec.n-whole+1)/2
	if dec.negative {
		size++
	}
	return min(size, 21)
}

// Millis returns the number of seconds as milliseconds, rounded up, toward later instants. ok is
// false if the result is outside int64.
func (n Number) Millis() (ms int64, ok bool) {
	var dec decimal
	n.decimal(&dec)
	ms, exact, ok := dec.scaled(3)
	if !ok || exact || dec.negative {
		return ms, ok
	}
	if ms == math.MaxInt64 {
		return 0, false
	}
	return ms + 1, true
}

// scaled returns the number times 10^shift without its fraction; exact reports that there was none.
func (dec *decimal) scaled(shift int) (v int64, exact, ok bool) {
	exp := dec.exp + shift
	if dec.n == 0 {
		return 0, true, true
	}
	if exp < 0 {
		return 0, false, true
	}
	if exp > 18 {
		return 0, false, false
	}
	var u uint64 // nineteen digits fit
	for i := range exp + 1 {
		u *= 10
		if i < dec.n {
			u += uint64(dec.d[i])
		}
	}
	exact = dec.n <= exp+1
	if dec.negative {
		return -int64(u), exact, u <= 1<<63
	}
	return int64(u), exact, u <= math.MaxInt64
}

// NumberLen returns the length of the number at the head of b, or 0 if there is none. Any bytes may
// follow it: numbers are prefix-free.
func NumberLen(b []byte) int {
	if len(b) == 0 {
		return 0
	}
	invert := byte(0)
	switch b[0] {
	case signZero:
		return 1
	case signNegative:
		invert = 0xFF
	case signPositive:
	default:
		return 0
	}
	for i := 2; i < len(b) && i < 2+maxDigits/2; i++ {
		pair := b[i] ^ invert
		if pair > 199 || i == 2 && pair < 20 {
			return 0
		}
		if pair&1 == 0 {
			if pair == 0 {
				return 0
			}
			return i + 1
		}
	}
	return 0
}
