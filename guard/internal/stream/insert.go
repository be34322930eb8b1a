package stream

import (
	"context"
	"errors"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/guard/internal/strategy"
	"github.com/mayflydb/mayfly/internal/work/retry"
)

// A scan's row is written only if the table has none for that item and instant. The existing row may
// be of a record that is newer than the scan's page, or of one that an older record, written late,
// must not undo: see TestDeliveredAtLeastOnceInTable. BatchWriteItem has no conditions, and rows of
// scans under keys of their own would have to be deleted besides those of records. So a row costs
//
//	1 write unit   in a PutItem of its own
//	2 write units  in a transaction of 100, which takes about a sixth of the CPU time
//
// A scan that --max-rcu keeps slow, or that the deadline table throttles, writes the rows one by one:
// where write units are the limit, it is faster so. Any other one writes them in transactions.

const (
	transactionMax = 100 // of TransactWriteItems
	// transactions of a segment at once
	transactions = 4
	// fewer new buckets of a page are noted one by one
	notesTogether = 10
	// A scan of so many items a second, or fewer, writes its rows one by one. It takes less than half
	// a core, and a new table on demand takes so many write units.
	singlesMost = 4_000
)

// insert writes the rows of a scan that the table does not have.
func (s *Strategy) insert(ctx context.Context, rows []*row) error {
	if !s.transacts() {
		return s.insertSingly(ctx, rows) // more at a time than in chunks
	}
	return inTransactions(ctx, rows, func(ctx context.Context, left []*row) error {
		for len(left) > 0 {
			if !s.transacts() {
				return s.insertSingly(ctx, left)
			}
			err := s.persist(ctx, "TransactWriteItems", func() error {
				again := left
				err := s.paced(ctx, len(left), func() (err error) {
					again, err = s.store.insert(ctx, left)
					return err
				})
				switch {
				case err == nil:
					left = again
				case retry.Classify(err) == retry.Throttled && !s.local:
					return nil // one by one, the rows may fit into the table's capacity
				}
				return s.refusedTransaction(err)
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// inTransactions calls do with parts of all that each fit into a transaction, a few at once.
func inTransactions[T any](ctx context.Context, all []T, do func(context.Context, []T) error) error {
	parts := slices.Collect(slices.Chunk(all, transactionMax))
	return strategy.Parallel(ctx, len(parts), transactions, func(ctx context.Context, i int) error { return do(ctx, parts[i]) })
}

// transacts reports whether a scan writes its rows in transactions. A worker's own table has no
// price.
func (s *Strategy) transacts() bool {
	return !s.singly.Load() && (s.local || min(s.Pace(), s.inserts.Limit()) > singlesMost)
}

// noteTogether writes buckets into the directory in transactions. When another segment, or another
// worker, notes some of them at the same moment, a transaction is cancelled; then they are written one
// by one.
func (s *Strategy) noteTogether(ctx context.Context, all []note) error {
	return inTransactions(ctx, all, func(ctx context.Context, part []note) error {
		singly := false
		err := s.persist(ctx, "TransactWriteItems", func() error {
			return s.paced(ctx, len(part), func() error {
				err := s.store.noteBuckets(ctx, part)
				if _, cancelled := errors.AsType[*types.TransactionCanceledException](err); cancelled {
					singly = true
					return nil
				}
				singly = err != nil
				return s.refusedTransaction(err)
			})
		})
		switch {
		case err != nil:
			return err
		case singly:
			return s.noteSingly(ctx, part)
		}
		for _, at := range part {
			at.p.learn(at.bucket)
		}
		return nil
	})
}

// refusedTransaction returns the error of a transaction that may succeed at another attempt. After
// any other error, all rows are written one by one.
func (s *Strategy) refusedTransaction(err error) error {
	if err == nil || retry.Classify(err) != retry.Permanent || s.Problem("TransactWriteItems", err) != nil {
		return err
	}
	if !s.singly.Swap(true) {
		s.Log.Warn("the endpoint refuses a transaction, so the scan writes each deadline by itself", "table", s.Table.Name, "error", err)
	}
	return nil
}

func (s *Strategy) insertSingly(ctx context.Context, rows []*row) error {
	return strategy.Parallel(ctx, len(rows), parallel, func(ctx context.Context, i int) error {
		return s.persist(ctx, "PutItem", func() error {
			return s.paced(ctx, 1, func() error { return s.store.put(ctx, rows[i]) })
		})
	})
}

// paced makes a write of n rows of a scan. If the deadline table throttles, scans slow down and leave
// its capacity to the rows of records, which may be due soon.
func (s *Strategy) paced(ctx context.Context, n int, write func() error) error {
	if s.local {
		return write()
	}
	if err := s.inserts.Wait(ctx, n); err != nil {
		return err
	}
	err := write()
	switch {
	case err == nil:
		s.inserts.Consumed(n, 0, false)
	case retry.Classify(err) == retry.Throttled:
		s.inserts.Throttled(false)
	default:
		s.inserts.Troubled()
	}
	return err
}

// insert writes up to 100 rows of a scan in one transaction. If the table has some of them, it writes
// none, and returns the others.
func (s *store) insert(ctx context.Context, rows []*row) (again []*row, err error) {
	in := &dynamodb.TransactWriteItemsInput{TransactItems: make([]types.TransactWriteItem, 0, len(rows))}
	for _, e := range rows {
		in.TransactItems = append(in.TransactItems, types.TransactWriteItem{Put: &types.Put{
			TableName: &s.spec.Name, Item: s.item(e), ConditionExpression: aws.String("attribute_not_exists(" + attrPart + ")"),
		}})
	}
	_, err = s.db.TransactWriteItems(ctx, in)
	cancelled, ok := errors.AsType[*types.TransactionCanceledException](err)
	if !ok || len(cancelled.CancellationReasons) != len(rows) {
		return nil, err
	}
	for i, why := range cancelled.CancellationReasons {
		switch aws.ToString(why.Code) {
		case "ConditionalCheckFailed":
		case "ThrottlingError", "ProvisionedThroughputExceeded":
			err = &types.ProvisionedThroughputExceededException{Message: why.Message}
			fallthrough
		default:
			again = append(again, rows[i])
		}
	}
	if len(again) == len(rows) {
		return again, err
	}
	return again, nil
}

// noteBuckets puts up to 100 buckets into the directory.
func (s *store) noteBuckets(ctx context.Context, all []note) error {
	in := &dynamodb.TransactWriteItemsInput{}
	for _, at := range all {
		in.TransactItems = append(in.TransactItems, types.TransactWriteItem{Put: &types.Put{
			TableName: &s.spec.Name, Item: s.bucketKey(at.p.d, at.p.number, at.bucket),
		}})
	}
	_, err := s.db.TransactWriteItems(ctx, in)
	return err
}
