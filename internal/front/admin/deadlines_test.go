package admin

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

// deadlinesOf returns a handler whose deadlines come from find.
func deadlinesOf(find func(DeadlineRange) (Deadlines, error)) http.Handler {
	return Handler(Options{
		Metrics: NewMetrics(Sources{}), Clock: newFake().functions(),
		Deadlines: func(_ context.Context, r DeadlineRange) (Deadlines, error) { return find(r) },
	})
}

func TestDeadlinesAsked(t *testing.T) {
	far := time.UnixMilli(1 << 53)
	for query, want := range map[string]DeadlineRange{
		"":                            {"", time.UnixMilli(0), far, 1, 0, 0},
		"?table=":                     {"", time.UnixMilli(0), far, 1, 0, 0},
		"?table=caf%C3%A9":            {"café", time.UnixMilli(0), far, 1, 0, 0},
		"?from_ms=-5&to_ms=+5":        {"", time.UnixMilli(-5), time.UnixMilli(5), 1, 0, 0},
		"?from_ms=-9007199254740992":  {"", time.UnixMilli(-1 << 53), far, 1, 0, 0},
		"?steps=0&keys=1":             {"", time.UnixMilli(0), far, 0, 1, 0},
		"?steps=2000&keys=1000":       {"", time.UnixMilli(0), far, 2000, 1000, 0},
		"?minutes=1440&to_ms=1":       {"", time.UnixMilli(0), time.UnixMilli(1), 1, 0, 1440},
		"?table=t&X-Amz-Signature=ab": {"t", time.UnixMilli(0), far, 1, 0, 0},
	} {
		var asked DeadlineRange
		h := deadlinesOf(func(r DeadlineRange) (Deadlines, error) {
			asked = r
			return Deadlines{Counts: make([]int64, r.Steps), Until: r.To}, nil
		})
		query = strings.ReplaceAll(query, "+", "%2B")
		if status, body := do(h, "GET", "/_mayfly/deadlines"+query, `{"table":"of the body"}`); status != http.StatusOK || asked != want {
			t.Errorf("%s: %d %s, asked for %+v, want %+v", query, status, body, asked, want)
		}
	}
}

func TestDeadlinesAnswer(t *testing.T) {
	at := func(ms int64) time.Time { return time.UnixMilli(ms) }
	for _, c := range []struct {
		query string
		found Deadlines
		want  string
	}{
		{"?to_ms=10&steps=2", Deadlines{Counts: []int64{0, 0}, Until: at(10)}, `{"from_ms":0,"to_ms":10,"counts":[0,0],"counted_until_ms":10,"keys":[],"removed":[]}`},
		{
			"?table=t&to_ms=10", Deadlines{
				Attribute: "ttl", Counts: []int64{2}, Until: at(8), First: at(3), Last: at(12),
				Keys: []DeadlineKey{{"t", json.RawMessage(`{"pk":{"S":"<a>"}}`), at(3)}}, Withheld: 2, Removed: []Removals{{at(-60000), 7}},
			},
			`{"table":"t","attribute":"ttl","from_ms":0,"to_ms":10,"counts":[2],"counted_until_ms":8,"first_ms":3,"last_ms":12,` +
				`"keys":[{"table":"t","key":{"pk":{"S":"\u003ca\u003e"}},"at_ms":3}],"keys_withheld":2,"removed":[{"minute_ms":-60000,"items":7}]}`,
		},
	} {
		h := deadlinesOf(func(DeadlineRange) (Deadlines, error) { return c.found, nil })
		if status, body := do(h, "GET", "/_mayfly/deadlines"+c.query, ""); status != http.StatusOK || strings.TrimSpace(body) != c.want {
			t.Errorf("%s: %d %s, want %s", c.query, status, body, c.want)
		}
	}
}

func TestDeadlinesRefuse(t *testing.T) {
	h := deadlinesOf(func(r DeadlineRange) (Deadlines, error) {
		switch r.Table {
		case "none":
			return Deadlines{}, &RefusedError{Status: http.StatusNotFound, Reason: `there is no table "none"`}
		case "broken":
			return Deadlines{}, errors.New("the disk is on fire")
		}
		t.Errorf("%+v was asked for", r)
		return Deadlines{}, nil
	})
	const whole = "must be a whole number from"
	for _, c := range []struct {
		method, query string
		status        int
		want          string
	}{
		{"GET", "?table=none", 404, `there is no table "none"`},
		{"GET", "?table=broken", 500, "the disk is on fire"},
		{"GET", "?from_ms=5&to_ms=4", 400, `"to_ms" (4) must be later than "from_ms" (5)`},
		{"GET", "?from_ms=5&to_ms=5", 400, `"to_ms" (5) must be later than "from_ms" (5)`},
		{"GET", "?to_ms=0", 400, `"to_ms" (0) must be later than "from_ms" (0)`},
		{"GET", "?from_ms=9007199254740992", 400, `"to_ms" (9007199254740992) must be later than "from_ms" (9007199254740992)`},
		{"GET", "?from_ms=9007199254740993", 400, `"from_ms" ` + whole + ` -9007199254740992 to 9007199254740992, not "9007199254740993"`},
		{"GET", "?to_ms=99999999999999999999", 400, `"to_ms" ` + whole + ` -9007199254740992 to 9007199254740992, not "99999999999999999999"`},
		{"GET", "?to_ms=2030-01-01", 400, `"to_ms" ` + whole + ` -9007199254740992 to 9007199254740992, not "2030-01-01"`},
		{"GET", "?to_ms=", 400, `"to_ms" ` + whole + ` -9007199254740992 to 9007199254740992, not ""`},
		{"GET", "?steps=-1", 400, `"steps" ` + whole + ` 0 to 2000, not "-1"`},
		{"GET", "?steps=2001", 400, `"steps" ` + whole + ` 0 to 2000, not "2001"`},
		{"GET", "?steps=1e3", 400, `"steps" ` + whole + ` 0 to 2000, not "1e3"`},
		{"GET", "?keys=-1", 400, `"keys" ` + whole + ` 0 to 1000, not "-1"`},
		{"GET", "?keys=1001", 400, `"keys" ` + whole + ` 0 to 1000, not "1001"`},
		{"GET", "?minutes=1441", 400, `"minutes" ` + whole + ` 0 to 1440, not "1441"`},
		{"GET", "?minutes=one", 400, `"minutes" ` + whole + ` 0 to 1440, not "one"`},
		{"GET", "?step=5", 400, `unknown parameter "step"; use table, from_ms, to_ms, steps, keys or minutes`},
		{"GET", "?table=a&table=b", 400, `"table" is there 2 times; give it once`},
		{"GET", "?steps=1&steps=1", 400, `"steps" is there 2 times; give it once`},
		{"GET", "?table=%zz", 400, `invalid query "table=%zz": invalid URL escape "%zz"`},
		{"POST", "", 405, "/_mayfly/deadlines does not take the method POST; use GET"},
		{"DELETE", "?table=none", 405, "/_mayfly/deadlines does not take the method DELETE; use GET"},
	} {
		status, body := do(h, c.method, "/_mayfly/deadlines"+c.query, "")
		var said struct {
			Error string `json:"error"`
		}
		if err := json.Unmarshal([]byte(body), &said); err != nil || status != c.status || said.Error != c.want {
			t.Errorf("%s %s: %d %s, want %d %s", c.method, c.query, status, body, c.status, c.want)
		}
	}
	r := httptest.NewRequest("POST", "http://127.0.0.1:8000/_mayfly/deadlines", nil)
	w := httptest.NewRecorder()
	if h.ServeHTTP(w, r); w.Header().Get("Allow") != "GET" {
		t.Errorf("Allow is %q", w.Header().Get("Allow"))
	}
	if status, body := do(h, "GET", "/_mayfly/deadlines/x", ""); status != http.StatusNotFound || !strings.Contains(body, "or GET /_mayfly/deadlines") {
		t.Errorf("a path below: %d %s", status, body)
	}
}

// For any query, the answer is JSON, and the database is asked only for what is within the limits.
func FuzzDeadlinesQuery(f *testing.F) {
	for _, seed := range []string{
		"", "table=t", "table=t&from_ms=1&to_ms=2&steps=3&keys=4&minutes=5", "from_ms=-9007199254740992&to_ms=9007199254740992&steps=2000",
		"steps=0", "steps=+1", "steps=99999999999999999999", "keys=-0", "table=%zz", "table=%00&table=", "a;b", "X-Amz-Signature=1", "to_ms=0x10", "=", "&&", "steps",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, query string) {
		asked := false
		h := deadlinesOf(func(r DeadlineRange) (Deadlines, error) {
			asked = true
			span := r.To.UnixMilli() - r.From.UnixMilli()
			if span <= 0 || span > 1<<54 || r.Steps < 0 || r.Steps > 2000 || r.Keys < 0 || r.Keys > 1000 || r.Minutes < 0 || r.Minutes > 1440 {
				t.Errorf("%q asks for %+v", query, r)
			}
			return Deadlines{Counts: make([]int64, r.Steps), Until: r.To}, nil
		})
		r := httptest.NewRequest("GET", "http://127.0.0.1:8000/_mayfly/deadlines", nil)
		r.URL = &url.URL{Scheme: "http", Host: r.Host, Path: r.URL.Path, RawQuery: query}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if !json.Valid(w.Body.Bytes()) || w.Code != http.StatusOK && w.Code != http.StatusBadRequest || asked != (w.Code == http.StatusOK) {
			t.Fatalf("%q: %d %q, asked: %v", query, w.Code, w.Body, asked)
		}
	})
}
