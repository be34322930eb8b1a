package dynamo

import (
	"encoding/base64"
	"encoding/binary"
	"math/bits"
	"slices"
)

// AppendItemJSON appends the item as JSON in DynamoDB's form: {"name":{"S":"…"},…}, with names and
// elements of sets in ascending order. It does not allocate.
func AppendItemJSON(dst []byte, it Item) []byte {
	dst = append(dst, '{')
	if len(it) > 0 {
		n, at := uvarint(it)
		dst = appendMembers(dst, n, it[at:])
	}
	return append(dst, '}')
}

func appendMembers(dst []byte, n int, tail []byte) []byte {
	for i := range n {
		if i > 0 {
			dst = append(dst, ',')
		}
		var name []byte
		name, tail = cut(tail)
		dst = AppendQuoted(dst, name)
		dst = append(dst, ':')
		dst, tail = appendNextJSON(dst, tail)
	}
	return dst
}

// AppendValueJSON appends the value, which must not be nil, as JSON: {"S":"…"}. It does not
// allocate.
func AppendValueJSON(dst []byte, v Value) []byte {
	dst, _ = appendNextJSON(dst, v)
	return dst
}

// appendNextJSON appends the value at the head of b, and returns the rest of b.
func appendNextJSON(dst, b []byte) (out, tail []byte) {
	kind := Kind(b[0])
	var payload []byte
	switch kind {
	case KindNull:
		return append(dst, `{"NULL":true}`...), b[1:]
	case KindBool:
		if b[1] != 0 {
			return append(dst, `{"BOOL":true}`...), b[2:]
		}
		return append(dst, `{"BOOL":false}`...), b[2:]
	case KindNumber:
		payload, tail = cutNumber(b[1:])
		dst = append(dst, `{"N":"`...)
		dst = Number(payload).AppendText(dst)
		return append(dst, '"', '}'), tail
	}
	payload, tail = cut(b[1:])
	switch kind {
	case KindString:
		dst = append(dst, `{"S":`...)
		dst = AppendQuoted(dst, payload)
	case KindBinary:
		dst = append(dst, `{"B":`...)
		dst = AppendBase64(dst, payload)
	case KindMap:
		dst = append(dst, `{"M":`...)
		dst = AppendItemJSON(dst, payload)
	default:
		dst = append(dst, '{', '"')
		dst = append(dst, kind.String()...)
		dst = append(dst, `":[`...)
		dst = appendElements(dst, kind, payload)
		dst = append(dst, ']')
	}
	return append(dst, '}'), tail
}

// appendElements appends the elements of a list or set; body has their count and the elements.
func appendElements(dst []byte, kind Kind, body []byte) []byte {
	n, at := uvarint(body)
	tail := body[at:]
	for i := range n {
		if i > 0 {
			dst = append(dst, ',')
		}
		var e []byte
		switch kind {
		case KindList:
			dst, tail = appendNextJSON(dst, tail)
		case KindNS:
			e, tail = cutNumber(tail)
			dst = append(dst, '"')
			dst = Number(e).AppendText(dst)
			dst = append(dst, '"')
		case KindBS:
			e, tail = cut(tail)
			dst = AppendBase64(dst, e)
		default:
			e, tail = cut(tail)
			dst = AppendQuoted(dst, e)
		}
	}
	return dst
}

// AppendBase64 appends bytes as a JSON string in base64.
func AppendBase64(dst, b []byte) []byte {
	dst = append(dst, '"')
	dst = base64.StdEncoding.AppendEncode(dst, b)
	return append(dst, '"')
}

// AppendQuoted appends s, which is UTF-8, as a JSON string. Only quotes, backslashes and control
// characters are escaped.
func AppendQuoted[T ~string | ~[]byte](dst []byte, s T) []byte {
	dst = append(dst, '"')
	start := len(dst)
	dst = append(dst, s...)
	if at := plainRun(dst[start:]); at < len(s) {
		dst = appendEscaped(dst[:start+at], s[at:])
	}
	return append(dst, '"')
}

// plainRun returns the number of bytes at the head of s that need no escape in a JSON string.
func plainRun(s []byte) int {
	i := 0
	for ; i+8 <= len(s); i += 8 {
		if mark := special(binary.LittleEndian.Uint64(s[i:])); mark != 0 {
			return i + bits.TrailingZeros64(mark)/8
		}
	}
	for i < len(s) && s[i] >= ' ' && s[i] != '"' && s[i] != '\\' {
		i++
	}
	return i
}

func appendEscaped[T ~string | ~[]byte](dst []byte, s T) []byte {
	const hex = "0123456789abcdef"
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c >= ' ':
			dst = append(dst, c)
		case c == '\n':
			dst = append(dst, '\\', 'n')
		case c == '\r':
			dst = append(dst, '\\', 'r')
		case c == '\t':
			dst = append(dst, '\\', 't')
		case c == '\b':
			dst = append(dst, '\\', 'b')
		case c == '\f':
			dst = append(dst, '\\', 'f')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&0xF])
		}
	}
	return dst
}

// AppendArray appends a JSON array. appendElem appends one element.
func AppendArray[T any](dst []byte, elems []T, appendElem func([]byte, T) []byte) []byte {
	dst = append(dst, '[')
	for i, e := range elems {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendElem(dst, e)
	}
	return append(dst, ']')
}

// AppendObject appends a JSON object with its members in the order of their names. appendMember
// appends the value of one.
func AppendObject[T any](dst []byte, members map[string]T, appendMember func([]byte, T) []byte) []byte {
	var room [32]string // most items have fewer attributes
	names := room[:0]
	for name := range members {
		names = append(names, name)
	}
	slices.Sort(names)
	dst = append(dst, '{')
	for i, name := range names {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(AppendQuoted(dst, name), ':')
		dst = appendMember(dst, members[name])
	}
	return append(dst, '}')
}
