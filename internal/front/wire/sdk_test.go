package wire

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/smithy-go"

	"github.com/mayflydb/mayfly/internal/front/keys"
	"github.com/mayflydb/mayfly/internal/front/sigv4"
)

// The SDK's clients work unchanged, over a socket with signatures and over the in-process
// transport.
func TestSDKClients(t *testing.T) {
	s := newTestServer(t, Options{
		Keys: keys.Fixed(sigv4.Credential{AccessKey: "AKID", SecretKey: "secret"}),
	})
	server := httptest.NewServer(s)
	defer server.Close()
	good := credentials.NewStaticCredentialsProvider("AKID", "secret", "")
	bad := credentials.NewStaticCredentialsProvider("AKID", "wrong", "")

	t.Run("socket", func(t *testing.T) {
		exercise(t, dynamodb.Options{BaseEndpoint: &server.URL, Region: "eu-west-1", Credentials: good}, "Socket")
	})
	t.Run("gzip", func(t *testing.T) {
		exercise(t, dynamodb.Options{BaseEndpoint: &server.URL, Region: "eu-west-1", Credentials: good, EnableAcceptEncodingGzip: true}, "Packed")
	})
	t.Run("in process", func(t *testing.T) {
		exercise(t, dynamodb.Options{BaseEndpoint: aws.String("http://in.process"), Region: "eu-west-1", Credentials: bad,
			HTTPClient: &http.Client{Transport: Transport{Server: s}}}, "Process")
	})
	t.Run("wrong secret", func(t *testing.T) {
		db := dynamodb.New(dynamodb.Options{BaseEndpoint: &server.URL, Region: "eu-west-1", Credentials: bad, RetryMaxAttempts: 1})
		_, err := db.ListTables(t.Context(), &dynamodb.ListTablesInput{})
		var refused smithy.APIError
		if !errors.As(err, &refused) || refused.ErrorCode() != "InvalidSignatureException" {
			t.Errorf("got %v", err)
		}
	})
}

// exercise writes a large item to a new table, and reads it back from the table and from its
// stream.
func exercise(t *testing.T, o dynamodb.Options, table string) {
	ctx := t.Context()
	db := dynamodb.New(o)
	_, err := db.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName: &table, BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("k"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("k"), KeyType: types.KeyTypeHash}},
		StreamSpecification:  &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewImage},
	})
	if err != nil {
		t.Fatal(err)
	}
	described, err := db.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &table})
	if err != nil {
		t.Fatal(err)
	}
	if age := time.Since(*described.Table.CreationDateTime); age < -time.Minute || age > time.Minute {
		t.Errorf("created %v ago", age)
	}
	large := strings.Repeat("ü", 5000)
	item := map[string]types.AttributeValue{
		"k": &types.AttributeValueMemberS{Value: "a"}, "x": &types.AttributeValueMemberS{Value: large},
		"b": &types.AttributeValueMemberB{Value: []byte{0, 255}},
	}
	if _, err := db.PutItem(ctx, &dynamodb.PutItemInput{TableName: &table, Item: item}); err != nil {
		t.Fatal(err)
	}
	got, err := db.GetItem(ctx, &dynamodb.GetItemInput{TableName: &table, Key: map[string]types.AttributeValue{"k": item["k"]}})
	if err != nil {
		t.Fatal(err)
	}
	want(t, got.Item["x"].(*types.AttributeValueMemberS).Value, large)
	want(t, got.Item["b"].(*types.AttributeValueMemberB).Value, []byte{0, 255})

	_, err = db.PutItem(ctx, &dynamodb.PutItemInput{TableName: &table, Item: item, ConditionExpression: aws.String("attribute_not_exists(k)"),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld})
	var failed *types.ConditionalCheckFailedException
	if !errors.As(err, &failed) || len(failed.Item) != 3 {
		t.Errorf("got %v", err)
	}
	streams := dynamodbstreams.New(dynamodbstreams.Options{BaseEndpoint: o.BaseEndpoint, Region: o.Region, Credentials: o.Credentials, HTTPClient: o.HTTPClient})
	listed, err := streams.ListStreams(ctx, &dynamodbstreams.ListStreamsInput{TableName: &table})
	if err != nil || len(listed.Streams) != 1 {
		t.Fatalf("%v %v", listed, err)
	}
}
