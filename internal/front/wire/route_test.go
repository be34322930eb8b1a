package wire

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// tellingRoutes returns routes that answer with their request.
func tellingRoutes() []Route {
	var all []Route
	for _, r := range []Route{
		{Service: "scheduler", Name: "CreateSchedule", Method: "POST", Path: "/schedules/{Name}"},
		{Service: "scheduler", Name: "GetSchedule", Method: "GET", Path: "/schedules/{Name}"},
		{Service: "scheduler", Name: "ListSchedules", Method: "GET", Path: "/schedules"},
		{Service: "scheduler", Name: "UntagResource", Method: "DELETE", Path: "/tags/{ResourceArn}"},
		{Service: "lambda", Name: "CreateEventSourceMapping", Method: "POST", Path: "/2015-03-31/event-source-mappings/", Status: http.StatusAccepted},
		{Service: "lambda", Name: "UpdateEventSourceMapping", Method: "PUT", Path: "/2015-03-31/event-source-mappings/{UUID}", Status: http.StatusAccepted},
		{Service: "lambda", Name: "PutSomething", Method: "PUT", Path: "/2015-03-31/functions/{Name}/something/{Other}"},
	} {
		r.Do = tellCall(r.Name)
		all = append(all, r)
	}
	return all
}

func tellCall(name string) func(context.Context, *Call) (any, error) {
	return func(_ context.Context, c *Call) (any, error) {
		return struct {
			Name  string
			Path  map[string]string
			Query url.Values
			Body  string
		}{name, c.Path, c.Query, string(c.Body)}, nil
	}
}

// A request finds its operation and the labels in its path.
func TestFind(t *testing.T) {
	table := newMountTable(tellingRoutes(), []Action{{Service: "events", Target: "AWSEvents.PutRule", Do: tellCall("PutRule")}})
	for _, test := range []struct{ method, path, want string }{
		{"GET", "/schedules", "scheduler:ListSchedules"},
		{"GET", "/schedules/", "scheduler:ListSchedules"}, // an empty name matches no label
		{"GET", "/schedules//", "scheduler: no such operation"},
		{"GET", "/schedules/a", "scheduler:GetSchedule Name=a"},
		{"GET", "/schedules/a/", "scheduler:GetSchedule Name=a"},
		{"GET", "/schedules/a/b", "scheduler: no such operation"},
		{"GET", "/schedules/a%2Fb", "scheduler:GetSchedule Name=a/b"},
		{"GET", "/schedules/a+b%20c%2B", "scheduler:GetSchedule Name=a+b c+"},
		{"GET", "/schedules/.", "scheduler:GetSchedule Name=."},
		{"GET", "/schedules/..", "scheduler:GetSchedule Name=.."},
		{"GET", "/schedules/a..b.c", "scheduler:GetSchedule Name=a..b.c"},
		{"GET", "/schedules/%zz", "scheduler:GetSchedule SerializationException: the path is not percent-encoded UTF-8 at {Name}"},
		{"GET", "/schedules/a%", "scheduler:GetSchedule SerializationException: the path is not percent-encoded UTF-8 at {Name}"},
		{"GET", "/schedules/%FF", "scheduler:GetSchedule SerializationException: the path is not percent-encoded UTF-8 at {Name}"},
		{"POST", "/schedules/a", "scheduler:CreateSchedule Name=a"},
		{"POST", "/schedules", "scheduler: no such operation"},
		{"PATCH", "/schedules/a", "scheduler: no such operation"},
		{"HEAD", "/schedules/a", "scheduler: no such operation"},
		{"get", "/schedules/a", "scheduler: no such operation"},
		{"OPTIONS", "/schedules/a", "none"},
		{"GET", "//schedules/a", "none"},
		{"GET", "/Schedules/a", "none"},
		{"GET", "/schedulesa", "none"},
		{"GET", "/", "none"},
		{"GET", "", "none"},
		{"DELETE", "/tags/arn:aws:scheduler:us-east-1:000000000000:schedule-group%2Fa.b", "scheduler:UntagResource ResourceArn=arn:aws:scheduler:us-east-1:000000000000:schedule-group/a.b"},
		{"DELETE", "/tags/arn%3Aaws%3Ascheduler%3Aus-east-1%3A000000000000%3Aschedule-group%2fa", "scheduler:UntagResource ResourceArn=arn:aws:scheduler:us-east-1:000000000000:schedule-group/a"},
		{"DELETE", "/tags/arn:aws:scheduler:us-east-1:000000000000:schedule-group/a", "scheduler: no such operation"},
		{"POST", "/2015-03-31/event-source-mappings/", "lambda:CreateEventSourceMapping"},
		{"POST", "/2015-03-31/event-source-mappings", "lambda:CreateEventSourceMapping"},
		{"POST", "/2015-03-31/event-source-mappings//", "lambda: no such operation"},
		{"PUT", "/2015-03-31/event-source-mappings/1-2", "lambda:UpdateEventSourceMapping UUID=1-2"},
		{"PUT", "/2015-03-31/functions/f/something/o", "lambda:PutSomething Name=f Other=o"},
		{"PUT", "/2015-03-31/functions//something/o", "lambda: no such operation"},
		{"GET", "/2015-03-31/functions/", "lambda: no such operation"},
	} {
		a := table.find(&Request{Method: test.method, Path: test.path, Header: http.Header{}})
		want(t, test.method+" "+test.path+": "+describe(a), test.method+" "+test.path+": "+test.want)
	}
	for target, wanted := range map[string]string{
		"AWSEvents.PutRule": "events:PutRule", "AWSEvents.PutRul": "events: no such operation",
		"AWSEvents.": "events: no such operation", "DynamoDB_20120810.PutItem": "none", "": "none", ".": "none",
	} {
		want(t, target+" "+describe(table.find(post(target, "{}"))), target+" "+wanted)
	}
}

func describe(a match) string {
	switch {
	case a.api == nil:
		return "none"
	case a.op == nil:
		return a.api.service + ": no such operation"
	}
	labels, err := a.labels()
	if err != nil {
		return a.op.name + " " + err.Error()
	}
	text := a.op.name
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		text += " " + name + "=" + labels[name]
	}
	return text
}

// A table in which a request could match two operations panics.
func TestAmbiguousTables(t *testing.T) {
	route := func(service, method, path string) Route {
		return Route{Service: service, Name: "N", Method: method, Path: path}
	}
	for name, test := range map[string]struct {
		routes  []Route
		actions []Action
	}{
		"twice":               {routes: []Route{route("a", "GET", "/x/{A}"), route("a", "GET", "/x/{A}")}},
		"another label":       {routes: []Route{route("a", "GET", "/x/{A}"), route("a", "PUT", "/x/{B}")}},
		"label and literal":   {routes: []Route{route("a", "GET", "/x/{A}"), route("a", "PUT", "/x/y")}},
		"two services":        {routes: []Route{route("a", "GET", "/x/{A}"), route("b", "GET", "/x/y/z")}},
		"label at the root":   {routes: []Route{route("a", "GET", "/{A}")}},
		"nothing at the root": {routes: []Route{route("a", "GET", "/")}},
		"action twice":        {actions: []Action{{Service: "a", Target: "A.B"}, {Service: "a", Target: "A.B"}}},
		"action of two":       {actions: []Action{{Service: "a", Target: "A.B"}, {Service: "b", Target: "A.C"}}},
		"action without dot":  {actions: []Action{{Service: "a", Target: "A"}}},
	} {
		func() {
			defer func() {
				if fault, _ := recover().(string); !strings.HasPrefix(fault, "wire: ") {
					t.Errorf("%s: %q", name, fault)
				}
			}()
			newMountTable(test.routes, test.actions)
		}()
	}
}

// FuzzFind sends any method, path and query. Every answer has a form of the API, and an operation
// gets exactly the labels that net/url reads out of the path.
func FuzzFind(f *testing.F) {
	for _, path := range []string{
		"/schedules/a", "/schedules", "/schedules/", "/schedules/a%2Fb", "/schedules/%", "/tags/arn:aws:x%2Fy", "/2015-03-31/event-source-mappings/",
		"/2015-03-31/functions/f/something/o", "//", "", "/", "/schedules/..", "/schedules/%ff",
	} {
		f.Add("GET", path, "a=b&a=c")
		f.Add("PUT", path, "a=%zz;b")
	}
	s := New(Options{Routes: tellingRoutes()})
	table := s.mounted
	f.Fuzz(func(t *testing.T, method, path, query string) {
		in := &Request{Method: method, Path: path, Query: query, Header: http.Header{}}
		got := do(s, in)
		if !slices.Contains([]int{200, 202, 400, 404}, got.status) {
			t.Errorf("%s %q: %d %s", method, path, got.status, got.body)
		}
		if !utf8.ValidString(got.body) {
			t.Errorf("%s %q: not UTF-8: %q", method, path, got.body)
		}
		a := table.find(in)
		if a.op == nil {
			return
		}
		labels, err := a.labels()
		if err != nil {
			return
		}
		again := a.pattern.String()
		for name, text := range labels {
			if text == "" {
				t.Errorf("%q: {%s} is empty", path, name)
			}
			again = strings.Replace(again, "{"+name+"}", url.PathEscape(text), 1)
		}
		plain, err := url.PathUnescape(strings.TrimSuffix(path, "/"))
		if read, _ := url.PathUnescape(again); err != nil || read != plain && "/"+plain != read {
			t.Errorf("%q was read as %q: %q, %v", path, again, plain, err)
		}
	})
}

func BenchmarkFind(b *testing.B) {
	table := newMountTable(tellingRoutes(), []Action{{Service: "events", Target: "AWSEvents.PutRule"}})
	for name, in := range map[string]*Request{
		"Table": post("GetItem", "{}"), "Route": {Method: "POST", Path: "/schedules/a-name-of-usual-length"},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if a := table.find(in); a.op == nil != (name == "Table") {
					b.Fatal(fmt.Sprint(a))
				}
			}
		})
	}
}
