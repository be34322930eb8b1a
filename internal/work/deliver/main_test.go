package deliver_test

import (
	"context"
	"log/slog"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"go.uber.org/goleak"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/testkit"
)

func TestMain(m *testing.M) {
	testkit.CollectSeldom()
	goleak.VerifyTestMain(m)
}

// patience is how long a test waits for an expected event.
const patience = 30 * time.Second

// endpoint is a database and the clients that a worker gets.
type endpoint struct {
	*mayfly.DB
	db      *dynamodb.Client
	streams *dynamodbstreams.Client
}

// open returns a database in memory, or in a directory.
func open(t testing.TB, dir string, o mayfly.Options) *endpoint {
	t.Helper()
	db, err := mayfly.Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return &endpoint{db, db.DynamoDB(), db.Streams()}
}

// overHTTP returns the same database with clients over HTTP.
func (e *endpoint) overHTTP(t testing.TB) *endpoint {
	server := httptest.NewServer(e.Handler())
	t.Cleanup(server.Close)
	client := server.Client()
	t.Cleanup(client.CloseIdleConnections)
	config := aws.Config{Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("k", "s", ""), BaseEndpoint: &server.URL, HTTPClient: client}
	return &endpoint{e.DB, dynamodb.NewFromConfig(config), dynamodbstreams.NewFromConfig(config)}
}

// everywhere runs a test in process and over HTTP.
func everywhere(t *testing.T, o mayfly.Options, test func(*testing.T, *endpoint)) {
	t.Run("in process", func(t *testing.T) { test(t, open(t, "", o)) })
	t.Run("HTTP", func(t *testing.T) { test(t, open(t, "", o).overHTTP(t)) })
}

// table makes a table with the key k, TTL on the attribute ttl and a stream.
func (e *endpoint) table(t testing.TB, name string) {
	t.Helper()
	_, err := e.db.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: &name, BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("k"), AttributeType: "S"}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("k"), KeyType: "HASH"}},
		StreamSpecification:  &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewAndOldImages},
	})
	must(t, err)
	_, err = e.db.UpdateTimeToLive(t.Context(), &dynamodb.UpdateTimeToLiveInput{
		TableName: &name, TimeToLiveSpecification: &types.TimeToLiveSpecification{Enabled: aws.Bool(true), AttributeName: aws.String("ttl")},
	})
	must(t, err)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// await waits until a condition holds.
func await(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for limit := time.Now().Add(patience); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("waited in vain until %s", what)
		}
	}
}

// run runs something until stop is called, at the latest at the end of the test.
func run(t testing.TB, f func(ctx context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- f(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ran; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// logger writes to the test's log.
func logger(t testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(writerTo{t}, nil))
}

type writerTo struct{ t testing.TB }

func (w writerTo) Write(p []byte) (int, error) {
	w.t.Log(strings.TrimSpace(string(p)))
	return len(p), nil
}
