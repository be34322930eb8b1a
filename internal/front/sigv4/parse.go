package sigv4

import (
	"net/url"
	"slices"
	"strings"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// signature is the parts of a request's signature, from either form. No part but the token is
// empty, and parse checks nothing else about them.
type signature struct {
	algorithm     string
	credential    string
	signedHeaders []string // ascending, none twice
	hex           string
	date          string
	token         string
	query         url.Values // of the query form; nil for the header form
}

// The query parameters of the query form.
const (
	queryAlgorithm     = "X-Amz-Algorithm"
	queryCredential    = "X-Amz-Credential"
	querySignature     = "X-Amz-Signature"
	querySignedHeaders = "X-Amz-SignedHeaders"
	queryDate          = "X-Amz-Date"
	queryToken         = "X-Amz-Security-Token"
)

// CheckForm returns nil for a request that has all parts of a signature, and a *dynamo.Error
// otherwise. It does not check that any part is right.
func CheckForm(r *Request) error {
	_, err := parse(r)
	return err
}

// parse returns the request's signature, from the form that it has. A query with X-Amz-Algorithm is
// the query form. A request with both forms is refused, and so is one with neither, or with parts
// missing.
func parse(r *Request) (*signature, error) {
	header := first(r.Headers, "Authorization")
	var query url.Values
	if strings.Contains(r.Query, queryAlgorithm) {
		// ParseQuery drops a malformed pair, which then fails as a missing parameter or a wrong
		// signature.
		query, _ = url.ParseQuery(r.Query)
	}
	inQuery := query.Has(queryAlgorithm)
	switch {
	case header != "" && inQuery:
		return nil, invalid("Found both 'X-Amz-Algorithm' as a query-string param and 'Authorization' as HTTP header.")
	case inQuery:
		return parseQuery(query)
	case strings.HasPrefix(header, "AWS4-"):
		return parseHeader(header, r.Headers)
	default:
		return nil, &dynamo.Error{Code: dynamo.CodeMissingAuthToken, Message: "Request is missing Authentication Token"}
	}
}

// parseHeader reads "AWS4-HMAC-SHA256 Credential=…, SignedHeaders=…, Signature=…". The parts may
// come in any order, separated by commas, blanks or both.
func parseHeader(header string, headers Headers) (*signature, error) {
	s := new(signature)
	s.algorithm, _, _ = strings.Cut(header, " ")
	malformed := ""
	for list := range strings.SplitSeq(header[len(s.algorithm):], ",") { // faster than one split by both
		for part := range strings.SplitSeq(list, " ") {
			name, value, found := strings.Cut(part, "=")
			if !found && malformed == "" {
				malformed = part
			}
			switch name {
			case "Credential":
				s.credential = value
			case "SignedHeaders":
				s.signedHeaders = splitNames(value)
			case "Signature":
				s.hex = value
			}
		}
	}
	s.date = first(headers, "X-Amz-Date")
	if s.date == "" {
		s.date = first(headers, "Date")
	}
	s.token = first(headers, "X-Amz-Security-Token")
	if missing := s.missingFromHeader(); missing != "" {
		return nil, incomplete(missing + "Authorization=" + header)
	}
	if malformed != "" {
		return nil, incomplete("'" + malformed + "' not a valid key=value pair (missing equal-sign) in Authorization header: '" + header + "'.")
	}
	return s, nil
}

// missingFromHeader returns a sentence for each missing part, or "".
func (s *signature) missingFromHeader() string {
	missing := ""
	require := func(present bool, what string) {
		if !present {
			missing += "Authorization header requires " + what + ". "
		}
	}
	require(s.credential != "", "'Credential' parameter")
	require(s.hex != "", "'Signature' parameter")
	require(len(s.signedHeaders) > 0, "'SignedHeaders' parameter")
	require(s.date != "", "existence of either a 'X-Amz-Date' or a 'Date' header")
	return missing
}

func parseQuery(query url.Values) (*signature, error) {
	missing := ""
	for _, name := range []string{queryAlgorithm, queryCredential, querySignature, querySignedHeaders, queryDate} {
		if query.Get(name) == "" {
			missing += "AWS query-string parameters must include '" + name + "'. "
		}
	}
	if missing != "" {
		return nil, incomplete(missing + "Re-examine the query-string parameters.")
	}
	return &signature{
		algorithm:     query.Get(queryAlgorithm),
		credential:    query.Get(queryCredential),
		signedHeaders: splitNames(query.Get(querySignedHeaders)),
		hex:           query.Get(querySignature),
		date:          query.Get(queryDate),
		token:         query.Get(queryToken),
		query:         query,
	}, nil
}

// splitNames returns the names of the signed headers in ascending order, each once. The order is
// required, but an unordered list is accepted; without repetitions, the canonical request cannot
// become longer than the headers.
func splitNames(list string) []string {
	if list == "" {
		return nil
	}
	names := strings.Split(list, ";")
	slices.Sort(names)
	return slices.Compact(names)
}

// first returns the first value of a header, or "".
func first(headers Headers, name string) string {
	if values := headers.Values(name); len(values) > 0 {
		return values[0]
	}
	return ""
}

// Region returns the region in the scope of an Authorization header. It does not check the
// signature. It returns "" if the header has no scope, or a region with characters other than
// lower-case letters, digits and hyphens or longer than regionMax.
func Region(authorization string) string {
	_, credential, _ := strings.Cut(authorization, "Credential=")
	scope := strings.SplitN(credential, "/", 4)
	if len(scope) < 4 || !IsRegion(scope[2]) {
		return ""
	}
	return scope[2]
}

// IsRegion reports whether Region returns such a name.
func IsRegion(name string) bool {
	return name != "" && len(name) <= regionMax && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// AccessKey returns the access key in the scope of an Authorization header. It does not check the
// signature. It returns "" if the header has no scope.
func AccessKey(authorization string) string {
	_, credential, _ := strings.Cut(authorization, "Credential=")
	key, _, found := strings.Cut(credential, "/")
	if !found {
		return ""
	}
	return key
}

// Service returns the service in the scope of an Authorization header's signature, or "" if there is
// none. The signature is not checked.
func Service(authorization string) string {
	_, credential, _ := strings.Cut(authorization, "Credential=")
	scope := strings.SplitN(credential, "/", 5)
	if len(scope) < 5 || len(scope[3]) > regionMax || strings.Trim(scope[3], "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		return ""
	}
	return scope[3]
}

// regionMax is the length of the longest name that Region and Service return. Verify accepts longer ones.
const regionMax = 32
