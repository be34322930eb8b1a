package dynamo

// AddNumbers appends a + b. The sum is exact, never rounded. It is refused with DynamoDB's text
// "Number overflow" if it has more than 38 digits or too large a magnitude, and with "Number
// underflow" if its magnitude is too small; dst comes back unchanged then. dst may overlap a or b.
func AddNumbers(dst []byte, a, b Number) ([]byte, error) {
	var x, y decimal
	a.decimal(&x)
	b.decimal(&y)
	return appendSum(dst, &x, &y)
}

// SubNumbers appends a - b, with the errors of AddNumbers.
func SubNumbers(dst []byte, a, b Number) ([]byte, error) {
	var x, y decimal
	a.decimal(&x)
	b.decimal(&y)
	y.negative = !y.negative
	return appendSum(dst, &x, &y)
}

func appendSum(dst []byte, x, y *decimal) ([]byte, error) {
	switch {
	case y.n == 0:
		return x.append(dst), nil
	case x.n == 0:
		return y.append(dst), nil
	}
	var sum decimal
	if err := sum.add(x, y); err != nil {
		return dst, err
	}
	return sum.append(dst), nil
}

// add sets sum to x + y; neither is zero.
func (sum *decimal) add(x, y *decimal) *Error {
	if x.less(y) {
		x, y = y, x // x has the greater magnitude, and so the sign of the result
	}
	low := min(x.exp-x.n, y.exp-y.n) + 1 // the exponent of the last digit of the result
	span := x.exp - low + 1
	// A difference can lose leading digits only if the operands' first digits are at most one place
	// apart, and then the span is 39 at most. Any wider span leaves more than 38 digits, since the
	// last one comes from one operand alone.
	if span > maxDigits+1 {
		return Invalid(msgOverflow)
	}
	shift := x.exp - y.exp
	carry, negate := int8(0), x.negative != y.negative
	sum.d[0] = 0
	for i := span - 1; i >= 0; i-- {
		var p, q int8
		if i < x.n {
			p = int8(x.d[i])
		}
		if at := i - shift; at >= 0 && at < y.n {
			q = int8(y.d[at])
		}
		if negate {
			q = -q
		}
		s := p + q + carry
		carry = 0
		switch {
		case s > 9:
			s -= 10
			carry = 1
		case s < 0:
			s += 10
			carry = -1
		}
		sum.d[i+1] = byte(s)
	}
	sum.d[0] = byte(carry) // never negative, because x is not less than y
	sum.negative = x.negative
	sum.exp = x.exp + 1
	sum.n = span + 1
	return sum.normalize()
}

// less reports whether x has a smaller magnitude than y.
func (x *decimal) less(y *decimal) bool {
	if x.exp != y.exp {
		return x.exp < y.exp
	}
	for i := range min(x.n, y.n) {
		if x.d[i] != y.d[i] {
			return x.d[i] < y.d[i]
		}
	}
	return x.n < y.n
}

// normalize drops zeros at both ends and checks the result against the limits.
func (sum *decimal) normalize() *Error {
	first := 0
	for first < sum.n && sum.d[first] == 0 {
		first++
	}
	for sum.n > first && sum.d[sum.n-1] == 0 {
		sum.n--
	}
	copy(sum.d[:], sum.d[first:sum.n])
	sum.n -= first
	sum.exp -= first
	if sum.n == 0 {
		return nil
	}
	if sum.n > maxDigits {
		return Invalid(msgOverflow)
	}
	return checkExponent(sum.exp)
}
