package strategy

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/guard/internal/pace"
	"github.com/mayflydb/mayfly/guard/internal/table"
	"github.com/mayflydb/mayfly/internal/work/lease"
	"github.com/mayflydb/mayfly/internal/work/retry"
)

// pageAgain are the pauses before a call is repeated.
var pageAgain = retry.Policy{First: 50 * time.Millisecond, Most: 10 * time.Second, Jitter: true}

// Reader reads pages within a budget. It retries transient errors with growing pauses; a permanent
// error is a *table.Problem.
type Reader struct {
	*Env
	budget *pace.Budget
}

// NewReader returns a reader that consumes at most so many read units a second; 0: no limit.
func (e *Env) NewReader(most float64) *Reader { return &Reader{e, pace.NewBudget(most)} }

// NewSlowReader returns a reader that consumes at most so many read units a second, above 0, by few
// large pages.
func (e *Env) NewSlowReader(most float64) *Reader { return &Reader{e, pace.NewSlowBudget(most)} }

// Share limits the reader to the part of MaxRCU for the leases that this worker holds. Without any,
// it has half of one lease's part.
func (r *Reader) Share(held int64, leases int) {
	if r.MaxRCU > 0 {
		r.budget.Share(r.MaxRCU * max(float64(held), 0.5) / float64(leases))
	}
}

// Pace returns how many items a second the budget allows at present; +Inf without a limit.
func (r *Reader) Pace() float64 { return r.budget.Items() }

// Query reads a page of a query, and moves its start key on.
func (r *Reader) Query(ctx context.Context, in *dynamodb.QueryInput) (items []map[string]types.AttributeValue, err error) {
	in.ReturnConsumedCapacity = types.ReturnConsumedCapacityTotal
	in.Limit = r.budget.Limit()
	var out *dynamodb.QueryOutput
	err = r.Ask(ctx, "Query", func() (int, *types.ConsumedCapacity, error) {
		if out, err = r.DB.Query(ctx, in); err != nil {
			return 0, nil, err
		}
		return int(out.ScannedCount), out.ConsumedCapacity, nil
	})
	if err != nil {
		return nil, err
	}
	in.ExclusiveStartKey = out.LastEvaluatedKey
	return out.Items, nil
}

// Scan reads a page of a scan, and moves its start key on. It returns the items and the number of
// items read, which is larger if a filter excludes some.
func (r *Reader) Scan(ctx context.Context, in *dynamodb.ScanInput) (items []map[string]types.AttributeValue, read int, err error) {
	in.ReturnConsumedCapacity = types.ReturnConsumedCapacityTotal
	in.Limit = r.budget.Limit()
	var out *dynamodb.ScanOutput
	err = r.Ask(ctx, "Scan", func() (int, *types.ConsumedCapacity, error) {
		if out, err = r.DB.Scan(ctx, in); err != nil {
			return 0, nil, err
		}
		return int(out.ScannedCount), out.ConsumedCapacity, nil
	})
	if err != nil {
		return nil, 0, err
	}
	in.ExclusiveStartKey = out.LastEvaluatedKey
	return out.Items, int(out.ScannedCount), nil
}

// Segment reads a segment of the table once, from a key on. It finds all items with the TTL
// attribute that were written before. page gets the items of a page, the number of items read for
// it, and the key where the next one begins; nil after the last.
func (r *Reader) Segment(ctx context.Context, number, total int, start map[string]types.AttributeValue,
	page func(items []map[string]types.AttributeValue, read int, next map[string]types.AttributeValue) error,
) error {
	in := &dynamodb.ScanInput{
		TableName: &r.Table.Name, Segment: aws.Int32(int32(number)), TotalSegments: aws.Int32(int32(total)), ConsistentRead: aws.Bool(true),
		FilterExpression: aws.String("attribute_exists(#ttl)"), ExpressionAttributeNames: map[string]string{"#ttl": r.Table.Attribute}, ExclusiveStartKey: start,
	}
	r.Table.Project(&in.ProjectionExpression, in.ExpressionAttributeNames)
	for {
		items, read, err := r.Scan(ctx, in)
		if err == nil {
			err = page(items, read, in.ExclusiveStartKey)
		}
		if err != nil || in.ExclusiveStartKey == nil {
			return err
		}
	}
}

// Rows reads the rows of leases.
func (r *Reader) Rows(ctx context.Context, leases *lease.Leases) (rows map[string]lease.Row, err error) {
	err = r.AskOther(ctx, "Query on "+r.Leases.TableName(), func() error {
		rows, err = leases.Rows(ctx)
		return err
	})
	return rows, err
}

// AskOther is Ask for a call that reads no items of the table. It costs the budget as much as one
// item.
func (r *Reader) AskOther(ctx context.Context, doing string, call func() error) error {
	return r.Ask(ctx, doing, func() (int, *types.ConsumedCapacity, error) { return 0, nil, call() })
}

// Ask makes a call within the budget until there is an answer. call returns the number of items
// read, and the consumed units if it knows them.
func (r *Reader) Ask(ctx context.Context, doing string, call func() (read int, consumed *types.ConsumedCapacity, err error)) error {
	return Retry(ctx, pageAgain, func() error {
		if err := r.budget.Wait(ctx); err != nil {
			return err
		}
		read, consumed, err := call()
		if err == nil {
			r.budget.Spend(read, consumed)
		}
		return err
	}, func(err error) error {
		if p := r.Problem(doing, err); p != nil {
			return p
		}
		if table.Invalid(err) {
			return &table.Problem{Code: table.Misconfigured, Message: fmt.Sprintf("the endpoint refuses the %s of %s", doing, r.Table.Name),
				Next: "check the attribute and the index with `mayfly guard init`", Err: err}
		}
		return nil
	}, func(err error, after time.Duration) {
		r.budget.Cut()
		r.Report(Throttled, err)
		r.Log.Warn("the endpoint does not answer; trying again", "table", r.Table.Name, "operation", doing, "error", err, "after", after)
	})
}
