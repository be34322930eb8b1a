// Package keyenc encodes keys so that comparing bytes compares values. Everything in it is a pure function.
//
//	Order:      bytes.Compare(enc(a), enc(b)) == compare(a, b)
//	RoundTrip:  dec(enc(a) + rest) == a, rest
//	PrefixFree: no enc(a) is a proper prefix of enc(b)
//
// A part is one key attribute: an S, N or B, whose type the schema fixes, so that its encoding does not say it:
//
//	S, B   bytes, 0x00 → 0x00 0xFF, and 0x00 0x01 at the end
//	N      the Number as package dynamo holds it
//	uint   big-endian, 4 or 8 bytes
//
// The laws hold for each, and therefore for sequences of parts of the same types: a tuple's order is that of its first
// part that differs. PrefixFree makes ranges simple: all keys whose first parts are p lie from enc(p) up to, and not
// including, PrefixSuccessor(enc(p)). For strings that begin with s the same holds of AppendBytesPrefix(s).
//
// Decoding checks what it reads, since keys come from disk: bytes that no encoder wrote give ErrMalformed.
package keyenc

import (
	"bytes"
	"encoding/binary"
	"errors"
)

// ErrMalformed says that bytes are not the encoding of what they should be.
var ErrMalformed = errors.New("keyenc: malformed key")

const (
	escape     = 0x00 // begins a pair; what stands behind it says which
	escapedNul = 0xFF // the byte 0x00 itself
	terminator = 0x01 // the end, below every continuation: "a" < "a\x00" < "a\x01"
)

// AppendBytes appends the encoding of b.
func AppendBytes(dst, b []byte) []byte {
	return append(AppendBytesPrefix(dst, b), escape, terminator)
}

// AppendBytesPrefix appends the encoding of b without its end: what the encodings of b and of everything that begins with b
// have in common, and no others.
func AppendBytesPrefix(dst, b []byte) []byte {
	for {
		at := bytes.IndexByte(b, escape)
		if at < 0 {
			return append(dst, b...)
		}
		dst = append(dst, b[:at+1]...)
		dst = append(dst, escapedNul)
		b = b[at+1:]
	}
}

// CutBytes decodes the bytes at the head of key, appends them to dst, and gives what follows them in key.
func CutBytes(dst, key []byte) (out, rest []byte, err error) {
	out = dst
	for {
		at := bytes.IndexByte(key, escape)
		if at < 0 || at+1 == len(key) {
			return dst, nil, ErrMalformed
		}
		switch key[at+1] {
		case terminator:
			return append(out, key[:at]...), key[at+2:], nil
		case escapedNul:
			out = append(out, key[:at+1]...)
			key = key[at+2:]
		default:
			return dst, nil, ErrMalformed
		}
	}
}

// SkipBytes gives what follows the bytes at the head of key.
func SkipBytes(key []byte) (rest []byte, err error) {
	for {
		at := bytes.IndexByte(key, escape)
		if at < 0 || at+1 == len(key) {
			return nil, ErrMalformed
		}
		switch key[at+1] {
		case terminator:
			return key[at+2:], nil
		case escapedNul:
			key = key[at+2:]
		default:
			return nil, ErrMalformed
		}
	}
}

// AppendUint32 appends v so that bytes order as the numbers do.
func AppendUint32(dst []byte, v uint32) []byte { return binary.BigEndian.AppendUint32(dst, v) }

// CutUint32 takes what AppendUint32 wrote off the head of key.
func CutUint32(key []byte) (v uint32, rest []byte, err error) {
	if len(key) < 4 {
		return 0, nil, ErrMalformed
	}
	return binary.BigEndian.Uint32(key), key[4:], nil
}

// AppendUint64 appends v so that bytes order as the numbers do.
func AppendUint64(dst []byte, v uint64) []byte { return binary.BigEndian.AppendUint64(dst, v) }

// CutUint64 takes what AppendUint64 wrote off the head of key.
func CutUint64(key []byte) (v uint64, rest []byte, err error) {
	if len(key) < 8 {
		return 0, nil, ErrMalformed
	}
	return binary.BigEndian.Uint64(key), key[8:], nil
}

// PrefixSuccessor gives the smallest bytes that are greater than everything that begins with prefix, in memory of its own;
// nil where nothing is, because the prefix is empty or all 0xFF.
func PrefixSuccessor(prefix []byte) []byte {
	for end := len(prefix); end > 0; end-- {
		if prefix[end-1] != 0xFF {
			next := bytes.Clone(prefix[:end])
			next[end-1]++
			return next
		}
	}
	return nil
}
