package aws

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/target"
)

// A refusal has the service's own code and text, and the class that the scheduler's retries need.
func TestErrors(t *testing.T) {
	e := startEndpoint(t)
	s := sinkAt(t, e.URL)
	const (
		queue    = "arn:aws:sqs:us-east-1:1:q"
		topic    = "arn:aws:sns:us-east-1:1:t"
		function = "arn:aws:lambda:us-east-1:1:function:f"
		machine  = "arn:aws:states:us-east-1:1:stateMachine:m"
		stream   = "arn:aws:kinesis:us-east-1:1:stream/s"
	)
	for _, c := range []struct {
		arn                  string
		status               int
		code                 string
		permanent, throttled bool
	}{
		{queue, 400, "AWS.SimpleQueueService.NonExistentQueue", true, false},
		{queue, 403, "AccessDenied", true, false},
		{queue, 400, "InvalidMessageContents", true, false},
		{queue, 400, "RequestThrottled", false, true},
		{queue, 400, "ThrottlingException", false, true},
		{queue, 500, "InternalError", false, false},
		{queue, 503, "ServiceUnavailable", false, false},
		{queue, 403, "ExpiredToken", false, false},
		{queue, 403, "InvalidClientTokenId", true, false},
		{topic, 404, "NotFound", true, false},
		{topic, 429, "Throttled", false, true},
		{topic, 400, "KMSThrottlingException", false, true},
		{function, 404, "ResourceNotFoundException", true, false},
		{function, 429, "TooManyRequestsException", false, true},
		{function, 413, "RequestTooLargeException", true, false},
		{function, 400, "InvalidRequestContentException", true, false},
		{function, 409, "ResourceConflictException", false, false},
		{function, 502, "EC2ThrottledException", false, true},
		{function, 500, "ServiceException", false, false},
		{machine, 400, "StateMachineDoesNotExist", true, false},
		{machine, 400, "ExecutionLimitExceeded", true, false},
		{stream, 400, "ProvisionedThroughputExceededException", false, true},
		{stream, 400, "LimitExceededException", false, true},
		{stream, 400, "ResourceNotFoundException", true, false},
		{stream, 408, "RequestTimeout", false, false},
	} {
		e.answers(func(r request) *answer { return refusal(r, c.status, c.code, "the text") })
		err := deliver(t.Context(), s, target.Delivery{TargetARN: c.arn, Body: []byte(`{}`)})
		if err == nil || err.Code != c.code || err.Message != "the text" || err.Permanent != c.permanent || err.Throttled != c.throttled {
			t.Errorf("%s %d %s: %+v", c.arn, c.status, c.code, err)
		}
		if n := len(e.seen()); n != 1 {
			t.Errorf("%s: %d attempts", c.code, n)
		}
	}
}

// A service may set the time of the next attempt.
func TestRetryAfter(t *testing.T) {
	e := startEndpoint(t)
	s := sinkAt(t, e.URL)
	for header, want := range map[string]time.Duration{"7": 7 * time.Second, "-1": 0, "soon": 0, "999999999": retryAfterMax, "": 0} {
		e.answers(func(r request) *answer {
			a := refusal(r, 429, "TooManyRequestsException", "slow")
			a.header["Retry-After"] = header
			return a
		})
		if err := deliver(t.Context(), s, target.Delivery{TargetARN: "arn:aws:lambda:us-east-1:1:function:f"}); err == nil || err.After != want {
			t.Errorf("Retry-After %q: %+v", header, err)
		}
	}
}

// Answers of another server, and missing answers, differ from refusals.
func TestStrangeAnswers(t *testing.T) {
	for _, c := range []struct {
		name      string
		handler   http.HandlerFunc
		code      string
		says      string
		permanent bool
	}{
		{"another program", http.NotFound, "UnknownError", "HTTP 404 with an unknown error; check that the endpoint belongs to this service", true},
		{"a proxy that fails", func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "<h1>Bad Gateway</h1>", http.StatusBadGateway)
		}, "UnknownError", "HTTP 502 with an unknown error", false},
		{"success that is no JSON", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") }, codeMalformed, "HTTP 200 with an answer that does not follow this API", false},
		{"a redirect", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) }, "UnknownError", "HTTP 302 with an unknown error", false},
		{"an answer without end", endless, codeMalformed, "longer than 24 MB", false},
		{"an answer that breaks off", breakOff, codeMalformed, "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := httptest.NewServer(c.handler)
			defer server.Close()
			s := sinkAt(t, server.URL)
			err := deliver(t.Context(), s, target.Delivery{TargetARN: queueARN, Body: []byte("x")})
			if err == nil || err.Code != c.code || !strings.Contains(err.Message, c.says) || err.Permanent != c.permanent || err.Throttled {
				t.Errorf("%+v", err)
			}
		})
	}
}

func endless(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	chunk := []byte(strings.Repeat(" ", 1<<16))
	for {
		if _, err := w.Write(chunk); err != nil {
			return
		}
	}
}

func breakOff(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Length", "100")
	_, _ = io.WriteString(w, `{"MessageId"`)
}

// An unreachable or silent server is no permanent failure.
func TestUnreachable(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := "http://" + listener.Addr().String()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	s := sinkAt(t, address)
	if err := deliver(ctx, s, target.Delivery{TargetARN: queueARN, Body: []byte("x")}); err == nil || err.Code != codeTimeout || err.Permanent || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("nobody answers: %+v", err)
	}
	_ = listener.Close()
	if err := deliver(t.Context(), s, target.Delivery{TargetARN: queueARN, Body: []byte("x")}); err == nil || err.Code != codeUnreachable || err.Permanent || !strings.Contains(err.Message, "refused") {
		t.Errorf("nobody listens: %+v", err)
	}
}
