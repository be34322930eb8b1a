package scheduler

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/mayflydb/mayfly/target"
)

// dynamoService is DynamoDB's name in a universal target's ARN: arn:aws:scheduler:::aws-sdk:dynamodb:putItem.
const dynamoService = "dynamodb"

// DynamoPattern is the pattern of the ARNs that DynamoTarget serves.
const DynamoPattern = "arn:aws*:scheduler:::aws-sdk:" + dynamoService + ":*"

// dynamoOperations are those that a schedule can call, as the ARN has them and as the API has them: all that write.
var dynamoOperations = operationNames("PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems", "ExecuteStatement", "BatchExecuteStatement",
	"ExecuteTransaction", "CreateTable", "UpdateTable", "DeleteTable", "UpdateTimeToLive", "TagResource", "UntagResource", "CreateBackup", "DeleteBackup",
	"CreateGlobalTable", "UpdateGlobalTable", "UpdateGlobalTableSettings", "UpdateContinuousBackups", "UpdateContributorInsights",
	"UpdateTableReplicaAutoScaling", "EnableKinesisStreamingDestination", "DisableKinesisStreamingDestination", "UpdateKinesisStreamingDestination",
	"ExportTableToPointInTime", "ImportTable", "RestoreTableFromBackup", "RestoreTableToPointInTime", "PutResourcePolicy", "DeleteResourcePolicy")

func operationNames(names ...string) map[string]string {
	m := map[string]string{}
	for _, name := range names {
		m[strings.ToLower(name[:1])+name[1:]] = name
	}
	return m
}

// dynamoOperation gives the API's name of an operation; empty where a schedule cannot call it.
func dynamoOperation(name string) string { return dynamoOperations[name] }

// DynamoTarget makes a universal target of DynamoDB's operations that write, on the endpoint of a client. What a schedule has as its input is the request's
// body, byte for byte.
func DynamoTarget(db *dynamodb.Client) target.Target {
	return target.Func(func(ctx context.Context, d target.Delivery) error {
		a, ok := parseARN(d.TargetARN)
		service, name, universal := universalOf(a)
		operation := dynamoOperation(name)
		if !ok || !universal || service != dynamoService || operation == "" {
			return target.Permanent(codeDynamoInvalid, name+" API is not supported")
		}
		if !json.Valid(d.Body) {
			return target.Permanent("SerializationException", "the input is not valid JSON")
		}
		return dynamoFailure(callDynamo(ctx, db, operation, d.Body))
	})
}

// callDynamo calls an operation with a body. The SDK has no call for that, so one is made of an operation whose answer nobody reads: its body and the name of
// its operation are replaced before it is signed. So its endpoint, credentials, retries and errors are those of any other call of the client.
func callDynamo(ctx context.Context, db *dynamodb.Client, operation string, body []byte) error {
	in := &dynamodb.UntagResourceInput{ResourceArn: aws.String("-"), TagKeys: []string{"-"}}
	_, err := db.UntagResource(ctx, in, func(o *dynamodb.Options) {
		o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
			return stack.Serialize.Add(&otherRequest{operation, body}, middleware.After)
		})
	})
	return err
}

// otherRequest replaces what a request asks for.
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

// passing are the codes of refusals that may not last.
var passing = map[string]bool{
	codeThroughput: true, codeRequestLimit: true, codeThrottled: true, "Throttling": true, codeDynamoLimit: true, codeTxConflict: true, codeTxInProgress: true,
	codeTableInUse: true, "InternalServerError": true, "InternalFailure": true, "ServiceUnavailable": true, "ExpiredTokenException": true,
	"ReplicatedWriteConflictException": true,
}

// dynamoFailure is what a target says of an error of the API.
func dynamoFailure(err error) error {
	if err == nil {
		return nil
	}
	var api smithy.APIError
	if !errors.As(err, &api) {
		return &target.Error{Code: "ServiceUnavailable", Message: err.Error(), Err: err} // no answer
	}
	e := &target.Error{Code: api.ErrorCode(), Message: api.ErrorMessage(), Err: err}
	var answer *smithyhttp.ResponseError
	fault := errors.As(err, &answer) && answer.HTTPStatusCode() >= http.StatusInternalServerError
	switch {
	case e.Code == codeCancelled:
		e.Permanent = !strings.Contains(e.Message, "TransactionConflict") && !strings.Contains(e.Message, "Throttl") && !strings.Contains(e.Message, "Throughput")
	default:
		e.Permanent = !fault && !passing[e.Code]
	}
	e.Throttled = e.Code == codeThroughput || e.Code == codeRequestLimit || strings.HasPrefix(e.Code, "Throttl")
	return e
}
