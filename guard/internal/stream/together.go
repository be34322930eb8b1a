package stream

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/guard/internal/armed"
	"github.com/mayflydb/mayfly/guard/internal/strategy"
	"github.com/mayflydb/mayfly/guard/internal/table"
	"github.com/mayflydb/mayfly/internal/work/retry"
)

// In a fleet, each write at the deadline table has a condition, so it is a request of its own, and
// requests take most of a worker's CPU time. A transaction has conditions too, but Amazon charges
// twice for it. So the rows of records are written and deleted together only where transactions are
// free.

// togetherMost is the number of rows in such a transaction: a failure of one row delays the others,
// and more save little.
const togetherMost = 25

// eachTogether calls do with parts of the rows: with up to togetherMost if these are written
// together, and else with one.
func (s *Strategy) eachTogether(ctx context.Context, puts, drops []*row, do func(ctx context.Context, puts, drops []*row) error) error {
	most, n := 1, len(puts)+len(drops)
	scanned := len(puts) > 0 && puts[0].by == "" // insert has transactions of its own
	if s.TransactionsFree != nil && s.TransactionsFree() && !s.local && !s.singly.Load() && !scanned {
		most = togetherMost
	}
	return strategy.Parallel(ctx, (n+most-1)/most, parallel, func(ctx context.Context, i int) error {
		from, to := i*most, min((i+1)*most, n)
		return do(ctx, puts[min(from, len(puts)):min(to, len(puts))], drops[max(from-len(puts), 0):max(to-len(puts), 0)])
	})
}

// changeTogether writes and deletes rows in transactions, and returns the rows that have to be
// written and deleted one by one.
func (s *Strategy) changeTogether(ctx context.Context, puts, drops []*row) (putsLeft, dropsLeft []*row, err error) {
	err = s.persist(ctx, "TransactWriteItems", func() (err error) {
		puts, drops, err = s.store.changeTogether(ctx, puts, drops)
		if err == nil || retry.Classify(err) != retry.Permanent || s.Problem("TransactWriteItems", err) != nil {
			return err
		}
		if table.Unsupported(err) && !s.singly.Swap(true) {
			s.Log.Warn("the endpoint has no transactions, so guard writes each deadline by itself", "table", s.Table.Name, "error", err)
		}
		return nil
	})
	return puts, drops, err
}

// changeTogether writes and deletes rows in transactions, until none or one is left, or the reason
// of a failure is no condition. It returns the rows that are left.
func (s *store) changeTogether(ctx context.Context, puts, drops []*row) (putsLeft, dropsLeft []*row, err error) {
	for n := len(puts) + len(drops); n > 1; n = len(puts) + len(drops) {
		puts, drops, err = s.transact(ctx, puts, drops)
		if err != nil || len(puts)+len(drops) == n {
			break
		}
	}
	return puts, drops, err
}

// transact writes and deletes rows in one transaction, under the conditions of putOf and dropOf. It
// returns the rows that are left to do. Those that fail by their conditions are not among them: the
// table has something newer.
func (s *store) transact(ctx context.Context, puts, drops []*row) (putsLeft, dropsLeft []*row, err error) {
	in := &dynamodb.TransactWriteItemsInput{TransactItems: make([]types.TransactWriteItem, 0, len(puts)+len(drops))}
	for _, e := range puts {
		in.TransactItems = append(in.TransactItems, types.TransactWriteItem{Put: s.putOf(e)})
	}
	for _, e := range drops {
		in.TransactItems = append(in.TransactItems, types.TransactWriteItem{Delete: s.dropOf(e)})
	}
	_, err = s.db.TransactWriteItems(ctx, in)
	cancelled, ok := errors.AsType[*types.TransactionCanceledException](err)
	switch {
	case err == nil:
		return nil, nil, nil
	case !ok:
		return puts, drops, err
	case len(cancelled.CancellationReasons) != len(in.TransactItems):
		return puts, drops, nil
	}
	for i, why := range cancelled.CancellationReasons {
		switch {
		case aws.ToString(why.Code) == "ConditionalCheckFailed":
		case i < len(puts):
			putsLeft = append(putsLeft, puts[i])
		default:
			dropsLeft = append(dropsLeft, drops[i-len(puts)])
		}
	}
	return putsLeft, dropsLeft, nil
}

// distinct splits rows into the first of each place in the table and the rest, because a transaction
// refuses two operations on one item.
func distinct(rows []*row) (first, rest []*row) {
	type place struct {
		key   armed.Key
		at    int64
		inbox bool
	}
	seen := make(map[place]bool, len(rows))
	for _, e := range rows {
		at := place{e.key, e.at, e.inbox}
		if seen[at] {
			rest = append(rest, e)
		} else {
			first = append(first, e)
		}
		seen[at] = true
	}
	return first, rest
}
