package guard

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/mayflydb/mayfly/guard/internal/pace"
	"github.com/mayflydb/mayfly/internal/work/retry"
)

const (
	// before a page is asked for again; then twice as long each time
	askFirst = 50 * time.Millisecond
	askMost  = 10 * time.Second
)

// asker reads pages within a budget. It retries transient errors with growing pauses; a permanent
// error is a *Problem.
type asker struct {
	g      *Guard
	budget *pace.Budget
}

// query reads a page of a query.
func (a *asker) query(ctx context.Context, in *dynamodb.QueryInput) (items []map[string]types.AttributeValue, err error) {
	in.ReturnConsumedCapacity = types.ReturnConsumedCapacityTotal
	in.Limit = a.budget.Limit()
	var out *dynamodb.QueryOutput
	err = a.again(ctx, "Query", func() (int, *types.ConsumedCapacity, error) {
		if out, err = a.g.db.Query(ctx, in); err != nil {
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

// scan reads a page of a scan. It returns the items and the number of items read, which is larger
// if a filter excludes some.
func (a *asker) scan(ctx context.Context, in *dynamodb.ScanInput) (items []map[string]types.AttributeValue, read int, err error) {
	in.ReturnConsumedCapacity = types.ReturnConsumedCapacityTotal
	in.Limit = a.budget.Limit()
	var out *dynamodb.ScanOutput
	err = a.again(ctx, "Scan", func() (int, *types.ConsumedCapacity, error) {
		if out, err = a.g.db.Scan(ctx, in); err != nil {
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

// again asks until there is an answer.
func (a *asker) again(ctx context.Context, doing string, ask func() (read int, consumed *types.ConsumedCapacity, err error)) error {
	for pauses := (retry.Policy{First: askFirst, Most: askMost, Jitter: true}).Start(); ; pauses.Wait(ctx) {
		if err := a.budget.Wait(ctx); err != nil {
			return err
		}
		read, consumed, err := ask()
		if err == nil {
			a.budget.Spend(read, consumed)
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if p := a.refused(doing, err); p != nil {
			return p
		}
		a.budget.Cut()
		a.g.observe(Event{What: Throttled, Err: err})
		a.g.log.Warn("the endpoint does not answer; trying again", "table", a.g.o.Table, "operation", doing, "error", err, "after", pauses.Next())
	}
}

// refused returns the problem if another attempt would fail in the same way, else nil.
func (a *asker) refused(doing string, err error) *Problem {
	if p := a.g.problem(doing, err); p != nil {
		return p
	}
	var e smithy.APIError
	if errors.As(err, &e) && e.ErrorCode() == "ValidationException" {
		return &Problem{Code: Misconfigured, Message: fmt.Sprintf("the endpoint refuses the %s of %s", doing, a.g.o.Table),
			Next: "check the attribute and the index with `mayfly guard init`", Err: err}
	}
	return nil
}
