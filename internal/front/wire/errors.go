package wire

import (
	"cmp"
	"net/http"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// The namespaces of error names in __type.
const (
	nsService  = "com.amazon.coral.service#"
	nsValidate = "com.amazon.coral.validate#"
	nsDynamo   = "com.amazonaws.dynamodb.v20120810#"
)

// errorForm is the form of an error on the wire. The zero value is right for most modelled errors:
// DynamoDB's namespace, a member "message", status 400.
type errorForm struct {
	namespace string // empty: nsDynamo
	member    string // with the text; empty: "message"
	status    int    // 0: 400
}

var errorForms = map[dynamo.Code]errorForm{
	dynamo.CodeValidation:            {namespace: nsValidate},
	dynamo.CodeSerialization:         {namespace: nsService, member: "Message"},
	dynamo.CodeUnknownOperation:      {namespace: nsService},
	dynamo.CodeInvalidSignature:      {namespace: nsService},
	dynamo.CodeMissingAuthToken:      {namespace: nsService},
	dynamo.CodeIncompleteSignature:   {namespace: nsService},
	dynamo.CodeUnrecognizedClient:    {namespace: nsService},
	dynamo.CodeExpiredToken:          {namespace: nsService},
	dynamo.CodeAccessDenied:          {namespace: nsService, member: "Message"},
	dynamo.CodeThrottling:            {namespace: nsService},
	dynamo.CodeTransactionCanceled:   {member: "Message"},
	dynamo.CodeIdempotentMismatch:    {member: "Message"},
	dynamo.CodeTransactionInProgress: {member: "Message"},
	dynamo.CodeInternal:              {status: http.StatusInternalServerError},
	dynamo.CodeUnavailable:           {namespace: nsService, status: http.StatusServiceUnavailable},
}

// errFault is the answer for an error that the API does not define. The log has the details.
var errFault = &dynamo.Error{Code: dynamo.CodeInternal, Message: "Internal server error"}

// errSerialization answers a body that is empty or no JSON object: it has a type and no text.
var errSerialization = &dynamo.Error{Code: dynamo.CodeSerialization}

// errUnknownOperation answers a target without the name of an operation.
var errUnknownOperation = &dynamo.Error{Code: dynamo.CodeUnknownOperation}

// encodeError writes the members of an error.
func encodeError(w *writer, e *dynamo.Error) {
	form := errorForms[e.Code]
	w.name("__type").text(cmp.Or(form.namespace, nsDynamo) + string(e.Code))
	if e.Reasons != nil {
		objects(w.name("CancellationReasons"), e.Reasons, encodeReason)
	}
	w.optionalText(cmp.Or(form.member, "message"), e.Message)
	encodeThrottled(w, e)
	w.optionalItem("Item", e.Item)
}

// encodeThrottled writes the limits that a request exceeded. AWS spells the member in two ways.
func encodeThrottled(w *writer, e *dynamo.Error) {
	if e.Throttled == nil {
		return
	}
	member := "ThrottlingReasons"
	if e.Code == dynamo.CodeThrottling {
		member = "throttlingReasons"
	}
	objects(w.name(member), e.Throttled, func(w *writer, r *dynamo.ThrottlingReason) {
		w.name("reason").text(r.Reason)
		w.name("resource").text(r.Resource)
	})
}

func encodeReason(w *writer, r *dynamo.Reason) {
	w.name("Code").text(r.Code)
	w.optionalText("Message", r.Message)
	w.optionalItem("Item", r.Item)
}
