package guard

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
)

// The first scan writes its rows in transactions, since that takes little time, or one by one, which
// takes half the write units, if --max-rcu makes it slow or the endpoint refuses transactions. An
// endpoint that throttles or reports conflicts gets them all the same.
func TestFirstScanWrites(t *testing.T) {
	const items = 600
	refused := func(times int, err error) func() error {
		return func() error {
			if times--; times < 0 {
				return nil
			}
			return err
		}
	}
	always := 1 << 30
	conflict := &types.TransactionCanceledException{CancellationReasons: make([]types.CancellationReason, 100)}
	conflict.CancellationReasons[7].Code = aws.String("TransactionConflict")
	full := &types.TransactionCanceledException{CancellationReasons: make([]types.CancellationReason, 100)}
	full.CancellationReasons[7].Code = aws.String("ThrottlingError")
	for _, c := range []struct {
		name         string
		maxRCU       float64
		refuses      func() error // transactions of rows
		transactions [2]int       // at least, at most
		rows         [2]int       // written one by one: at least, at most
	}{
		{"fast", 0, refused(0, nil), [2]int{6, 6}, [2]int{0, 0}},
		{"slow", 10, refused(0, nil), [2]int{0, 0}, [2]int{items, items}},
		{"no transactions", 0, refused(always, &smithy.GenericAPIError{Code: "UnknownOperationException", Fault: smithy.FaultClient}), [2]int{1, 4}, [2]int{items, items}},
		{"invalid transactions", 0, refused(always, &smithy.GenericAPIError{Code: "ValidationException", Fault: smithy.FaultClient}), [2]int{1, 4}, [2]int{items, items}},
		{"throttled", 0, refused(5, &types.ProvisionedThroughputExceededException{}), [2]int{11, 11}, [2]int{0, 0}},
		{"throttled in part", 0, refused(5, full), [2]int{11, 11}, [2]int{0, 0}},
		{"conflicts", 0, refused(5, conflict), [2]int{11, 11}, [2]int{0, 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.fill("item", items, w.in(1e6))
				tap := w.tapped()
				o := w.options(Stream)
				o.Segments, o.MaxRCU = 1, c.maxRCU
				transactions, rows, at := 0, 0, fmt.Sprintf("%015d/", (w.now().Unix()+1e6)*1000)
				tap.do(func(_ context.Context, _ string, in any) error {
					tap.mu.Lock()
					defer tap.mu.Unlock()
					switch in := in.(type) {
					case *dynamodb.TransactWriteItemsInput:
						if isRow(in.TransactItems[0].Put.Item, at) {
							transactions++
							return c.refuses()
						}
					case *dynamodb.PutItemInput:
						if isRow(in.Item, at) {
							rows++
						}
					}
					return nil
				})
				w.start(o)
				awaitScanned(t, w.DynamoDB())
				tap.do(nil)
				if n := len(notedIn(t, w.DynamoDB())); n != items {
					t.Errorf("the table has %d deadlines of %d", n, items)
				}
				if within := func(n int, limits [2]int) bool { return n >= limits[0] && n <= limits[1] }; !within(transactions, c.transactions) || !within(rows, c.rows) {
					t.Errorf("there were %d transactions and %d single writes; want %v and %v", transactions, rows, c.transactions, c.rows)
				}
			})
		})
	}
}

// isRow reports whether an item of the deadline table is a row of an instant.
func isRow(item map[string]types.AttributeValue, at string) bool {
	text, ok := item["at"].(*types.AttributeValueMemberS)
	return ok && len(text.Value) > len(at) && text.Value[:len(at)] == at
}
