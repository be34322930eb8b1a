package console

import (
	"context"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/testkit"
	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/transfer"
)

// begin is the instant at which the servers' clocks stand.
var begin = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// site is a visitor of pages.
type site struct {
	t              testing.TB
	url            string
	user, password string
	header         http.Header  // of all requests, besides the usual ones
	db             *mayfly.DB   // the database that the pages show
	client         *http.Client // follows no redirects
}

// open serves a database in memory with the pages, its clock standing at begin.
func open(t testing.TB, o mayfly.Options) *site {
	t.Helper()
	o.Start, o.Frozen, o.Console, o.Logger = begin, true, New, testkit.Logger(t)
	db, err := mayfly.Open("", o)
	must(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- db.Serve(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		<-served
		must(t, db.Close())
	})
	return visitor(t, "http://"+listener.Addr().String(), db)
}

// visitor returns a visitor of pages at a URL.
func visitor(t testing.TB, url string, db *mayfly.DB) *site {
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &site{t: t, url: url, header: http.Header{}, db: db, client: &http.Client{
		Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// as returns the same site for another visitor.
func (s *site) as(user, password string) *site {
	other := *s
	other.user, other.password, other.header = user, password, s.header.Clone()
	return &other
}

// with returns the site for a visitor whose requests have one more header.
func (s *site) with(name, value string) *site {
	other := s.as(s.user, s.password)
	other.header.Set(name, value)
	return other
}

// answer is the answer to a request.
type answer struct {
	status int
	header http.Header
	body   string
	path   string
}

// do sends a request.
func (s *site) do(method, path, kind, body string) answer {
	s.t.Helper()
	got := s.send(method, path, kind, body)
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	must(s.t, err)
	return answer{got.StatusCode, got.Header, string(text), path}
}

// send sends a request, and returns the answer with its body still to read.
func (s *site) send(method, path, kind, body string) *http.Response {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(body))
	must(s.t, err)
	maps.Copy(r.Header, s.header)
	if host := s.header.Get("Host"); host != "" {
		r.Host = host
	}
	if kind != "" {
		r.Header.Set("Content-Type", kind)
	}
	if s.user+s.password != "" {
		r.SetBasicAuth(s.user, s.password)
	}
	got, err := s.client.Do(r)
	must(s.t, err)
	return got
}

// get asks for a path below the pages.
func (s *site) get(path string, query url.Values) answer {
	s.t.Helper()
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return s.do(http.MethodGet, below+path, "", "")
}

// page asks for a page, checks it as all pages are checked, and returns it.
func (s *site) page(path string, query url.Values) markup {
	s.t.Helper()
	return s.get(path, query).page(s.t, http.StatusOK)
}

const formKind = "application/x-www-form-urlencoded"

// post sends a form with the visitor's token.
func (s *site) post(path string, fields url.Values) answer {
	s.t.Helper()
	if !fields.Has("token") && !strings.Contains(path, "token=") {
		path += "?" + url.Values{"token": {s.token()}}.Encode() // as in the forms that may be large
	}
	return s.do(http.MethodPost, below+path, formKind, fields.Encode())
}

// token returns the token in the forms of a page that needs no table.
func (s *site) token() string {
	s.t.Helper()
	return field(s.t, s.page("new", nil), "token")
}

// field returns the value of the first input with a name.
func field(t testing.TB, m markup, name string) string {
	t.Helper()
	for _, one := range m.all("input") {
		if one.values["name"] == name {
			return one.values["value"]
		}
	}
	t.Fatalf("the page has no field %q", name)
	return ""
}

// page returns the answer as a page, which must have the status and be as all pages are.
func (a answer) page(t testing.TB, status int) markup {
	t.Helper()
	if a.status != status {
		t.Fatalf("%s has the status %d; want %d: %.600s", a.path, a.status, status, readMarkup(t, a.body).text())
	}
	if kind := a.header.Get("Content-Type"); kind != "text/html; charset=utf-8" {
		t.Errorf("%s has the type %q", a.path, kind)
	}
	if got := a.header.Get("Cache-Control"); got != "no-store" {
		t.Errorf("%s may be stored: %q", a.path, got)
	}
	m := readMarkup(t, a.body)
	checkHeaders(t, a)
	checkMarkup(t, a.path, m)
	return m
}

// refused returns the text of the page's problem, which must have the status.
func (a answer) refused(t testing.TB, status int) string {
	t.Helper()
	m := a.page(t, status)
	for _, one := range m.tags {
		if one.values["class"] == "problem" {
			return m.text()
		}
	}
	t.Errorf("%s shows no problem: %.300s", a.path, m.text())
	return ""
}

// table creates a table of the key id, with a TTL attribute and a stream.
func (s *site) table(name string, more ...func(*dynamodb.CreateTableInput)) {
	s.t.Helper()
	in := &dynamodb.CreateTableInput{
		TableName: &name, BillingMode: types.BillingModePayPerRequest, KeySchema: keySchema("id"), AttributeDefinitions: defined("id", "S"),
		StreamSpecification: &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewAndOldImages},
	}
	for _, change := range more {
		change(in)
	}
	_, err := s.db.DynamoDB().CreateTable(s.t.Context(), in)
	must(s.t, err)
}

// expires enables the TTL of a table.
func (s *site) expires(table, attribute string) {
	s.t.Helper()
	_, err := s.db.DynamoDB().UpdateTimeToLive(s.t.Context(), &dynamodb.UpdateTimeToLiveInput{
		TableName: &table, TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: &attribute, Enabled: aws.Bool(true)},
	})
	must(s.t, err)
}

// keySchema returns the schema of a partition key and, if there is one, a sort key.
func keySchema(names ...string) (schema []types.KeySchemaElement) {
	for i, name := range names {
		schema = append(schema, types.KeySchemaElement{AttributeName: aws.String(name), KeyType: []types.KeyType{types.KeyTypeHash, types.KeyTypeRange}[i]})
	}
	return schema
}

// defined returns definitions of attributes: names and types in turn.
func defined(names ...string) (all []types.AttributeDefinition) {
	for pair := range slices.Chunk(names, 2) {
		all = append(all, types.AttributeDefinition{AttributeName: aws.String(pair[0]), AttributeType: types.ScalarAttributeType(pair[1])})
	}
	return all
}

// put writes items.
func (s *site) put(table string, items ...attr.Item) {
	s.t.Helper()
	for _, item := range items {
		_, err := s.db.DynamoDB().PutItem(s.t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: item})
		must(s.t, err)
	}
}

// contents returns a table's items as DynamoDB JSON, sorted.
func (s *site) contents(table string) (lines []string) {
	s.t.Helper()
	in := &dynamodb.ScanInput{TableName: &table, ConsistentRead: aws.Bool(true)}
	for {
		out, err := s.db.DynamoDB().Scan(s.t.Context(), in)
		must(s.t, err)
		for _, item := range out.Items {
			lines = append(lines, jsonText(item))
		}
		if in.ExclusiveStartKey = out.LastEvaluatedKey; in.ExclusiveStartKey == nil {
			slices.Sort(lines)
			return lines
		}
	}
}

// jsonText returns an item as DynamoDB JSON.
func jsonText(item attr.Item) string { return string(transfer.AppendItem(nil, item)) }

// delete deletes an item.
func (s *site) delete(table string, key attr.Item) {
	s.t.Helper()
	_, err := s.db.DynamoDB().DeleteItem(s.t.Context(), &dynamodb.DeleteItemInput{TableName: &table, Key: key})
	must(s.t, err)
}

// followed returns the page to which a change leads.
func (s *site) followed(a answer) markup {
	s.t.Helper()
	to := a.header.Get("Location")
	if a.status != http.StatusSeeOther || !strings.HasPrefix(to, below) {
		s.t.Fatalf("%s has the status %d and leads to %q: %.600s", a.path, a.status, to, readMarkup(s.t, a.body).text())
	}
	return s.do(http.MethodGet, to, "", "").page(s.t, http.StatusOK)
}
