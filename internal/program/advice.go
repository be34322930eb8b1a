package program

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"strings"
	"syscall"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/option"
)

// adviseOpen returns an error from opening a database with the next step, where there is one.
func adviseOpen(err error, dir string) error {
	switch {
	case isOption(err):
		return misusedOptions(err, optionFlag, "mayfly serve --help")
	case errors.Is(err, mayfly.ErrLocked):
		return advise(err, "stop the other process that uses %s, or choose another --data", dir)
	case errors.Is(err, mayfly.ErrFormat):
		return advise(err, "open %s with the newer mayfly that wrote it, or choose another --data", dir)
	case errors.Is(err, mayfly.ErrClockAhead):
		return advise(err, "correct the machine's clock if it is behind; if it is right and was once ahead, start again after that last time, or now with --clock-control: the database's clock then continues from there, and items expire too early by the difference")
	case errors.Is(err, mayfly.ErrForeign), errors.Is(err, syscall.ENOTDIR):
		return advise(err, "choose an empty or new directory as --data")
	case errors.Is(err, fs.ErrPermission):
		return advise(err, "choose a directory that this user may write to as --data")
	case errors.Is(err, mayfly.ErrNoSpace):
		return advise(err, "free space on the disk that holds %s, then start again: nothing is lost", dir)
	case errors.Is(err, mayfly.ErrDamaged):
		return advise(err, "nothing in %[1]s was changed; list all faults with `mayfly check %[1]s`; then restore a backup, or copy the readable part with `mayfly salvage %[1]s --to NEW`", dir)
	case errors.Is(err, mayfly.ErrCorrupt):
		return advise(err, "list all faults with `mayfly check %[1]s`; then restore a backup, or copy the readable part with `mayfly salvage %[1]s --to NEW`", dir)
	}
	return err
}

// advise returns a readable form of a failed call's error: the API's own error without the SDK's
// words, or the reason why the endpoint did not answer.
func (e *endpoint) advise(err error) error {
	var answer smithy.APIError
	var name *net.DNSError
	var undecoded *smithy.DeserializationError
	var response *smithyhttp.ResponseError
	var operation *smithy.OperationError
	var untrusted *tls.CertificateVerificationError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled):
		return errors.New("interrupted")
	case errors.Is(err, context.DeadlineExceeded):
		return advise(fmt.Errorf("%s did not answer in time", e.name()), "check that it runs and is not overloaded, then try again")
	case errors.Is(err, syscall.ECONNREFUSED):
		return advise(fmt.Errorf("nothing listens at %s", e.URL), "start one with mayfly serve, or set --endpoint or AWS_ENDPOINT_URL to the server's address")
	case errors.As(err, &name):
		return advise(fmt.Errorf("host %s not found", name.Name), "check the host in --endpoint or AWS_ENDPOINT_URL, and the network")
	case errors.As(err, &untrusted):
		return advise(fmt.Errorf("%s: %w", e.name(), untrusted), "set AWS_CA_BUNDLE to the file with the certificate of its CA")
	case errors.As(err, &answer):
		return e.adviseAnswer(&refusal{answer})
	case errors.As(err, &undecoded) && errors.As(err, &response) && errors.As(err, &operation):
		return advise(fmt.Errorf("%s does not serve the API of %s: it answered %d", e.name(), operation.ServiceID, response.HTTPStatusCode()), "%s", otherServer(operation.ServiceID))
	}
	return concise(err)
}

// otherServer returns the advice for an endpoint without the API of a service.
func otherServer(service string) string {
	next := "set --endpoint to a server that does"
	if service != dynamodb.ServiceID {
		next += "; with mayfly serve --database-only, to mayfly worker"
	}
	return next
}

func (e *endpoint) adviseAnswer(err *refusal) error {
	switch err.ErrorCode() {
	case "ValidationException", "InvalidParameterValueException":
		switch message := err.ErrorMessage(); {
		case strings.Contains(message, "at 'eventSourceArn'"):
			return misused(err, "a stream's ARN looks like arn:aws:dynamodb:us-east-1:000000000000:table/orders/stream/2030-01-01T00:00:00.000; --table finds it")
		case strings.Contains(message, "at 'name' failed"):
			return misused(err, "a name has 1 to 64 letters, digits, -, _ and dots")
		case strings.Contains(message, "Arn"):
			return misused(err, "an ARN looks like arn:aws:lambda:us-east-1:000000000000:function:tea")
		}
		return misused(err, "")
	case "UnknownOperationException":
		return advise(fmt.Errorf("%s does not serve this API: %w", e.name(), err), "%s", otherServer(""))
	case "UnrecognizedClientException", "InvalidSignatureException", "SignatureDoesNotMatch", "MissingAuthenticationTokenException", "AccessDeniedException",
		"IncompleteSignature", "ExpiredTokenException":
		return advise(err, "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (or AWS_PROFILE) to credentials that %s accepts", e.name())
	}
	return err
}

// concise returns an error whose message has the operation's name in place of the SDK's words about
// the request. Words that callers added around the SDK's error stay.
func concise(err error) error {
	var operation *smithy.OperationError
	if !errors.As(err, &operation) {
		return err
	}
	short := operation.OperationName + ": " + reasonOf(operation.Err).Error()
	return &briefError{err, strings.Replace(err.Error(), operation.Error(), short, 1)}
}

// briefError is an error with a shorter message.
type briefError struct {
	error
	message string
}

func (b *briefError) Error() string { return b.message }

func (b *briefError) Unwrap() error { return b.error }

// reasonOf returns the API's error, or the reason for a missing answer, without the SDK's words
// about the request. It returns other errors unchanged.
func reasonOf(err error) error {
	var answer smithy.APIError
	var way *net.OpError
	var request *url.Error
	var undecoded *smithy.DeserializationError
	var response *smithyhttp.ResponseError
	switch {
	case errors.As(err, &answer):
		return &refusal{answer}
	case errors.As(err, &undecoded) && errors.As(err, &response):
		return fmt.Errorf("it answered %d, and not in the form of the API", response.HTTPStatusCode())
	case errors.As(err, &way):
		return way
	case errors.As(err, &request):
		return request.Err
	}
	return err
}

// refusal is an API's error whose message leaves out the SDK's words about the request.
type refusal struct{ smithy.APIError }

func (r *refusal) Error() string { return r.ErrorCode() + ": " + r.ErrorMessage() }

func (r *refusal) Unwrap() error { return r.APIError }

// answered reports whether an error is an API's error with this code.
func answered(err error, code string) bool {
	var answer smithy.APIError
	return errors.As(err, &answer) && answer.ErrorCode() == code
}

// isOption reports whether an error is about options.
func isOption(err error) bool {
	var about *option.Error
	return errors.As(err, &about)
}

// misusedOptions returns the error for wrong options, with the names of flags in place of the
// options'.
func misusedOptions(err error, flag func(option string) string, help string) error {
	return misused(errors.New(complaints(err, flag)), "%s", help)
}

// complaints returns the errors that are joined in err, in one line. It replaces the names of
// options by flags, unless flag is nil, and leaves out a complaint about an option for which flag
// returns nothing.
func complaints(err error, flag func(option string) string) string {
	var all []string
	for _, err := range option.Split(err) {
		var about *option.Error
		if flag == nil || !errors.As(err, &about) {
			all = append(all, err.Error())
			continue
		}
		var flags []string
		for _, name := range about.Options {
			if f := flag(name); f != "" {
				flags = append(flags, f)
			}
		}
		if len(flags) > 0 {
			all = append(all, strings.Join(flags, ", ")+": "+about.Err.Error())
		}
	}
	return strings.Join(all, "; ")
}
