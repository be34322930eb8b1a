package deliver

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/mayflydb/mayfly/internal/work/attr"
)

// Record is a stream record and its place in the consumer's window.
type Record struct {
	types.Record
	reading *reading
	place   int64
}

// Done says that the record needs nothing more: what follows from it has happened, or is durable elsewhere. It is called once, from any goroutine and in
// any order. The consumer's checkpoint passes the record when it and all before it are done.
func (r Record) Done() {
	if r.reading != nil {
		r.reading.done(r.place)
	}
}

// Sequence is the record's sequence number.
func (r Record) Sequence() string {
	if r.Dynamodb == nil {
		return ""
	}
	return aws.ToString(r.Dynamodb.SequenceNumber)
}

// The identity that DynamoDB gives to a removal by TTL.
const (
	identityService = "Service"
	identityTTL     = "dynamodb.amazonaws.com"
)

// Expired reports whether a record says that an item's deadline has removed it: a REMOVE by the TTL service, or, where markAttribute is not empty, one of an item
// whose mark was its deadline. The mark is what guard sets just before it removes an expired item of a table elsewhere; an item renewed since then has
// another deadline. A removal by anyone else is none.
func Expired(r *types.Record, ttlAttribute, markAttribute string) bool {
	if r.EventName != types.OperationTypeRemove {
		return false
	}
	if id := r.UserIdentity; id != nil && aws.ToString(id.Type) == identityService && aws.ToString(id.PrincipalId) == identityTTL {
		return true
	}
	if markAttribute == "" || r.Dynamodb == nil {
		return false
	}
	deadline, ok := attr.AsNumber(r.Dynamodb.OldImage[ttlAttribute])
	mark, marked := attr.AsNumber(r.Dynamodb.OldImage[markAttribute])
	return ok && marked && deadline == mark
}
