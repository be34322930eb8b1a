package admin

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// fakeClock records its calls.
type fakeClock struct {
	now  time.Time
	rate float64
	did  string
}

func (f *fakeClock) functions() Clock {
	return Clock{
		State: func() ClockState { return ClockState{Now: f.now, Offset: time.Second, Rate: f.rate} },
		Freeze: func(context.Context) (Moved, error) {
			f.did, f.rate = "freeze", 0
			return Moved{From: f.now, To: f.now}, nil
		},
		Set: func(_ context.Context, to time.Time, limit time.Duration) (Moved, error) {
			f.did = "set " + to.UTC().Format(time.RFC3339) + " within " + limit.String()
			if to.Before(f.now) {
				return Moved{}, &MoveError{Reason: "the clock only goes forward"}
			}
			return Moved{From: f.now, To: to}, nil
		},
		Advance: func(_ context.Context, step, limit time.Duration) (Moved, error) {
			f.did = "advance " + step.String() + " within " + limit.String()
			return Moved{From: f.now, To: f.now.Add(step), Expired: 3}, nil
		},
		Rate: func(_ context.Context, rate float64) (Moved, error) {
			f.did, f.rate = "rate", rate
			return Moved{From: f.now, To: f.now}, nil
		},
	}
}

func newFake() *fakeClock {
	return &fakeClock{now: time.Date(2030, 1, 2, 3, 4, 5, 678e6, time.UTC), rate: 1}
}

func do(h http.Handler, method, path, body string, headers ...string) (int, string) {
	r := httptest.NewRequest(method, "http://127.0.0.1:8000"+path, strings.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
			continue
		}
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

func TestClockIsMoved(t *testing.T) {
	for _, tt := range []struct{ path, body, did string }{
		{"freeze", ``, "freeze"},
		{"freeze", `{}`, "freeze"},
		{"set", `{"to":"2031-01-01T00:00:00Z"}`, "set 2031-01-01T00:00:00Z within 10s"},
		{"set", `{"to_ms":1924992000000,"limit":"1m"}`, "set 2031-01-01T00:00:00Z within 1m0s"},
		{"advance", `{"by":"1h30m"}`, "advance 1h30m0s within 10s"},
		{"advance", `{"by_ms":1500}`, "advance 1.5s within 10s"},
		{"advance", `{"by":"2d"}`, "advance 48h0m0s within 10s"},
		{"advance", `{"by":3600,"limit":0.5}`, "advance 1h0m0s within 500ms"},
		{"advance", `{"by":0.0001}`, "advance 1ms within 10s"},
		{"advance", `{"by":1e-999999999}`, "advance 0s within 10s"},
		{"set", `{"to":"2031-01-01"}`, "set 2031-01-01T00:00:00Z within 10s"},
		{"set", `{"to":1924992000}`, "set 2031-01-01T00:00:00Z within 10s"},
		{"set", `{"to":"in 5m","limit":"1m"}`, "set 2030-01-02T03:09:05Z within 1m0s"},
		{"rate", `{"rate":60}`, "rate"},
	} {
		clock := newFake()
		h := Handler(Options{Metrics: NewMetrics(Sources{}), Clock: clock.functions(), ClockControl: true})
		status, body := do(h, "POST", "/_mayfly/clock/"+tt.path, tt.body)
		if status != http.StatusOK || clock.did != tt.did {
			t.Errorf("%s %s: status %d, did %q, want %q\n%s", tt.path, tt.body, status, clock.did, tt.did, body)
		}
	}
}

func TestClockAnswersWhatHappened(t *testing.T) {
	clock := newFake()
	h := Handler(Options{Metrics: NewMetrics(Sources{}), Clock: clock.functions(), ClockControl: true})
	_, body := do(h, "POST", "/_mayfly/clock/advance", `{"by":"1s"}`)
	want := `{"now":"2030-01-02T03:04:05.678Z","now_ms":1893553445678,"frozen":false,"rate":1,` +
		`"offset_ms":1000,"standing":false,"control":true,"from":"2030-01-02T03:04:05.678Z","from_ms":1893553445678,` +
		`"expired":3,"unfinished":false}` + "\n"
	if body != want {
		t.Errorf("got  %s\nwant %s", body, want)
	}
	_, body = do(h, "GET", "/_mayfly/clock", "")
	if !strings.HasPrefix(want, strings.TrimSuffix(body, "}\n")) {
		t.Errorf("the state is not the head of a move's answer: %s", body)
	}
}

func TestClockRefuses(t *testing.T) {
	for _, tt := range []struct {
		name, method, path, body string
		headers                  []string
		status                   int
		says                     string
	}{
		{"no instant", "POST", "set", `{}`, nil, 400, `either \"to\"`},
		{"two instants", "POST", "set", `{"to":"2031-01-01T00:00:00Z","to_ms":1}`, nil, 400, `either \"to\"`},
		{"no date", "POST", "set", `{"to":"2031-13-01"}`, nil, 400, "no such date"},
		{"milliseconds for seconds", "POST", "set", `{"to":1924992000000}`, nil, 400, `for milliseconds use \"to_ms\"`},
		{"a list", "POST", "set", `{"to":[1]}`, nil, 400, `\"to\" must be a string such as \"2030-01-01T00:00:00Z\", \"2030-01-01\" or \"in 5m\" or a number of seconds, not [1]`},
		{"another endpoint's member", "POST", "set", `{"by":"1s"}`, nil, 400, `unexpected member \"by\"`},
		{"no duration", "POST", "advance", ``, nil, 400, `either \"by\"`},
		{"not a duration", "POST", "advance", `{"by":"soon"}`, nil, 400, `\"soon\" is not a duration; use 250ms, 90s`},
		{"a truth", "POST", "advance", `{"by":true}`, nil, 400, `\"by\" must be a string such as \"90s\", \"1h30m\" or \"2d\" or a number of seconds, not true`},
		{"too many seconds", "POST", "advance", `{"by":1e11}`, nil, 400, `\"by\" is too large: 1e11 seconds`},
		{"endless seconds", "POST", "advance", `{"by":1e999999999}`, nil, 400, `\"by\" is too large: 1e999999999 seconds`},
		{"a long number", "POST", "advance", `{"by":` + strings.Repeat("1", 100) + `}`, nil, 400, "a number of seconds, not 1111111111"},
		{"an absurd duration", "POST", "advance", `{"by_ms":9223372036854775807}`, nil, 400, "is larger than"},
		{"an absurd limit", "POST", "advance", `{"by":"1s","limit":"1000h"}`, nil, 400, "limit"},
		{"no rate", "POST", "rate", `{}`, nil, 400, "rate"},
		{"unknown member", "POST", "rate", `{"speed":3}`, nil, 400, "speed"},
		{"not JSON", "POST", "rate", `{`, nil, 400, "JSON"},
		{"two objects", "POST", "rate", `{"rate":1}{}`, nil, 400, "unexpected text"},
		{"too much", "POST", "rate", `"` + strings.Repeat("x", clockBodyMax) + `"`, nil, 413, "too large"},
		{"backwards", "POST", "set", `{"to":"2020-01-01T00:00:00Z"}`, nil, 409, "only goes forward"},
		{"a foreign page", "POST", "freeze", ``, []string{"Origin", "https://example.com"}, 403, "web pages of https://example.com"},
		{"a foreign page, modern", "POST", "freeze", ``, []string{"Sec-Fetch-Site", "cross-site"}, 403, "origin"},
		{"a rebound name", "POST", "freeze", ``, []string{"Host", "rebound.example:8000", "Origin", "http://rebound.example:8000"}, 403, "--allow-host rebound.example"},
		{"unknown path", "POST", "rewind", ``, nil, 404, `{"error":"unknown path \"/_mayfly/clock/rewind\"; use GET /_mayfly/clock, POST /_mayfly/clock/freeze`},
		{"reading a move", "GET", "freeze", ``, nil, 405, `{"error":"/_mayfly/clock/freeze does not take the method GET; use POST"}`},
		{"a fraction", "POST", "advance", `{"by_ms":1.5}`, nil, 400, `\"by_ms\" must be a whole number of milliseconds`},
		{"cut off", "POST", "rate", `{"rate":1`, nil, 400, "incomplete"},
	} {
		clock := newFake()
		h := Handler(Options{Metrics: NewMetrics(Sources{}), Clock: clock.functions(), ClockControl: true})
		status, body := do(h, tt.method, "/_mayfly/clock/"+tt.path, tt.body, tt.headers...)
		if status != tt.status || !strings.Contains(body, tt.says) {
			t.Errorf("%s: got %d %s, want %d and %q", tt.name, status, body, tt.status, tt.says)
		}
		if clock.did != "" && tt.status != 409 {
			t.Errorf("%s: the clock was moved: %s", tt.name, clock.did)
		}
	}
}

func TestClockIsForItsOwnPages(t *testing.T) {
	h := Handler(Options{Metrics: NewMetrics(Sources{}), Clock: newFake().functions(), ClockControl: true})
	for _, host := range []string{"127.0.0.1:8000", "localhost:8000", "[::1]:8000"} {
		status, body := do(h, "POST", "/_mayfly/clock/freeze", "", "Host", host, "Origin", "http://"+host, "Sec-Fetch-Site", "same-origin")
		if status != http.StatusOK {
			t.Errorf("%s: %d %s", host, status, body)
		}
	}
}

func TestClockControlOff(t *testing.T) {
	clock := newFake()
	h := Handler(Options{Metrics: NewMetrics(Sources{}), Clock: clock.functions()})
	status, body := do(h, "POST", "/_mayfly/clock/freeze", "")
	if status != http.StatusForbidden || !strings.Contains(body, "--clock-control") || clock.did != "" {
		t.Errorf("got %d %s, did %q", status, body, clock.did)
	}
	if status, _ := do(h, "GET", "/_mayfly/clock", ""); status != http.StatusOK {
		t.Errorf("the state cannot be read: %d", status)
	}
}

// TestKeysAreAsked: with keys, each endpoint asks for its own action. Probes are open, without
// details.
func TestKeysAreAsked(t *testing.T) {
	clock := newFake()
	o := Options{
		Metrics: NewMetrics(Sources{}), Clock: clock.functions(), ClockControl: true,
		Ready: func() error { return errors.New("the log could not be synced") },
		Permitted: func(action string, _ http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { writeText(w, http.StatusForbidden, "asked for "+action) })
		},
	}
	h := Handler(o)
	for _, test := range []struct {
		method, path string
		status       int
		body         string
	}{
		{"GET", "/healthz", 200, "ok"},
		{"GET", "/readyz", 503, "not ready"},
		{"GET", "/readyz?X-Amz-Signature=x", 403, "asked for mayfly:ReadStatus"},
		{"GET", "/metrics", 403, "asked for mayfly:ReadMetrics"},
		{"GET", "/_mayfly/clock", 403, "asked for mayfly:ReadClock"},
		{"POST", "/_mayfly/clock/rate", 403, "asked for mayfly:MoveClock"},
		{"GET", "/_mayfly/deadlines", 403, "asked for mayfly:ReadDeadlines"},
	} {
		if status, body := do(h, test.method, test.path, `{"rate":2}`); status != test.status || body != test.body+"\n" {
			t.Errorf("%s %s: got %d %q", test.method, test.path, status, body)
		}
	}
	if clock.did != "" {
		t.Errorf("the clock moved: %q", clock.did)
	}
	o.MetricsPublic = true
	if status, _ := do(Handler(o), "GET", "/metrics", ""); status != http.StatusOK {
		t.Errorf("public metrics: got %d", status)
	}
}

func TestReadiness(t *testing.T) {
	var down error
	h := Handler(Options{Metrics: NewMetrics(Sources{}), Ready: func() error { return down }})
	if status, body := do(h, "GET", "/readyz", ""); status != http.StatusOK || body != "ready\n" {
		t.Errorf("got %d %q", status, body)
	}
	down = errors.New("the log could not be synced")
	if status, body := do(h, "GET", "/readyz", ""); status != http.StatusServiceUnavailable || !strings.Contains(body, "could not be synced") {
		t.Errorf("got %d %q", status, body)
	}
	if status, body := do(h, "GET", "/healthz", ""); status != http.StatusOK || body != "ok\n" {
		t.Errorf("got %d %q", status, body)
	}
}

func TestMetrics(t *testing.T) {
	m := NewMetrics(Sources{
		Backlog:  func() int64 { return 7 },
		Clock:    func() ClockState { return ClockState{Standing: true, Offset: 1500 * time.Millisecond} },
		DiskFull: func() bool { return true },
		Failed:   func() bool { return false },
		Store:    func() []Sample { return []Sample{{Name: "store_bytes", Help: "Bytes on disk.", Value: 42}} },
		Consumed: func() []Consumed {
			return []Consumed{{Table: "events", Read: 1.5, Write: 7, ThrottledReads: 3}, {Table: "events", Index: "byDay", Write: 2, ThrottledWrites: 4}}
		},
		HeldFull: func() bool { return true },
		Held: func() []HeldStream {
			return []HeldStream{{Table: "events", Stream: "s1", Consumer: "c", Bytes: 5, Records: 2, Age: time.Second}, {Table: "events", Stream: "s2", Consumer: "c"}}
		},
	})
	m.Request("PutItem", "", 300*time.Microsecond)
	m.Request("PutItem", "ValidationException", time.Microsecond)
	m.Reaped("events", 3)
	m.CommitLateness(1200 * time.Microsecond)
	m.StreamLateness(4 * time.Millisecond)
	for _, e := range []DeliveryEvent{
		{Event: "fired", Group: "default", Lateness: 4 * time.Millisecond}, {Event: "attempted", Group: "default", Attempt: 1, Lateness: time.Hour}, {Event: "failed", Group: "default", Attempt: 1, Code: "TargetError"},
		{Event: "attempted", Group: "default", Attempt: 2, Lateness: time.Second}, {Event: "delivered", Group: "default", Attempt: 2},
		{Event: "dropped", Group: "nightly"}, {Event: "dead_letter_failed", Group: "nightly", Code: "AccessDeniedException"}, {Event: "unheard of", Group: "nightly"},
		{Event: "attempted", Group: "trigger:1-2", Attempt: 1, Lateness: time.Millisecond},
	} {
		m.Delivery(e)
	}
	_, body := do(Handler(Options{Metrics: m}), "GET", "/metrics", "")
	for _, want := range []string{
		`mayfly_scheduler_invocation_attempts_total{group="default"} 2`,
		`mayfly_scheduler_target_errors_total{group="default"} 1`,
		`mayfly_scheduler_deliveries_total{group="default"} 1`,
		`mayfly_scheduler_lateness_seconds_count{group="default"} 1`,
		`mayfly_scheduler_lateness_seconds_bucket{group="default",le="0.005"} 1`,
		`mayfly_scheduler_invocations_dropped_total{group="nightly"} 1`,
		`mayfly_scheduler_dead_letters_failed_total{code="AccessDeniedException",group="nightly"} 1`,
		`mayfly_trigger_invocation_attempts_total{trigger="1-2"} 1`,
		`mayfly_trigger_lateness_seconds_bucket{trigger="1-2",le="0.002"} 1`,
		`mayfly_requests_total{code="OK",operation="PutItem"} 1`,
		`mayfly_requests_total{code="ValidationException",operation="PutItem"} 1`,
		`mayfly_request_duration_seconds_bucket{operation="PutItem",le="0.0005"} 2`,
		`TimeToLiveDeletedItemCount{TableName="events"} 3`,
		`mayfly_lateness_commit_seconds_bucket{le="0.001"} 0`,
		`mayfly_lateness_commit_seconds_bucket{le="0.002"} 1`,
		`mayfly_lateness_stream_seconds_count 1`,
		`mayfly_backlog_items 7`,
		`mayfly_consumed_units_total{TableName="events",index="",kind="read"} 1.5`,
		`mayfly_consumed_units_total{TableName="events",index="byDay",kind="write"} 2`,
		`mayfly_clock_standing 1`,
		`mayfly_clock_offset_seconds 1.5`,
		`mayfly_disk_full 1`,
		`mayfly_store_failed 0`,
		`mayfly_store_bytes 42`,
		`mayfly_stream_held_full 1`,
		`mayfly_stream_held_bytes{TableName="events",consumer="c",stream="s1"} 5`,
		`mayfly_stream_held_records{TableName="events",consumer="c",stream="s1"} 2`,
		`mayfly_stream_held_age_seconds{TableName="events",consumer="c",stream="s1"} 1`,
		`mayfly_stream_held_bytes{TableName="events",consumer="c",stream="s2"} 0`,
	} {
		if !strings.Contains(body, want+"\n") {
			t.Errorf("/metrics lacks %s", want)
		}
	}
}

func TestGuardMetrics(t *testing.T) {
	m := NewGuard(func() []GuardTable {
		return []GuardTable{{Table: "orders", Armed: 7, GivenUp: 3, Due: 2, OldestOverdue: 1500 * time.Millisecond, USDPerMillion: 0.625}, {Table: "new"}}
	})
	m.Begin("orders")
	for _, event := range []string{"armed", "armed", "removed", "refused", "unheard of"} {
		m.Count("orders", event)
	}
	m.Lateness("orders", 2*time.Millisecond)
	m.Consumed("orders", 0.5, 3)
	unready := errors.New("orders is not guarded yet")
	h := m.Handler(func() error { return unready })
	if status, body := do(h, "GET", "/readyz", ""); status != http.StatusServiceUnavailable || !strings.Contains(body, "orders is not") {
		t.Errorf("/readyz: %d %s", status, body)
	}
	if status, _ := do(h, "GET", "/healthz", ""); status != http.StatusOK {
		t.Errorf("/healthz: %d", status)
	}
	_, body := do(h, "GET", "/metrics", "")
	for _, want := range []string{
		`mayfly_guard_deadlines_armed_total{TableName="orders"} 2`, `mayfly_guard_removals_total{TableName="orders"} 1`, `mayfly_guard_removals_refused_total{TableName="orders"} 1`,
		`mayfly_guard_throttled_total{TableName="orders"} 0`, `mayfly_guard_lateness_seconds_bucket{TableName="orders",le="0.002"} 1`,
		`mayfly_guard_consumed_units_total{TableName="orders",kind="read"} 0.5`, `mayfly_guard_consumed_units_total{TableName="orders",kind="write"} 3`,
		`mayfly_guard_armed{TableName="orders"} 7`, `mayfly_guard_given_up{TableName="orders"} 3`, `mayfly_guard_due{TableName="orders"} 2`, `mayfly_guard_oldest_overdue_seconds{TableName="orders"} 1.5`,
		`mayfly_guard_cost_per_million_usd{TableName="orders"} 0.625`, `mayfly_guard_armed{TableName="new"} 0`,
	} {
		if !strings.Contains(body, want+"\n") {
			t.Errorf("/metrics lacks %s", want)
		}
	}
	if strings.Contains(body, `cost_per_million_usd{TableName="new"}`) {
		t.Error("a cost is told that is not known")
	}
}

// For any body, the clock moves only on a sensible request, and the answer is JSON.
func FuzzClockBody(f *testing.F) {
	for _, seed := range []string{``, `{}`, `{"by":"1s"}`, `{"by_ms":-1}`, `{"to":"2031-01-01T00:00:00Z"}`, `{"rate":1e308}`, `[]`, `{"limit":"1ns"}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		for _, path := range []string{"freeze", "set", "advance", "rate"} {
			clock := newFake()
			h := Handler(Options{Metrics: NewMetrics(Sources{}), Clock: clock.functions(), ClockControl: true})
			r := httptest.NewRequest("POST", "/_mayfly/clock/"+path, strings.NewReader(body))
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			answer, _ := io.ReadAll(w.Body)
			if !json.Valid(answer) {
				t.Fatalf("%s %q: not JSON: %q", path, body, answer)
			}
			if w.Code >= 500 || (w.Code == http.StatusBadRequest && clock.did != "") {
				t.Fatalf("%s %q: status %d after %q", path, body, w.Code, clock.did)
			}
		}
	})
}

// TestGuardPages: the port of guard's metrics refuses web pages too.
func TestGuardPages(t *testing.T) {
	h := NewGuard(func() []GuardTable { return nil }).Handler(nil)
	for origin, status := range map[string]int{"": http.StatusOK, "https://elsewhere.example": http.StatusForbidden} {
		r := httptest.NewRequest("GET", "http://127.0.0.1:9100/metrics", nil)
		if origin != "" {
			r.Header.Set("Origin", origin)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != status {
			t.Errorf("origin %q: got %d", origin, w.Code)
		}
	}
}
