package aws

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/sink/aws/lambdatest"
	"github.com/mayflydb/mayfly/target"
)

const ordersARN = "arn:aws:lambda:us-east-1:123456789012:function:orders"

// startLambda runs the function of these tests.
func startLambda(t *testing.T) (*lambdatest.Runtime, *Sink) {
	t.Helper()
	orders := lambdatest.Self("orders")
	orders.Timeout = 5 * time.Second
	hasty := lambdatest.Self("orders")
	hasty.Timeout = 50 * time.Millisecond
	runtime, err := lambdatest.Start(map[string]lambdatest.Function{"orders": orders, "hasty": hasty, "missing": {Command: []string{"/no/such/program"}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := runtime.Close(); err != nil {
			t.Error(err)
		}
	})
	return runtime, sinkAt(t, runtime.URL())
}

// A schedule's firing is an event: Lambda takes it, and the function runs it.
func TestLambdaEvent(t *testing.T) {
	runtime, s := startLambda(t)
	if err := deliver(t.Context(), s, target.Delivery{TargetARN: ordersARN, Body: []byte(`{"Do":"fail"}`)}); err != nil {
		t.Errorf("what the function makes of an event is not the caller's business: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	ended, err := runtime.Finished(ctx, "orders", 1)
	if err != nil || string(ended[0].Event) != `{"Do":"fail"}` || ended[0].Failure != "Unhandled" {
		t.Errorf("%s, %v", ended, err)
	}
}

// A trigger waits for the answer, which may name the records that failed.
func TestLambdaAnswers(t *testing.T) {
	_, s := startLambda(t)
	for body, want := range map[string]string{
		`{}`: `{"done":true}`,
		`{"Do":"part","Records":[{"dynamodb":{"SequenceNumber":"1"}},{"dynamodb":{"SequenceNumber":"2"}}]}`: `{"batchItemFailures":[{"itemIdentifier":"2"}]}`,
	} {
		answer, err := s.Invoke(t.Context(), target.Delivery{ID: "d", TargetARN: ordersARN, Body: []byte(body)})
		if err != nil || string(answer) != want {
			t.Errorf("%s: %s, %v", body, answer, err)
		}
	}
}

// A function's own failure differs from a failure to run it.
func TestLambdaFailures(t *testing.T) {
	runtime, s := startLambda(t)
	for _, c := range []struct{ function, body, kind, says string }{
		{"orders", `{"Do":"fail"}`, "errorString", "no such order"},
		{"orders", `{"Do":"panic"}`, "", "out of paper"},
		{"orders", `{"Do":"exit"}`, "Runtime.ExitError", "exit status 3"},
		{"hasty", `{"Do":"hang"}`, "Sandbox.Timedout", "Task timed out after 50ms"},
		{"missing", `{}`, "Runtime.InvalidEntrypoint", "no such file"},
	} {
		_, err := s.Invoke(t.Context(), target.Delivery{ID: "d", TargetARN: strings.Replace(ordersARN, "orders", c.function, 1), Body: []byte(c.body)})
		var failed *target.FunctionError
		if !errors.As(err, &failed) || failed.Kind != "Unhandled" || c.kind != "" && failed.Type != c.kind || !strings.Contains(failed.Message, c.says) || failed.Version != "$LATEST" {
			t.Errorf("%s %s: %v", c.function, c.body, err)
		}
		if e := target.AsError(err); e.Code != "Unhandled" || e.Permanent || e.Throttled {
			t.Errorf("%s %s: %+v", c.function, c.body, e)
		}
	}
	// It goes on after all of that.
	if answer, err := s.Invoke(t.Context(), target.Delivery{ID: "d", TargetARN: ordersARN}); err != nil || string(answer) != `{"done":true}` {
		t.Errorf("afterwards: %s, %v", answer, err)
	}

	runtime.Throttle("orders", 1)
	var failed *target.FunctionError
	_, err := s.Invoke(t.Context(), target.Delivery{ID: "d", TargetARN: ordersARN})
	if e := target.AsError(err); errors.As(err, &failed) || e == nil || e.Code != "TooManyRequestsException" || !e.Throttled || e.After != time.Second {
		t.Errorf("throttled: %+v", e)
	}
	_, err = s.Invoke(t.Context(), target.Delivery{ID: "d", TargetARN: ordersARN + "x"})
	if e := target.AsError(err); errors.As(err, &failed) || e == nil || e.Code != "ResourceNotFoundException" || !e.Permanent {
		t.Errorf("not there: %+v", e)
	}
	_, err = s.Invoke(t.Context(), target.Delivery{ID: "d", TargetARN: ordersARN, Body: []byte("text")})
	if e := target.AsError(err); e == nil || e.Code != "InvalidRequestContentException" || !e.Permanent {
		t.Errorf("no JSON: %+v", e)
	}
}

// Invoke delivers to a target without answers.
func TestInvokeElsewhere(t *testing.T) {
	e := startEndpoint(t)
	s := sinkAt(t, e.URL)
	if answer, err := s.Invoke(t.Context(), target.Delivery{ID: "d", TargetARN: queueARN, Body: []byte("x")}); err != nil || answer != nil || e.one().operation != "SendMessage" {
		t.Errorf("%s, %v", answer, err)
	}
	if _, err := s.Invoke(t.Context(), target.Delivery{ID: "d", TargetARN: "x"}); target.AsError(err) == nil {
		t.Error("of no ARN")
	}
}

// An answer that is not JSON still contains the reason.
func TestFunctionErrorText(t *testing.T) {
	e := startEndpoint(t)
	s := sinkAt(t, e.URL)
	for body, want := range map[string]string{
		`{"errorType":"Oops","errorMessage":"why"}`: "Oops: why",
		`{"errorType":"Oops"}`:                      "Oops",
		`{"errorMessage":{"a":1}}`:                  `{"errorMessage":{"a":1}}`,
		"out of memory":                             "out of memory",
		strings.Repeat("x", 3000):                   strings.Repeat("x", messageMax),
	} {
		e.answers(func(request) *answer {
			return &answer{body: body, header: map[string]string{"X-Amz-Function-Error": "Handled"}}
		})
		_, err := s.Invoke(t.Context(), target.Delivery{ID: "d", TargetARN: ordersARN})
		var failed *target.FunctionError
		if !errors.As(err, &failed) || failed.Kind != "Handled" || string(failed.Answer) != body || target.AsError(err).Message != want {
			t.Errorf("%s: %v", body, err)
		}
	}
}
