package console

import (
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/work/attr"
)

// remote returns a visitor of pages of their own for the database of a site.
func (s *site) remote(o Options) *site {
	s.t.Helper()
	if o.URL == "" {
		o.URL = s.url
	}
	o.Config.Region = "us-east-1"
	server := httptest.NewServer(Handler(o))
	s.t.Cleanup(server.Close)
	return visitor(s.t, server.URL, s.db)
}

// TestPagesElsewhere: a page of another site can neither read the pages nor send their forms,
// neither at a server nor at pages of their own: not from its origin, nor under a name that it
// makes resolve to the server.
func TestPagesElsewhere(t *testing.T) {
	server := open(t, mayfly.Options{})
	server.populate()
	for kind, s := range map[string]*site{"of a server": server, "of their own": server.remote(Options{})} {
		token := s.token()
		link := [][2]string{{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Mode", "navigate"}, {"Sec-Fetch-Dest", "document"}}
		for _, c := range []struct {
			why     string
			headers [][2]string
			read    int
			send    int
		}{
			{"a program", nil, 200, 200},
			{"the own page", [][2]string{{"Sec-Fetch-Site", "same-origin"}, {"Origin", s.url}}, 200, 200},
			{"an address that the user entered", [][2]string{{"Sec-Fetch-Site", "none"}}, 200, 200},
			{"a foreign origin", [][2]string{{"Origin", "https://elsewhere.example"}}, 403, 403},
			{"no origin", [][2]string{{"Origin", "null"}}, 403, 403},
			{"a foreign site", [][2]string{{"Sec-Fetch-Site", "cross-site"}}, 403, 403},
			{"another port of the host", [][2]string{{"Sec-Fetch-Site", "same-site"}, {"Origin", "http://127.0.0.1:1"}}, 403, 403},
			{"a link elsewhere", link, 200, 403},
			{"a name that resolves to the server", [][2]string{{"Host", "elsewhere.example"}, {"Origin", "http://elsewhere.example"}, {"Sec-Fetch-Site", "same-origin"}}, 403, 403},
			{"such a name, without the origin", [][2]string{{"Host", "elsewhere.example"}, {"Accept-Language", "en"}}, 403, 200},
		} {
			from := s
			for _, h := range c.headers {
				from = from.with(h[0], h[1])
			}
			before := server.world()
			for _, path := range []string{"", "table/things/items", "table/things/export"} {
				want := c.read
				if path == "" && want == 200 {
					want = http.StatusFound
				}
				if a := from.get(path, nil); a.status != want || want == 403 && strings.Contains(a.body, "token") {
					t.Errorf("pages %s: %s gets %q with %d; want %d", kind, c.why, path, a.status, want)
				}
			}
			live := from.send(http.MethodGet, below+"live/now", "", "")
			live.Body.Close() // it does not end
			if live.StatusCode != c.read {
				t.Errorf("pages %s: %s follows with the status %d; want %d", kind, c.why, live.StatusCode, c.read)
			}
			a := from.submit("table/things/item", url.Values{"token": {token}, "do": {"create"}, "as": {"create"}, "item": {`{"id":"new"}`}})
			if c.send == 403 && (a.status != 403 || server.world() != before) {
				t.Errorf("pages %s: %s sends a form with the status %d", kind, c.why, a.status)
			}
			if c.send == 200 && (a.status != 303 || server.world() == before) {
				t.Errorf("pages %s: %s sends a form with the status %d: %.300s", kind, c.why, a.status, a.body)
			}
			server.delete("things", attr.Item{"id": attr.S("new")})
		}
	}
}

// TestHosts: further names of the pages are allowed.
func TestHosts(t *testing.T) {
	server := open(t, mayfly.Options{AllowHosts: []string{"db.example"}})
	for _, s := range []*site{server, server.remote(Options{Hosts: []string{"db.example"}})} {
		for host, want := range map[string]int{"db.example": 200, "db.example:8000": 200, "other.example": 403, "localhost": 200, "[::1]:8000": 200} {
			if a := s.with("Host", host).with("Origin", "http://"+host).with("Sec-Fetch-Site", "same-origin").get("tables", nil); a.status != want {
				t.Errorf("under the name %s the status is %d; want %d", host, a.status, want)
			}
		}
	}
}

// reader allows calls that read, of all services.
const reader = `{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": [
	"dynamodb:Get*", "dynamodb:BatchGet*", "dynamodb:List*", "dynamodb:Describe*", "dynamodb:Query", "dynamodb:Scan", "dynamodb:PartiQLSelect",
	"scheduler:Get*", "scheduler:List*", "lambda:Get*", "lambda:List*", "mayfly:Read*"], "Resource": "*"}]}`

// TestKeys: a server with keys asks for one. The pages show the tables of the key, and its policies
// decide.
func TestKeys(t *testing.T) {
	s := open(t, mayfly.Options{Credentials: []mayfly.Credential{
		{AccessKey: "AKID", SecretKey: "secret"},
		{AccessKey: "READER", SecretKey: "secret", Policies: []mayfly.Policy{{Name: "reader", JSON: reader}}},
		{AccessKey: "NONE", SecretKey: "secret", Policies: []mayfly.Policy{{Name: "none", JSON: `{"Version": "2012-10-17", "Statement": [{"Effect": "Deny", "Action": "*", "Resource": "*"}]}`}}},
	}})
	s.populate()
	pages := []string{
		"tables", "table/things", "table/things/items", "table/things/item?key=" + url.QueryEscape(`{"id":{"S":"a"}}`), "table/things/timeline", "table/things/stream", "table/things/import",
		"partiql?statement=" + url.QueryEscape(`SELECT * FROM "things"`), "schedules", "triggers", "reminders", "deadletters", "lifecycles", "guard?table=things", "clock",
	}
	for _, path := range append([]string{"table/things/export", "lifecycle/none", "lifecycle/none/drawing.svg", "lifecycle/none/entity?id=a"}, pages...) {
		for name, other := range map[string]*site{"nobody": s, "a wrong secret": s.as("AKID", "guessed"), "an unknown key": s.as("UNKNOWN", "secret"), "a key without a secret": s.as("AKID", "")} {
			a := other.get(path, nil)
			a.page(t, http.StatusUnauthorized)
			if got := a.header.Get("WWW-Authenticate"); got != `Basic realm="mayfly", charset="UTF-8"` {
				t.Errorf("%s as %s: %q", path, name, got)
			}
			if strings.Contains(a.body, "things") && !strings.Contains(path, "things") || strings.Contains(a.body, "1893502800") {
				t.Errorf("%s shows data to %s", path, name)
			}
		}
	}
	for _, path := range pages {
		for _, user := range []string{"AKID", "READER"} {
			m := s.as(user, "secret").page(path, nil)
			for _, one := range m.tags {
				if class := one.values["class"]; class == "problem" || class == "missing" {
					t.Errorf("%s as %s: %.300s", path, user, m.text())
				}
			}
		}
	}
	if text := s.as("NONE", "secret").get("tables", nil).refused(t, http.StatusForbidden); !strings.Contains(text, "AccessDeniedException") {
		t.Errorf("a key that may do nothing sees %.300s", text)
	}
	if a := s.as("AKID", "guessed").do(http.MethodGet, root, "", ""); a.status != http.StatusUnauthorized {
		t.Errorf("the first page has the status %d with a wrong secret", a.status)
	}
	before, reads := s.world(), s.as("READER", "secret")
	token := reads.token()
	for pattern, forms := range changes {
		if slices.Contains([]string{"theme", "table/{table}/items", "table/{table}/export"}, pattern) {
			continue // they are forms for their length, and change nothing
		}
		for _, form := range forms {
			a := reads.submit(form.path, withToken(form.fields, token))
			missing := slices.Contains([]string{"triggers", "lifecycle/{lifecycle}/entity"}, pattern) // there are none
			if text := readMarkup(t, a.body).text(); !missing && !strings.Contains(text, "not authorized") && !strings.Contains(text, "AccessDenied") && !strings.Contains(text, "may not") {
				t.Errorf("%s %v as a reader has the status %d: %.700s", form.path, form.fields, a.status, text)
			}
		}
	}
	if after := s.world(); after != before {
		t.Errorf("before:\n%s\nafter a reader's changes:\n%s", before, after)
	}
}

// TestPassword: pages of their own ask for their password, from any user, and act with the key of
// their options.
func TestPassword(t *testing.T) {
	server := open(t, mayfly.Options{Credentials: []mayfly.Credential{{AccessKey: "AKID", SecretKey: "secret"}}})
	server.populate()
	s := server.remote(Options{Password: "a word", Config: aws.Config{Credentials: credentials.NewStaticCredentialsProvider("AKID", "secret", "")}})
	for name, other := range map[string]*site{"nobody": s, "a wrong one": s.as("mayfly", "another"), "a part": s.as("mayfly", "a wor"), "the key": s.as("AKID", "secret"), "the word as the user": s.as("a word", "")} {
		for _, path := range []string{"tables", "table/things/export", "new", "live/now"} {
			a := other.get(path, nil)
			a.page(t, http.StatusUnauthorized)
			if a.header.Get("WWW-Authenticate") == "" || strings.Contains(a.body, "things") {
				t.Errorf("%s for %s: %v", path, name, a)
			}
		}
		a := other.do(http.MethodPost, below+"table/things", formKind, url.Values{"do": {"delete"}, "name": {"things"}}.Encode())
		a.page(t, http.StatusUnauthorized)
	}
	for _, user := range []string{"mayfly", "", "anybody"} {
		m := s.as(user, "a word").page("table/things/items", nil)
		if !m.has(`{"id":{"S":"a"}}`) {
			t.Errorf("%q sees %.300s", user, m.text())
		}
	}
	if a := s.as("mayfly", "a word").post("table/things", url.Values{"do": {"ttl-off"}, "attribute": {"ends"}}); a.status != http.StatusSeeOther {
		t.Errorf("a change with the password has the status %d", a.status)
	}
}

// TestSecretsAreComparedInConstantTime: == and != end at the first byte that differs, so that their
// time shows how much of a guess is right.
func TestSecretsAreComparedInConstantTime(t *testing.T) {
	files, err := filepath.Glob("*.go")
	must(t, err)
	compared := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		must(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BinaryExpr:
				for _, pair := range [][2]ast.Expr{{n.X, n.Y}, {n.Y, n.X}} {
					secret, ok := pair[0].(*ast.SelectorExpr)
					if other, literal := pair[1].(*ast.BasicLit); ok && (secret.Sel.Name == "Password" || secret.Sel.Name == "token") && (!literal || other.Value != `""`) {
						t.Errorf("%s compares %s by %s", name, secret.Sel.Name, n.Op)
					}
				}
			case *ast.SelectorExpr:
				if n.Sel.Name == "ConstantTimeCompare" {
					compared++
				}
			}
			return true
		})
	}
	if compared != 2 {
		t.Errorf("%d comparisons take a constant time; want those of the password and of the token", compared)
	}
}

// TestNoLinkChanges: no GET changes anything, not even with a token and a statement in the URL.
func TestNoLinkChanges(t *testing.T) {
	s := open(t, mayfly.Options{})
	s.populate()
	token, before := s.token(), s.world()
	for _, statement := range []string{`DELETE FROM "things" WHERE id = 'a'`, `UPDATE "things" SET x = 1 WHERE id = 'a'`, `INSERT INTO "things" VALUE {'id': 'b'}`, ` selectDELETE FROM "things" WHERE id = 'a'`} {
		s.get("partiql", url.Values{"statement": {statement}, "token": {token}})
	}
	for _, forms := range changes {
		for _, form := range forms {
			s.get(form.path, withToken(form.fields, token))
			s.do(http.MethodHead, below+form.path+"?"+withToken(form.fields, token).Encode(), "", "")
		}
	}
	if after := s.world(); after != before {
		t.Errorf("before:\n%s\nafter links:\n%s", before, after)
	}
}
