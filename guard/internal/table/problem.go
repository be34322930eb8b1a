package table

import (
	"errors"
	"fmt"
	"strings"

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
	// the table has no stream, not the kind that the strategy needs, or one that cannot be followed
	NoStream     Code = "NoStream"
	NoIndex      Code = "NoIndex"      // the table has no index that the strategy could ask
	AccessDenied Code = "AccessDenied" // a permission is missing
	Credentials  Code = "Credentials"  // credentials are missing, wrong or expired
	// the local clock is further from the endpoint's than MaxSkew
	Skew          Code = "Skew"
	NoDate        Code = "NoDate"        // the endpoint does not send its time
	Misconfigured Code = "Misconfigured" // another fault that the operator has to fix
	ManyOverdue   Code = "ManyOverdue"   // so many items are overdue that somebody has to accept it
	Limit         Code = "Limit"         // as many items were removed as allowed
	// the endpoint cannot be reached, or does not work, at the beginning
	Unavailable Code = "Unavailable"
	// the journal of removed items cannot be written
	NoJournal Code = "NoJournal"
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

// ProblemOf returns the problem behind an endpoint's error in guarding a table; nil for a transient
// one. doing is the operation's name in the API, for example "DeleteItem".
func ProblemOf(doing, table string, err error) *Problem {
	if already, ok := errors.AsType[*Problem](err); ok {
		return already
	}
	if p := NotAllowed(doing, table, err); p != nil {
		return p
	}
	if retry.Code(err) == "ResourceNotFoundException" {
		what := fmt.Sprintf("table %q, or an index or stream of it,", table)
		if strings.HasPrefix(doing, "Describe") {
			what = fmt.Sprintf("table %q", table)
		}
		return &Problem{Code: NoTable, Message: what + " not found at the endpoint",
			Next: "check the table's name, the region and the endpoint", Err: err}
	}
	return nil
}

// NotAllowed returns the problem if the endpoint rejects the credentials, or forbids a call with
// them; else nil.
func NotAllowed(operation, on string, err error) *Problem {
	switch retry.Code(err) {
	case "AccessDeniedException", "AccessDenied", "NotAuthorized":
		return &Problem{Code: AccessDenied, Message: fmt.Sprintf("the credentials do not allow %s on %s", operation, on),
			Next: "allow the action in the IAM policy; docs/guard.md lists what guard needs", Err: err}
	case "UnrecognizedClientException", "InvalidSignatureException", "MissingAuthenticationTokenException", "MissingAuthenticationToken",
		"InvalidClientTokenId", "SignatureDoesNotMatch", "IncompleteSignatureException", "IncompleteSignature":
		return &Problem{Code: Credentials, Message: "the endpoint does not accept the credentials", Next: "check the access key, the secret and the region", Err: err}
	}
	if HasExpired(err) {
		return &Problem{Code: Credentials, Message: "the credentials have expired", Next: "renew them, and start guard again", Err: err}
	}
	return nil
}

// Refused returns the problem if the endpoint does not accept a call on one of guard's own tables,
// which no other attempt mends; else nil. doing names the operation and the table.
func Refused(doing string, err error) *Problem {
	if !Invalid(err) {
		return nil
	}
	return &Problem{Code: Misconfigured, Message: "the endpoint refuses " + doing + ", a table of guard's own",
		Next: "compare the table with docs/guard.md: delete it if something else has made it; otherwise the endpoint does not support the call, so use another strategy, or --deadlines DIR", Err: err}
}

// Invalid reports whether the endpoint does not accept a call, or does not support it: another
// attempt would fail as well.
func Invalid(err error) bool {
	switch retry.Code(err) {
	case "ValidationException", "SerializationException":
		return true
	}
	return Unsupported(err)
}

// Unsupported reports whether the endpoint does not support an operation.
func Unsupported(err error) bool {
	switch retry.Code(err) {
	case "UnknownOperationException", "NotImplementedException", "UnsupportedOperationException":
		return true
	}
	return false
}

// HasExpired reports whether the endpoint has rejected the credentials as expired.
func HasExpired(err error) bool {
	switch retry.Code(err) {
	case "ExpiredTokenException", "ExpiredToken", "RequestExpired":
		return true
	}
	return false
}

// Gone returns the problem of a table that is missing although it existed at the start; other
// problems as they are.
func Gone(p *Problem, table string) *Problem {
	if p.Code != NoTable {
		return p
	}
	return &Problem{Code: NoTable, Message: fmt.Sprintf("table %s was deleted while it was guarded", table), Next: "guard another one", Err: p.Err}
}

// AtStart returns the problem behind any error before guarding has begun.
func AtStart(doing, table string, err error) error {
	if p := ProblemOf(doing, table, err); p != nil {
		return p
	}
	if Invalid(err) {
		return &Problem{Code: Misconfigured, Message: fmt.Sprintf("the endpoint refuses %s for %s", doing, table), Next: "check the table's name, and that the endpoint serves the DynamoDB API", Err: err}
	}
	if l := (*Lapse)(nil); errors.As(err, &l) {
		return &Problem{Code: Credentials, Message: "the endpoint accepts none of the credentials", Next: NextCredentials, Err: l}
	}
	return &Problem{Code: Unavailable, Message: fmt.Sprintf("the endpoint does not answer %s", doing), Next: "check that it runs, and its address", Err: err}
}

// NextCredentials is the Next of problems with credentials that were valid at the start.
const NextCredentials = "fix the cause or set other credentials, then start guard again"

// Lapse is the error of a call without valid credentials, which may become valid soon. It does not
// unwrap, so that nothing takes the cause for the endpoint's answer to the call.
type Lapse struct{ Cause error }

func (e *Lapse) Error() string { return e.Cause.Error() }
