package sigv4

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// appendCanonical appends the canonical request: the string in the package comment that the
// signature covers. It takes the signed headers from the signature and their values from the
// request.
func appendCanonical(dst []byte, r *Request, s *signature) []byte {
	dst = append(dst, r.Method...)
	dst = append(dst, '\n')
	if r.Path == "" {
		dst = append(dst, '/')
	}
	// The path in the request line is escaped once; the signature covers it escaped twice.
	dst = appendEscaped(dst, r.Path, true)
	dst = append(dst, '\n')
	dst = appendQuery(dst, r, s)
	dst = append(dst, '\n')
	for _, name := range s.signedHeaders {
		dst = appendHeader(dst, r, name)
	}
	dst = append(dst, '\n')
	for i, name := range s.signedHeaders {
		if i > 0 {
			dst = append(dst, ';')
		}
		dst = append(dst, name...)
	}
	dst = append(dst, '\n')
	sum := sha256.Sum256(r.Body)
	return hex.AppendEncode(dst, sum[:])
}

// appendQuery appends the query parameters, escaped anew and sorted by name and value. In the query
// form it leaves out the signature itself.
func appendQuery(dst []byte, r *Request, s *signature) []byte {
	if r.Query == "" {
		return dst
	}
	query := s.query
	if query == nil {
		// A malformed pair is dropped, and the signature then differs.
		query, _ = url.ParseQuery(r.Query)
	}
	type pair struct{ name, value string }
	var pairs []pair
	for name, values := range query {
		if name == querySignature && s.query != nil {
			continue
		}
		for _, value := range values {
			pairs = append(pairs, pair{string(appendEscaped(nil, name, false)), string(appendEscaped(nil, value, false))})
		}
	}
	slices.SortFunc(pairs, func(a, b pair) int {
		return cmp.Or(strings.Compare(a.name, b.name), strings.Compare(a.value, b.value))
	})
	for i, p := range pairs {
		if i > 0 {
			dst = append(dst, '&')
		}
		dst = append(append(append(dst, p.name...), '='), p.value...)
	}
	return dst
}

// appendHeader appends "name:value\n", with several values joined by commas and runs of blanks
// reduced to one. A missing header has an empty value.
func appendHeader(dst []byte, r *Request, name string) []byte {
	dst = append(dst, name...)
	dst = append(dst, ':')
	switch name {
	case "host":
		dst = append(dst, r.Host...)
	case "content-length":
		// HTTP servers remove this header after reading it.
		dst = strconv.AppendInt(dst, int64(len(r.Body)), 10)
	default:
		for i, value := range r.Headers.Values(name) {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendTrimmed(dst, value)
		}
	}
	return append(dst, '\n')
}

func appendTrimmed(dst []byte, value string) []byte {
	value = strings.Trim(value, " ")
	for i := 0; i < len(value); i++ {
		if value[i] == ' ' && value[i-1] == ' ' {
			continue
		}
		dst = append(dst, value[i])
	}
	return dst
}

// appendEscaped appends s with all but letters, digits and "-._~" percent-encoded; slashes stay in
// a path.
func appendEscaped(dst []byte, s string, path bool) []byte {
	const digits = "0123456789ABCDEF"
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9',
			c == '-', c == '.', c == '_', c == '~', c == '/' && path:
			dst = append(dst, c)
		default:
			dst = append(dst, '%', digits[c>>4], digits[c&15])
		}
	}
	return dst
}
