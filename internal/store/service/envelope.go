package service

import "github.com/mayflydb/mayfly/internal/store/dynamo"

// envelope begins a message of one shape error, and the messages about a malformed ARN as
// TableName. PutItem and UpdateItem also put it before some of their request checks, and Query
// before one about Select. Every other operation, and the same action in a transaction, returns the
// bare text.
const envelope = "1 validation error detected: "

// wording is the form in which an operation words its request checks.
type wording int

const (
	wordBare wording = iota
	wordEnveloped
)

// request returns an error of expressions and parameters in the operation's wording.
func (w wording) request(err error) error {
	e, ok := err.(*dynamo.Error)
	if w == wordBare || !ok || e.Code != dynamo.CodeValidation {
		return err
	}
	return invalid(envelope + e.Message)
}

// value returns an error of an attribute value in the operation's wording: with the envelope for
// sets and NULL, without it for values that are empty, have two types or are no numbers.
func (w wording) value(err error) error {
	e, ok := err.(*dynamo.Error)
	if ok && (e.Value == dynamo.FaultContent || e.Value == dynamo.FaultSet) {
		return w.request(err)
	}
	return err
}
