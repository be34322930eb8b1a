package program

import (
	"context"
	"fmt"
	"net"
	"net/http/httptrace"
	"syscall"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/mayflydb/mayfly/conformance"
)

// serveDir starts a server on a directory; it ends with the test at the latest.
func serveDir(t *testing.T, dir string, args ...string) *served {
	t.Helper()
	s, err := startServer(t.TempDir(), nil, append([]string{"--data", dir}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.kill)
	return s
}

// clients talk to a server over HTTP as an application does. They share their connections.
func (s *served) clients() (*dynamodb.Client, *dynamodbstreams.Client) {
	s.connected.Do(func() { s.connections = conformance.HTTPClient() })
	config := aws.Config{
		Region: "us-east-1", BaseEndpoint: &s.url, Credentials: credentials.NewStaticCredentialsProvider("any", "any", ""),
		HTTPClient: s.connections,
	}
	return dynamodb.NewFromConfig(config), dynamodbstreams.NewFromConfig(config)
}

// once is the option of a call that is not tried again: what counts is its first answer.
func once(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} }

// createEvents makes a table with TTL, a stream and an index on the owner.
func createEvents(ctx context.Context, api *dynamodb.Client) (stream string, err error) {
	out, err := api.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName: aws.String("events"),
		AttributeDefinitions: []types.AttributeDefinition{
			{AttributeName: aws.String("pk"), AttributeType: types.ScalarAttributeTypeS},
			{AttributeName: aws.String("owner"), AttributeType: types.ScalarAttributeTypeS},
		},
		KeySchema: []types.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: types.KeyTypeHash}},
		GlobalSecondaryIndexes: []types.GlobalSecondaryIndex{{
			IndexName:  aws.String("byOwner"),
			KeySchema:  []types.KeySchemaElement{{AttributeName: aws.String("owner"), KeyType: types.KeyTypeHash}},
			Projection: &types.Projection{ProjectionType: types.ProjectionTypeAll},
		}},
		BillingMode: types.BillingModePayPerRequest,
		StreamSpecification: &types.StreamSpecification{
			StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewAndOldImages,
		},
	})
	if err != nil {
		return "", err
	}
	_, err = api.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
		TableName:               aws.String("events"),
		TimeToLiveSpecification: &types.TimeToLiveSpecification{Enabled: aws.Bool(true), AttributeName: aws.String("ttl")},
	})
	return aws.ToString(out.TableDescription.LatestStreamArn), err
}

// A request that is under way when the server is asked to stop gets its answer, and the server exits with 0.
func TestTerminateFinishesRequests(t *testing.T) {
	s := serveDir(t, t.TempDir())
	api, streams := s.clients()
	stream, err := createEvents(t.Context(), api)
	if err != nil {
		t.Fatal(err)
	}
	description, err := streams.DescribeStream(t.Context(), &dynamodbstreams.DescribeStreamInput{StreamArn: &stream})
	if err != nil {
		t.Fatal(err)
	}
	iterator, err := streams.GetShardIterator(t.Context(), &dynamodbstreams.GetShardIteratorInput{
		StreamArn: &stream, ShardId: description.StreamDescription.Shards[0].ShardId, ShardIteratorType: streamtypes.ShardIteratorTypeLatest,
	})
	if err != nil {
		t.Fatal(err)
	}
	// A reader that waits for records is the one request that lasts.
	sent, answered := make(chan struct{}), make(chan error, 1)
	var connection net.Conn
	go func() {
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
			GotConn:      func(got httptrace.GotConnInfo) { connection = got.Conn },
			WroteRequest: func(httptrace.WroteRequestInfo) { close(sent) },
		})
		_, err := streams.GetRecords(ctx, &dynamodbstreams.GetRecordsInput{ShardIterator: iterator.ShardIterator},
			func(o *dynamodbstreams.Options) {
				o.APIOptions = append(o.APIOptions, smithyhttp.SetHeaderValue("X-Mayfly-Wait-Ms", "2000"))
				o.Retryer = aws.NopRetryer{} // the first answer is what counts
			})
		answered <- err
	}()
	<-sent
	awaitRead(t, connection.LocalAddr())
	for range 3 { // what the server has read before is under way when these are answered
		if _, err := api.ListTables(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
	code, err := s.stop(syscall.SIGTERM)
	if err != nil || code != "0" {
		t.Errorf("exited with %s, %v\n%s", code, err, s.logged())
	}
	if err := <-answered; err != nil {
		t.Errorf("the request under way: %v", err)
	}
}

// What one server has kept the next one finds, and Ctrl-C ends a server as SIGTERM does.
func TestInterruptAndStartAgain(t *testing.T) {
	dir := t.TempDir()
	for i := range 3 {
		s := serveDir(t, dir)
		api, _ := s.clients()
		name := fmt.Sprintf("table-%d", i)
		_, err := api.CreateTable(t.Context(), &dynamodb.CreateTableInput{
			TableName:            &name,
			AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("pk"), AttributeType: types.ScalarAttributeTypeS}},
			KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: types.KeyTypeHash}},
			BillingMode:          types.BillingModePayPerRequest,
		})
		if err != nil {
			t.Fatal(err)
		}
		tables, err := api.ListTables(t.Context(), nil)
		if err != nil || len(tables.TableNames) != i+1 {
			t.Errorf("start %d: %v, %v", i, tables.TableNames, err)
		}
		if code, err := s.stop(syscall.SIGINT); err != nil || code != "0" {
			t.Errorf("exited with %s, %v\n%s", code, err, s.logged())
		}
	}
}

// report prints the advice behind the error, and only there.
func TestReport(t *testing.T) {
	var out buffer
	if code := report(&out, nil); code != exitOK || out.String() != "" {
		t.Errorf("nil: %d %q", code, out.String())
	}
	if code := report(&out, fmt.Errorf("outer: %w", advise(fmt.Errorf("inner"), "do %s", "this"))); code != exitError {
		t.Errorf("code %d", code)
	}
	if want := "mayfly: outer: inner\n  next: do this\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

func TestByteSize(t *testing.T) {
	for text, want := range map[string]byteSize{"0": 0, "4096": 4096, "64KB": 64 << 10, "64mb": 64 << 20, "2GB": 2 << 30, "3 MB": 3 << 20} {
		var b byteSize
		if err := b.UnmarshalText([]byte(text)); err != nil || b != want {
			t.Errorf("%s: %d, %v", text, b, err)
		}
	}
	for _, text := range []string{"", "MB", "-1", "1.5GB", "64 parsecs", "9999999999GB"} {
		if err := new(byteSize).UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

func TestExposure(t *testing.T) {
	for _, host := range []string{"127.0.0.1", "127.3.2.1", "localhost", "::1"} {
		if err := checkExposure(host, false, false, "--access-key"); err != nil {
			t.Errorf("%s: %v", host, err)
		}
	}
	for _, host := range []string{"0.0.0.0", "::", "", "192.168.0.1", "example.com"} {
		if err := checkExposure(host, false, false, "--access-key"); err == nil {
			t.Errorf("%q is open to everyone", host)
		}
		if checkExposure(host, true, false, "--access-key") != nil || checkExposure(host, false, true, "--access-key") != nil {
			t.Errorf("%q is refused although it is protected or asked for", host)
		}
	}
}
