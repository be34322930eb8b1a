package dynamo

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

const (
	eachByte  = 0x0101010101010101
	highBits  = 0x8080808080808080
	allQuotes = '"' * eachByte
	allSlash  = '\\' * eachByte
	allBlank  = ' ' * eachByte
)

// special sets the highest bit of each of eight bytes that must be escaped in a JSON string:
// controls, quotes and backslashes. Above the lowest such byte, it may mark others too.
func special(word uint64) uint64 {
	quotes, slashes := word^allQuotes, word^allSlash
	return ((word-allBlank)&^word | (quotes-eachByte)&^quotes | (slashes-eachByte)&^slashes) & highBits
}

// str reads the string whose opening quote is next. It returns a view of the body if the string has
// no escapes.
func (j *JSON) str() []byte {
	b, start := j.body, j.pos+1
	i := start
	var high uint64 // high bits of bytes that are not ASCII
	for ; i+8 <= len(b); i += 8 {
		word := binary.LittleEndian.Uint64(b[i:])
		if s := special(word); s != 0 {
			at := bits.TrailingZeros64(s)
			high |= word & (1<<at - 1)
			i += at / 8
			return j.endOfRun(start, i, high)
		}
		high |= word
	}
	for i < len(b) && b[i] >= ' ' && b[i] != '"' && b[i] != '\\' {
		high |= uint64(b[i])
		i++
	}
	return j.endOfRun(start, i, high)
}

// endOfRun handles the byte at i, which is not plain, after plain ones since start.
func (j *JSON) endOfRun(start, i int, high uint64) []byte {
	if i < len(j.body) && j.body[i] == '"' {
		s := j.body[start:i:i]
		if high&highBits == 0 || utf8.Valid(s) {
			j.pos = i + 1
			return s
		}
	} else if i < len(j.body) && j.body[i] == '\\' {
		return j.unescape(start, i)
	}
	j.malformed()
	return nil
}

// unescape continues at the first backslash, at i, of the string that began at start.
func (j *JSON) unescape(start, i int) []byte {
	b, from := j.body, len(j.text)
	j.text = append(j.text, b[start:i]...)
	for i < len(b) {
		c := b[i]
		switch {
		case c == '"':
			s := j.text[from:len(j.text):len(j.text)]
			if !utf8.Valid(s) {
				j.malformed()
				return nil
			}
			j.pos = i + 1
			return s
		case c < ' ':
			j.malformed()
			return nil
		case c != '\\':
			j.text = append(j.text, c)
			i++
		default:
			r, size := escaped(b[i:])
			if size == 0 {
				j.malformed()
				return nil
			}
			j.text = utf8.AppendRune(j.text, r)
			i += size
		}
	}
	j.malformed()
	return nil
}

// escaped reads an escape sequence at the head of b, and a surrogate pair as one. size is 0 if
// there is none.
func escaped(b []byte) (r rune, size int) {
	if len(b) < 2 {
		return 0, 0
	}
	switch b[1] {
	case '"', '\\', '/':
		return rune(b[1]), 2
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	}
	r, ok := hexEscape(b)
	switch {
	case !ok:
		return 0, 0
	case r < 0xD800 || r > 0xDFFF:
		return r, 6
	case r > 0xDBFF:
		return 0, 0
	}
	low, ok := hexEscape(b[6:])
	if !ok || low < 0xDC00 || low > 0xDFFF {
		return 0, 0
	}
	return 0x10000 + (r-0xD800)<<10 + (low - 0xDC00), 12
}

// hexEscape reads \uXXXX.
func hexEscape(b []byte) (rune, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range b[2:6] {
		r <<= 4
		switch {
		case c-'0' <= 9:
			r |= rune(c - '0')
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			r |= rune(c|0x20-'a') + 10
		default:
			return 0, false
		}
	}
	return r, true
}
