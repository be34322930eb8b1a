package service

import (
	"errors"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/engine"
)

// invalidValues begins many of the API's messages.
const invalidValues = "One or more parameter values were invalid: "

// The messages that several operations share.
const (
	msgConditionFailed = "The conditional request failed"
	msgNotFound        = "Requested resource not found"
	msgKeyMismatch     = "The provided key element does not match the schema"
	msgItemTooLarge    = "Item size has exceeded the maximum allowed size"
	msgUpdateTooLarge  = "Item size to update has exceeded the maximum allowed size"
	msgNestedTooDeep   = "Nesting Levels have exceeded supported limits: Attributes in the item have nested levels beyond supported limit"
)

func invalid(message string) error { return dynamo.Invalid(message) }

func notFound(detail string) error {
	return &dynamo.Error{Code: dynamo.CodeResourceNotFound, Message: msgNotFound + detail}
}

func tableNotFound(name string) error { return notFound(": Table: " + name + " not found") }

// apiError returns the API's error for an error of the engine. It is the only place that knows both
// vocabularies. controlPlane is the name in the request of a control plane operation, which the
// message repeats: the table, or the ARN of the stream or resource. It is empty for the data plane.
// Faults and the API's own errors pass through unchanged.
func apiError(err error, controlPlane string) error {
	var key *engine.KeyError
	var index *engine.IndexError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &index):
		return indexError(index)
	case errors.As(err, &key):
		return keyError(key)
	case errors.Is(err, engine.ErrTableCreating) && controlPlane != "":
		return &dynamo.Error{Code: dynamo.CodeResourceInUse, Message: "Attempt to change a resource which is still in use: Table is being created: " + controlPlane}
	case errors.Is(err, engine.ErrTableNotFound) && controlPlane != "":
		return tableNotFound(controlPlane)
	case errors.Is(err, engine.ErrTableNotFound):
		return notFound("")
	case errors.Is(err, engine.ErrTableExists):
		return &dynamo.Error{Code: dynamo.CodeResourceInUse, Message: "Table already exists: " + controlPlane}
	case errors.Is(err, engine.ErrStreamNotFound):
		return notFound(": Stream: " + controlPlane + " not found")
	case errors.Is(err, engine.ErrShardNotFound):
		return notFound(": Shard does not exist")
	case errors.Is(err, engine.ErrTrimmed):
		return &dynamo.Error{Code: dynamo.CodeTrimmedDataAccess, Message: "The operation attempted to read past the oldest stream record in a shard"}
	case errors.Is(err, engine.ErrIndexesUsedUp):
		return &dynamo.Error{Code: dynamo.CodeLimitExceeded, Message: "The table has had 65,535 indexes, the most that one can have in its life: copy it to a new one"}
	case errors.Is(err, engine.ErrCollectionFull):
		return &dynamo.Error{Code: dynamo.CodeCollectionSize, Message: "Collection size exceeded."}
	case errors.Is(err, engine.ErrDiskFull):
		return &dynamo.Error{Code: dynamo.CodeLimitExceeded, Message: "The disk is full: writes that grow the data are refused until space is freed"}
	default:
		return err
	}
}

// indexError returns the API's error for a read of an index that is not readable.
func indexError(e *engine.IndexError) error {
	if e.Building {
		return invalid("Cannot read from backfilling global secondary index: " + e.Index)
	}
	return invalid("The table does not have the specified index: " + e.Index)
}

// keyError returns the API's error for a key that does not fit the table or an index, with the text
// of the operations that write items.
func keyError(e *engine.KeyError) error {
	switch e.Problem {
	case engine.KeyMissing:
		return invalid(invalidValues + "Missing the key " + e.Attribute + " in the item")
	case engine.KeyWrongType:
		if e.Index != "" {
			return invalid(invalidValues + "Type mismatch for Index Key " + e.Attribute + " Expected: " + e.Want.String() +
				" Actual: " + e.Got.String() + " IndexName: " + e.Index)
		}
		return invalid(invalidValues + "Type mismatch for key " + e.Attribute + " expected: " + e.Want.String() +
			" actual: " + e.Got.String())
	case engine.KeyEmpty:
		return emptyKeyError(e)
	case engine.KeyPartitionTooLong:
		return invalid(invalidValues + "Size of hashkey has exceeded the maximum size limit of2048 bytes")
	default:
		return invalid(invalidValues + "Aggregated size of all range keys has exceeded the size limit of 1024 bytes")
	}
}

func emptyKeyError(e *engine.KeyError) error {
	if e.Index != "" {
		return invalid(msgNotValid + "A value specified for a secondary index key is not supported. " + msgEmptyKey(e.Want) +
			" IndexName: " + e.Index + ", IndexKey: " + e.Attribute)
	}
	return invalid(msgNotValid + msgEmptyKey(e.Want) + " Key: " + e.Attribute)
}

// msgNotValid begins the messages about empty keys.
const msgNotValid = "One or more parameter values are not valid. "

func msgEmptyKey(k dynamo.Kind) string {
	noun := "string"
	if k == dynamo.KindBinary {
		noun = "binary"
	}
	return "The AttributeValue for a key attribute cannot contain an empty " + noun + " value."
}

// errorCode returns the code of an API error, or "" for other errors.
func errorCode(err error) dynamo.Code {
	if e, ok := errors.AsType[*dynamo.Error](err); ok {
		return e.Code
	}
	return ""
}
