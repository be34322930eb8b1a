package scheduler

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/mayflydb/mayfly/target"
)

const universal = "arn:aws:scheduler:::aws-sdk:dynamodb:"

func (w *world) table(name string) {
	w.Helper()
	_, err := w.db.CreateTable(w.Context(), &dynamodb.CreateTableInput{
		TableName: &name, BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("pk"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: types.KeyTypeHash}},
	})
	if err != nil {
		w.Fatal(err)
	}
}

// A schedule's call of DynamoDB has the input as its body, unchanged.
func TestDynamoTarget(t *testing.T) {
	w := newWorld(t, "", nil)
	w.table("items")
	call := func(name, operation, input string) {
		t.Helper()
		w.create(name, "at(2030-01-01T00:01:00)", targetJSON(universal+operation, `"Input":`+marshalled(t, input)), `"ActionAfterCompletion":"DELETE"`)
	}
	call("put", "putItem", `{"TableName":"items","Item":{"pk":{"S":"put <aws.scheduler.scheduled-time>"},"n":{"N":"12345678901234567890123456789012345678"},"b":{"B":"AQI="},"l":{"L":[{"NULL":true}]}}}`)
	call("batch", "batchWriteItem", `{"RequestItems":{"items":[{"PutRequest":{"Item":{"pk":{"S":"batch1"}}}},{"PutRequest":{"Item":{"pk":{"S":"batch2"}}}}]},"ReturnConsumedCapacity":"TOTAL"}`)
	call("transact", "transactWriteItems", `{"TransactItems":[{"Put":{"TableName":"items","Item":{"pk":{"S":"transact"}}}}]}`)
	call("create", "createTable", `{"TableName":"made","BillingMode":"PAY_PER_REQUEST","AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"}],"KeySchema":[{"AttributeName":"pk","KeyType":"HASH"}]}`)
	call("update", "updateItem", `{"TableName":"items","Key":{"pk":{"S":"update"}},"UpdateExpression":"SET #a = :a","ExpressionAttributeNames":{"#a":"a"},"ExpressionAttributeValues":{":a":{"SS":["x"]}},"ReturnValues":"ALL_NEW"}`)
	call("conditional", "deleteItem", `{"TableName":"items","Key":{"pk":{"S":"x"}},"ConditionExpression":"attribute_exists(pk)"}`)
	call("wrong", "deleteItem", `{"TableName":"items","Key":{}}`)
	call("nowhere", "deleteItem", `{"TableName":"nowhere","Key":{"pk":{"S":"x"}}}`)
	w.advance(time.Minute)
	out, err := w.db.Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String("items")})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]item{}
	for _, it := range out.Items {
		got[it["pk"].(*types.AttributeValueMemberS).Value] = it
	}
	for _, pk := range []string{"put 2030-01-01T00:01:00Z", "batch1", "batch2", "transact", "update"} {
		if got[pk] == nil {
			t.Errorf("%s was not written", pk)
		}
	}
	if it := got["put 2030-01-01T00:01:00Z"]; it["n"].(*types.AttributeValueMemberN).Value != "12345678901234567890123456789012345678" || string(it["b"].(*types.AttributeValueMemberB).Value) != "\x01\x02" {
		t.Errorf("%v", it)
	}
	if _, err := w.db.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String("made")}); err != nil {
		t.Error(err)
	}
	letters, err := w.db.Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String("mayfly.deadletters")})
	if err != nil {
		t.Fatal(err)
	}
	codes := map[string]string{}
	for _, it := range letters.Items {
		r := reader{from: it}
		codes[strings.TrimPrefix(r.text("source"), scheduleARN+"default/")] = r.text("code")
	}
	for name, code := range map[string]string{
		"conditional": "ConditionalCheckFailedException", "wrong": "ValidationException", "nowhere": "ResourceNotFoundException",
	} {
		if codes[name] != code {
			t.Errorf("%s is a dead letter for %q, want %s", name, codes[name], code)
		}
	}
	if len(codes) != 3 {
		t.Errorf("dead letters %v", codes)
	}
}

// The members, and the required ones, are the SDK's.
func TestDynamoCalls(t *testing.T) {
	client := reflect.ValueOf(dynamodb.New(dynamodb.Options{Region: "us-east-1"}))
	for _, c := range dynamoCalls() {
		method := client.MethodByName(c.name)
		if !method.IsValid() {
			t.Errorf("the SDK has no operation %s", c.name)
			continue
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // an operation that requires nothing must call nobody
		input := method.Type().In(1).Elem()
		var members []string
		for f := range input.Fields() {
			if f.IsExported() {
				members = append(members, f.Name)
			}
		}
		if got, want := slices.Sorted(slices.Values(c.members)), slices.Sorted(slices.Values(members)); !slices.Equal(got, want) {
			t.Errorf("%s has the members %v, and in the SDK %v", c.name, got, want)
		}
		out := method.Call([]reflect.Value{reflect.ValueOf(ctx), reflect.New(input)})
		err, _ := out[1].Interface().(error)
		var required []string
		if invalid, ok := errors.AsType[smithy.InvalidParamsError](err); ok {
			for _, one := range invalid.Errs() {
				if one, ok := errors.AsType[smithy.InvalidParamError](one); ok {
					required = append(required, strings.TrimPrefix(one.Field(), input.Name()+"."))
				}
			}
		}
		if got := slices.Sorted(slices.Values(c.required)); !slices.Equal(got, slices.Sorted(slices.Values(required))) {
			t.Errorf("%s requires %v, and the SDK %v (%v)", c.name, got, required, err)
		}
	}
}

// Over HTTP the request has a signature of its final body, and the response decides about another
// attempt.
func TestDynamoTargetOverHTTP(t *testing.T) {
	answers := []struct {
		status    int
		code      string
		more      string // members of the body
		permanent bool
		throttled bool
	}{
		{400, "ValidationException", "", true, false},
		{400, "AccessDeniedException", "", true, false},
		{400, "ConditionalCheckFailedException", "", true, false},
		{400, "ProvisionedThroughputExceededException", "", false, true},
		{400, "ThrottlingException", "", false, true},
		{400, "ResourceInUseException", "", false, false},
		{400, "TransactionCanceledException", `,"CancellationReasons":[{"Code":"ConditionalCheckFailed"},{"Code":"None"}]`, true, false},
		{400, "TransactionCanceledException", `,"CancellationReasons":[{"Code":"ConditionalCheckFailed"},{"Code":"TransactionConflict"}]`, false, false},
		{500, "InternalServerError", "", false, false},
		{503, "SomethingElse", "", false, false},
	}
	var answer int
	var got *http.Request
	var body string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		body = string(b)
		a := answers[answer]
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		w.WriteHeader(a.status)
		_, _ = w.Write([]byte(`{"__type":"com.amazonaws.dynamodb.v20120810#` + a.code + `","message":""` + a.more + `}`))
	}))
	defer server.Close()
	client := dynamodb.New(dynamodb.Options{
		Region: "us-east-1", BaseEndpoint: &server.URL, Credentials: credentials.NewStaticCredentialsProvider("AKID", "secret", ""), Retryer: aws.NopRetryer{},
		HTTPClient: server.Client(),
	})
	to := DynamoTarget(client)
	for i, a := range answers {
		answer = i
		const input = `{ "TableName" : "t", "Key": {"pk":{"S":"ä"}} }`
		operation := "DeleteItem"
		if a.more != "" {
			operation = "TransactWriteItems"
		}
		name := strings.ToLower(operation[:1]) + operation[1:]
		err := to.Deliver(context.Background(), []target.Delivery{{TargetARN: universal + name, Body: []byte(input)}})[0]
		var e *target.Error
		if !errors.As(err, &e) || e.Code != a.code || e.Permanent != a.permanent || e.Throttled != a.throttled {
			t.Errorf("%+v: %#v", a, err)
		}
		if body != input || got.Header.Get("X-Amz-Target") != "DynamoDB_20120810."+operation || !strings.Contains(got.Header.Get("Authorization"), "Credential=AKID/") {
			t.Errorf("it was sent %s with %v", body, got.Header)
		}
	}
	server.Close()
	err := to.Deliver(context.Background(), []target.Delivery{{TargetARN: universal + "deleteItem", Body: []byte(`{}`)}})[0]
	if e := target.AsError(err); e.Permanent || e.Code != "ServiceUnavailable" {
		t.Errorf("without a server: %#v", err)
	}
	err = to.Deliver(context.Background(), []target.Delivery{{TargetARN: universal + "scan", Body: []byte(`{}`)}})[0]
	if e := target.AsError(err); !e.Permanent {
		t.Errorf("an operation that only reads: %#v", err)
	}
}
