package service

import "github.com/mayflydb/mayfly/internal/store/dynamo"

// envelope begins a message of one shape error. PutItem and UpdateItem also put it before some of their request checks,
// where every other operation, and the same action in a transaction, gives the bare text.
const envelope = "1 validation error detected: "

// wording is how an operation words its request checks.
type wording int

const (
	wordBare wording = iota
	wordEnveloped
)

// request words a fault of expressions and parameters.
func (w wording) request(err error) error {
	e, ok := err.(*dynamo.Error)
	if w == wordBare || !ok || e.Code != dynamo.CodeValidation {
		return err
	}
	return invalid(envelope + e.Message)
}

// value words a fault of an attribute value: with the envelope for sets and NULL, without it for values that are empty, have two
// types or are no numbers.
func (w wording) value(err error) error {
	e, ok := err.(*dynamo.Error)
	if ok && (e.Value == dynamo.FaultContent || e.Value == dynamo.FaultSet) {
		return w.request(err)
	}
	return err
}
