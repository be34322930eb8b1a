package dynamo

import "strconv"

// base64Bits maps a character to its six bits, and other characters to 0xFF.
var base64Bits = func() (table [256]byte) {
	for i := range table {
		table[i] = 0xFF
	}
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	for i, c := range []byte(alphabet) {
		table[c] = byte(i)
	}
	return table
}()

// appendBlob reads a Blob, base64 in JSON, and appends its length and bytes. Null is empty.
func (j *JSON) appendBlob(dst []byte) []byte {
	text := j.blobText()
	return j.appendBase64(appendUvarint(dst, base64Len(text)), text)
}

func (j *JSON) blobText() []byte {
	if c := j.next(); c != '"' {
		j.notScalar(c, "Blob")
		return nil
	}
	text := j.str()
	if len(text)%4 != 0 {
		j.wrongType("Base64 encoded length is expected a multiple of 4 bytes but found: " + strconv.Itoa(len(text)))
		return nil
	}
	return text
}

// base64Len returns the number of decoded bytes of text, whose length is a multiple of 4, if it is
// well-formed.
func base64Len(text []byte) int {
	n := len(text) / 4 * 3
	if n > 0 && text[len(text)-1] == '=' {
		n--
		if text[len(text)-2] == '=' {
			n--
		}
	}
	return n
}

func (j *JSON) appendBase64(dst, text []byte) []byte {
	for ; len(text) > 4; text = text[4:] {
		a, b, c, d := base64Bits[text[0]], base64Bits[text[1]], base64Bits[text[2]], base64Bits[text[3]]
		if (a | b | c | d) == 0xFF {
			j.badBase64(text[:4])
			return dst
		}
		dst = append(dst, a<<2|b>>4, b<<4|c>>2, c<<6|d)
	}
	if len(text) == 0 {
		return dst
	}
	// The last four may end in padding. The bits before it must be used up.
	n := base64Len(text)
	var bits [4]byte
	for i, c := range text[:n+1] {
		if bits[i] = base64Bits[c]; bits[i] == 0xFF {
			j.badBase64(text[:n+1])
			return dst
		}
	}
	if n == 1 && bits[1]&0x0F != 0 || n == 2 && bits[2]&0x03 != 0 {
		j.wrongType("Invalid last non-pad Base64 character dectected") // AWS's spelling
		return dst
	}
	group := [3]byte{bits[0]<<2 | bits[1]>>4, bits[1]<<4 | bits[2]>>2, bits[2]<<6 | bits[3]}
	return append(dst, group[:n]...)
}

// badBase64 reports the first character of text that is not one of base64's.
func (j *JSON) badBase64(text []byte) {
	for _, c := range text {
		if base64Bits[c] == 0xFF {
			j.wrongType("Invalid Base64 character: '" + string(rune(c)) + "'")
			return
		}
	}
}
