package consume

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

// Done reports that the record is finished: its consequences have happened or are durable
// elsewhere. Call it once, from any goroutine, in any order. The consumer's checkpoint passes the
// record when it and all before it are done.
func (r Record) Done() {
	if r.reading != nil {
		r.reading.done(r.place)
	}
}

// Held reports whether this worker surely has the lease of the record's shard. While it has, no
// other worker has read this record or a later one.
func (r Record) Held() bool { return r.reading == nil || r.reading.lease.Held() }

// Sequence returns the record's sequence number.
func (r Record) Sequence() string {
	if r.Dynamodb == nil {
		return ""
	}
	return aws.ToString(r.Dynamodb.SequenceNumber)
}

// Identity of removals by TTL in DynamoDB's records.
const (
	identityService = "Service"
	identityTTL     = "dynamodb.amazonaws.com"
)

// Expired reports whether a record is the removal of an item at its deadline. That is a REMOVE by
// the TTL service, or, if markAttribute is not empty, a REMOVE of an item whose mark equals its
// deadline. Guard sets the mark just before it removes an expired item elsewhere; a renewed item
// has a later deadline. Removals by others do not count.
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
