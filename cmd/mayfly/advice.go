package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"

	"github.com/aws/smithy-go"

	"github.com/mayflydb/mayfly"
)

// adviseOpen adds what to do to the failures of opening a database that a user can do something about.
func adviseOpen(err error, dir string) error {
	switch {
	case errors.Is(err, mayfly.ErrLocked):
		return advise(err, "another process has %s open: stop it, or give this one its own --data", dir)
	case errors.Is(err, mayfly.ErrFormat):
		return advise(err, "a newer mayfly wrote %s: use that version, or another --data", dir)
	case errors.Is(err, mayfly.ErrClockAhead):
		return advise(err, "set the machine's clock right, or open it with --clock-control: then its clock goes on from there")
	case errors.Is(err, mayfly.ErrForeign):
		return advise(err, "give an empty or a new directory as --data")
	case errors.Is(err, mayfly.ErrNoSpace):
		return advise(err, "make room on the disk that holds %s, then start again: nothing is lost", dir)
	case errors.Is(err, mayfly.ErrDamaged):
		return advise(err, "nothing in %[1]s was changed; run `mayfly check %[1]s` for all faults, `mayfly salvage %[1]s --to NEW` to copy what can be read, or restore a copy", dir)
	case errors.Is(err, mayfly.ErrCorrupt):
		return advise(err, "run `mayfly check %[1]s` for all faults, `mayfly salvage %[1]s --to NEW` to copy what can be read, or restore a copy", dir)
	}
	return err
}

// advise says what a failed call of an endpoint means: the API's own error without the SDK's words around it, or what is wrong with the way there.
func (e *endpoint) advise(err error) error {
	var answer smithy.APIError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled):
		return errors.New("interrupted")
	case errors.Is(err, syscall.ECONNREFUSED):
		return advise(fmt.Errorf("nothing listens at %s", e.url), "start mayfly serve, or say with --endpoint or AWS_ENDPOINT_URL where the server is")
	case errors.As(err, &answer):
		return e.adviseAnswer(&refusal{answer})
	}
	return err
}

func (e *endpoint) adviseAnswer(err *refusal) error {
	switch err.ErrorCode() {
	case "UnknownOperationException":
		return advise(err, "%s does not serve this API: see --endpoint", e.name())
	case "UnrecognizedClientException", "InvalidSignatureException", "SignatureDoesNotMatch", "MissingAuthenticationTokenException", "AccessDeniedException",
		"IncompleteSignature", "ExpiredTokenException":
		return advise(err, "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (or AWS_PROFILE) to what %s knows", e.name())
	}
	return err
}

// shortly gives an API's answer, or why there was none, without the SDK's words about the request. Any other error it gives as it is.
func shortly(err error) error {
	var answer smithy.APIError
	var way *net.OpError
	switch {
	case errors.As(err, &answer):
		return &refusal{answer}
	case errors.As(err, &way):
		return way
	}
	return err
}

// refusal is an error that an API has answered, as it is shown: without the SDK's words about the request.
type refusal struct{ smithy.APIError }

func (r *refusal) Error() string { return r.ErrorCode() + ": " + r.ErrorMessage() }

func (r *refusal) Unwrap() error { return r.APIError }

// answered reports whether an error is an API's answer of this code.
func answered(err error, code string) bool {
	var answer smithy.APIError
	return errors.As(err, &answer) && answer.ErrorCode() == code
}
