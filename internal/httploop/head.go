package httploop

import (
	"bytes"
	"strings"
)

// verdict is what can be said of the bytes that have come.
type verdict int

const (
	partial  verdict = iota // they may become a plain request
	plain                   // they are one, or begin with one
	doubtful                // they are not, or it is not sure that they are
)

const (
	requestLine = "POST / HTTP/1.1\r\n"
	headMax     = 8 << 10  // bytes of a plain request's head
	bodyMax     = 16 << 20 // bytes of a plain request's body: the API's limit, beyond which net/http reads what there is to read
)

// head is the head of a plain request. It does not refer to the bytes that it was read from.
type head struct {
	size   int // in bytes, with the empty line; 0: it has not been read yet
	length int // of the body
	host   string
	close  bool // the client wants the connection closed
	fields fields
}

// read reads a head from the beginning of b.
func (h *head) read(b []byte) verdict {
	h.fields.reset()
	h.size, h.length, h.host, h.close = 0, -1, "", false
	n := min(len(b), len(requestLine))
	if string(b[:n]) != requestLine[:n] {
		return doubtful
	}
	if n < len(requestLine) {
		return partial
	}
	// The empty line may follow the request line at once.
	end := bytes.Index(b[:min(len(b), headMax)], []byte("\r\n\r\n"))
	if end < 0 {
		return h.readLines(b)
	}
	// One copy for all names and values, which whoever keeps one of them then keeps: that is cheaper than one for each, and safer than none.
	if !h.readFields(string(b[len(requestLine):end+2])) || h.host == "" || h.length < 0 || h.length > bodyMax {
		return doubtful
	}
	h.size = end + len("\r\n\r\n")
	return plain
}

// readLines looks whether the lines that are there of an unfinished head can belong to a plain request.
func (h *head) readLines(b []byte) verdict {
	last := bytes.LastIndexByte(b, '\n') + 1
	if len(b) >= headMax || !h.readFields(string(b[len(requestLine):last])) {
		return doubtful
	}
	return partial
}

// readFields reads lines that each end in CR LF, and reports whether they are those of a plain request.
func (h *head) readFields(lines string) (ok bool) {
	for len(lines) > 0 {
		end := strings.IndexByte(lines, '\n')
		if end < 1 || lines[end-1] != '\r' {
			return false
		}
		line := lines[:end-1]
		lines = lines[end+1:]
		colon := strings.IndexByte(line, ':')
		if colon < 1 {
			return false
		}
		name, value := line[:colon], trim(line[colon+1:])
		if !all(name, inName) || !all(value, inValue) || !h.understand(name, value) {
			return false
		}
		h.fields.add(name, value)
	}
	return true
}

// understand looks whether a header has a meaning for HTTP itself. It reports false where that is not one of the few that plain requests have.
func (h *head) understand(name, value string) (ok bool) {
	switch len(name) {
	case len("Host"):
		if equalFold(name, "Host") {
			ok = h.host == "" && value != "" && all(value, inHost)
			h.host = value
			return ok
		}
	case len("Content-Length"):
		if equalFold(name, "Content-Length") {
			ok = h.length < 0
			h.length = decimal(value)
			return ok && h.length >= 0
		}
	case len("Connection"):
		if equalFold(name, "Connection") {
			h.close = h.close || equalFold(value, "close")
			return equalFold(value, "close") || equalFold(value, "keep-alive")
		}
	case len("Expect"): // and of Pragma, which net/http makes a Cache-Control of
		return !equalFold(name, "Expect") && !equalFold(name, "Pragma")
	case len("Upgrade"): // and of Trailer
		return !equalFold(name, "Upgrade") && !equalFold(name, "Trailer")
	case len("Transfer-Encoding"):
		return !equalFold(name, "Transfer-Encoding")
	}
	return true
}

// decimal reads a number of at most eight digits; -1: it is none.
func decimal(s string) int {
	if s == "" || len(s) > 8 {
		return -1
	}
	n := 0
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return -1
		}
		n = 10*n + int(s[i]-'0')
	}
	return n
}

// trim takes blanks and tabs from both ends.
func trim(s string) string {
	for s != "" && (s[0] == ' ' || s[0] == '\t') {
		s = s[1:]
	}
	for s != "" && (s[len(s)-1] == ' ' || s[len(s)-1] == '\t') {
		s = s[:len(s)-1]
	}
	return s
}

// class is a set of characters.
type class byte

const (
	inName  class = 1 << iota // of a header's name: RFC 9110's token
	inValue                   // of a header's value: printable ASCII, blank and tab
	inHost                    // of the host that a client names: letters, digits, and what is between them in names, addresses and ports
)

// classes says of each character in which sets it is.
var classes = func() (table [256]class) {
	for c := ' '; c <= '~'; c++ {
		table[c] |= inValue
		switch {
		case '0' <= c && c <= '9', 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z':
			table[c] |= inName | inHost
		case strings.ContainsRune("!#$%&'*+-.^_`|~", c):
			table[c] |= inName
		}
		if strings.ContainsRune("-._:[]", c) {
			table[c] |= inHost
		}
	}
	table['\t'] |= inValue
	return table
}()

func all(s string, in class) bool {
	for i := range len(s) {
		if classes[s[i]]&in == 0 {
			return false
		}
	}
	return true
}
