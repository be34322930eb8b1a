package strategy

import (
	"cmp"
	"context"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/clock"
)

// Count is the number of deadlines that a strategy has stored at the endpoint.
type Count struct {
	Due      int64
	Oldest   int64   // deadline of those, in ms; 0: there is none
	Upcoming []int64 // by minute
}

// AddDue adds due deadlines, the oldest of which is at an instant in ms.
func (c *Count) AddDue(n, oldest int64) {
	if c.Due += n; n > 0 {
		c.Oldest = min(oldest, cmp.Or(c.Oldest, clock.Never))
	}
}

// CountItems returns the number of items of a query.
func CountItems(ctx context.Context, db *dynamodb.Client, in *dynamodb.QueryInput) (n int64, err error) {
	in.Select = types.SelectCount
	for {
		out, err := db.Query(ctx, in)
		if err != nil {
			return 0, err
		}
		n += int64(out.Count)
		if in.ExclusiveStartKey = out.LastEvaluatedKey; in.ExclusiveStartKey == nil {
			return n, nil
		}
	}
}
