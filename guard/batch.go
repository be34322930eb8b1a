package guard

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// A batch is a transaction, because BatchWriteItem, which the published sweepers use, has no
// conditions. It succeeds or fails as a whole. The next one leaves out an item that was renewed.

// removeAll removes items by transactions.
func (g *Guard) removeAll(ctx context.Context, some []removal) {
	for len(some) > 1 {
		in := &dynamodb.TransactWriteItemsInput{ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal}
		for _, f := range some {
			condition, names, values := g.condition(f.entry)
			in.TransactItems = append(in.TransactItems, types.TransactWriteItem{Delete: &types.Delete{
				TableName: &g.o.Table, Key: g.attributes(f.key), ConditionExpression: &condition, ExpressionAttributeNames: names, ExpressionAttributeValues: values,
			}})
		}
		out, err := g.once.TransactWriteItems(ctx, in)
		if err == nil {
			g.pace.consumed(len(some), allUnits(out.ConsumedCapacity))
			for _, f := range some {
				g.removed(f)
			}
			return
		}
		rest, sorted := g.sortOut(ctx, some, err)
		if !sorted {
			break
		}
		some = rest
	}
	for _, f := range some {
		g.removeOne(ctx, f)
	}
}

// sortOut ends or postpones the removals that made a transaction fail, and returns the others.
// sorted is false if the error does not name them.
func (g *Guard) sortOut(ctx context.Context, some []removal, err error) (rest []removal, sorted bool) {
	var cancelled *types.TransactionCanceledException
	if !errors.As(err, &cancelled) || len(cancelled.CancellationReasons) != len(some) {
		if throttling(err) || conflict(err) || g.problem("TransactWriteItems", err) != nil || code(err) == "" {
			for _, f := range some {
				g.failure(ctx, f, err)
			}
			return nil, true
		}
		return some, false
	}
	for i, reason := range cancelled.CancellationReasons {
		switch aws.ToString(reason.Code) {
		case "None", "":
			rest = append(rest, some[i])
		case "ConditionalCheckFailed":
			g.refused(some[i])
		case "TransactionConflict":
			g.failure(ctx, some[i], &types.TransactionConflictException{Message: reason.Message})
		case "ThrottlingError", "ProvisionedThroughputExceeded":
			g.failure(ctx, some[i], &types.ProvisionedThroughputExceededException{Message: reason.Message})
		default: // alone, it fails with its own error
			g.removeOne(ctx, some[i])
		}
	}
	return rest, len(rest) < len(some)
}
