package sdk

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/logging"

	"github.com/mayflydb/mayfly/internal/sdk/options"
)

// An answer without x-amz-crc32, as from ScyllaDB Alternator, leaves no line in the log of a client
// that a user has made with the SDK's defaults, nor in ours.
func TestAnswerWithoutChecksum(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte(`{"TableNames":[]}`)) }))
	defer server.Close()
	var theirs, ours bytes.Buffer
	config := aws.Config{Region: "us-east-1", BaseEndpoint: &server.URL, Credentials: credentials.NewStaticCredentialsProvider("k", "s", ""), Logger: logging.NewStandardLogger(&theirs)}
	plain := dynamodb.NewFromConfig(config)
	list := func(c *dynamodb.Client) {
		t.Helper()
		if _, err := c.ListTables(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
	if list(plain); !strings.Contains(theirs.String(), "checksum") {
		t.Errorf("the SDK has changed; its log is %q", theirs.String())
	}
	theirs.Reset()
	list(DynamoDB(config))
	list(Watched(plain, slog.New(slog.NewTextHandler(&ours, nil))))
	if theirs.Len()+ours.Len() > 0 {
		t.Errorf("the logs have %q and %q", theirs.String(), ours.String())
	}
}

// The SDK's lines have the form and the level of the program's log.
func TestLogger(t *testing.T) {
	var lines bytes.Buffer
	l := options.Logger(slog.New(slog.NewJSONHandler(&lines, &slog.HandlerOptions{Level: slog.LevelWarn})))
	l.Logf(logging.Debug, "silent")
	l.Logf(logging.Warn, "failed %d times", 3)
	if got := lines.String(); !strings.Contains(got, `"level":"WARN","msg":"AWS SDK: failed 3 times"`) || strings.Contains(got, "silent") {
		t.Error(got)
	}
}

// A watched client repeats a call that a gateway answered with 429 and no code, as often as its
// retryer allows.
func TestWatchedRepeatsThrottledCalls(t *testing.T) {
	var calls atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if calls.Add(1) < 3 {
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		w.Write([]byte(`{"TableNames":[]}`))
	}))
	defer server.Close()
	config := aws.Config{Region: "us-east-1", BaseEndpoint: &server.URL, Credentials: credentials.NewStaticCredentialsProvider("k", "s", "")}
	watched := Watched(DynamoDB(config), slog.New(slog.DiscardHandler))
	once := Watched(watched, slog.New(slog.DiscardHandler), func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} })
	if _, err := once.ListTables(t.Context(), nil); err == nil || calls.Load() != 1 {
		t.Errorf("%d calls without retries, and %v", calls.Load(), err)
	}
	if _, err := watched.ListTables(t.Context(), nil); err != nil || calls.Load() != 3 {
		t.Errorf("%d calls, and %v", calls.Load(), err)
	}
}
