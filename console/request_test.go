package console

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/testkit"
	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/transfer"
)

// samples returns the code on a page, by language.
func samples(t *testing.T, m markup) map[string]string {
	t.Helper()
	found := map[string]string{}
	for i, text := range m.texts {
		if text == "Copy" {
			found[m.texts[i-1]] = m.texts[i+1]
		}
	}
	if len(found) != 4 {
		t.Fatalf("the page has samples for %q", found)
	}
	return found
}

// listener is an address of a site that keeps the answers to calls of the API.
type listener struct {
	*site
	mu      sync.Mutex
	answers []string
}

// listen returns the site under an address of its own.
func (s *site) listen() *listener {
	s.t.Helper()
	to, err := url.Parse(s.url)
	must(s.t, err)
	l := &listener{}
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.ModifyResponse = func(r *http.Response) error {
		body, err := io.ReadAll(r.Body)
		if r.Request.Header.Get("X-Amz-Target") != "" {
			l.mu.Lock()
			l.answers = append(l.answers, string(body))
			l.mu.Unlock()
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		return err
	}
	server := httptest.NewServer(proxy)
	s.t.Cleanup(server.Close)
	l.site = visitor(s.t, server.URL, s.db)
	return l
}

// heard returns the items of the only answer since the last call.
func (l *listener) heard(t *testing.T) (items []attr.Item) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.answers) != 1 {
		t.Fatalf("%d calls: %q", len(l.answers), l.answers)
	}
	var answer struct {
		Items []json.RawMessage
		Item  json.RawMessage
	}
	must(t, json.Unmarshal([]byte(l.answers[0]), &answer))
	l.answers = nil
	if answer.Item != nil {
		answer.Items = append(answer.Items, answer.Item)
	}
	for _, text := range answer.Items {
		item, err := transfer.ReadKey(text) // it reads any item
		must(t, err)
		items = append(items, item)
	}
	return items
}

// run runs a sample as its reader would. It skips the test if a program for that is missing.
func (l *listener) run(t *testing.T, language, code string) {
	t.Helper()
	dir := t.TempDir()
	file := func(name string) string {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(code), 0o600))
		return filepath.Join(dir, name)
	}
	program := func(name string) string {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Skip(err)
		}
		return path
	}
	var command *exec.Cmd
	switch language {
	case "AWS CLI":
		program("aws")
		command = exec.Command(program("sh"), file("call.sh"))
	case "Python":
		if exec.Command(program("python3"), "-c", "import boto3").Run() != nil {
			t.Skip("python3 cannot import boto3")
		}
		command = exec.Command("python3", file("call.py"))
	case "JavaScript":
		packages, err := filepath.Abs("../.ci/clients/node_modules")
		must(t, err)
		if _, err := os.Stat(filepath.Join(packages, "@aws-sdk", "client-dynamodb")); err != nil {
			t.Skip("install the SDK with: npm install --prefix .ci/clients")
		}
		must(t, os.Symlink(packages, filepath.Join(dir, "node_modules")))
		command = exec.Command(program("node"), file("call.mjs"))
	case "Go":
		command = exec.Command(program("go"), "run", file("call.go"))
	}
	command.Env = append(os.Environ(), "AWS_ACCESS_KEY_ID=any", "AWS_SECRET_ACCESS_KEY=any", "AWS_REGION=us-east-1", "AWS_DEFAULT_REGION=us-east-1", "AWS_EC2_METADATA_DISABLED=true", "AWS_CONFIG_FILE="+filepath.Join(dir, "none"), "AWS_PAGER=")
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, code, output)
	}
	if len(output) == 0 {
		t.Errorf("it prints nothing:\n%s", code)
	}
}

// languages are the languages of the samples.
var languages = []string{"AWS CLI", "Python", "JavaScript", "Go"}

// hostileValue has all that a language or a shell could take for its own.
const hostileValue = "'; exit 3 #\"$HOME `id` ${x} \\ \\n \\u0041 %s\n\r\t\x01\u2028é\U0001F600<!-- aws. types. */ \"\"\" #{x}"

// TestSamplesRun: the code of a page returns the same items as the page, in each language, from the
// address in the browser: a query with all that the form has, the next page of a Scan, an item and
// a statement, all with hostile names and values.
func TestSamplesRun(t *testing.T) {
	s := open(t, mayfly.Options{})
	const digits = "12345678901234567890123456789012345678"
	name := "a." + hostileValue
	s.table("-things", func(in *dynamodb.CreateTableInput) {
		in.KeySchema, in.AttributeDefinitions = keySchema("id", name), defined("id", "S", name, "N", "group", "S")
		in.GlobalSecondaryIndexes = []types.GlobalSecondaryIndex{{IndexName: aws.String("-by.group"), KeySchema: keySchema("group", name), Projection: &types.Projection{ProjectionType: types.ProjectionTypeAll}}}
	})
	for i, number := range []string{"1", "2.5", "3", digits, "-" + digits} {
		s.put("-things", attr.Item{"id": attr.S(hostileValue + string(rune('a'+i))), name: attr.N(number), "group": attr.S(hostileValue), "b": attr.B([]byte("\x00\xff'\"\\\n")), "big": attr.N(digits), "t": attr.Bool(true), "text": attr.S(hostileValue)})
	}
	query := url.Values{
		"index": {"-by.group"}, "k0": {hostileValue}, "k1": {"2"}, "o1": {"between"}, "second": {digits}, "order": {"down"}, "limit": {"3"}, "projection": {"text, t, b, big"},
		"f0": {"text"}, "fo0": {"begins_with"}, "ft0": {"S"}, "fv0": {hostileValue[:20]}, "f1": {"big"}, "fo1": {">="}, "ft1": {"N"}, "fv1": {digits}, "f2": {"t"}, "fo2": {"="}, "ft2": {"BOOL"}, "fv2": {"true"},
	}
	binary := url.Values{"k0": {hostileValue + "b"}, "f0": {"b"}, "fo0": {"="}, "ft0": {"B"}, "fv0": {"AP8nIlwK"}}
	key := jsonText(attr.Item{"id": attr.S(hostileValue + "d"), name: attr.N(digits)})
	start := jsonText(attr.Item{"id": attr.S(hostileValue + "a"), name: attr.N("1")})
	pages := []struct {
		name, path string
		query      url.Values
		items      int
	}{
		{"query", "table/-things/items", query, 3}, {"binary", "table/-things/items", binary, 1}, {"scan", "table/-things/items", url.Values{"start": {start}, "limit": {"2"}}, -1},
		{"item", "table/-things/item", url.Values{"key": {key}}, 1}, {"statement", "partiql", url.Values{"statement": {`SELECT * FROM "-things" WHERE "group" = '` + strings.ReplaceAll(hostileValue, "'", "''") + "'"}}, 5},
	}
	for _, language := range languages {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			l := s.listen()
			for _, p := range testkit.Size(pages[:1], pages) {
				if p.name == "binary" && language == "AWS CLI" && firstCLI() {
					continue // version 1 takes base64 for the bytes themselves
				}
				m := l.page(p.path, p.query)
				code := samples(t, m)[language]
				if !strings.Contains(code, l.url) {
					t.Errorf("%s does not name %s:\n%s", p.name, l.url, code)
				}
				l.run(t, language, code)
				items := l.heard(t)
				var got []string
				for _, item := range items {
					got = append(got, keyJSON(item, []string{"id", name}))
				}
				want := keysIn(m)
				if p.name == "item" {
					want = []string{key}
				}
				if p.name == "statement" {
					want = nil
					for _, line := range s.contents("-things") {
						item, err := transfer.ReadKey([]byte(line))
						must(t, err)
						want = append(want, keyJSON(item, []string{"id", name}))
					}
					slices.Sort(want)
					slices.Sort(got)
				}
				if !slices.Equal(got, want) || p.items >= 0 && len(want) != p.items {
					t.Errorf("%s returns %q; the page has %q\n%s", p.name, got, want, code)
				}
			}
		})
	}
}

// firstCLI reports whether aws is of version 1.
func firstCLI() bool {
	version, err := exec.Command("aws", "--version").CombinedOutput()
	return err == nil && strings.HasPrefix(string(version), "aws-cli/1.")
}

// TestAddresses: samples and footer name the address in the browser at a server of this process,
// and the endpoint's at pages of their own.
func TestAddresses(t *testing.T) {
	server := open(t, mayfly.Options{})
	server.table("things")
	own := server.remote(Options{})
	secure := httptest.NewTLSServer(server.db.Handler())
	defer secure.Close()
	overTLS := visitor(t, secure.URL, server.db)
	overTLS.client.Transport = secure.Client().Transport
	amazon := newPages(Options{Config: aws.Config{Region: "eu-west-1"}})
	for name, c := range map[string]struct {
		s    *site
		want string
	}{
		"server": {server, server.url}, "server by name": {server.with("Host", "db.example:1234"), "http://db.example:1234"}, "server over TLS": {overTLS, secure.URL},
		"own": {own, server.url}, "own by name": {own.with("Host", "localhost:99"), server.url},
	} {
		m := c.s.page("table/things/items", nil)
		for language, code := range samples(t, m) {
			if !strings.Contains(code, c.want) || strings.Count(code, "://") != strings.Count(code, c.want) {
				t.Errorf("%s: %s does not name %s:\n%s", name, language, c.want, code)
			}
		}
		if !slices.Contains(m.texts, c.want) {
			t.Errorf("%s: the footer does not name %s", name, c.want)
		}
	}
	e, err := amazon.endpoint("", "")
	must(t, err)
	r := request{operation: "GetItem"}
	r.add("TableName", "things")
	for _, code := range []string{r.cli(e), r.python(e), r.javascript(e), r.golang(e)} {
		if !strings.Contains(code, "eu-west-1") || strings.Contains(code, "endpoint") || strings.Contains(code, "://") {
			t.Errorf("at Amazon: %s", code)
		}
	}
	abroad, err := New(http.NotFoundHandler()).(*pages).endpoint("bob/eu-west-1", "") // of a server that keeps regions apart
	must(t, err)
	for _, code := range []string{r.cli(abroad), r.python(abroad), r.javascript(abroad), r.golang(abroad)} {
		if !strings.Contains(code, "eu-west-1") || !strings.Contains(code, "://localhost") {
			t.Errorf("in another region: %s", code)
		}
	}
}

// TestSampleOfOrder: a downward query is one in the code too, and an upward query says nothing.
func TestSampleOfOrder(t *testing.T) {
	s := open(t, mayfly.Options{})
	s.table("things", func(in *dynamodb.CreateTableInput) {
		in.KeySchema, in.AttributeDefinitions = keySchema("p", "s"), defined("p", "S", "s", "S")
	})
	for language, want := range map[string]string{"AWS CLI": "--no-scan-index-forward", "Python": "ScanIndexForward=False", "JavaScript": "ScanIndexForward: false", "Go": "ScanIndexForward: aws.Bool(false)"} {
		if code := samples(t, s.page("table/things/items", url.Values{"k0": {"a"}, "order": {"down"}}))[language]; !strings.Contains(code, want) {
			t.Errorf("%s: no %q in\n%s", language, want, code)
		}
		if code := samples(t, s.page("table/things/items", url.Values{"k0": {"a"}}))[language]; strings.Contains(strings.ToLower(code), "forward") {
			t.Errorf("%s: an upward query is\n%s", language, code)
		}
	}
}
