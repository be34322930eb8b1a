package target_test

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/target"
)

// The secret, ID, time, body and signature of the reference implementation's own test.
const (
	knownSecret    = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	knownID        = "msg_p5jXN8AQM9LWM0D4loKWxJek"
	knownBody      = `{"test": 2432232314}`
	knownSignature = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
)

var knownTime = time.Unix(1614265330, 0)

// received is a request as the server received it.
type received struct {
	*http.Request
	body string
}

// hook is a server that records requests and returns configured answers.
type hook struct {
	*httptest.Server
	mu     sync.Mutex
	got    []received
	answer func(w http.ResponseWriter, r received)
}

func serveHook(t testing.TB, answer func(w http.ResponseWriter, r received)) *hook {
	h := &hook{answer: answer}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		h.mu.Lock()
		h.got = append(h.got, received{r, string(body)})
		h.mu.Unlock()
		if h.answer != nil {
			h.answer(w, received{r, string(body)})
		}
	}))
	t.Cleanup(h.Close)
	return h
}

func newWebhook(t testing.TB, o target.WebhookOptions) *target.Webhook {
	t.Helper()
	if o.Now == nil {
		o.Now = func() time.Time { return knownTime }
	}
	w, err := target.NewWebhook(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	return w
}

// one delivers one delivery and returns its result.
func one(t testing.TB, to target.Target, d target.Delivery) *target.Error {
	t.Helper()
	results := to.Deliver(t.Context(), []target.Delivery{d})
	if len(results) != 1 {
		t.Fatalf("%d results for one delivery", len(results))
	}
	return target.AsError(results[0])
}

// The signature of a known message equals the reference implementation's, and each secret makes
// one.
func TestWebhookSignature(t *testing.T) {
	h := serveHook(t, nil)
	other := "whsec_" + base64.StdEncoding.EncodeToString([]byte("another secret of 24 bytes"))
	w := newWebhook(t, target.WebhookOptions{URL: h.URL, Mode: target.Plain, Secrets: []string{knownSecret, other}})
	if e := one(t, w, target.Delivery{ID: knownID, Body: []byte(knownBody)}); e != nil {
		t.Fatal(e)
	}
	got := h.got[0].Header
	signatures := strings.Split(got.Get("webhook-signature"), " ")
	if got.Get("webhook-id") != knownID || got.Get("webhook-timestamp") != "1614265330" || len(signatures) != 2 || signatures[0] != knownSignature ||
		!strings.HasPrefix(signatures[1], "v1,") || signatures[0] == signatures[1] {
		t.Errorf("%v", got)
	}
	if h.got[0].body != knownBody || got.Get("Content-Type") != "application/json" || h.got[0].Method != "POST" {
		t.Errorf("%s %q %v", h.got[0].Method, h.got[0].body, got)
	}
}

// An ID with a full stop would let one signature fit two messages, so its hash replaces it; the
// same at every attempt.
func TestWebhookIDWithStop(t *testing.T) {
	h := serveHook(t, nil)
	w := newWebhook(t, target.WebhookOptions{URL: h.URL})
	for range 2 {
		if e := one(t, w, target.Delivery{ID: "a.1"}); e != nil {
			t.Fatal(e)
		}
	}
	first, second := h.got[0].Header.Get("webhook-id"), h.got[1].Header.Get("webhook-id")
	if first != second || strings.Contains(first, ".") || len(first) != 32 || h.got[0].Header.Get("webhook-signature") != "" {
		t.Errorf("%q, then %q", first, second)
	}
}

// The modes convert the same delivery to requests as in the HTTP binding of CloudEvents.
func TestWebhookModes(t *testing.T) {
	h := serveHook(t, nil)
	d := firing()
	event := string(target.CloudEvent(d).AppendJSON(nil))
	for _, test := range []struct {
		mode              target.WebhookMode
		contentType, body string
	}{
		{target.Structured, "application/cloudevents+json; charset=utf-8", event},
		{target.Batched, "application/cloudevents-batch+json; charset=utf-8", "[" + event + "]"},
		{target.Binary, "application/json", string(d.Body)},
		{target.Plain, "application/json", string(d.Body)},
	} {
		h.got = nil
		w := newWebhook(t, target.WebhookOptions{URL: h.URL + "/hook?a=b", Method: "PUT", Mode: test.mode, Headers: map[string]string{"authorization": "Bearer x", "Host": "hooks.example"}})
		if e := one(t, w, d); e != nil {
			t.Fatal(e)
		}
		got := h.got[0]
		if got.Header.Get("Content-Type") != test.contentType || got.body != test.body || got.Method != "PUT" || got.URL.String() != "/hook?a=b" ||
			got.Header.Get("Authorization") != "Bearer x" || got.Host != "hooks.example" || got.Header.Get("User-Agent") != "mayfly" {
			t.Errorf("%s: %s %v\n%s", test.mode, got.Method, got.Header, got.body)
		}
		var ce []string
		for _, name := range []string{"Specversion", "Id", "Type", "Time", "Attempt", "Partitionkey", "Datacontenttype"} {
			ce = append(ce, got.Header.Get("Ce-"+name))
		}
		want := "      "
		if test.mode == target.Binary {
			want = "1.0 " + d.ID + " Scheduled%20Event 2026-11-21T10:00:00.25Z 2 room%201 "
		}
		if strings.Join(ce, " ") != want {
			t.Errorf("%s: %q, not %q", test.mode, strings.Join(ce, " "), want)
		}
	}
}

// Each HTTP status decides the result of its delivery. No redirect is followed, and a failure quotes
// the beginning of the answer on one line.
func TestWebhookAnswers(t *testing.T) {
	var status int
	var header http.Header
	var body string
	h := serveHook(t, func(w http.ResponseWriter, _ received) {
		maps.Copy(w.Header(), header)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	})
	w := newWebhook(t, target.WebhookOptions{URL: h.URL})
	for _, test := range []struct {
		status int
		header http.Header
		body   string
		want   string // code, marks, time
	}{
		{200, nil, "anything", "delivered"},
		{204, nil, "", "delivered"},
		{299, nil, "", "delivered"},
		{301, http.Header{"Location": {h.URL}}, "", "HTTP301 permanent 0s"},
		{302, http.Header{"Location": {h.URL}, "Retry-After": {"3"}}, "", "HTTP302 3s"},
		{307, http.Header{"Location": {h.URL}}, "", "HTTP307 0s"},
		{308, http.Header{"Location": {h.URL}}, "", "HTTP308 permanent 0s"},
		{400, nil, "", "HTTP400 permanent 0s"},
		{401, http.Header{"Retry-After": {"3"}}, "", "HTTP401 permanent 0s"},
		{408, nil, "", "HTTP408 0s"},
		{410, nil, "", "HTTP410 permanent 0s"},
		{425, nil, "", "HTTP425 0s"},
		{429, http.Header{"Retry-After": {"120"}}, "", "HTTP429 throttled 2m0s"},
		{429, nil, "", "HTTP429 throttled 0s"},
		{500, nil, "", "HTTP500 0s"},
		{503, http.Header{"Retry-After": {knownTime.Add(90 * time.Second).UTC().Format(http.TimeFormat)}}, "", "HTTP503 throttled 1m30s"},
		{503, http.Header{"Retry-After": {knownTime.Add(-90 * time.Second).UTC().Format(http.TimeFormat)}}, "", "HTTP503 throttled 0s"},
		{503, http.Header{"Retry-After": {"99999999999999"}}, "", "HTTP503 throttled 24h0m0s"},
		{503, http.Header{"Retry-After": {"-1"}}, "", "HTTP503 throttled 0s"},
		{503, http.Header{"Retry-After": {"soon"}}, "", "HTTP503 throttled 0s"},
		{999, nil, "", "HTTP999 0s"},
	} {
		status, header, body = test.status, test.header, test.body
		if got := outcome(one(t, w, target.Delivery{ID: "a"})); got != test.want {
			t.Errorf("%d %v: %s, not %s", test.status, test.header, got, test.want)
		}
	}
	status, header, body = 500, nil, "no\r\n\x00luck\xff"+strings.Repeat("x", 1000)
	if e := one(t, w, target.Delivery{ID: "a"}); !strings.HasPrefix(e.Message, "the webhook answered 500 Internal Server Error: no   luck\ufffdxxx") || len(e.Message) > 600 {
		t.Errorf("%q", e.Message)
	}
}

func outcome(e *target.Error) string {
	if e == nil {
		return "delivered"
	}
	s := e.Code
	if e.Permanent {
		s += " permanent"
	}
	if e.Throttled {
		s += " throttled"
	}
	return s + " " + e.After.String()
}

// Answers that are not HTTP, that end early or never come are no permanent failures, and no message
// contains the URL's secrets.
func TestWebhookGarbage(t *testing.T) {
	for name, test := range map[string]struct {
		answer string // "" hangs
		close  bool
		mode   target.WebhookMode
		want   string
	}{
		"not HTTP":                      {"hello\r\n\r\n", true, target.Structured, "ConnectionError 0s"},
		"nothing":                       {"", true, target.Structured, "ConnectionError 0s"},
		"hangs":                         {"", false, target.Structured, "Timeout 0s"},
		"half a header":                 {"HTTP/1.1 200 O", true, target.Structured, "ConnectionError 0s"},
		"endless header":                {"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 1<<20) + "\r\n\r\n", true, target.Structured, "ConnectionError 0s"},
		"body ends early, one":          {"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc", true, target.Structured, "delivered"},
		"body never ends, one":          {"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc", false, target.Structured, "delivered"},
		"body ends early, batch":        {"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc", true, target.Batched, "ConnectionError 0s"},
		"failures end early, batch":     {"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"batchItemF", true, target.Batched, "InvalidAnswer 0s"},
		"switching protocols":           {"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n", true, target.Structured, "HTTP101 0s"},
		"chunks that are none, a batch": {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzzz", true, target.Batched, "ConnectionError 0s"},
		"a failure's body ends early":   {"HTTP/1.1 429 X\r\nContent-Length: 100\r\n\r\nabc", true, target.Structured, "HTTP429 throttled 0s"},
		"a negative length":             {"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", true, target.Structured, "ConnectionError 0s"},
		"no status at all":              {"HTTP/1.1\r\n\r\n", true, target.Structured, "ConnectionError 0s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := serveRaw(t, test.answer, test.close)
			w := newWebhook(t, target.WebhookOptions{URL: "http://user:hunter2@" + address + "/?token=hunter2", Mode: test.mode, Timeout: 250 * time.Millisecond})
			e := one(t, w, target.Delivery{ID: "a"})
			if got := outcome(e); got != test.want {
				t.Errorf("%s, not %s: %v", got, test.want, e)
			}
			if e != nil && strings.Contains(fmt.Sprintf("%v %+v %v", e, e, e.Err), "hunter2") {
				t.Errorf("a secret in %v", e)
			}
		})
	}
	w := newWebhook(t, target.WebhookOptions{URL: "http://127.0.0.1:1/hunter2"})
	if e := one(t, w, target.Delivery{}); e == nil || e.Code != "ConnectionError" || strings.Contains(e.Error(), "hunter2") {
		t.Errorf("nobody listens: %v", e)
	}
}

// serveRaw reads one request's header from each connection and answers with raw bytes.
func serveRaw(t *testing.T, answer string, hangUp bool) (address string) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var connections sync.WaitGroup
	done := make(chan struct{})
	connections.Go(func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			connections.Go(func() {
				defer c.Close()
				request, err := http.ReadRequest(bufio.NewReader(c))
				if err != nil {
					return
				}
				_, _ = io.Copy(io.Discard, request.Body)
				_, _ = io.WriteString(c, answer)
				if !hangUp {
					<-done
				}
			})
		}
	})
	t.Cleanup(func() {
		close(done)
		_ = listener.Close()
		connections.Wait()
	})
	return listener.Addr().String()
}

// The end of the program is no fault of the webhook: the context's own error comes back, soon.
func TestWebhookGivenUp(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	h := serveHook(t, func(_ http.ResponseWriter, r received) {
		cancel()
		<-r.Context().Done()
	})
	w := newWebhook(t, target.WebhookOptions{URL: h.URL, Parallel: 1})
	results := w.Deliver(ctx, []target.Delivery{{ID: "a"}, {ID: "b"}})
	if !errors.Is(results[0], context.Canceled) || !errors.Is(results[1], context.Canceled) || len(h.got) != 1 {
		t.Errorf("%v after %d requests", results, len(h.got))
	}
}

// In batch mode a request carries many deliveries, and its answer may name the failed ones.
func TestWebhookBatchFailures(t *testing.T) {
	deliveries := []target.Delivery{{ID: "a"}, {ID: "b"}, {ID: "c"}}
	var answer string
	h := serveHook(t, func(w http.ResponseWriter, _ received) { _, _ = io.WriteString(w, answer) })
	w := newWebhook(t, target.WebhookOptions{URL: h.URL, Mode: target.Batched})
	long := `{"batchItemFailures":[` + strings.Repeat(`{"itemIdentifier":"a"},`, 60000) + `{"itemIdentifier":"a"}]}`
	for _, test := range []struct{ answer, want string }{
		{``, "[- - -]"},
		{`ok`, "[- - -]"},
		{`{}`, "[- - -]"},
		{`{ok`, "[- - -]"},
		{`{"batchItemFailures":[]}`, "[- - -]"},
		{`{"batchItemFailures":null}`, "[- - -]"},
		{` {"batchItemFailures":[{"itemIdentifier":"b"}], "more": 1}`, "[- BatchItemFailure -]"},
		{`{"batchItemFailures":[{"itemIdentifier":"c"},{"itemIdentifier":"a"},{"itemIdentifier":"c"}]}`, "[BatchItemFailure - BatchItemFailure]"},
		{`{"batchItemFailures":[{"itemIdentifier":"d"}]}`, "[InvalidAnswer InvalidAnswer InvalidAnswer]"},
		{`{"batchItemFailures":[{"itemIdentifier":""}]}`, "[InvalidAnswer InvalidAnswer InvalidAnswer]"},
		{`{"batchItemFailures":[{"other":"a"}]}`, "[InvalidAnswer InvalidAnswer InvalidAnswer]"},
		{`{"batchItemFailures":[{"itemIdentifier":1}]}`, "[InvalidAnswer InvalidAnswer InvalidAnswer]"},
		{`{"batchItemFailures":"a"}`, "[InvalidAnswer InvalidAnswer InvalidAnswer]"},
		{`{"batchItemFailures":[`, "[InvalidAnswer InvalidAnswer InvalidAnswer]"},
		{long, "[InvalidAnswer InvalidAnswer InvalidAnswer]"},
		{strings.Repeat("x", 2<<20), "[- - -]"},
	} {
		answer = test.answer
		var codes []string
		for _, err := range w.Deliver(t.Context(), deliveries) {
			code := "-"
			if e := target.AsError(err); e != nil {
				code = e.Code
				if e.Permanent {
					t.Errorf("%.50s: %v is permanent", test.answer, e)
				}
			}
			codes = append(codes, code)
		}
		if fmt.Sprint(codes) != test.want {
			t.Errorf("%.50s: %v, not %v", test.answer, codes, test.want)
		}
	}
	answer, h.got = "", nil
	_ = w.Deliver(t.Context(), deliveries)
	_ = w.Deliver(t.Context(), deliveries)
	_ = w.Deliver(t.Context(), deliveries[1:])
	id := func(i int) string { return h.got[i].Header.Get("webhook-id") }
	if id(0) != id(1) || id(0) == id(2) {
		t.Errorf("ids of batches: %s, %s, %s", id(0), id(1), id(2))
	}
}

// A batch too large for one request is split, each delivery into exactly one request, in order; a
// single large one goes alone.
func TestWebhookBatchSizes(t *testing.T) {
	h := serveHook(t, func(w http.ResponseWriter, r received) {
		if strings.Contains(r.body, `"d4"`) {
			w.WriteHeader(500)
		}
	})
	w := newWebhook(t, target.WebhookOptions{URL: h.URL, Mode: target.Batched, BatchBytes: 2000})
	var deliveries []target.Delivery
	for i, size := range []int{400, 400, 400, 5000, 10, 10, 10, 10, 1900} {
		deliveries = append(deliveries, target.Delivery{ID: fmt.Sprint("d", i), ContentType: "text/plain", Body: []byte(strings.Repeat("x", size))})
	}
	results := w.Deliver(t.Context(), deliveries)
	var sent, requests []string
	for _, r := range h.got {
		var events []struct{ ID string }
		if err := json.Unmarshal([]byte(r.body), &events); err != nil {
			t.Fatal(err)
		}
		if len(r.body) > 2000 && len(events) > 1 {
			t.Errorf("%d events in %d bytes", len(events), len(r.body))
		}
		var ids []string
		for _, e := range events {
			ids = append(ids, e.ID)
		}
		sent, requests = append(sent, ids...), append(requests, strings.Join(ids, ","))
	}
	if fmt.Sprint(sent) != "[d0 d1 d2 d3 d4 d5 d6 d7 d8]" || len(requests) < 4 {
		t.Errorf("requests: %v", requests)
	}
	for i, err := range results {
		with4 := slices.ContainsFunc(requests, func(r string) bool { return strings.Contains(r, "d4") && strings.Contains(r, deliveries[i].ID) })
		if (err != nil) != with4 {
			t.Errorf("%s: %v, requests %v", deliveries[i].ID, err, requests)
		}
	}
}

// Deliveries of one key go one after another, in order; others concurrently, up to the limit.
func TestWebhookParallel(t *testing.T) {
	var underWay, most atomic.Int32
	release := make(chan struct{})
	h := serveHook(t, func(_ http.ResponseWriter, _ received) {
		if n := underWay.Add(1); n > most.Load() {
			most.Store(n)
			if n == 3 {
				close(release) // three concurrent requests were seen
			}
		}
		<-release
		underWay.Add(-1)
	})
	w := newWebhook(t, target.WebhookOptions{URL: h.URL, Mode: target.Binary, Parallel: 3})
	var deliveries []target.Delivery
	for i := range 30 {
		deliveries = append(deliveries, target.Delivery{ID: fmt.Sprint(i), Key: []string{"", "x", "y"}[i%3]})
	}
	for i, err := range w.Deliver(t.Context(), deliveries) {
		if err != nil {
			t.Errorf("%d: %v", i, err)
		}
	}
	if most.Load() != 3 || len(h.got) != 30 {
		t.Errorf("%d at once, %d requests", most.Load(), len(h.got))
	}
	for _, key := range []string{"x", "y"} {
		last := -1
		for _, r := range h.got {
			var i int
			if _, err := fmt.Sscan(r.Header.Get("Ce-Id"), &i); err != nil {
				t.Fatal(err)
			}
			if r.Header.Get("Ce-Partitionkey") == key {
				if i < last {
					t.Errorf("key %s: %d came after %d", key, i, last)
				}
				last = i
			}
		}
	}
}

// Connections are reused after any answer, and a server that closes them in between does no harm.
func TestWebhookReusesConnections(t *testing.T) {
	h := serveHook(t, func(w http.ResponseWriter, r received) {
		if r.Header.Get("Ce-Id") == "bad" {
			w.WriteHeader(400)
		}
		_, _ = io.WriteString(w, strings.Repeat("x", 100_000))
	})
	w := newWebhook(t, target.WebhookOptions{URL: h.URL, Mode: target.Binary})
	for _, id := range []string{"a", "bad", "b", "bad", "c"} {
		if e := one(t, w, target.Delivery{ID: id}); (e != nil) != (id == "bad") {
			t.Fatal(e)
		}
	}
	connections := map[string]bool{}
	for _, r := range h.got {
		connections[r.RemoteAddr] = true
	}
	if len(connections) != 1 || len(h.got) != 5 {
		t.Errorf("%d connections for %d requests", len(connections), len(h.got))
	}
	h.CloseClientConnections()
	if e := one(t, w, target.Delivery{ID: "d"}); e != nil && e.Permanent {
		t.Error(e)
	}
	if e := one(t, w, target.Delivery{ID: "e"}); e != nil {
		t.Error(e)
	}
}

// All faults of the options are reported at once, without the secrets.
func TestWebhookOptions(t *testing.T) {
	_, err := target.NewWebhook(target.WebhookOptions{
		URL: "ftp://hunter2@example.com", Method: "PO ST", Mode: "both", Secrets: []string{"hunter2", "whsec_hunter2!", "whsec_aHVudGVyMg=="},
		Headers: map[string]string{"Content-Type": "x", "a b": "c", "Ce-Id": "x", "X": "hunter2\n", "webhook-id": "x", "y": "1", "Y": "2"},
		Timeout: time.Hour, BatchBytes: 1, Parallel: 1000,
	})
	if err == nil {
		t.Fatal("all of it was accepted")
	}
	want := `url: must have the form https://example.com/path, with http or https, a host and no fragment
method: must be one with a body, such as POST or PUT
mode: "both" is not one of structured, binary, batch, plain
secrets: number 1 begins with something other than "whsec_"
secrets: number 2 is not base64 after "whsec_"
secrets: number 3 has 7 bytes; Standard Webhooks allows 24 to 64
headers: Ce-Id is set by the webhook itself
headers: Content-Type is set by the webhook itself
headers: the value of X has a control character or more than 8192 bytes
headers: "a b" is not a header name
headers: webhook-id is set by the webhook itself
headers: y is given twice
timeout: 1h0m0s is not between 10ms and 15m0s
batch-bytes: 1 is not between 1024 and 67108864
parallel: 1000 is not between 1 and 100
a webhook needs a clock: set Now, for instance to time.Now`
	if err.Error() != want {
		t.Errorf("got\n%s\nwant\n%s", err, want)
	}
	for _, url := range []string{"", "http://", "http:///x", "example.com", "https://a b", "http://h/#x", "http://[::1"} {
		if _, err := target.NewWebhook(target.WebhookOptions{URL: url, Now: time.Now}); err == nil {
			t.Errorf("%q was accepted", url)
		}
	}
}

// FuzzBatchAnswer: for any answer of a receiver, each delivery has a result, and none is permanent.
func FuzzBatchAnswer(f *testing.F) {
	for _, seed := range []string{``, `{}`, `{"batchItemFailures":[{"itemIdentifier":"a"}]}`, `{"batchItemFailures":[{"itemIdentifier":null}]}`, `[`, "\x00"} {
		f.Add([]byte(seed))
	}
	var answer []byte
	w := newWebhook(f, target.WebhookOptions{URL: "http://127.0.0.1", Mode: target.Batched, Transport: roundTrip(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader(string(answer)))}, nil
	})})
	f.Fuzz(func(t *testing.T, body []byte) {
		answer = body
		results := w.Deliver(t.Context(), []target.Delivery{{ID: "a"}, {ID: "b"}})
		if len(results) != 2 {
			t.Fatal(results)
		}
		for _, err := range results {
			if e := target.AsError(err); e != nil && (e.Permanent || e.Code != "InvalidAnswer" && e.Code != "BatchItemFailure") {
				t.Error(e)
			}
		}
		if !strings.Contains(string(body), "batchItemFailures") && !strings.Contains(string(body), `\u`) && (results[0] != nil || results[1] != nil) {
			t.Errorf("%q: %v", body, results)
		}
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func BenchmarkWebhook(b *testing.B) {
	body := []byte(`{"deviceId":"sensor-0042","reading":21.5,"at":"2026-11-21T10:00:00Z","padding":"` + strings.Repeat("x", 200) + `"}`)
	for _, mode := range []target.WebhookMode{target.Batched, target.Structured, target.Binary} {
		b.Run(string(mode), func(b *testing.B) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
			}))
			defer server.Close()
			w := newWebhook(b, target.WebhookOptions{URL: server.URL, Mode: mode, Secrets: []string{knownSecret}})
			batch := make([]target.Delivery, 100)
			for i := range batch {
				batch[i] = firing()
				batch[i].ID, batch[i].Key, batch[i].Body = fmt.Sprintf("%032d", i), "", body
			}
			for b.Loop() {
				for _, err := range w.Deliver(b.Context(), batch) {
					if err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(b.N*len(batch))/b.Elapsed().Seconds(), "deliveries/s")
		})
	}
}
