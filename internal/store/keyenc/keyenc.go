// Package keyenc encodes keys so that comparing bytes compares values. It holds pure functions
// only.
//
//	Order:      bytes.Compare(enc(a), enc(b)) == compare(a, b)
//	RoundTrip:  dec(enc(a) + rest) == a, rest
//	PrefixFree: no enc(a) is a proper prefix of enc(b)
//
// A part is one key attribute: an S, N or B. The schema fixes its type, so the encoding omits it:
//
//	S, B   bytes, 0x00 → 0x00 0xFF, and 0x00 0x01 at the end
//	N      the Number as package dynamo holds it
//
// The laws hold for each part, and therefore for sequences of parts of the same types: the first
// different part decides the order of two tuples. PrefixFree makes ranges simple: all keys whose
// first parts are p lie from enc(p) up to, and not including, PrefixSuccessor(enc(p)). For strings
// that begin with s the same holds with AppendBytesPrefix(s).
//
// Keys come from disk, so decoding checks them: it returns ErrMalformed for bytes that no encoder
// wrote.
package keyenc

import (
	"bytes"
	"errors"
)

// ErrMalformed reports bytes that are not an encoded key.
var ErrMalformed = errors.New("keyenc: malformed key")

const (
	escape     = 0x00 // begins a pair; the next byte selects its meaning
	escapedNul = 0xFF // the byte 0x00 itself
	terminator = 0x01 // the end, below every continuation: "a" < "a\x00" < "a\x01"
)

// AppendBytes appends the encoding of b.
func AppendBytes(dst, b []byte) []byte {
	return append(AppendBytesPrefix(dst, b), escape, terminator)
}

// AppendBytesPrefix appends the encoding of b without its end. It is the common prefix of the
// encodings of b and of everything that begins with b, and of no others.
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

// CutBytes decodes the bytes at the head of key and appends them to dst. It returns the rest of
// key.
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

// SkipBytes returns the rest of key behind the bytes at its head.
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

// PrefixSuccessor returns the smallest bytes greater than everything that begins with prefix, in
// new memory. It returns nil if there are none, because the prefix is empty or all 0xFF.
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
