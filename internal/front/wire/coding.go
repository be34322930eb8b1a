package wire

import (
	"strconv"
	"strings"
)

// The codings of compressed answers, by their names in Content-Encoding. deflate is zlib's format.
const (
	codingGzip    = "gzip"
	codingDeflate = "deflate"
)

// chooseCoding returns the coding that an Accept-Encoding header prefers, or "" for none. The highest
// quality wins, and the first one listed among equals. "*" is each coding that is not listed, and
// gzip comes first there. Amazon knows no other codings, so they and "identity" do not count.
func chooseCoding(header string) string {
	best, quality := "", 0.0
	for one := range strings.SplitSeq(header, ",") {
		name, parameters, _ := strings.Cut(one, ";")
		name = strings.ToLower(strings.TrimSpace(name))
		if name == "*" {
			name = unlisted(header)
		}
		if q := qualityOf(parameters); (name == codingGzip || name == codingDeflate) && q > quality {
			best, quality = name, q
		}
	}
	return best
}

// unlisted returns the first coding that an Accept-Encoding header does not name, or "".
func unlisted(header string) string {
	header = strings.ToLower(header)
	for _, coding := range []string{codingGzip, codingDeflate} {
		named := false
		for one := range strings.SplitSeq(header, ",") {
			name, _, _ := strings.Cut(one, ";")
			named = named || strings.TrimSpace(name) == coding
		}
		if !named {
			return coding
		}
	}
	return ""
}

// qualityOf returns the quality in the parameters of a coding: 1 without one, and 0 if it is malformed.
func qualityOf(parameters string) float64 {
	for parameter := range strings.SplitSeq(parameters, ";") {
		name, value, _ := strings.Cut(parameter, "=")
		if !strings.EqualFold(strings.TrimSpace(name), "q") {
			continue
		}
		q, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		if err != nil || q < 0 || q > 1 {
			return 0
		}
		return q
	}
	return 1
}
