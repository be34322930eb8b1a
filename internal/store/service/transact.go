package service

import (
	"errors"
	"slices"
	"strings"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/engine"
)

const (
	transactItemsMax = 100
	transactBytesMax = 4 * 1024 * 1024
	tokenLengthMax   = 36

	msgSameItem      = "Transaction request cannot include multiple operations on one item"
	msgTransactBytes = "Transaction size cannot exceed 4194304 bytes"
)

// The codes of cancellation reasons.
const (
	reasonNone       = "None"
	reasonCondition  = "ConditionalCheckFailed"
	reasonCollection = "ItemCollectionSizeLimitExceeded"
	reasonDuplicate  = "DuplicateItem"
	reasonValidation = "ValidationError"
	reasonThroughput = "ProvisionedThroughputExceeded"
	reasonThrottling = "ThrottlingError"
)

// cancelled returns the error of a transaction in which an action failed. errs has an entry for
// each action, nil if the action is not the cause. An error that is not a cancellation reason, such
// as a fault, is the transaction's own error.
func cancelled(errs []error) error {
	reasons := make([]dynamo.Reason, len(errs))
	for i, err := range errs {
		var api *dynamo.Error
		switch {
		case err == nil:
			reasons[i].Code = reasonNone
		case !errors.As(err, &api):
			return err
		case api.Code == dynamo.CodeConditionalCheckFailed:
			reasons[i] = dynamo.Reason{Code: reasonCondition, Message: api.Message, Item: api.Item}
		case api.Code == dynamo.CodeThroughputExceeded:
			reasons[i] = dynamo.Reason{Code: reasonThroughput, Message: api.Message}
		case api.Code == dynamo.CodeThrottling:
			reasons[i] = dynamo.Reason{Code: reasonThrottling, Message: api.Message}
		case api.Code == dynamo.CodeCollectionSize:
			reasons[i] = dynamo.Reason{Code: reasonCollection, Message: api.Message}
		case api.Code == dynamo.CodeDuplicateItem:
			reasons[i] = dynamo.Reason{Code: reasonDuplicate, Message: api.Message, Item: api.Item}
		default:
			reasons[i] = dynamo.Reason{Code: reasonValidation, Message: api.Message}
		}
	}
	return &dynamo.Error{Code: dynamo.CodeTransactionCanceled, Message: cancelMessage(reasons), Reasons: reasons}
}

func cancelMessage(reasons []dynamo.Reason) string {
	codes := make([]string, len(reasons))
	for i := range reasons {
		codes[i] = reasons[i].Code
	}
	return "Transaction cancelled, please refer cancellation reasons for specific reasons [" + strings.Join(codes, ", ") + "]"
}

// firstInvalid removes the errors after the first ValidationException: TransactWriteItems does not
// examine the actions that follow it.
func firstInvalid(errs []error) {
	if at := slices.IndexFunc(errs, func(err error) bool { return errorCode(err) == dynamo.CodeValidation }); at >= 0 {
		clear(errs[at+1:])
	}
}

// cancels reports whether an error of binding an action to its table cancels the transaction, as a
// key of a wrong type and throttling do, or refuses it outright, as a missing table and an empty key do.
func cancels(err error) bool {
	if bad, ok := errors.AsType[*engine.KeyError](err); ok {
		return bad.Problem == engine.KeyWrongType || bad.Problem == engine.KeyMissing
	}
	return errorCode(err) == dynamo.CodeValidation || isThrottled(err)
}

// bindAll binds the n actions of a transaction, and refuses two actions on one item. bind finds the
// table and key of the i-th action, and same compares two bound ones.
//
// After the first action that cannot be bound, bindAll still finds the errors that refuse the
// transaction outright. reasons selects the others that the cancellation shows.
func bindAll(n int, bind func(i int) error, same func(i, j int) bool, reasons func([]error)) error {
	errs := make([]error, n)
	failed := false
	for i := range n {
		err := bind(i)
		if err != nil && !cancels(err) {
			return apiError(err, "")
		}
		errs[i] = apiError(err, "")
		failed = failed || err != nil
	}
	if failed {
		reasons(errs)
		return cancelled(errs)
	}
	for i := range n {
		for j := range i {
			if same(i, j) {
				return invalid(msgSameItem)
			}
		}
	}
	return nil
}

// transactItems checks the number of actions.
func (s *shape) transactItems(n int, present bool) {
	if !present {
		s.Null("transactItems")
		return
	}
	s.Count("transactItems", n, 1, transactItemsMax, func() string {
		if n == 0 {
			return "[]"
		}
		return "[…]" // it is unknown how AWS prints the actions
	})
}
