package target

import "context"

// Invoker is a [Target] that returns the receiver's answer, as Lambda functions do: the answer of a
// trigger's function can name the failed records of its batch. The caller uses Invoke if it needs
// the answer, and otherwise Deliver.
type Invoker interface {
	// Invoke hands over one delivery and waits until the receiver has processed it. The answer is
	// the receiver's own bytes, up to 6 MB, or nil. Errors are as for Deliver; if the receiver
	// itself failed, the error wraps a [*FunctionError].
	Invoke(ctx context.Context, d Delivery) (answer []byte, err error)
}

// FunctionError is the error of a function that received its delivery and failed. Find it with
// errors.As in an error of a target. Without it the function has reported no failure: it was
// throttled, missing or out of reach, or did not answer in time and may have run.
type FunctionError struct {
	Kind    string // "Unhandled" or "Handled", as in Lambda's X-Amz-Function-Error
	Version string // of the function that ran: "$LATEST"; may be empty
	Type    string // the answer's errorType; may be empty
	Message string // the answer's errorMessage
	Answer  []byte // the whole answer
}

func (e *FunctionError) Error() string {
	switch {
	case e.Type == "":
		return e.Message
	case e.Message == "":
		return e.Type
	}
	return e.Type + ": " + e.Message
}
