package guard

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/middleware"

	"github.com/mayflydb/mayfly/guard/internal/table"
)

// An endpoint may refuse consistent reads. Then guard reads the leases without. A lease is written
// only if it is unchanged since it was read, so an outdated row delays a worker and does no harm. A
// deadline that an outdated read misses would be forgotten, so elsewhere the refusal ends guard.

// readWeakly makes a call. If it reads leases with ConsistentRead and the endpoint refuses that, it
// makes the call again without.
func (g *Guard) readWeakly(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
	weak := weaken(in.Parameters, g.o.Tables.Leases)
	if weak == nil {
		return next.HandleInitialize(ctx, in)
	}
	if !g.noConsistentReads.Load() {
		out, meta, err := next.HandleInitialize(ctx, in)
		if !table.Invalid(err) {
			return out, meta, err
		}
	}
	in.Parameters = weak
	out, meta, err := next.HandleInitialize(ctx, in)
	if err == nil && g.noConsistentReads.CompareAndSwap(false, true) {
		g.log.Warn("the endpoint refuses consistent reads, so guard reads the leases without: workers may need longer to take over", "table", g.o.Table)
	}
	return out, meta, err
}

// weaken returns a consistent read of the table of leases without ConsistentRead; nil for another
// call.
func weaken(in any, leases string) any {
	switch in := in.(type) {
	case *dynamodb.QueryInput:
		if aws.ToString(in.TableName) == leases && aws.ToBool(in.ConsistentRead) {
			weak := *in
			weak.ConsistentRead = nil
			return &weak
		}
	case *dynamodb.GetItemInput:
		if aws.ToString(in.TableName) == leases && aws.ToBool(in.ConsistentRead) {
			weak := *in
			weak.ConsistentRead = nil
			return &weak
		}
	}
	return nil
}
