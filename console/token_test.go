package console

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"iter"
	"maps"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	schedulertypes "github.com/aws/aws-sdk-go-v2/service/scheduler/types"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/deliver"
)

// patterns returns the patterns in route.go of a method, without the common beginning.
func patterns(t *testing.T, method string) (found []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "route.go", nil, 0)
	must(t, err)
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) != 2 {
			return true
		}
		var text strings.Builder
		ast.Inspect(call.Args[0], func(n ast.Node) bool {
			if literal, ok := n.(*ast.BasicLit); ok {
				part, err := strconv.Unquote(literal.Value)
				must(t, err)
				text.WriteString(part)
			}
			return true
		})
		if path, ok := strings.CutPrefix(text.String(), method+" "); ok {
			found = append(found, path)
		}
		return true
	})
	if len(found) == 0 {
		t.Fatalf("route.go has no pattern of %s", method)
	}
	return found
}

// changes are the forms of the pages: by the pattern of route.go, the path and the fields of each
// change.
var changes = map[string][]struct {
	path   string
	fields url.Values
}{
	"new": {{"new", url.Values{"name": {"made"}, "pk": {"id"}, "pkType": {"S"}}}},
	"table/{table}": {
		{"table/things", url.Values{"do": {"delete"}, "name": {"things"}}}, {"table/things", url.Values{"do": {"ttl-off"}, "attribute": {"ends"}}},
		{"table/things", url.Values{"do": {"stream-off"}}}, {"table/things", url.Values{"do": {"index-new"}, "index": {"more"}, "pk": {"other"}, "pkType": {"S"}}},
	},
	"table/{table}/item": {
		{"table/things/item", url.Values{"do": {"delete"}, "key": {`{"id":{"S":"a"}}`}, "was": {digest(thingA)}, "confirmed": {"yes"}}}, {"table/things/item", url.Values{"do": {"create"}, "item": {`{"id":"b"}`}}},
		{"table/things/item", url.Values{"do": {"renew"}, "key": {`{"id":{"S":"a"}}`}, "was": {"1893502800"}, "by": {"60"}}},
	},
	"table/{table}/items":          {{"table/things/items", url.Values{"k0": {"a"}}}},
	"table/{table}/export":         {{"table/things/export", url.Values{"as": {"csv"}}}},
	"theme":                        {{"theme", url.Values{"to": {"dark"}}}},
	"table/{table}/bulk":           {{"table/things/bulk", url.Values{"do": {"delete"}, "key": {`{"id":{"S":"a"}}`}, "confirmed": {"yes"}, "was": {digest(thingA)}}}},
	"table/{table}/import":         {{"table/things/import", url.Values{"file": {`{"id":"imported"}`}}}},
	"partiql":                      {{"partiql", url.Values{"statement": {`DELETE FROM "things" WHERE id = 'a'`}}}},
	"schedules":                    {{"schedules", url.Values{"do": {"delete"}, "group": {"default"}, "name": {"daily"}, "confirmed": {"yes"}}}, {"schedules", url.Values{"do": {"pause"}, "group": {"default"}, "name": {"daily"}}}},
	"triggers":                     {{"triggers", url.Values{"do": {"delete"}, "uuid": {"00000000-0000-0000-0000-000000000000"}}}},
	"deadletters":                  {{"deadletters", url.Values{"do": {"delete"}, "key": {"l-1"}, "confirmed": {"yes"}}}},
	"lifecycle/{lifecycle}/entity": {{"lifecycle/parcel/entity", url.Values{"do": {"cancel"}, "id": {"p-1"}}}},
	"clock":                        {{"clock", url.Values{"do": {"advance"}, "by": {"24h"}}}, {"clock", url.Values{"do": {"run"}}}},
}

// thingA is the item that the changes would change.
var thingA = attr.Item{"id": attr.S("a"), "ends": attr.N("1893502800")}

// populate makes what the changes would change.
func (s *site) populate() {
	s.t.Helper()
	s.table("things")
	s.expires("things", "ends")
	s.put("things", thingA)
	_, err := s.db.Scheduler().CreateSchedule(s.t.Context(), &scheduler.CreateScheduleInput{
		Name: aws.String("daily"), ScheduleExpression: aws.String("rate(1 day)"), FlexibleTimeWindow: &schedulertypes.FlexibleTimeWindow{Mode: schedulertypes.FlexibleTimeWindowModeOff},
		Target: &schedulertypes.Target{Arn: aws.String("arn:aws:lambda:us-east-1:000000000000:function:f"), RoleArn: aws.String("arn:aws:iam::000000000000:role/r")},
	})
	must(s.t, err)
	s.letter("l-1", attr.Item{})
}

// world returns the state of all that the changes would change.
func (s *site) world() string {
	s.t.Helper()
	ctx := s.t.Context()
	var state []string
	for name := range s.tables() {
		if strings.HasPrefix(name, "mayfly.") && name != deliver.DeadLettersTable {
			continue // of the server's own work, which goes on
		}
		d, err := s.visit().describe(ctx, name)
		must(s.t, err)
		state = append(state, name, d.ttl, d.streamText(), strconv.Itoa(len(d.indexes())))
		state = append(state, s.contents(name)...)
	}
	schedules, err := s.db.Scheduler().ListSchedules(ctx, &scheduler.ListSchedulesInput{})
	must(s.t, err)
	for _, one := range schedules.Schedules {
		state = append(state, aws.ToString(one.Name), string(one.State))
	}
	return strings.Join(append(state, s.db.Clock().Now().String()), "\n")
}

// tables returns the names of all tables.
func (s *site) tables() iter.Seq[string] {
	return func(yield func(string) bool) {
		pages := dynamodb.NewListTablesPaginator(s.db.DynamoDB(), &dynamodb.ListTablesInput{})
		for pages.HasMorePages() {
			page, err := pages.NextPage(s.t.Context())
			must(s.t, err)
			for _, name := range page.TableNames {
				if !yield(name) {
					return
				}
			}
		}
	}
}

// letter writes a dead letter with further attributes.
func (s *site) letter(id string, more attr.Item) {
	s.t.Helper()
	item := attr.Item{"id": attr.S(id), "when": attr.Seconds(begin), "target": attr.S("arn:aws:lambda:us-east-1:000000000000:function:f"), "code": attr.S("Failed"), "body": attr.B([]byte("{}")), "job": attr.S("{}")}
	maps.Copy(item, more)
	if !slices.Contains(slices.Collect(s.tables()), deliver.DeadLettersTable) {
		s.table(deliver.DeadLettersTable)
	}
	s.put(deliver.DeadLettersTable, item)
}

// visit returns a visit of the database without a web server.
func (s *site) visit() *visit {
	p := newPages(Options{Config: aws.Config{Region: "us-east-1"}, URL: s.url})
	e, err := p.endpoint("AKID", "secret")
	must(s.t, err)
	return &visit{endpoint: e, pages: p}
}

// submit sends the form of a change, as the page's form does.
func (s *site) submit(path string, fields url.Values) answer {
	s.t.Helper()
	if !fields.Has("file") {
		return s.do(http.MethodPost, below+path, formKind, fields.Encode())
	}
	others := maps.Clone(fields)
	others.Del("file")
	return s.upload(path, others, "items.jsonl", []byte(fields.Get("file")))
}

// upload sends a form with a file.
func (s *site) upload(path string, fields url.Values, name string, file []byte) answer {
	s.t.Helper()
	var b bytes.Buffer
	m := multipart.NewWriter(&b)
	for name, values := range fields {
		must(s.t, m.WriteField(name, values[0]))
	}
	w, err := m.CreateFormFile("file", name)
	must(s.t, err)
	_, err = w.Write(file)
	must(s.t, err)
	must(s.t, m.Close())
	if fields.Has("token") {
		path += "?" + url.Values{"token": fields["token"]}.Encode() // in front of the files
	}
	return s.do(http.MethodPost, below+path, m.FormDataContentType(), b.String())
}

// withToken returns the fields with a token.
func withToken(fields url.Values, token string) url.Values {
	all := url.Values{"token": {token}}
	for name, values := range fields {
		all[name] = values
	}
	return all
}

// TestNoChangeWithoutToken: each form of route.go is refused without the token of this start and
// this visitor, and changes nothing.
func TestNoChangeWithoutToken(t *testing.T) {
	s := open(t, mayfly.Options{Credentials: []mayfly.Credential{{AccessKey: "AKID", SecretKey: "secret"}, {AccessKey: "OTHER", SecretKey: "secret"}}}).as("AKID", "secret")
	s.populate()
	earlier := httptest.NewServer(Handler(Options{Config: aws.Config{Region: "us-east-1"}, URL: s.url}))
	defer earlier.Close()
	right := s.token()
	tokens := map[string]string{
		"none": "", "of another user": s.as("OTHER", "secret").token(), "of a user without a key": s.as("", "").token(),
		"of another start": visitor(t, earlier.URL, s.db).as("AKID", "secret").token(), "of one who knows the name only": s.as("AKID", "guessed").token(),
		"shorter": right[:len(right)-1], "longer": right + "0", "in capitals": strings.ToUpper(right),
	}
	before := s.world()
	for _, pattern := range patterns(t, http.MethodPost) {
		forms := changes[pattern]
		if len(forms) == 0 {
			t.Errorf("no form for POST %s: add one to changes", pattern)
		}
		for _, form := range forms {
			for kind, token := range tokens {
				a := s.submit(form.path, withToken(form.fields, token))
				if text := a.refused(t, http.StatusForbidden); !strings.Contains(text, errToken.text) {
					t.Errorf("%s %v with the token %s: %.300s", form.path, form.fields, kind, text)
				}
			}
			for kind, token := range tokens {
				path := form.path + "?" + url.Values{"token": {token}}.Encode()
				if a := s.submit(path, form.fields); a.status != http.StatusForbidden {
					t.Errorf("%s with the token %s in the URL has the status %d", form.path, kind, a.status)
				}
			}
			if a := s.do(http.MethodGet, below+form.path+"?"+withToken(form.fields, right).Encode(), "", ""); a.status >= http.StatusInternalServerError {
				t.Errorf("GET %s has the status %d", form.path, a.status)
			}
		}
	}
	if after := s.world(); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
	// with the right token, the same forms do change something
	for _, pattern := range []string{"deadletters", "schedules", "partiql", "table/{table}/import", "table/{table}/item", "new", "table/{table}", "clock"} {
		form, was := changes[pattern][0], s.world()
		if pattern == "table/{table}/item" {
			form = changes[pattern][1]
		}
		if a := s.submit(form.path, withToken(form.fields, right)); a.status >= http.StatusBadRequest {
			t.Errorf("%s has the status %d: %.300s", form.path, a.status, readMarkup(t, a.body).text())
		}
		if s.world() == was {
			t.Errorf("%s changes nothing: %s", form.path, was)
		}
	}
}

// TestPatternsAreMethods: each pattern of route.go has a method, so that the list of those that
// change something is whole.
func TestPatternsAreMethods(t *testing.T) {
	all := patterns(t, http.MethodGet)
	if posts := patterns(t, http.MethodPost); slices.Contains(all, "") || len(all) < 20 || len(posts) < 8 {
		t.Errorf("route.go has %q and %q", all, posts)
	}
}
