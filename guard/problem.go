package guard

import (
	"errors"
	"fmt"
	"strings"

	"github.com/aws/smithy-go"
)

// Problem is why guarding makes no sense or no longer does, in words for whoever runs it.
type Problem struct {
	Code    Code
	Message string // what is wrong
	Next    string // what to do about it
	Err     error  // the cause; may be nil
}

// Code is the kind of a problem.
type Code string

// The kinds of problems.
const (
	NoTable       Code = "NoTable"       // there is no such table, or no longer
	NewTable      Code = "NewTable"      // the table was deleted, and made again under the same name
	NoAttribute   Code = "NoAttribute"   // no TTL attribute is given, and the table's TTL names none
	NoStream      Code = "NoStream"      // the table has no stream, or not the one that the strategy needs
	NoIndex       Code = "NoIndex"       // the table has no index that the strategy could ask
	AccessDenied  Code = "AccessDenied"  // a permission is missing
	Credentials   Code = "Credentials"   // credentials are missing, wrong or expired
	Skew          Code = "Skew"          // the local clock is further from the endpoint's than MaxSkew
	NoDate        Code = "NoDate"        // the endpoint does not tell its time
	Misconfigured Code = "Misconfigured" // something else that only whoever runs it can mend
	Unavailable   Code = "Unavailable"   // the endpoint cannot be reached, or does not work, at the beginning
)

func (p *Problem) Error() string {
	text := p.Message
	if p.Err != nil {
		text += ": " + p.Err.Error()
	}
	if p.Next != "" {
		text += "; " + p.Next
	}
	return text
}

func (p *Problem) Unwrap() error { return p.Err }

// problem gives what an endpoint's error means for good, nil for one that may pass by itself. doing says what was asked, as the API calls it: "DeleteItem".
func (g *Guard) problem(doing string, err error) *Problem {
	var already *Problem
	if errors.As(err, &already) {
		return already
	}
	if p := notAllowed(doing, g.o.Table, err); p != nil {
		return p
	}
	if code(err) == "ResourceNotFoundException" {
		what := fmt.Sprintf("table %q, or an index or stream of it,", g.o.Table)
		if strings.HasPrefix(doing, "Describe") {
			what = fmt.Sprintf("table %q", g.o.Table)
		}
		return &Problem{Code: NoTable, Message: what + " not found at the endpoint",
			Next: "check the table's name, the region and the endpoint", Err: err}
	}
	return nil
}

// notAllowed gives the problem where the endpoint does not take the credentials, or does not allow a call with them.
func notAllowed(operation, on string, err error) *Problem {
	switch code(err) {
	case "AccessDeniedException", "AccessDenied", "NotAuthorized":
		return &Problem{Code: AccessDenied, Message: fmt.Sprintf("the credentials do not allow %s on %s", operation, on),
			Next: "allow the action in the IAM policy; docs/guard.md lists what guard needs", Err: err}
	case "UnrecognizedClientException", "InvalidSignatureException", "MissingAuthenticationTokenException", "MissingAuthenticationToken",
		"InvalidClientTokenId", "SignatureDoesNotMatch", "IncompleteSignatureException", "IncompleteSignature":
		return &Problem{Code: Credentials, Message: "the endpoint does not accept the credentials", Next: "check the access key, the secret and the region", Err: err}
	}
	if hasExpired(err) {
		return &Problem{Code: Credentials, Message: "the credentials have expired", Next: "renew them, and start guard again", Err: err}
	}
	return nil
}

// hasExpired reports whether the endpoint has said that the credentials have.
func hasExpired(err error) bool {
	switch code(err) {
	case "ExpiredTokenException", "ExpiredToken", "RequestExpired":
		return true
	}
	return false
}

// fail ends Run with a problem. Only the first counts.
func (g *Guard) fail(p *Problem) {
	select {
	case g.failures <- p:
	default:
	}
}

// gone tells of a missing table that was there before.
func (g *Guard) gone(p *Problem) *Problem {
	if p.Code != NoTable {
		return p
	}
	return &Problem{Code: NoTable, Message: fmt.Sprintf("table %s was deleted while it was guarded", g.o.Table), Next: "guard another one", Err: p.Err}
}

// atStart gives a problem for whatever goes wrong before guarding has begun.
func (g *Guard) atStart(doing string, err error) error {
	if p := g.problem(doing, err); p != nil {
		return p
	}
	if e := smithy.APIError(nil); errors.As(err, &e) && (e.ErrorCode() == "ValidationException" || e.ErrorCode() == "UnknownOperationException") {
		return &Problem{Code: Misconfigured, Message: fmt.Sprintf("the endpoint refuses %s for %s", doing, g.o.Table), Next: "check the table's name, and that the endpoint serves the DynamoDB API", Err: err}
	}
	if l := (*lapse)(nil); errors.As(err, &l) {
		return &Problem{Code: Credentials, Message: "the endpoint accepts none of the credentials", Next: nextCredentials, Err: l}
	}
	return &Problem{Code: Unavailable, Message: fmt.Sprintf("the endpoint does not answer %s", doing), Next: "check that it runs, and its address", Err: err}
}

const nextCredentials = "fix the cause or set other credentials, then start guard again"
