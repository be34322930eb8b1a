package aws

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/mayflydb/mayfly/internal/sink/aws/lambdatest"
)

func TestMain(m *testing.M) {
	lambdatest.Main(map[string]any{"orders": orders})
	goleak.VerifyTestMain(m)
}

// orders is the Lambda function of these tests: it answers as its event asks it to.
func orders(_ context.Context, event struct {
	Do      string
	Records []struct {
		Dynamodb struct{ SequenceNumber string }
	}
}) (json.RawMessage, error) {
	switch event.Do {
	case "fail":
		return nil, errors.New("no such order")
	case "panic":
		panic("out of paper")
	case "exit":
		os.Exit(3)
	case "hang":
		select {}
	case "part":
		return json.Marshal(map[string]any{"batchItemFailures": []any{map[string]string{"itemIdentifier": event.Records[1].Dynamodb.SequenceNumber}}})
	}
	return json.RawMessage(`{"done":true}`), nil
}
