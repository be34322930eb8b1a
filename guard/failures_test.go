package guard

import (
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Only a throttled request whose reasons are all full partitions is one of a full partition.
func TestPartitionFull(t *testing.T) {
	reasons := func(all ...string) (list []types.ThrottlingReason) {
		for _, reason := range all {
			list = append(list, types.ThrottlingReason{Reason: aws.String(reason)})
		}
		return list
	}
	const partition, table = "IndexWriteKeyRangeThroughputExceeded", "TableWriteProvisionedThroughputExceeded"
	for _, c := range []struct {
		err  error
		want bool
	}{
		{&types.ProvisionedThroughputExceededException{ThrottlingReasons: reasons(partition)}, true},
		{&types.ThrottlingException{ThrottlingReasons: reasons(partition, "TableWriteKeyRangeThroughputExceeded")}, true},
		{&types.ProvisionedThroughputExceededException{ThrottlingReasons: reasons(partition, table)}, false},
		{&types.ProvisionedThroughputExceededException{ThrottlingReasons: reasons(table)}, false},
		{&types.ProvisionedThroughputExceededException{}, false},
		{&types.RequestLimitExceeded{ThrottlingReasons: reasons("TableWriteAccountLimitExceeded")}, false},
		{errors.New("no answer"), false},
	} {
		if got := partitionFull(c.err); got != c.want {
			t.Errorf("%v of a full partition: %v", c.err, got)
		}
	}
}
