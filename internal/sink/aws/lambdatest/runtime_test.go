package lambdatest

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	Main(map[string]any{
		"echo": func(_ context.Context, event map[string]any) (map[string]any, error) { return event, nil },
		"hang": func() { select {} },
		"long": func() (string, error) { return strings.Repeat("x", bodyMax), nil },
	})
	// After a request that was cut off the HTTP server holds the connection for half a second.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*conn).closeWriteAndWait"))
}

// Requests are answered like Lambda's.
func TestInvoke(t *testing.T) {
	r, err := Start(map[string]Function{"echo": Self("echo"), "long": Self("long")})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	client := http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	for _, c := range []struct {
		path, kind, body string
		status           int
		code, says       string
	}{
		{"/functions/echo/invocations", "", `{"a":1}`, 200, "", `{"a":1}`},
		{"/functions/echo/invocations", "RequestResponse", ``, 200, "", `{}`},
		{"/functions/arn%3Aaws%3Alambda%3Aus-east-1%3A1%3Afunction%3Aecho%3Alive/invocations", "RequestResponse", `{}`, 200, "", `{}`},
		{"/functions/echo:1/invocations", "Event", `{}`, 202, "", ""},
		{"/functions/echo/invocations", "DryRun", `{}`, 204, "", ""},
		{"/functions/echo/invocations", "Tomorrow", `{}`, 400, "InvalidParameterValueException", "Tomorrow"},
		{"/functions/echo/invocations", "", `{`, 400, "InvalidRequestContentException", "parse"},
		{"/functions/echo/invocations", "", `"` + strings.Repeat("x", bodyMax) + `"`, 413, "RequestTooLargeException", "smaller"},
		{"/functions/none/invocations", "", `{}`, 404, "ResourceNotFoundException", "function:none"},
		{"/functions/echo", "", `{}`, 404, "UnknownOperationException", ""},
		{"/functions/long/invocations", "", `{}`, 200, "", "Function.ResponseSizeTooLarge"},
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.URL()+"/2015-03-31"+c.path, strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("X-Amz-Invocation-Type", c.kind)
		answer, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if answer.StatusCode != c.status || answer.Header.Get("X-Amzn-Errortype") != c.code || !strings.Contains(string(body), c.says) {
			t.Errorf("%s %s: %d %s %.200s", c.path, c.kind, answer.StatusCode, answer.Header.Get("X-Amzn-Errortype"), body)
		}
	}
}

// A function runs up to its concurrency. Beyond it, a waiting caller is throttled, and events wait.
func TestConcurrency(t *testing.T) {
	hang := Self("hang")
	hang.Concurrency, hang.Timeout = 2, time.Hour
	r, err := Start(map[string]Function{"hang": hang})
	if err != nil {
		t.Fatal(err)
	}
	client := http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	invoke := func(kind string) int {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.URL()+"/2015-03-31/functions/hang/invocations", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("X-Amz-Invocation-Type", kind)
		answer, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		return answer.StatusCode
	}
	for range 3 {
		if status := invoke("Event"); status != http.StatusAccepted {
			t.Errorf("event: %d", status)
		}
	}
	for len(r.functions["hang"].free) > 0 {
		time.Sleep(time.Millisecond)
	}
	if status := invoke("RequestResponse"); status != http.StatusTooManyRequests {
		t.Errorf("request: %d", status)
	}
	if err := r.Close(); err != nil { // ends all of it
		t.Error(err)
	}
	if _, err := r.Finished(t.Context(), "hang", 2); err != nil {
		t.Error(err)
	}
}
