package console

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/mayflydb/mayfly"
)

// TestUnknown: tables, lifecycles and pages that do not exist are answered with 404.
func TestUnknown(t *testing.T) {
	s := open(t, mayfly.Options{})
	s.table("things")
	for _, pattern := range patterns(t, http.MethodGet) {
		if !strings.HasPrefix(pattern, "table/") {
			continue
		}
		path := strings.ReplaceAll(pattern, "{table}", "none-such")
		if text := s.get(path, nil).refused(t, http.StatusNotFound); !strings.Contains(text, "ResourceNotFoundException") {
			t.Errorf("%s: %.300s", path, text)
		}
	}
	for _, pattern := range patterns(t, http.MethodPost) {
		if !strings.Contains(pattern, "{table}") {
			continue
		}
		for _, form := range changes[pattern] {
			fields := withToken(form.fields, s.token())
			if fields.Get("do") == "delete" && pattern == "table/{table}" {
				fields.Set("name", "none-such")
			}
			if text := s.submit(strings.ReplaceAll(pattern, "{table}", "none-such"), fields).refused(t, http.StatusNotFound); !strings.Contains(text, "ResourceNotFoundException") {
				t.Errorf("%s %v: %.300s", pattern, form.fields, text)
			}
		}
	}
	for _, path := range []string{"lifecycle/none", "lifecycle/none/entity?id=a", "lifecycle/none/drawing.svg"} {
		s.get(path, nil).refused(t, http.StatusNotFound)
	}
	for _, path := range []string{"nowhere", "table", "table/things/none", "table/things/", "asset", "live/none"} {
		if text := s.get(path, nil).refused(t, http.StatusNotFound); !strings.Contains(text, "There is no such page.") {
			t.Errorf("%s: %.300s", path, text)
		}
	}
	live := s.get("live/stream/none-such", nil)
	if events := readEvents(t, live.body); len(events) != 1 || events[0].kind != "replace" || events[0].id != "problem" || !strings.Contains(events[0].html, "ResourceNotFoundException") {
		t.Errorf("the stream of an unknown table has the events %q", live.body)
	}
}

// TestEndpointDown: pages of an endpoint that does not run are answered with 502. They say what to
// do and name the address.
func TestEndpointDown(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	down := "http://" + free.Addr().String()
	must(t, free.Close())
	server := httptest.NewServer(Handler(Options{URL: down, Config: aws.Config{Region: "us-east-1", Retryer: func() aws.Retryer { return aws.NopRetryer{} }}}))
	defer server.Close()
	s := visitor(t, server.URL, nil)
	for _, path := range []string{"tables", "table/things", "table/things/items", "table/things/export", "deadletters", "reminders"} {
		text := s.get(path, nil).refused(t, http.StatusBadGateway)
		if !strings.Contains(text, "The endpoint cannot be reached. Check that it runs") || !strings.Contains(text, down) {
			t.Errorf("%s: %.500s", path, text)
		}
	}
	if a := s.do(http.MethodGet, root, "", ""); a.status != http.StatusBadGateway {
		t.Errorf("the first page has the status %d", a.status)
	}
	s.page("new", nil) // it needs no answer
	text := s.post("table/things", url.Values{"do": {"stream-off"}}).refused(t, http.StatusBadGateway)
	if !strings.Contains(text, "The endpoint cannot be reached.") {
		t.Errorf("a change: %.300s", text)
	}
}

// TestNoAnswerInTime: a page waits for the endpoint for twenty seconds, and is then answered with
// 504.
func TestNoAnswerInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		silent := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		pages := New(silent)
		for _, path := range []string{root, below + "tables", below + "table/things/items", below + "table/things/export"} {
			w := httptest.NewRecorder()
			pages.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
			a := answer{w.Code, w.Header(), w.Body.String(), path}
			if text := a.refused(t, http.StatusGatewayTimeout); !strings.Contains(text, fmt.Sprintf("The endpoint did not answer within %s.", callMost)) {
				t.Errorf("%s: %.300s", path, text)
			}
		}
	})
}

// TestFaultsOfEndpoint: a fault of the endpoint is answered with 502 and with its message.
func TestFaultsOfEndpoint(t *testing.T) {
	for body, want := range map[string]string{
		`{"__type":"com.amazonaws.dynamodb.v20120810#InternalServerError","message":"<b>it broke"}`: "InternalServerError: <b>it broke", `<html>a proxy</html>`: "", ``: "The endpoint answered with the status 500 and no reason.",
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = w.Write([]byte(body))
		}))
		pages := httptest.NewServer(Handler(Options{URL: server.URL, Config: aws.Config{Region: "us-east-1", Retryer: func() aws.Retryer { return aws.NopRetryer{} }}}))
		if text := visitor(t, pages.URL, nil).get("tables", nil).refused(t, http.StatusBadGateway); !strings.Contains(text, want) {
			t.Errorf("%q: %.500s; want %q", body, text, want)
		}
		pages.Close()
		server.Close()
	}
}
