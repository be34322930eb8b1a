package stream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"

	"github.com/mayflydb/mayfly/internal/work/attr"
)

// watched returns a client that counts the operations of db.
func watched(db *dynamodb.Client) (*dynamodb.Client, func() map[string]int) {
	var mu sync.Mutex
	made := map[string]int{}
	client := dynamodb.New(db.Options(), func(o *dynamodb.Options) {
		o.APIOptions = append(slices.Clip(o.APIOptions), func(stack *middleware.Stack) error {
			return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("count", func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
				mu.Lock()
				made[middleware.GetOperationName(ctx)]++
				mu.Unlock()
				return next.HandleInitialize(ctx, in)
			}), middleware.After)
		})
	})
	return client, func() map[string]int {
		mu.Lock()
		defer mu.Unlock()
		all := made
		made = map[string]int{}
		return all
	}
}

// stored returns the values of by in the table, by item.
func stored(t *testing.T, s *Strategy) map[string]string {
	t.Helper()
	all := map[string]string{}
	pages := dynamodb.NewScanPaginator(s.store.db, &dynamodb.ScanInput{TableName: &s.store.spec.Name})
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		must(t, err)
		for _, item := range page.Items {
			if r, err := readRow(item); err == nil {
				all[string(r.key[2:])] = attr.String(item[attrBy])
			}
		}
	}
	return all
}

// Where transactions are free, rows are written and deleted together; elsewhere one by one. Both
// have the same effect.
func TestTogether(t *testing.T) {
	for _, free := range []bool{false, true} {
		t.Run(fmt.Sprint("free ", free), func(t *testing.T) {
			db, made := watched(openFleet(t))
			s, _ := fleetWorker(t, db, "a")
			s.TransactionsFree = func() bool { return free }
			const at, many = claimedAt + 5*minute, 60
			var rows, drops []*row
			for i := range many {
				rows = append(rows, shown(fmt.Sprint("item-", i), at, "5"))
			}
			must(t, s.noteBuckets(t.Context(), s.placed(rows)))
			made()
			must(t, s.write(t.Context(), rows, nil))
			operations := made()
			if free && (operations["PutItem"] > 0 || operations["TransactWriteItems"] != 3) || !free && operations["PutItem"] != many {
				t.Errorf("operations of %d new rows: %v", many, operations)
			}
			// a newer record has deleted item-0, none is older; an older one changes nothing
			rows[1] = shown("item-1", at, "7")
			for i := range many {
				switch i {
				case 0:
					drops = append(drops, shown("item-0", at, "6"))
				case 1, 2:
				default:
					drops = append(drops, shown(fmt.Sprint("item-", i), at, "4"))
				}
			}
			must(t, s.write(t.Context(), []*row{rows[1], shown("item-2", at, "3"), shown("new", at, "8")}, drops))
			operations = made()
			if free != (operations["PutItem"]+operations["DeleteItem"] == 0) {
				t.Errorf("operations of a second page: %v", operations)
			}
			got := stored(t, s)
			want := map[string]string{"item-1": byOf(1, "7"), "item-2": byOf(1, "5"), "new": byOf(1, "8")}
			for i := 3; i < many; i++ {
				want[fmt.Sprint("item-", i)] = byOf(1, "5")
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("the table has %v, not %v", got, want)
			}
			// the cleaner may have the same row twice, by its record and by its tag
			tagged := shown("item-4", at, "5")
			tagged.by = ""
			must(t, s.dropAll(t.Context(), []*row{shown("item-3", at, "9"), tagged, shown("item-4", at, "9"), shown("item-3", at, "9"), shown("gone", at, "9")}))
			operations = made()
			if free != (operations["TransactWriteItems"] > 0) {
				t.Errorf("operations of the cleaner: %v", operations)
			}
			got = stored(t, s)
			if len(got) != len(want)-2 || got["item-3"] != "" || got["item-4"] != "" {
				t.Errorf("after the cleaner, the table has %v", got)
			}
		})
	}
}

// placed gives rows their partitions, as write does.
func (s *Strategy) placed(rows []*row) []*row {
	d := s.store.newest()
	for _, e := range rows {
		e.p = d.parts[d.partitionOf(e.key)]
	}
	return rows
}

// A transaction may fail for many reasons, and its rows are nevertheless written, armed and deleted.
func TestTogetherWithObstacles(t *testing.T) {
	reasons := func(codes ...string) error {
		e := &types.TransactionCanceledException{}
		for _, code := range codes {
			e.CancellationReasons = append(e.CancellationReasons, types.CancellationReason{Code: &code})
		}
		return e
	}
	for name, c := range map[string]struct {
		err    error
		always bool // not only the first transaction fails
		singly bool // no further transaction is tried
	}{
		"conflict":     {err: reasons("None", "TransactionConflict", "None")},
		"mixed":        {err: reasons("ConditionalCheckFailed", "TransactionConflict", "None")},
		"no reasons":   {err: reasons(), always: true},
		"too large":    {err: &smithy.GenericAPIError{Code: "ValidationException", Message: "too large", Fault: smithy.FaultClient}, always: true},
		"unsupported":  {err: &smithy.GenericAPIError{Code: "UnknownOperationException", Fault: smithy.FaultClient}, always: true, singly: true},
		"throttled":    {err: &types.ProvisionedThroughputExceededException{}},
		"disconnected": {err: errors.New("by the test")},
	} {
		t.Run(name, func(t *testing.T) {
			db := openFleet(t)
			failed := 0
			db = dynamodb.New(db.Options(), func(o *dynamodb.Options) {
				o.APIOptions = append(slices.Clip(o.APIOptions), func(stack *middleware.Stack) error {
					return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("fail", func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (out middleware.InitializeOutput, meta middleware.Metadata, err error) {
						if _, ok := in.Parameters.(*dynamodb.TransactWriteItemsInput); ok && (failed == 0 || c.always) {
							failed++
							return out, meta, c.err
						}
						return next.HandleInitialize(ctx, in)
					}), middleware.After)
				})
			})
			s, g := fleetWorker(t, db, "a")
			s.TransactionsFree = func() bool { return true }
			const at = claimedAt + 2000
			rows := []*row{shown("a", at, "1"), shown("b", at, "1"), shown("c", at, "1")}
			must(t, s.write(t.Context(), rows, nil))
			want := 3
			if name == "mixed" {
				want = 2 // the first one is said to have something newer
			}
			if got := stored(t, s); len(got) != want || len(g.entries) != 3 || failed == 0 {
				t.Errorf("the table has %v, and %d are armed; %d transactions have failed", got, len(g.entries), failed)
			}
			if s.singly.Load() != c.singly {
				t.Errorf("rows are written one by one from now on: %v", !c.singly)
			}
			failed = 0
			must(t, s.dropAll(t.Context(), rows))
			if got := stored(t, s); len(got) != 0 || failed == 0 && !c.singly {
				t.Errorf("after the cleaner, the table has %v; %d transactions have failed", got, failed)
			}
		})
	}
}

func TestDistinct(t *testing.T) {
	a, again, inbox := &row{key: "a", at: 1}, &row{key: "a", at: 1, tag: 5}, &row{key: "a", at: 1, inbox: true}
	later, b := &row{key: "a", at: 2}, &row{key: "b", at: 1}
	first, more := distinct([]*row{a, again, inbox, later, b, again})
	if !slices.Equal(first, []*row{a, inbox, later, b}) || !slices.Equal(more, []*row{again, again}) {
		t.Errorf("%v, %v", first, more)
	}
	if first, more := distinct([]*row(nil)); len(first)+len(more) > 0 {
		t.Errorf("%v, %v", first, more)
	}
}
