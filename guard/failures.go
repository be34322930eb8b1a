package guard

import (
	"errors"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/work/retry"
	"github.com/mayflydb/mayfly/target"
)

// throttling reports whether the endpoint wants to be asked less often.
func throttling(err error) bool {
	if _, ok := errors.AsType[*archiveError](err); ok {
		return false
	}
	return retry.Classify(err) == retry.Throttled
}

// partitionFull reports whether an endpoint has throttled a request only because one partition of the
// table or of an index has no units left. Amazon's reasons are, for example,
// TableWriteKeyRangeThroughputExceeded:
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_ThrottlingReason.html
func partitionFull(err error) bool {
	var reasons []types.ThrottlingReason
	if e, ok := errors.AsType[*types.ProvisionedThroughputExceededException](err); ok {
		reasons = e.ThrottlingReasons
	} else if e, ok := errors.AsType[*types.ThrottlingException](err); ok {
		reasons = e.ThrottlingReasons
	}
	for _, r := range reasons {
		if !strings.HasSuffix(aws.ToString(r.Reason), "KeyRangeThroughputExceeded") {
			return false
		}
	}
	return len(reasons) > 0
}

// conflict reports whether another writer had the item at that moment, or the archive or
// the journal refused it for now. Neither indicates load at the endpoint.
func conflict(err error) bool {
	if _, ok := errors.AsType[*archiveError](err); ok {
		return true
	}
	if _, ok := errors.AsType[*journalError](err); ok {
		return true
	}
	switch retry.Code(err) {
	case "TransactionConflictException", "ReplicatedWriteConflictException", "TransactionInProgressException":
		return true
	}
	return false
}

// permanent reports whether another attempt would fail as well, because the endpoint or the archive
// has rejected the request.
func permanent(err error) bool {
	if a, ok := errors.AsType[*archiveError](err); ok {
		return a.cause.Permanent
	}
	// without a code the answer is not the endpoint's, but for example a proxy's
	return retry.Code(err) != "" && retry.Classify(err) == retry.Permanent
}

func capacity(c *types.ConsumedCapacity) float64 {
	if c == nil {
		return 0
	}
	return aws.ToFloat64(c.CapacityUnits)
}

func allUnits(all []types.ConsumedCapacity) (sum float64) {
	for i := range all {
		sum += capacity(&all[i])
	}
	return sum
}

// archiveError is a failure of the archive, not of the endpoint.
type archiveError struct{ cause *target.Error }

func (e *archiveError) Error() string { return "archive: " + e.cause.Error() }

func (e *archiveError) Unwrap() error { return e.cause }
