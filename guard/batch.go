package guard

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/guard/internal/armed"
	"github.com/mayflydb/mayfly/guard/internal/table"
	"github.com/mayflydb/mayfly/internal/work/retry"
)

// A batch is a transaction, because BatchWriteItem, which the published sweepers use, has no
// conditions. It succeeds or fails as a whole. The next one leaves out an item that was renewed.

// BatchFree is the value of Options.Batch for transactions of up to 25 items where they cost no more
// than single removals. That is so at a mayfly, which the stream strategy recognizes by its answers.
// Amazon charges twice for a delete in a transaction, so elsewhere items are removed one by one. So
// they are with Mark, Archive or Undo, which need that, and with MaxWCU or MaxRate, since a batch
// would exceed a low rate for a moment. At a mayfly, the stream strategy also writes its own rows in
// transactions, even if removals must be single.
const BatchFree = -1

// batchFree is the size of free transactions; the published sweepers use it for their batches. Larger
// ones are hardly faster: of 1,000 items of one second the half was gone after 110 ms one by one, 30
// ms in batches of 10 or 25, and 25 ms in batches of 100 (bench, two cores, November 2026).
const batchFree = 25

// transactionsFree reports whether the endpoint's transactions are free and Batch allows them.
func (g *Guard) transactionsFree() bool { return g.o.Batch == BatchFree && g.free.Load() }

// batchMax returns how many items the next removal takes at most.
func (g *Guard) batchMax() int {
	if g.o.Batch != BatchFree {
		return max(g.o.Batch, 1)
	}
	if g.transactionsFree() && g.o.Mark == "" && !g.needsImage() && g.o.MaxWCU == 0 && g.o.MaxRate == 0 {
		return batchFree
	}
	return 1
}

// removeAll removes items by transactions.
func (g *Guard) removeAll(ctx context.Context, batch []armed.Removal) {
	for len(batch) > 1 && !g.noTransactions.Load() {
		in := &dynamodb.TransactWriteItemsInput{ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal}
		for _, f := range batch {
			condition, names, values := g.table.Condition(f.Entry)
			in.TransactItems = append(in.TransactItems, types.TransactWriteItem{Delete: &types.Delete{
				TableName: &g.o.Table, Key: g.table.Attributes(f.Key), ConditionExpression: &condition, ExpressionAttributeNames: names, ExpressionAttributeValues: values,
			}})
		}
		if err := g.trusted(); err != nil {
			for _, f := range batch {
				g.failure(ctx, f, err)
			}
			return
		}
		out, err := g.once.TransactWriteItems(ctx, in)
		if err == nil {
			g.pace.Consumed(len(batch), allUnits(out.ConsumedCapacity), false)
			for _, f := range batch {
				g.removed(f)
			}
			return
		}
		if table.Unsupported(err) {
			if g.noTransactions.CompareAndSwap(false, true) {
				g.log.Warn("the endpoint has no transactions, so guard removes the items one by one", "table", g.o.Table, "error", err)
			}
			break
		}
		others, sorted := g.sortOut(ctx, batch, err)
		if !sorted {
			break
		}
		batch = others
	}
	for _, f := range batch {
		g.removeOne(ctx, f)
	}
}

// sortOut ends or postpones the removals that made a transaction fail, and returns the others, for
// the next transaction. sorted is false if the error does not show which ones failed: then the
// caller removes all one by one.
func (g *Guard) sortOut(ctx context.Context, batch []armed.Removal, err error) (others []armed.Removal, sorted bool) {
	var cancelled *types.TransactionCanceledException
	if !errors.As(err, &cancelled) || len(cancelled.CancellationReasons) != len(batch) {
		if throttling(err) || conflict(err) || g.problem("TransactWriteItems", err) != nil || retry.Code(err) == "" {
			for _, f := range batch {
				g.failure(ctx, f, err)
			}
			return nil, true
		}
		return batch, false
	}
	for i, reason := range cancelled.CancellationReasons {
		switch aws.ToString(reason.Code) {
		case "None", "":
			others = append(others, batch[i])
		case "ConditionalCheckFailed":
			g.refused(batch[i])
		case "TransactionConflict":
			g.failure(ctx, batch[i], &types.TransactionConflictException{Message: reason.Message})
		case "ThrottlingError", "ProvisionedThroughputExceeded":
			g.failure(ctx, batch[i], &types.ProvisionedThroughputExceededException{Message: reason.Message})
		default: // alone, it fails with its own error
			g.removeOne(ctx, batch[i])
		}
	}
	return others, len(others) < len(batch)
}
