package sigv4

import (
	"fmt"
	"net/http"
	"net/textproto"
	"slices"
	"strings"
)

// Headers returns the values of a request header by its name, in any case. It is an http.Header or
// a NamedHeaders.
type Headers interface {
	Values(name string) []string
}

// NamedHeaders is a Headers that can list the names of its headers. They may be repeated, and in
// any case. The caller must not change them.
type NamedHeaders interface {
	Headers
	Names() []string
}

// amzPrefix is the prefix of AWS's own headers.
const amzPrefix = "x-amz-"

// unsignedAllowed lists the x-amz-* headers that may be unsigned. Clients and proxies that work with
// Amazon add them after signing, and the server does not act on them:
//
//   - x-amz-content-sha256: early versions of the AWS SDK for Go and of awscurl send it unsigned.
//     The signature is checked against the hash of the received body, and not against this value.
//   - x-amz-user-agent: the AWS SDK for .NET excludes it from signing.
//   - x-amz-cf-id: Amazon CloudFront adds it to every request that it forwards.
//
// X-Amzn-Trace-Id, which load balancers add and all SDKs exclude, does not begin with x-amz-.
var unsignedAllowed = []string{"x-amz-content-sha256", "x-amz-user-agent", "x-amz-cf-id"}

// checkHeaders refuses a request with an x-amz-* header that the signature does not cover. AWS
// requires a signature to cover all of them. Otherwise a request that is signed for one operation
// could be sent with the X-Amz-Target of another.
//
// Amazon's text is known for Host only. This error has the same form, and names one of the headers.
func (s *signature) checkHeaders(headers Headers) error {
	unsigned := ""
	check := func(name string) {
		if !s.covers(name, headers) && (unsigned == "" || name < unsigned) {
			unsigned = name
		}
	}
	switch h := headers.(type) {
	case http.Header:
		for name := range h {
			check(name)
		}
	case NamedHeaders:
		for _, name := range h.Names() {
			check(name)
		}
	default:
		return fmt.Errorf("check the signed headers: %T does not list its names", headers)
	}
	if unsigned != "" {
		return notSigned(textproto.CanonicalMIMEHeaderKey(unsigned))
	}
	return nil
}

// notSigned returns the error for a request without a signature over a header.
func notSigned(name string) error {
	return invalid("'" + name + "' must be a 'SignedHeader' in the AWS Authorization.")
}

// covers reports whether the signature covers a header, or need not cover it.
func (s *signature) covers(name string, headers Headers) bool {
	if len(name) < len(amzPrefix) || !isLower(name[:len(amzPrefix)], amzPrefix) {
		return true
	}
	is := func(lower string) bool { return isLower(name, lower) }
	return slices.ContainsFunc(s.signedHeaders, is) || slices.ContainsFunc(unsignedAllowed, is) || s.hoisted(name, headers)
}

// hoisted reports whether the query form signs a header as a query parameter of the same name with
// the same value. The presigners of the AWS SDKs move headers there, X-Amz-Target among them.
func (s *signature) hoisted(name string, headers Headers) bool {
	if s.query == nil {
		return false
	}
	lower := strings.ToLower(name)
	var parameters []string
	for parameter, values := range s.query {
		if isLower(parameter, lower) {
			parameters = append(parameters, values...)
		}
	}
	// With several values, a header and a parameter could mean different ones.
	return len(parameters) == 1 && slices.Equal(parameters, headers.Values(name))
}

// isLower reports whether lower is name in lower-case letters. Unlike strings.EqualFold it knows
// only ASCII: canonical header names are the same bytes, not the same letters, so "ſ" is no "s".
func isLower(name, lower string) bool {
	if len(name) != len(lower) {
		return false
	}
	for i := range len(name) {
		c := name[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}
