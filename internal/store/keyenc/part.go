package keyenc

import (
	"unicode/utf8"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// AppendValue appends the encoding of a key attribute's value, which must be of kind S, N or B.
func AppendValue(dst []byte, v dynamo.Value) []byte {
	if v.Kind() == dynamo.KindNumber {
		return AppendNumber(dst, v.Number())
	}
	return AppendBytes(dst, v.Bytes())
}

// CutValue decodes the part of the specified kind at the head of key and appends it to dst as a
// value. It returns the rest of key.
func CutValue(dst []byte, kind dynamo.Kind, key []byte) (out, rest []byte, err error) {
	if kind == dynamo.KindNumber {
		n, rest, err := CutNumber(key)
		if err != nil {
			return dst, nil, err
		}
		return dynamo.AppendN(dst, n), rest, nil
	}
	// The decoded bytes follow their length, which is unknown before they are read. Key attributes
	// are short (2,048 bytes at most), so this buffer nearly always stays on the stack.
	var room [128]byte
	payload, rest, err := CutBytes(room[:0], key)
	if err != nil {
		return dst, nil, err
	}
	switch {
	case kind == dynamo.KindBinary:
		return dynamo.AppendBinary(dst, payload), rest, nil
	case !utf8.Valid(payload):
		return dst, nil, ErrMalformed
	}
	return dynamo.AppendString(dst, payload), rest, nil
}

// SkipPart returns the rest of key behind the part of the specified kind at its head.
func SkipPart(kind dynamo.Kind, key []byte) (rest []byte, err error) {
	if kind == dynamo.KindNumber {
		_, rest, err = CutNumber(key)
		return rest, err
	}
	return SkipBytes(key)
}

// AppendNumber appends a number. Its binary form satisfies the laws already.
func AppendNumber(dst []byte, n dynamo.Number) []byte { return append(dst, n...) }

// CutNumber splits a number off the head of key. The number is a view of key.
func CutNumber(key []byte) (n dynamo.Number, rest []byte, err error) {
	size := dynamo.NumberLen(key)
	if size == 0 {
		return nil, nil, ErrMalformed
	}
	return dynamo.Number(key[:size:size]), key[size:], nil
}
