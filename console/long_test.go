package console

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/work/attr"
)

// onward asks for the page behind a link to a path or, where its URL would be too long, behind the
// form that stands for it. last selects the last of several.
func (s *site) onward(m markup, path string, last bool) answer {
	s.t.Helper()
	var do func() answer
	var form url.Values
	for _, one := range m.tags {
		if do != nil && !last && one.name != "input" {
			break
		}
		href, _, _ := strings.Cut(one.values["href"], "?")
		switch {
		case one.name == "a" && href == path && strings.Contains(one.values["href"], "?"):
			do = func() answer { return s.do(http.MethodGet, one.values["href"], "", "") }
		case one.name == "form" && one.values["class"] == "link" && one.values["action"] == path:
			fields := url.Values{}
			form, do = fields, func() answer { return s.do(http.MethodPost, path, formKind, fields.Encode()) }
		case one.name == "form":
			form = nil
		case one.name == "input" && form != nil:
			form.Add(one.values["name"], one.values["value"])
		}
	}
	if do == nil {
		s.t.Fatalf("the page has no link to %s: %.500s", path, m.text())
	}
	return do()
}

// TestLongURLs: with keys as long as they may be, the pages of an index, their files and the theme can
// be reached: no link is longer than the server's limit.
func TestLongURLs(t *testing.T) {
	s := open(t, mayfly.Options{})
	s.table("things", func(in *dynamodb.CreateTableInput) {
		in.KeySchema, in.AttributeDefinitions = keySchema("id", "line"), defined("id", "S", "line", "S", "g", "S", "h", "S")
		in.GlobalSecondaryIndexes = []types.GlobalSecondaryIndex{{IndexName: aws.String("by-g"), KeySchema: keySchema("g", "h"), Projection: &types.Projection{ProjectionType: types.ProjectionTypeAll}}}
	})
	text := func(bytes int) string { return strings.Repeat("é", bytes/2) }
	for i := range 3 {
		s.put("things", attr.Item{"id": attr.S(text(2046)), "line": attr.S(fmt.Sprint(i) + text(1020)), "g": attr.S(text(2046)), "h": attr.S(text(1020))})
	}
	m := s.page("table/things/items", url.Values{"index": {"by-g"}, "k0": {text(2046)}, "limit": {"1"}})
	seen := m.text()
	for page := range 2 {
		a := s.onward(m, below+"table/things/items", true)
		m = a.page(t, http.StatusOK)
		if !strings.Contains(m.text(), "1 item") || m.text() == seen {
			t.Fatalf("page %d: %.500s", page+2, m.text())
		}
		for _, one := range m.tags {
			if n := len(one.values["href"]); n > urlMost {
				t.Errorf("page %d has a link of %d bytes", page+2, n)
			}
		}
	}
	if a := s.onward(m, below+"table/things/export", false); a.status != http.StatusOK || strings.Count(a.body, "\n") != 3 {
		t.Errorf("the export has the status %d and %d lines", a.status, strings.Count(a.body, "\n"))
	}
	if a := s.onward(m, below+"theme", false); a.status != http.StatusSeeOther || len(a.header.Get("Location")) > urlMost {
		t.Errorf("the theme has the status %d: %.300s", a.status, a.body)
	}
	item := s.page("table/things/item", url.Values{"key": {`{"id":{"S":"` + text(2046) + `"},"line":{"S":"0` + text(1020) + `"}}`}})
	if a := s.onward(item, below+"theme", false); a.status != http.StatusSeeOther || s.do(http.MethodGet, a.header.Get("Location"), "", "").status != http.StatusOK {
		t.Errorf("the theme of an item's page has the status %d: %.300s", a.status, a.body)
	}

	statement := `SELECT * FROM "things" WHERE "id" <> '` + text(8000) + `'`
	if text := s.post("partiql", url.Values{"statement": {statement}}).page(t, http.StatusOK).text(); !strings.Contains(text, "3 items") {
		t.Errorf("a long statement: %.500s", text)
	}
}

// TestBulkFormIsBounded: a page of long keys lets a visitor choose only as many as its form and that of
// the preview can send.
func TestBulkFormIsBounded(t *testing.T) {
	s := open(t, mayfly.Options{})
	s.table("things")
	text := strings.Repeat("\x01", 2000)
	for i := range 400 {
		s.put("things", attr.Item{"id": attr.S(fmt.Sprint(i) + text)})
	}
	m := s.page("table/things/items", url.Values{"limit": {"1000"}})
	form, off := url.Values{"do": {"delete"}}, 0
	action := ""
	for _, one := range m.tags {
		if one.name == "form" && one.values["id"] == "bulk" {
			action = one.values["action"]
		}
		if one.values["name"] != "key" {
			continue
		}
		if _, disabled := one.values["disabled"]; disabled {
			off++
		} else {
			form.Add("key", one.values["value"])
		}
	}
	if off == 0 || len(form["key"]) == 0 || !strings.Contains(m.text(), "too long to choose all of them at once") {
		t.Fatalf("%d keys can be chosen and %d not", len(form["key"]), off)
	}
	m = s.do(http.MethodPost, action, formKind, form.Encode()).page(t, http.StatusOK)
	for _, one := range m.tags {
		switch one.values["name"] {
		case "was", "confirmed":
			form.Add(one.values["name"], one.values["value"])
		}
		if one.name == "form" && strings.HasSuffix(strings.Split(one.values["action"], "?")[0], "/bulk") {
			action = one.values["action"]
		}
	}
	if a := s.do(http.MethodPost, action, formKind, form.Encode()); a.status != http.StatusSeeOther || len(s.contents("things")) != off {
		t.Errorf("the change has the status %d: %.300s", a.status, a.body)
	}
}

// TestExportRefusesToBeCut: a result of more items than a file may have is refused before the file
// begins, and a text that spreadsheets would compute is marked in their kind of CSV only.
func TestExportRefusesToBeCut(t *testing.T) {
	s := open(t, mayfly.Options{})
	s.table("things")
	s.put("things", attr.Item{"id": attr.S("=1+1"), "n": attr.N("-1"), "@x": attr.S("+a")})
	for as, want := range map[string]string{"csv": "id,@x,n\n=1+1,+a,-1\n", "sheet": "id,'@x,n\n'=1+1,'+a,-1\n"} {
		if a := s.get("table/things/export", url.Values{"as": {as}}); a.body != want {
			t.Errorf("%s is %q; want %q", as, a.body, want)
		}
	}
	var b strings.Builder
	for n := 0; n <= exportMost; {
		b.Reset()
		for end := n + importItems; n < end && n <= exportMost; n++ {
			fmt.Fprintf(&b, `{"id":"%d"}`+"\n", n)
		}
		if a := s.importLines(b.String()); a.status != http.StatusSeeOther {
			t.Fatalf("the import has the status %d: %.300s", a.status, a.body)
		}
	}
	for _, as := range []string{"", "csv", "sheet"} {
		if text := s.get("table/things/export", url.Values{"as": {as}}).refused(t, http.StatusBadRequest); !strings.Contains(text, errExport.text) {
			t.Errorf("as %q: %.300s", as, text)
		}
	}
	s.delete("things", attr.Item{"id": attr.S("=1+1")})
	s.delete("things", attr.Item{"id": attr.S("1")})
	if a := s.get("table/things/export", nil); strings.Count(a.body, "\n") != exportMost {
		t.Errorf("as many as a file may have are %d lines", strings.Count(a.body, "\n"))
	}
}
