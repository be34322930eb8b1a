package expirybench_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/bench"
	"github.com/mayflydb/mayfly/internal/bench/expirybench"
	"github.com/mayflydb/mayfly/internal/sdk"
	"github.com/mayflydb/mayfly/internal/testkit"
)

// The tests wait most of their time.
func TestMain(m *testing.M) {
	flag.Parse()
	testkit.AtOnce(8)
	os.Exit(m.Run())
}

// at returns an endpoint as the program makes it.
func at(url string) sdk.Endpoint {
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	return sdk.Endpoint{URL: url, Config: aws.Config{
		Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("any", "any", ""), HTTPClient: &http.Client{Transport: transport},
	}}
}

// serve runs a database behind a handler, which may alter answers.
func serve(t *testing.T, o mayfly.Options, alter func(*answer)) sdk.Endpoint {
	t.Helper()
	db, err := mayfly.Open("", o)
	if err != nil {
		t.Fatal(err)
	}
	handler := db.Handler()
	if alter != nil {
		handler = altering(handler, alter)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(func() {
		server.Close()
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return at(server.URL)
}

// measure runs the benchmark, and fails the test unless it ends in bounded time and with faults exactly if
// they are expected. The report must be complete text.
func measure(t *testing.T, o expirybench.Options, faulty bool) *expirybench.Report {
	t.Helper()
	o.Quick = true
	report, err := expirybench.Run(t.Context(), o)
	if report == nil || err != nil && !errors.Is(err, expirybench.ErrFaults) {
		t.Fatal(err)
	}
	if (err != nil) != faulty || (len(report.Faults) > 0) != faulty {
		t.Errorf("faults: %q, %v", report.Faults, err)
	}
	var text bytes.Buffer
	if err := report.WriteText(&text); err != nil || !strings.HasSuffix(text.String(), report.Summary+"\n") {
		t.Errorf("%v, in\n%s", err, &text)
	}
	var page bytes.Buffer
	if err := report.WritePage(&page); err != nil || strings.Count(page.String(), "<svg ") < len(report.Cases)/2 || !strings.Contains(page.String(), html.EscapeString(report.Summary)) {
		t.Errorf("%v, in\n%s", err, &page)
	}
	if err := bench.Poll(t.Context(), 10*time.Millisecond, 10*time.Second, "it leaves tables behind", func() (bool, error) {
		list, err := o.Endpoint.DynamoDB().ListTables(t.Context(), nil)
		return err == nil && len(list.TableNames) == 0, err // a table may need time to go
	}); err != nil {
		t.Error(err)
	}
	return report
}

// method returns what one kind of readers saw of a case.
func method(t *testing.T, c expirybench.Case, name string) expirybench.Method {
	t.Helper()
	for _, m := range c.Methods {
		if m.Name == name {
			return m
		}
	}
	t.Fatalf("%s: %s is missing", c.Name, name)
	return expirybench.Method{}
}

// methods are the kinds of readers.
var methods = []string{"GetItem", "Scan", "Query of an index", "stream"}

// A server without faults gets none, and each kind of readers has seen all of its items go.
func TestExact(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds, and many times as long under the race detector")
	}
	t.Parallel()
	r := measure(t, expirybench.Options{Endpoint: serve(t, mayfly.Options{}, nil), Name: "exact", Pending: []int{0, 500}, Only: []string{
		expirybench.PartLateness, expirybench.PartVisibility, expirybench.PartRenewals, expirybench.PartEvents, expirybench.PartSurvival,
	}}, false)
	if len(r.Cases) != 4 || r.Cases[3].Pending != 500 || r.NoTTL != "" || len(r.LeftOut) > 0 || !r.Clock.Known || r.Clock.Own != (r.Endpoint.PID == 0) || r.ShowsExpired || !r.Endpoint.Local {
		t.Errorf("report: %+v", r)
	}
	for _, c := range r.Cases {
		if c.NotRemoved > 0 || c.Records == nil || c.Records.Expected != c.Items {
			t.Errorf("%s: %+v, %+v", c.Name, c, c.Records)
		}
		for _, name := range methods {
			m := method(t, c, name)
			if m.Items == 0 || m.NotRemoved > 0 || m.Most.Max == nil || m.Most.P50 == nil || *m.Most.Max < *m.Most.P50 || *m.Most.P50 < 0 {
				t.Errorf("%s, %s: %+v", c.Name, name, m)
			}
			if name != "stream" && (m.Least.Max == nil || *m.Least.Max > *m.Most.Max || m.PollMS <= 0) {
				t.Errorf("%s, %s: a bracket %v to %v ms", c.Name, name, *m.Least.Max, *m.Most.Max)
			}
		}
	}
}

// A server that removes nothing in time ends in bounded time: nothing is late by a number, and what is
// left out has a reason.
func TestNeverRemoves(t *testing.T) {
	t.Parallel()
	e := serve(t, mayfly.Options{Expiry: mayfly.ExpiryAWS, ExpiryDelay: "fixed:8784h"}, nil)
	r := measure(t, expirybench.Options{Endpoint: e, Only: []string{expirybench.PartLateness}, Wait: time.Second, Spread: time.Second}, false)
	first, second := r.Cases[0], r.Cases[1]
	if first.NotRemoved != first.Items || first.Records.Expected != 0 || first.Records.Lost != 0 {
		t.Errorf("%+v, %+v", first, first.Records)
	}
	for _, name := range methods {
		if m := method(t, first, name); m.NotRemoved != m.Items || m.Most != (expirybench.Lateness{}) || m.Early > 0 {
			t.Errorf("%+v", m)
		}
	}
	if second.LeftOut == "" || second.Methods != nil || !strings.Contains(r.Summary, "none of 60 items over 1s was removed in time") {
		t.Errorf("%+v, %s", second, r.Summary)
	}
}

// dynalite has no TTL, which is said instead of measured.
func TestNoTTL(t *testing.T) {
	t.Parallel()
	r := measure(t, expirybench.Options{Endpoint: at(testkit.Dynalite(t)), Name: "dynalite"}, false)
	if r.NoTTL != "UnknownOperationException" || len(r.Cases) > 0 || len(r.LeftOut) != len(expirybench.PartNames()) || !strings.HasPrefix(r.Summary, "dynalite: has no TTL") {
		t.Errorf("%+v", r)
	}
}

// A case whose items cannot be written in time is left out with the reason.
func TestLoadBudget(t *testing.T) {
	t.Parallel()
	e := serve(t, mayfly.Options{}, func(a *answer) {
		if a.operation == "BatchWriteItem" {
			time.Sleep(50 * time.Millisecond) // 16 writers, 8,000 items a second at most
		}
	})
	r := measure(t, expirybench.Options{Endpoint: e, Only: []string{expirybench.PartLateness}, Items: 10, Spread: time.Second, AtOnce: []int{1_000_000}, Load: 5 * time.Second}, false)
	if c := r.Cases[1]; !strings.Contains(c.LeftOut, "1,000,000 items need") || r.Cases[0].LeftOut != "" {
		t.Errorf("%+v", r.Cases)
	}
}

// Values out of range are errors that name the flags.
func TestOptions(t *testing.T) {
	t.Parallel()
	_, err := expirybench.Run(t.Context(), expirybench.Options{Items: 5, Spread: 1500 * time.Millisecond, AtOnce: []int{0}, Wait: time.Millisecond, Only: []string{"luck"}, PID: -1, Pending: make17()})
	var usage *bench.UsageError
	if !errors.As(err, &usage) {
		t.Fatal(err)
	}
	for _, want := range []string{"--items: 5 is not", "--spread: 1.5s is not", "--at-once: 0 is not", "--wait: 1ms is not", `--only: "luck"`, "--server-pid: -1 is not", "17 values are more than 16"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
	if _, err := expirybench.Run(t.Context(), expirybench.Options{Endpoint: at("http://192.0.2.1:8000")}); !errors.Is(err, bench.ErrNotLoopback) {
		t.Error(err)
	}
	if _, err := expirybench.Run(t.Context(), expirybench.Options{Endpoint: at("http://192.0.2.1:8000"), AllowRemote: true, Start: "false"}); !errors.As(err, &usage) {
		t.Error(err)
	}
}

// answer is an answer that a test may alter.
type answer struct {
	operation string
	request   map[string]any
	body      map[string]any
	refusal   string    // the code of an error to answer instead
	date      time.Time // to answer instead of the present
}

// altering is a server with real answers, altered.
func altering(h http.Handler, alter func(*answer)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var request bytes.Buffer
		if _, err := request.ReadFrom(r.Body); err != nil {
			return
		}
		r.Body = http.NoBody
		_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
		a := &answer{operation: operation}
		inner := r.Clone(r.Context())
		inner.Body = readCloser{bytes.NewReader(request.Bytes())}
		inner.ContentLength = int64(request.Len())
		recorded := httptest.NewRecorder()
		h.ServeHTTP(recorded, inner)
		body := recorded.Body.Bytes()
		if recorded.Code == 200 && json.Unmarshal(request.Bytes(), &a.request) == nil && json.Unmarshal(body, &a.body) == nil {
			alter(a)
			body, _ = json.Marshal(a.body)
		}
		if a.refusal != "" {
			recorded.Code, body = 400, []byte(`{"__type":"com.amazonaws.dynamodb.v20120810#`+a.refusal+`"}`)
		}
		for name, values := range recorded.Header() {
			if name != "Content-Length" && name != "X-Amz-Crc32" {
				w.Header()[name] = values
			}
		}
		if !a.date.IsZero() {
			w.Header().Set("Date", a.date.UTC().Format(http.TimeFormat))
		}
		w.WriteHeader(recorded.Code)
		_, _ = w.Write(body)
	})
}

type readCloser struct{ *bytes.Reader }

func (readCloser) Close() error { return nil }

// removal returns the index of the first record of a removal in an answer of GetRecords, or -1.
func (a *answer) removal() int {
	if a.operation != "GetRecords" {
		return -1
	}
	records, _ := a.body["Records"].([]any)
	for i, r := range records {
		if r.(map[string]any)["eventName"] == "REMOVE" {
			return i
		}
	}
	return -1
}

// An exact server hides an expired item from all operations; each of them finds a live one.
func TestNoLeaks(t *testing.T) {
	t.Parallel()
	r := measure(t, expirybench.Options{Endpoint: serve(t, mayfly.Options{}, nil), Only: []string{expirybench.PartVisibility}}, false)
	if len(r.Leaks) != 20 {
		t.Fatalf("%d operations", len(r.Leaks))
	}
	for _, l := range r.Leaks {
		if l.NotOffered != "" || l.Looks < 5 || l.Seen > 0 || l.LastSeenMS != nil || l.FirstGoneMS == nil {
			t.Errorf("%+v", l)
		}
	}
}

// A server that removes late shows expired items to all operations. They are gone at last.
func TestLeaks(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds, and many times as long under the race detector")
	}
	t.Parallel()
	e := serve(t, mayfly.Options{Expiry: mayfly.ExpiryAWS, ExpiryDelay: "fixed:3s"}, nil)
	r := measure(t, expirybench.Options{Endpoint: e, Only: []string{expirybench.PartVisibility}, Wait: 10 * time.Second}, false)
	for _, l := range r.Leaks {
		if l.NotOffered != "" || l.Seen < 1 || l.Seen == l.Looks || l.LastSeenMS == nil || l.FirstGoneMS == nil {
			t.Errorf("%+v", l)
		}
	}
	if !strings.Contains(r.Summary, "20 of 20 operations see expired items") {
		t.Error(r.Summary)
	}
}

// An operation that sees an expired item for a while shows alone, and one that the endpoint refuses, or
// that finds not even live items, is not offered.
func TestLeakOfOne(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds, and many times as long under the race detector")
	}
	t.Parallel()
	var mu sync.Mutex
	live := map[string]any{}
	e := serve(t, mayfly.Options{}, func(a *answer) {
		mu.Lock()
		defer mu.Unlock()
		switch a.operation {
		case "PutItem":
			item := a.request["Item"].(map[string]any)
			live[item["pk"].(map[string]any)["S"].(string)] = item
		case "GetItem": // as if it were never removed
			if a.body["Item"] == nil {
				a.body["Item"] = live[a.request["Key"].(map[string]any)["pk"].(map[string]any)["S"].(string)]
			}
		case "TransactGetItems":
			a.refusal = "UnknownOperationException"
		case "Scan":
			a.body["Items"] = []any{}
		}
	})
	r := measure(t, expirybench.Options{Endpoint: e, Only: []string{expirybench.PartVisibility}}, false)
	want := map[string]string{"TransactGetItems": "UnknownOperationException", "Scan": "it does not find a live item", "Scan in two segments": "it does not find a live item"}
	for _, l := range r.Leaks {
		if l.NotOffered != want[l.Operation] || (l.Seen > 0) != (l.Operation == "GetItem") {
			t.Errorf("%+v", l)
		}
		if l.Operation == "GetItem" && (l.Seen != l.Looks || l.FirstGoneMS != nil) {
			t.Errorf("%+v", l)
		}
	}
}

// Renewals at an exact server are right: there are some of each kind, and none is removed wrongly.
func TestRenewals(t *testing.T) {
	t.Parallel()
	r := measure(t, expirybench.Options{Endpoint: serve(t, mayfly.Options{}, nil), Only: []string{expirybench.PartRenewals}, Renewals: 200}, false)
	if n := r.Renewals; n.Acknowledged == 0 || n.Refused == 0 || n.Acknowledged+n.Refused != 200 || n.Removed != n.Refused || n.Failed > 0 || n.InTime+n.Straddling > n.Acknowledged {
		t.Errorf("%+v", n)
	}
}

// Each fault of renewals and of histories shows in the figure that is made for it.
func TestFaultsOfWrites(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds, and many times as long under the race detector")
	}
	t.Parallel()
	records := func(alter func(records []any) []any) func(*answer) {
		return func(a *answer) {
			if list, _ := a.body["Records"].([]any); a.operation == "GetRecords" && len(list) > 0 {
				a.body["Records"] = alter(list)
			}
		}
	}
	// is reports whether a record is the one of an item's change: each stream has one such record, also when
	// a busy machine has the benchmark start again.
	is := func(r any, number, event, version string) bool {
		record := r.(map[string]any)
		images := record["dynamodb"].(map[string]any)
		image, _ := images["NewImage"].(map[string]any)
		return images["Keys"].(map[string]any)["pk"].(map[string]any)["S"] == "item-000000000"+number && record["eventName"] == event &&
			(version == "" || image["n"].(map[string]any)["N"] == version)
	}
	for name, tt := range map[string]struct {
		part  string
		alter func(*answer)
		shows func(*expirybench.Report) bool
	}{
		"a renewal is forgotten": {expirybench.PartRenewals, func(a *answer) {
			if a.operation == "GetItem" && a.body["Item"] != nil {
				delete(a.body, "Item")
			}
		}, func(r *expirybench.Report) bool {
			return r.Renewals.Wrong == r.Renewals.Acknowledged && r.Renewals.Emptied == 0
		}},
		"an item is emptied": {expirybench.PartRenewals, func(a *answer) {
			if item, ok := a.body["Item"].(map[string]any); ok && a.operation == "GetItem" {
				delete(item, "filling")
			}
		}, func(r *expirybench.Report) bool { return r.Renewals.Emptied > 0 && r.Renewals.Wrong == 0 }},
		"a renewed item has a record of its removal": {expirybench.PartRenewals, records(func(list []any) []any {
			for _, r := range list {
				if is(r, "8", "MODIFY", "") {
					r.(map[string]any)["eventName"] = "REMOVE"
					images := r.(map[string]any)["dynamodb"].(map[string]any)
					images["OldImage"] = images["NewImage"]
				}
			}
			return list
		}), func(r *expirybench.Report) bool { return r.Renewals.WrongRecords == 1 && r.Renewals.Wrong == 0 }},
		"an event is lost": {expirybench.PartEvents, records(func(list []any) []any {
			for i, r := range list {
				if is(r, "5", "MODIFY", "2") {
					return append(list[:i:i], list[i+1:]...)
				}
			}
			return list
		}), func(r *expirybench.Report) bool { return r.Events.Lost == 1 }},
		"an event comes twice": {expirybench.PartEvents, records(func(list []any) []any {
			for i, r := range list {
				if is(r, "5", "INSERT", "") {
					return append(append(list[:i+1:i+1], r), list[i+1:]...)
				}
			}
			return list
		}), func(r *expirybench.Report) bool { return r.Events.Doubled == 1 }},
		"events are out of order": {expirybench.PartEvents, records(func(list []any) []any {
			for _, r := range list {
				if is(r, "5", "INSERT", "") { // it becomes the record of a later version
					r.(map[string]any)["dynamodb"].(map[string]any)["NewImage"].(map[string]any)["n"] = map[string]any{"N": "3"}
				}
			}
			return list
		}), func(r *expirybench.Report) bool { return r.Events.Disordered == 1 }},
		"a client's removal is marked": {expirybench.PartEvents, records(func(list []any) []any {
			for _, r := range list {
				if is(r, "4", "REMOVE", "") {
					r.(map[string]any)["userIdentity"] = map[string]any{"Type": "Service", "PrincipalId": "dynamodb.amazonaws.com"}
				}
			}
			return list
		}), func(r *expirybench.Report) bool { return r.Events.Mismarked == 1 }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// it removes nothing in time, so that conditional renewals succeed on a busy machine too
			o := mayfly.Options{Expiry: mayfly.ExpiryAWS, ExpiryDelay: "fixed:8784h"}
			if tt.part == expirybench.PartEvents {
				o = mayfly.Options{}
			}
			r := measure(t, expirybench.Options{Endpoint: serve(t, o, tt.alter), Only: []string{tt.part}, Wait: 10 * time.Second}, true)
			if !tt.shows(r) {
				t.Errorf("not in %+v, %+v; %q", r.Renewals, r.Events, r.Faults)
			}
		})
	}
}

// Each fault of a server shows in the figure that is made for it.
func TestFaults(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds, and many times as long under the race detector")
	}
	t.Parallel()
	var mu sync.Mutex
	once := func(done *bool) bool { // reports whether this is the first call
		mu.Lock()
		defer mu.Unlock()
		first := !*done
		*done = true
		return first
	}
	for name, tt := range map[string]struct {
		expiry mayfly.Options
		alter  func() func(*answer)
		shows  func(expirybench.Case) bool
	}{
		"items are gone at once": {
			mayfly.Options{},
			func() func(*answer) {
				return func(a *answer) {
					if a.operation == "GetItem" {
						delete(a.body, "Item")
					}
				}
			},
			func(c expirybench.Case) bool {
				return method(t, c, "GetItem").Early > 0 && method(t, c, "Scan").Early == 0
			},
		},
		"an item comes back": {
			mayfly.Options{},
			func() func(*answer) {
				var done bool
				var last any
				misses := map[string]int{} // of each item
				return func(a *answer) {
					if a.operation != "GetItem" {
						return
					}
					mu.Lock()
					defer mu.Unlock()
					if item := a.body["Item"]; item != nil {
						last = item
						return
					}
					key := fmt.Sprint(a.request["Key"])
					if misses[key]++; misses[key] == 2 && !done && last != nil {
						a.body["Item"], done = last, true
					}
				}
			},
			func(c expirybench.Case) bool { return method(t, c, "GetItem").Returned == 1 },
		},
		"a record is lost": {
			mayfly.Options{Expiry: mayfly.ExpiryAWS, ExpiryDelay: "fixed:1s"}, // shown until removed, so that the removal is proven
			func() func(*answer) {
				var done bool
				return func(a *answer) {
					if i := a.removal(); i >= 0 && once(&done) {
						records := a.body["Records"].([]any)
						a.body["Records"] = append(records[:i:i], records[i+1:]...)
					}
				}
			},
			func(c expirybench.Case) bool { // the lost one counts as later than all others
				m := method(t, c, "stream")
				return c.Records.Lost == 1 && m.NotRemoved == 1 && m.Most.P50 != nil && m.Most.Max == nil
			},
		},
		"a record comes twice": {
			mayfly.Options{},
			func() func(*answer) {
				var done bool
				return func(a *answer) {
					if i := a.removal(); i >= 0 && once(&done) {
						records := a.body["Records"].([]any)
						a.body["Records"] = append(records, records[i])
					}
				}
			},
			func(c expirybench.Case) bool { return c.Records.Doubled == 1 },
		},
		"a record is not marked": {
			mayfly.Options{},
			func() func(*answer) {
				var done bool
				return func(a *answer) {
					if i := a.removal(); i >= 0 && once(&done) {
						delete(a.body["Records"].([]any)[i].(map[string]any), "userIdentity")
					}
				}
			},
			func(c expirybench.Case) bool { return c.Records.Unmarked == 1 },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := serve(t, tt.expiry, tt.alter())
			r := measure(t, expirybench.Options{Endpoint: e, Only: []string{expirybench.PartLateness}, Items: 20, Spread: time.Second, AtOnce: []int{1}, Wait: 10 * time.Second}, true)
			if !tt.shows(r.Cases[0]) {
				t.Errorf("not in %+v, %+v; %q", r.Cases[0], r.Cases[0].Records, r.Faults)
			}
		})
	}
}

// A record that does not come is no fault of a server that hides expired items: it may not have removed them yet.
// A throttled or failed read of a stream loses nothing, and neither does an index that follows its table late count as early.
func TestNoFault(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds, and many times as long under the race detector")
	}
	t.Parallel()
	var mu sync.Mutex
	for name, tt := range map[string]struct {
		alter func() func(*answer)
		shows func(expirybench.Case) bool
	}{
		"hidden, not removed": {func() func(*answer) {
			return func(a *answer) {
				for i := a.removal(); i >= 0; i = a.removal() {
					records := a.body["Records"].([]any)
					a.body["Records"] = append(records[:i:i], records[i+1:]...)
				}
			}
		}, func(c expirybench.Case) bool { return c.Records.Lost == c.Items && c.NotRemoved == 0 }},
		"throttled reads of the stream": {func() func(*answer) {
			reads := 0
			return func(a *answer) {
				if a.operation == "GetRecords" {
					mu.Lock()
					defer mu.Unlock()
					if records, _ := a.body["Records"].([]any); len(records) == 0 {
						if reads++; reads%3 == 0 {
							a.refusal = "ThrottlingException"
						}
					}
				}
			}
		}, func(c expirybench.Case) bool { return c.Records.Lost == 0 && method(t, c, "stream").NotRemoved == 0 }},
		"an index that lags": {func() func(*answer) {
			queries := 0
			return func(a *answer) {
				if a.operation == "Query" {
					mu.Lock()
					defer mu.Unlock()
					if queries++; queries <= 3 {
						a.body["Items"] = []any{}
					}
				}
			}
		}, func(c expirybench.Case) bool {
			m := method(t, c, "Query of an index")
			return m.Early == 0 && m.Returned == 0 && m.NotRemoved == 0
		}},
		"an index that forgets for a while": {func() func(*answer) {
			queries := 0
			return func(a *answer) {
				if a.operation == "Query" {
					mu.Lock()
					defer mu.Unlock()
					if queries++; queries == 5 {
						a.body["Items"] = []any{}
					}
				}
			}
		}, func(c expirybench.Case) bool { return method(t, c, "Query of an index").Returned > 0 }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := serve(t, mayfly.Options{}, tt.alter())
			r := measure(t, expirybench.Options{Endpoint: e, Only: []string{expirybench.PartLateness}, Items: 20, Spread: time.Second, AtOnce: []int{1}, Wait: 2 * time.Second}, false)
			if !tt.shows(r.Cases[0]) {
				t.Errorf("not in %+v, %+v", r.Cases[0], r.Cases[0].Records)
			}
		})
	}
}

// A refusal is told from a passing failure: throttled calls do not mean that there is no TTL.
func TestThrottledTTL(t *testing.T) {
	t.Parallel()
	e := serve(t, mayfly.Options{}, func(a *answer) {
		if a.operation == "UpdateTimeToLive" {
			a.refusal = "ThrottlingException"
		}
	})
	report, err := expirybench.Run(t.Context(), expirybench.Options{Endpoint: e, Quick: true})
	if report != nil || err == nil || !strings.Contains(err.Error(), "ThrottlingException") {
		t.Errorf("%+v, %v", report, err)
	}
}

// make17 returns more numbers than a list may have.
func make17() (numbers []int) {
	for i := range 17 {
		numbers = append(numbers, i)
	}
	return numbers
}

// An endpoint whose clock is ahead removes early by the client's clock only.
func TestClockAhead(t *testing.T) {
	t.Parallel()
	const ahead = 2 * time.Second
	e := serve(t, mayfly.Options{}, func(a *answer) {
		a.date = time.Now().Add(ahead)
		if item, ok := a.body["Item"].(map[string]any); ok && a.operation == "GetItem" {
			var deadline int64
			fmt.Sscan(item["expires_at"].(map[string]any)["N"].(string), &deadline)
			if time.Now().Add(ahead).Unix() >= deadline {
				delete(a.body, "Item")
			}
		}
	})
	r := measure(t, expirybench.Options{Endpoint: e, Only: []string{expirybench.PartLateness}, Items: 20, Spread: time.Second, AtOnce: []int{1}, Wait: 10 * time.Second}, false)
	if m := method(t, r.Cases[0], "GetItem"); m.EarlyHere == 0 || m.Early != 0 || !r.Clock.Own || r.Clock.AheadMostMS < 1000 {
		t.Errorf("%+v, %+v", m, r.Clock)
	}
}
