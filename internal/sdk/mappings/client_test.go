package mappings_test

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/smithy-go"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/sdk/mappings"
)

// mapping has some members of a mapping.
type mapping struct {
	UUID, EventSourceArn, FunctionName, State string
	StartingPosition                          string
	BatchSize                                 int
	Enabled                                   *bool
}

// clientOf returns a client of the API at a URL.
func clientOf(url, secret string) *mappings.Client {
	return mappings.New(scheduler.New(scheduler.Options{
		Region: "us-east-1", BaseEndpoint: &url, RetryMaxAttempts: 1, Credentials: credentials.NewStaticCredentialsProvider("AKID", secret, ""),
	}))
}

// codeOf returns the code of an API's error; "" for none.
func codeOf(err error) string {
	var refused smithy.APIError
	if errors.As(err, &refused) {
		return refused.ErrorCode()
	}
	return ""
}

// The operations work at a server that checks signatures. Package program compares the requests with
// those of the SDK's client.
func TestClient(t *testing.T) {
	db, err := mayfly.Open("", mayfly.Options{Credentials: []mayfly.Credential{{AccessKey: "AKID", SecretKey: "secret"}}})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	server := httptest.NewServer(db.Handler())
	defer server.Close()
	ctx := t.Context()
	made, err := db.DynamoDB().CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName: aws.String("orders"), BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
		StreamSpecification:  &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewImage},
	})
	if err != nil {
		t.Fatal(err)
	}
	c := clientOf(server.URL, "secret")
	stream := *made.TableDescription.LatestStreamArn
	var created, got, changed, deleted mapping
	in := map[string]any{"EventSourceArn": stream, "FunctionName": "<f&g>", "StartingPosition": "LATEST", "BatchSize": 7, "Enabled": false}
	if err := c.Create(ctx, in, &created); codeOf(err) != "ValidationException" && codeOf(err) != "InvalidParameterValueException" {
		t.Errorf("a bad name of a function: %v", err)
	}
	in["FunctionName"] = "f"
	if err := c.Create(ctx, in, &created); err != nil || created.UUID == "" || created.EventSourceArn != stream {
		t.Fatalf("%+v, %v", created, err)
	}
	if err := c.Get(ctx, created.UUID, &got); err != nil || got.BatchSize != 7 || got.UUID != created.UUID {
		t.Errorf("%+v, %v", got, err)
	}
	if err := c.Update(ctx, created.UUID, map[string]any{"BatchSize": 9}, &changed); err != nil || changed.BatchSize != 9 {
		t.Errorf("%+v, %v", changed, err)
	}
	var page struct{ EventSourceMappings []mapping }
	if err := c.List(ctx, url.Values{"EventSourceArn": {stream}}, &page); err != nil || len(page.EventSourceMappings) != 1 || page.EventSourceMappings[0].UUID != created.UUID {
		t.Errorf("%+v, %v", page, err)
	}
	page.EventSourceMappings = nil
	if err := c.List(ctx, url.Values{"FunctionName": {"g"}}, &page); err != nil || len(page.EventSourceMappings) != 0 {
		t.Errorf("of another function: %+v, %v", page, err)
	}
	if err := c.Delete(ctx, created.UUID, &deleted); err != nil || deleted.UUID != created.UUID {
		t.Errorf("%+v, %v", deleted, err)
	}
	if err := c.Get(ctx, "none/of these", &got); codeOf(err) != "ResourceNotFoundException" {
		t.Errorf("an unknown UUID: %v", err)
	}
	for _, err := range []error{c.Get(ctx, "", &got), c.Update(ctx, "", in, &got), c.Delete(ctx, "", &got)} {
		if !errors.Is(err, mappings.ErrNoUUID) {
			t.Errorf("an empty UUID: %v", err)
		}
	}
	if err := clientOf(server.URL, "guess").List(ctx, nil, &page); codeOf(err) != "InvalidSignatureException" {
		t.Errorf("a wrong secret: %v", err)
	}
}

// An answer that is too large, or no JSON, is an error, as is no answer.
func TestClientBadAnswers(t *testing.T) {
	var status int
	var body string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		w.Write([]byte(body))
	}))
	defer server.Close()
	var out mapping
	for _, c := range []struct {
		status     int
		body, want string
	}{
		{200, `{"UUID":"` + strings.Repeat("x", mappings.AnswerMax) + `"}`, "request body too large"},
		{200, `<html>`, "invalid character"},
		{200, `{"UUID":7}`, "cannot unmarshal number"},
		{403, `<html>`, "invalid character"},
		{403, `{}`, "UnknownError"},
		{404, `{"__type":"com.amazonaws#ResourceNotFoundException","Message":"no such thing"}`, "ResourceNotFoundException: no such thing"},
	} {
		status, body = c.status, c.body
		if err := clientOf(server.URL, "secret").Get(t.Context(), "u", &out); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%d %.40s: %v, want %s", c.status, c.body, err, c.want)
		}
	}
	status, body = http.StatusAccepted, ""
	if err := clientOf(server.URL, "secret").Delete(t.Context(), "u", &out); err != nil {
		t.Errorf("an empty answer: %v", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	var failed *smithy.OperationError
	if err := clientOf("http://"+l.Addr().String(), "secret").Get(t.Context(), "u", &out); !errors.As(err, &failed) || failed.Operation() != "GetEventSourceMapping" {
		t.Errorf("nothing listens: %v", err)
	}
}
