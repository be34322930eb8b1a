package target

import "context"

// Invoker is a [Target] that answers. Lambda's functions do: what a trigger's function answers can name the records of its batch that failed. A target that
// implements it is asked by Invoke where the answer counts, one delivery at a time, and by Deliver elsewhere.
type Invoker interface {
	// Invoke hands over one delivery and waits for the receiver to be done with it. The answer is the receiver's own bytes, up to 6 MB, and nil where it has none.
	// An error is as one of Deliver; where the receiver ran and failed itself, it wraps a [*FunctionError].
	Invoke(ctx context.Context, d Delivery) (answer []byte, err error)
}

// FunctionError says that a delivery has reached its function, and that the function failed. It is found with errors.As in an error of a target. Without it
// the function did not run: it was throttled, or is missing, or could not be reached.
type FunctionError struct {
	Kind    string // as Lambda has it in X-Amz-Function-Error: "Unhandled" or "Handled"
	Version string // of the function that ran: "$LATEST"; may be empty
	Type    string // what it failed with: the answer's errorType; may be empty
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
