package guard

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/mayflydb/mayfly/guard/internal/table"
	"github.com/mayflydb/mayfly/internal/sdk"
)

// guard's clients are copies of the caller's that log to guard's log and inspect each response: the
// endpoint's time, the consumed units, and errors that end guard. Their attempts have a time limit:
// see silence.go.

// derive makes guard's clients.
func (g *Guard) derive() {
	g.db = sdk.Watched(g.o.DB, g.log, func(o *dynamodb.Options) {
		g.watchCredentials(&o.Credentials, &o.APIOptions)
		o.APIOptions = append(slices.Clip(o.APIOptions), g.watch, g.limitAnswers)
	})
	g.once = sdk.Watched(g.db, g.log, func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} })
	if g.o.Streams != nil {
		g.streams = sdk.WatchedStreams(g.o.Streams, g.log, func(o *dynamodbstreams.Options) {
			g.watchCredentials(&o.Credentials, &o.APIOptions)
			o.APIOptions = append(slices.Clip(o.APIOptions), g.watch, g.limitAnswers)
		})
	}
	if g.o.Scheduler != nil {
		g.o.Scheduler = sdk.WatchedScheduler(g.o.Scheduler, g.log, func(o *scheduler.Options) {
			g.watchCredentials(&o.Credentials, &o.APIOptions)
			o.APIOptions = append(slices.Clip(o.APIOptions), g.limitAnswers)
		})
	}
}

// watch adds the inspection of responses: of each attempt's header next to the transport, and of
// the operation's output.
func (g *Guard) watch(stack *middleware.Stack) error {
	head := middleware.DeserializeMiddlewareFunc("GuardDate", g.seeHead)
	if err := stack.Deserialize.Add(head, middleware.After); err != nil {
		return err
	}
	return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("GuardConsumed", g.seeOutput), middleware.After)
}

func (g *Guard) seeHead(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (middleware.DeserializeOutput, middleware.Metadata, error) {
	sent := g.local.Millis()
	out, meta, err := next.HandleDeserialize(ctx, in)
	if answer, ok := out.RawResponse.(*smithyhttp.Response); ok && answer != nil {
		g.saw(answer.Header.Get("Date"), sent, g.local.Millis())
	}
	return out, meta, err
}

func (g *Guard) seeOutput(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
	out, meta, err := g.readWeakly(ctx, in, next)
	if err == nil {
		g.consumed(out.Result)
	} else if own := g.ownTable(in.Parameters); own != "" {
		if p := table.Refused(middleware.GetOperationName(ctx)+" on "+own, err); p != nil {
			g.fail(p)
		}
	}
	return out, meta, err
}

// ownTable returns the name of a table of guard's own that a call creates, or reads or writes items
// of; "" if it is about another one.
func (g *Guard) ownTable(in any) (name string) {
	switch in := in.(type) {
	case *dynamodb.CreateTableInput:
		name = aws.ToString(in.TableName)
	case *dynamodb.GetItemInput:
		name = aws.ToString(in.TableName)
	case *dynamodb.PutItemInput:
		name = aws.ToString(in.TableName)
	case *dynamodb.UpdateItemInput:
		name = aws.ToString(in.TableName)
	case *dynamodb.DeleteItemInput:
		name = aws.ToString(in.TableName)
	case *dynamodb.QueryInput:
		name = aws.ToString(in.TableName)
	case *dynamodb.BatchWriteItemInput:
		for name = range in.RequestItems {
			break
		}
	}
	if name == g.o.Tables.Leases || name == g.o.Tables.Deadlines {
		return name
	}
	return ""
}

// consumed counts the units in an output that has them.
func (g *Guard) consumed(result any) {
	var read, write float64
	switch out := result.(type) {
	case *dynamodb.DeleteItemOutput:
		write = capacity(out.ConsumedCapacity)
	case *dynamodb.UpdateItemOutput:
		write = capacity(out.ConsumedCapacity)
	case *dynamodb.TransactWriteItemsOutput:
		write = allUnits(out.ConsumedCapacity)
	case *dynamodb.BatchWriteItemOutput:
		write = allUnits(out.ConsumedCapacity)
	case *dynamodb.GetItemOutput:
		read = capacity(out.ConsumedCapacity)
	case *dynamodb.QueryOutput:
		read = capacity(out.ConsumedCapacity)
	case *dynamodb.ScanOutput:
		read = capacity(out.ConsumedCapacity)
	}
	if read != 0 || write != 0 {
		g.observe(Event{What: Consumed, Read: read, Write: write})
	}
}
