package dynamo

import (
	"bytes"
	"slices"
)

// The functions in this file append values in binary form.

// AppendNull appends a NULL.
func AppendNull(dst []byte) []byte { return append(dst, byte(KindNull)) }

// AppendBool appends a BOOL.
func AppendBool(dst []byte, b bool) []byte {
	if b {
		return append(dst, byte(KindBool), 1)
	}
	return append(dst, byte(KindBool), 0)
}

// AppendString appends an S; s must be valid UTF-8.
func AppendString[T ~string | ~[]byte](dst []byte, s T) []byte {
	dst = append(dst, byte(KindString))
	return append(appendUvarint(dst, len(s)), s...)
}

// AppendBinary appends a B.
func AppendBinary(dst []byte, b []byte) []byte {
	dst = append(dst, byte(KindBinary))
	return append(appendUvarint(dst, len(b)), b...)
}

// AppendN appends an N.
func AppendN(dst []byte, n Number) []byte {
	dst = append(dst, byte(KindNumber), byte(len(n)))
	return append(dst, n...)
}

// appendScalar appends an S, N or B with this payload.
func appendScalar(dst []byte, kind Kind, payload []byte) []byte {
	switch kind {
	case KindNumber:
		return AppendN(dst, payload)
	case KindBinary:
		return AppendBinary(dst, payload)
	default:
		return AppendString(dst, payload)
	}
}

// AppendList appends an L of elems, none of which may be nil.
func AppendList(dst []byte, elems []Value) []byte {
	size := uvarintLen(len(elems))
	for _, e := range elems {
		size += len(e)
	}
	dst = append(dst, byte(KindList))
	dst = appendUvarint(dst, size)
	dst = appendUvarint(dst, len(elems))
	for _, e := range elems {
		dst = append(dst, e...)
	}
	return dst
}

// AppendMap appends an M with the attributes of the item.
func AppendMap(dst []byte, it Item) []byte {
	dst = append(dst, byte(KindMap))
	return append(appendUvarint(dst, len(it)), it...)
}

// AppendSet appends a set of kind SS, NS or BS. The elements are payloads in any order: strings,
// Numbers, binaries. There must be at least one, since no set is empty. A repeated element is
// stored once. It reorders elems.
func AppendSet(dst []byte, kind Kind, elems [][]byte) []byte {
	slices.SortFunc(elems, bytes.Compare)
	elems = slices.CompactFunc(elems, bytes.Equal)
	size := uvarintLen(len(elems))
	for _, e := range elems {
		size += uvarintLen(len(e)) + len(e)
	}
	dst = append(dst, byte(kind))
	dst = appendUvarint(dst, size)
	dst = appendUvarint(dst, len(elems))
	for _, e := range elems {
		dst = append(appendUvarint(dst, len(e)), e...)
	}
	return dst
}
