package dynamo

import "encoding/binary"

// uvarint reads a length or a count of the binary form, without checks; see checkUvarint.
func uvarint(b []byte) (v, size int) {
	if c := b[0]; c < 0x80 {
		return int(c), 1
	}
	return longUvarint(b)
}

// longUvarint is separate so that uvarint can be inlined.
func longUvarint(b []byte) (v, size int) {
	u, n := binary.Uvarint(b)
	return int(u), n
}

func appendUvarint(dst []byte, v int) []byte {
	if v < 0x80 {
		return append(dst, byte(v))
	}
	return binary.AppendUvarint(dst, uint64(v))
}

// uvarintLen returns the number of bytes that appendUvarint writes for v.
func uvarintLen(v int) int {
	n := 1
	for ; v >= 0x80; v >>= 7 {
		n++
	}
	return n
}

// cut cuts a uvarint and as many bytes off the head of b.
func cut(b []byte) (head, tail []byte) {
	n, at := uvarint(b)
	return b[at : at+n : at+n], b[at+n:]
}

// cutNumber cuts a length byte and a number off the head of b.
func cutNumber(b []byte) (head, tail []byte) {
	n := int(b[0]) + 1
	return b[1:n:n], b[n:]
}

// cutValue cuts a value off the head of b.
func cutValue(b []byte) (v Value, tail []byte) {
	n := valueLen(b)
	return Value(b[:n:n]), b[n:]
}

// valueLen returns the length of the value at the head of b.
func valueLen(b []byte) int {
	switch Kind(b[0]) {
	case KindNull:
		return 1
	case KindBool:
		return 2
	case KindNumber:
		return 2 + int(b[1])
	default:
		n, at := uvarint(b[1:])
		return 1 + at + n
	}
}
