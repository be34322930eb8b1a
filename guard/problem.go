package guard

import (
	"errors"
	"fmt"
	"strings"

	"github.com/aws/smithy-go"

	"github.com/mayflydb/mayfly/internal/work/retry"
)

// Problem is the reason why guarding is impossible or no longer possible, in words for the
// operator.
type Problem struct {
	Code    Code
	Message string // the fault
	Next    string // the next step for the operator
	Err     error  // the cause; may be nil
}

// Code is the kind of a problem.
type Code string

// The kinds of problems.
const (
	NoTable     Code = "NoTable"     // the table does not exist, or no longer exists
	NewTable    Code = "NewTable"    // the table was deleted, and made again under the same name
	NoAttribute Code = "NoAttribute" // Options has no TTL attribute, and the table's TTL is off
	// the table has no stream, or not the kind that the strategy needs
	NoStream     Code = "NoStream"
	NoIndex      Code = "NoIndex"      // the table has no index that the strategy could ask
	AccessDenied Code = "AccessDenied" // a permission is missing
	Credentials  Code = "Credentials"  // credentials are missing, wrong or expired
	// the local clock is further from the endpoint's than MaxSkew
	Skew          Code = "Skew"
	NoDate        Code = "NoDate"        // the endpoint does not send its time
	Misconfigured Code = "Misconfigured" // another fault that the operator has to fix
	// the endpoint cannot be reached, or does not work, at the beginning
	Unavailable Code = "Unavailable"
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

// problem returns the problem behind an endpoint's error; nil for a transient one. doing is the
// operation's name in the API, for example "DeleteItem".
func (g *Guard) problem(doing string, err error) *Problem {
	var already *Problem
	if errors.As(err, &already) {
		return already
	}
	if p := notAllowed(doing, g.o.Table, err); p != nil {
		return p
	}
	if retry.Code(err) == "ResourceNotFoundException" {
		what := fmt.Sprintf("table %q, or an index or stream of it,", g.o.Table)
		if strings.HasPrefix(doing, "Describe") {
			what = fmt.Sprintf("table %q", g.o.Table)
		}
		return &Problem{Code: NoTable, Message: what + " not found at the endpoint",
			Next: "check the table's name, the region and the endpoint", Err: err}
	}
	return nil
}

// notAllowed returns the problem if the endpoint rejects the credentials, or forbids a call with
// them; else nil.
func notAllowed(operation, on string, err error) *Problem {
	switch retry.Code(err) {
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

// hasExpired reports whether the endpoint has rejected the credentials as expired.
func hasExpired(err error) bool {
	switch retry.Code(err) {
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

// gone returns the problem of a table that is missing although it existed at the start.
func (g *Guard) gone(p *Problem) *Problem {
	if p.Code != NoTable {
		return p
	}
	return &Problem{Code: NoTable, Message: fmt.Sprintf("table %s was deleted while it was guarded", g.o.Table), Next: "guard another one", Err: p.Err}
}

// atStart returns the problem for any error before guarding has begun.
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
