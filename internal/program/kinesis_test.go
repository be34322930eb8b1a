package program

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestServeKinesisDestination: a server delivers the changes of a table to the webhook that its file
// of targets maps to a Kinesis stream.
func TestServeKinesisDestination(t *testing.T) {
	bodies := make(chan string, 10)
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		bodies <- string(body)
	}))
	t.Cleanup(hook.Close)
	dir := t.TempDir()
	text := fmt.Sprintf("targets:\n  - arn: \"arn:aws:kinesis:*:*:stream/*\"\n    webhook: {url: %q, mode: plain}\n", hook.URL)
	if err := os.WriteFile(filepath.Join(dir, "targets.yaml"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	server, err := startServer(dir, nil, "--memory", "--targets", "targets.yaml")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.kill)
	call := func(operation, body string) {
		t.Helper()
		callDynamoDB(t, server.url, operation, body)
	}
	call("CreateTable", `{"TableName":"orders","AttributeDefinitions":[{"AttributeName":"id","AttributeType":"S"}],"KeySchema":[{"AttributeName":"id","KeyType":"HASH"}],"BillingMode":"PAY_PER_REQUEST"}`)
	call("EnableKinesisStreamingDestination", `{"TableName":"orders","StreamArn":"arn:aws:kinesis:us-east-1:000000000000:stream/orders"}`)
	call("PutItem", `{"TableName":"orders","Item":{"id":{"S":"a"}}}`)
	select {
	case body := <-bodies:
		if !strings.HasPrefix(body, `{"awsRegion":"us-east-1","eventID":"`) || !strings.Contains(body, `"NewImage":{"id":{"S":"a"}},"SizeBytes":6},"eventSource":"aws:dynamodb"}`) {
			t.Errorf("the webhook got %s", body)
		}
	case <-time.After(time.Minute):
		t.Fatalf("nothing has come\n%s", server.logged())
	}
	if log := server.logged(); strings.Contains(log, "gets no records") {
		t.Errorf("log: %s", log)
	}
}
