package scheduler

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/mayflydb/mayfly/internal/work/retry"
	"github.com/mayflydb/mayfly/target"
)

// dynamoService is the name of DynamoDB in the ARN of a universal target:
// arn:aws:scheduler:::aws-sdk:dynamodb:putItem.
const dynamoService = "dynamodb"

// DynamoPattern is the pattern of DynamoTarget's ARNs.
const DynamoPattern = "arn:aws*:scheduler:::aws-sdk:" + dynamoService + ":*"

// dynamoOperations maps the operations in ARNs, such as "putItem", to their calls.
var dynamoOperations = sync.OnceValue(func() map[string]dynamoCall {
	m := map[string]dynamoCall{}
	for _, c := range dynamoCalls() {
		m[strings.ToLower(c.name[:1])+c.name[1:]] = c
	}
	return m
})

// DynamoTarget returns a universal target that calls DynamoDB's writing operations through a
// client. The schedule's input is the request's body, byte for byte.
func DynamoTarget(db *dynamodb.Client) target.Target {
	return target.Func(func(ctx context.Context, d target.Delivery) error {
		a, ok := parseARN(d.TargetARN)
		service, name, universal := universalOf(a)
		call, known := dynamoOperations()[name]
		if !ok || !universal || service != dynamoService || !known {
			return target.Permanent(codeDynamoInvalid, name+" API is not supported")
		}
		if !json.Valid(d.Body) {
			return target.Permanent("SerializationException", "the input is not valid JSON")
		}
		return dynamoFailure(callDynamo(ctx, db, call.name, d.Body))
	})
}

// callDynamo calls an operation with a body. The SDK has no such call, so this replaces body and
// operation of another request before it is signed. The client's endpoint, credentials
// and retries apply.
//
// Most operations use UntagResource, which ignores the response. A transaction uses an operation of
// its own shape, so that the SDK reads the reasons of a cancellation.
func callDynamo(ctx context.Context, db *dynamodb.Client, operation string, body []byte) (err error) {
	replace := func(o *dynamodb.Options) {
		o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
			return stack.Serialize.Add(&otherRequest{operation, body}, middleware.After)
		})
	}
	switch operation {
	case "TransactWriteItems":
		_, err = db.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{}}, replace)
	case "ExecuteTransaction":
		_, err = db.ExecuteTransaction(ctx, &dynamodb.ExecuteTransactionInput{TransactStatements: []types.ParameterizedStatement{}}, replace)
	default:
		_, err = db.UntagResource(ctx, &dynamodb.UntagResourceInput{ResourceArn: aws.String("-"), TagKeys: []string{"-"}}, replace)
	}
	return err
}

// otherRequest replaces operation and body of a request.
type otherRequest struct {
	operation string
	body      []byte
}

func (*otherRequest) ID() string { return "MayflyOtherRequest" }

func (o *otherRequest) HandleSerialize(ctx context.Context, in middleware.SerializeInput, next middleware.SerializeHandler) (
	middleware.SerializeOutput, middleware.Metadata, error,
) {
	r, ok := in.Request.(*smithyhttp.Request)
	if !ok {
		return middleware.SerializeOutput{}, middleware.Metadata{}, fmt.Errorf("unexpected request %T", in.Request)
	}
	r, err := r.SetStream(bytes.NewReader(o.body))
	if err != nil {
		return middleware.SerializeOutput{}, middleware.Metadata{}, err
	}
	r.Header.Set("X-Amz-Target", "DynamoDB_20120810."+o.operation)
	in.Request = r
	return next.HandleSerialize(ctx, in)
}

// dynamoFailure returns the target's error for an error of the API.
func dynamoFailure(err error) error {
	if err == nil {
		return nil
	}
	var api smithy.APIError
	if !errors.As(err, &api) {
		// no response
		return &target.Error{Code: "ServiceUnavailable", Message: err.Error(), Err: err}
	}
	class := retry.Classify(err)
	if cancelled, ok := errors.AsType[*types.TransactionCanceledException](err); ok && slices.ContainsFunc(cancelled.CancellationReasons, passing) || api.ErrorCode() == codeTableInUse {
		class = retry.Passing
	}
	return &target.Error{
		Code: api.ErrorCode(), Message: api.ErrorMessage(), Err: err,
		Permanent: class == retry.Permanent, Throttled: class == retry.Throttled,
	}
}

// passing reports whether a reason of a cancellation may not last.
func passing(r types.CancellationReason) bool { return retry.Cancelled([]types.CancellationReason{r}) }
