package deliver

import (
	"errors"
	"time"

	dynamodbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/mayflydb/mayfly/internal/work/retry"
)

// afterFailure is the policy of calls to an endpoint that fails.
var afterFailure = retry.Policy{First: 50 * time.Millisecond, Most: 10 * time.Second}

// gone reports whether an error says that a table, a stream or a shard does not exist.
func gone(err error) bool {
	var noTable *dynamodbtypes.ResourceNotFoundException
	var noStream *types.ResourceNotFoundException
	return errors.As(err, &noTable) || errors.As(err, &noStream)
}

// stopped reports whether a channel is closed; a nil channel is not.
func stopped(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
