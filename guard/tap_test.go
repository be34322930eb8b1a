package guard

import (
	"context"
	"slices"
	"sync"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
)

// tap sits between guard and the database. It sees every call, and may delay it, refuse it or
// change its response.
type tap struct {
	mu sync.Mutex
	// guarded by mu, as are all; nil: nothing is done
	before func(ctx context.Context, operation string, in any) error
	after  func(operation string, in, out any)
	calls  []call
}

// call is a call of guard.
type call struct {
	operation string
	in        any
}

// tapped puts a tap into the world's client.
func (w *world) tapped() *tap {
	t := &tap{}
	w.db = dynamodb.New(w.db.Options(), func(o *dynamodb.Options) {
		o.APIOptions = append(slices.Clip(o.APIOptions), func(stack *middleware.Stack) error {
			return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("Tap", t.handle), middleware.Before)
		})
	})
	return t
}

func (t *tap) handle(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (out middleware.InitializeOutput, meta middleware.Metadata, err error) {
	operation := awsmiddleware.GetOperationName(ctx)
	t.mu.Lock()
	t.calls = append(t.calls, call{operation, asItIs(in.Parameters)})
	before, after := t.before, t.after
	t.mu.Unlock()
	if before != nil {
		if err := before(ctx, operation, in.Parameters); err != nil {
			return out, meta, err
		}
	}
	out, meta, err = next.HandleInitialize(ctx, in)
	if err == nil && after != nil {
		after(operation, in.Parameters, out.Result)
	}
	return out, meta, err
}

// asItIs copies a request that guard changes for the next page.
func asItIs(in any) any {
	switch in := in.(type) {
	case *dynamodb.QueryInput:
		page := *in
		return &page
	case *dynamodb.ScanInput:
		page := *in
		return &page
	}
	return in
}

// do sets a function that runs before calls; nil for none.
func (t *tap) do(before func(ctx context.Context, operation string, in any) error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.before = before
}

// of returns the calls of an operation on the world's table.
func (t *tap) of(operation string) (some []any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.calls {
		if c.operation == operation && tableOf(c.in) == worldTable {
			some = append(some, c.in)
		}
	}
	return some
}

// operations returns the operations called on the world's table.
func (t *tap) operations() map[string]bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := map[string]bool{}
	for _, c := range t.calls {
		if tableOf(c.in) == worldTable {
			all[c.operation] = true
		}
	}
	return all
}

// partitions counts the queries of an index by its partition.
func (t *tap) partitions() map[string]int {
	all := map[string]int{}
	for _, in := range t.of("Query") {
		all[in.(*dynamodb.QueryInput).ExpressionAttributeValues[":p"].(*types.AttributeValueMemberS).Value]++
	}
	return all
}

func tableOf(in any) string {
	var name *string
	switch in := in.(type) {
	case *dynamodb.QueryInput:
		name = in.TableName
	case *dynamodb.ScanInput:
		name = in.TableName
	case *dynamodb.GetItemInput:
		name = in.TableName
	case *dynamodb.DeleteItemInput:
		name = in.TableName
	case *dynamodb.UpdateItemInput:
		name = in.TableName
	case *dynamodb.PutItemInput:
		name = in.TableName
	case *dynamodb.DescribeTableInput:
		name = in.TableName
	case *dynamodb.UpdateTableInput:
		name = in.TableName
	}
	if name == nil {
		return ""
	}
	return *name
}

// refusal is an error of the API.
func refusal(code string) error {
	return &smithy.GenericAPIError{Code: code, Message: "by the test", Fault: smithy.FaultClient}
}
