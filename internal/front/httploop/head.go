package httploop

import (
	"bytes"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// verdict is the result of inspecting the bytes read so far.
type verdict int

const (
	partial  verdict = iota // they may become a plain request
	plain                   // they begin with a whole one; for head.read, with its head
	doubtful                // they are not, or may not be
)

const (
	requestLine = "POST / HTTP/1.1\r\n"
	headMax     = 4 << 10 // bytes of a plain request's head; SDKs send about 1 KB, and 2 with a session token
	fieldsMax   = 64      // header lines of a plain request
	// bytes of a plain request's body, the API's limit; net/http reads longer ones
	bodyMax = 16 << 20
)

// methods are the methods of plain requests for a path. HEAD is not among them, since its answer
// has no body.
var methods = [...]string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete}

// head is the head of a plain request. It does not refer to the bytes that it was read from.
type head struct {
	size   int // in bytes, with the empty line; 0: not read yet
	length int // of the body
	method string
	path   string // escaped, without the query
	query  string
	host   string
	close  bool // the client wants the connection closed
	fields fields
}

// read reads a head from the beginning of b. It is plain if b has the whole head of a request that
// is a POST to the path "/", or goes to a path that routed reports. Only then are the fields valid.
func (h *head) read(b []byte, routed func(path string) bool) verdict {
	h.fields.reset()
	h.size, h.length, h.host, h.close = 0, -1, "", false
	line := len(requestLine)
	if n := min(len(b), line); string(b[:n]) != requestLine[:n] {
		var verdict verdict
		if line, verdict = h.readLine(b, routed); verdict != plain {
			return verdict
		}
	} else if n < line {
		return partial
	} else {
		h.method, h.path, h.query = http.MethodPost, "/", ""
	}
	// The empty line may follow the request line at once.
	end := bytes.Index(b[:min(len(b), headMax)], []byte("\r\n\r\n"))
	if end < 0 {
		return h.readLines(b, line)
	}
	// One copy for all names and values. A caller that keeps one keeps all: that is cheaper than a
	// copy of each, and safer than none.
	if !h.readFields(string(b[line:end+2])) || h.host == "" || h.length > bodyMax {
		return doubtful
	}
	if h.length < 0 {
		if h.method != http.MethodGet && h.method != http.MethodDelete {
			return doubtful
		}
		h.length = 0 // the default for these methods
	}
	h.size = end + len("\r\n\r\n")
	return plain
}

// readLine reads a request line other than requestLine and returns its length. The line is plain if
// it has one of methods and a routed path, perhaps with a query, of characters without special
// meaning.
func (h *head) readLine(b []byte, routed func(path string) bool) (length int, v verdict) {
	end := bytes.IndexByte(b, '\n')
	if end < 0 {
		return 0, h.readSomeOfLine(b)
	}
	method, line, _ := strings.Cut(string(b[:end+1]), " ")
	target, found := strings.CutSuffix(line, " HTTP/1.1\r\n")
	path, query, _ := strings.Cut(target, "?")
	_, badEscape := url.PathUnescape(path) // net/http refuses such paths
	if !found || badEscape != nil || !slices.Contains(methods[:], method) || !strings.HasPrefix(path, "/") ||
		!all(path, inPath) || !all(query, inQuery) || !routed(path) {
		return 0, doubtful
	}
	h.method, h.path, h.query = method, path, query
	return end + 1, plain
}

// readSomeOfLine returns whether an incomplete request line can belong to a plain request.
func (h *head) readSomeOfLine(b []byte) verdict {
	if len(b) >= headMax {
		return doubtful
	}
	for _, method := range methods {
		if n := min(len(b), len(method)); string(b[:n]) == method[:n] {
			return partial
		}
	}
	return doubtful
}

// readLines returns whether the header lines of an incomplete head can belong to a plain request.
func (h *head) readLines(b []byte, line int) verdict {
	last := bytes.LastIndexByte(b, '\n') + 1
	if len(b) >= headMax || !h.readFields(string(b[line:last])) {
		return doubtful
	}
	return partial
}

// readFields reads lines that each end in CR LF, and reports whether a plain request can have them.
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
		name, value := line[:colon], strings.Trim(line[colon+1:], " \t")
		if len(h.fields.names) == fieldsMax || !all(name, inName) || !all(value, inValue) || !h.understand(name, value) {
			return false
		}
		h.fields.add(name, value)
	}
	return true
}

// understand reads a header that has a meaning for HTTP itself. It reports false if plain requests
// cannot have it.
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
	case len("Expect"): // also Pragma, from which net/http makes a Cache-Control
		return !equalFold(name, "Expect") && !equalFold(name, "Pragma")
	case len("Upgrade"): // also Trailer
		return !equalFold(name, "Upgrade") && !equalFold(name, "Trailer")
	case len("Transfer-Encoding"):
		return !equalFold(name, "Transfer-Encoding")
	}
	return true
}

// decimal returns a number of at most eight digits, or -1.
func decimal(s string) int {
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil || len(s) > 8 {
		return -1
	}
	return int(n)
}

// class is a set of characters.
type class byte

const (
	inName  class = 1 << iota // of a header's name: RFC 9110's token
	inValue                   // of a header's value: printable ASCII, blank and tab
	// of the client's host: letters, digits, and the signs in names, addresses and ports
	inHost
	inPath  // of a path: unescaped characters, the slash, and the percent sign
	inQuery // of a query: the same, and the separators of parameters
)

// classes has the sets of each character.
var classes = func() (table [256]class) {
	for c := ' '; c <= '~'; c++ {
		table[c] |= inValue
		switch {
		case '0' <= c && c <= '9', 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z':
			table[c] |= inName | inHost | inPath | inQuery
		case strings.ContainsRune("!#$%&'*+-.^_`|~", c):
			table[c] |= inName
		}
		if strings.ContainsRune("-._:[]", c) {
			table[c] |= inHost
		}
		if strings.ContainsRune("-._~:/%", c) {
			table[c] |= inPath | inQuery
		}
		if strings.ContainsRune("?=&+,", c) {
			table[c] |= inQuery
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
