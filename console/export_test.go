package console

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/transfer"
)

const digits = "12345678901234567890123456789012345678"

// assorted creates a table "things" with items of all types, and more than a page of plain ones.
func assorted(t *testing.T) *site {
	s := open(t, mayfly.Options{})
	s.table("things", func(in *dynamodb.CreateTableInput) {
		in.KeySchema, in.AttributeDefinitions = keySchema("id", "n"), defined("id", "S", "n", "N")
	})
	for i, text := range append([]string{"=1+1", "+1", "-1", "@SUM(A1)", "a,b", `a"b`, "a\nb", " a ", "", "true", "1", "é\U0001F600", "#", `\.`}, hostileTexts...) {
		s.put("things", attr.Item{
			"id": attr.S("all"), "n": attr.Int(i), "text": attr.S(text), "big": attr.N("-" + digits), "blob": attr.B([]byte("\x00\xff\n")), "yes": attr.Bool(true), "nothing": &types.AttributeValueMemberNULL{Value: true},
			"list": &types.AttributeValueMemberL{Value: []types.AttributeValue{attr.S(text), attr.N(digits)}}, "map": attr.M(attr.Item{"a": attr.B([]byte{0xff})}), "set": &types.AttributeValueMemberBS{Value: [][]byte{{0xff}}}, "=name": attr.S(text),
		})
	}
	for i := range pageMost + 50 {
		s.put("things", attr.Item{"id": attr.S("many"), "n": attr.N(fmt.Sprint(i, ".5")), "text": attr.S(fmt.Sprint(i))})
	}
	return s
}

// file returns an exported file, and checks that a browser stores it.
func (s *site) file(query url.Values, kind, name string) string {
	s.t.Helper()
	a := s.get("table/things/export", query)
	_, values, err := mime.ParseMediaType(a.header.Get("Content-Disposition"))
	if err != nil || a.status != http.StatusOK || a.header.Get("Content-Type") != kind || values["filename"] != name || a.header.Get("Cache-Control") != "no-store" {
		s.t.Fatalf("%v: %d, %v, %v", query, a.status, a.header, err)
	}
	checkHeaders(s.t, a)
	return a.body
}

// TestExportJSON: an export as JSON lines has all items that the form chooses, with all types,
// digits and bytes, and is imported as it was.
func TestExportJSON(t *testing.T) {
	s := assorted(t)
	text := s.file(url.Values{"as": {"jsonl"}, "limit": {"1"}}, "application/x-ndjson", "things.jsonl")
	var lines []string
	for line := range strings.Lines(text) {
		item := map[string]map[string]any{}
		if err := json.Unmarshal([]byte(line), &item); err != nil || !strings.HasSuffix(line, "\n") {
			t.Fatalf("the line %q: %v", line, err)
		}
		lines = append(lines, strings.TrimSuffix(line, "\n"))
	}
	before := s.contents("things")
	if slices.Sort(lines); !slices.Equal(lines, before) {
		t.Errorf("%d lines differ from the %d items", len(lines), len(before))
	}
	some := s.file(url.Values{"k0": {"all"}, "k1": {"3"}, "o1": {"<="}, "order": {"down"}, "projection": {"big"}, "start": {`{"id":{"S":"all"},"n":{"N":"2"}}`}}, "application/x-ndjson", "things.jsonl")
	if want := `{"big":{"N":"-` + digits + `"},"id":{"S":"all"},"n":{"N":"1"}}` + "\n" + `{"big":{"N":"-` + digits + `"},"id":{"S":"all"},"n":{"N":"0"}}` + "\n"; some != want {
		t.Errorf("the chosen items are %s", some)
	}
	for _, line := range before {
		item, err := transfer.ReadKey([]byte(line))
		must(t, err)
		s.delete("things", attr.Item{"id": item["id"], "n": item["n"]})
	}
	s.followed(s.imported("things.jsonl", text))
	if after := s.contents("things"); !slices.Equal(after, before) {
		t.Errorf("%d items became %d others", len(before), len(after))
	}
}

// TestExportCSV: an export as CSV has a column for each attribute of the first page. Its fields are
// texts, numbers and truths as they are, formulas too, and DynamoDB JSON for the rest.
func TestExportCSV(t *testing.T) {
	s := assorted(t)
	records, err := csv.NewReader(strings.NewReader(s.file(url.Values{"as": {"csv"}}, "text/csv; charset=utf-8", "things.csv"))).ReadAll()
	must(t, err)
	items := s.contents("things")
	if want := []string{"id", "n", "=name", "big", "blob", "list", "map", "nothing", "set", "text", "yes"}; !slices.Equal(records[0], want) || len(records) != len(items)+1 {
		t.Fatalf("%d records with the columns %q; want %q", len(records), records[0], want)
	}
	var got, want []string
	for _, record := range records[1:] {
		got = append(got, strings.Join(record, "\x1f"))
	}
	for _, line := range items {
		var fields []string
		for _, name := range records[0] {
			var typed map[string]map[string]json.RawMessage
			must(t, json.Unmarshal([]byte(line), &typed))
			field := ""
			for kind, value := range typed[name] {
				switch kind {
				case "S", "N":
					must(t, json.Unmarshal(value, &field))
					field = strings.ReplaceAll(field, "\r\n", "\n") // as each reader of CSV does
				case "BOOL":
					field = string(value)
				default:
					field = fmt.Sprintf(`{%q:%s}`, kind, value)
				}
			}
			fields = append(fields, field)
		}
		want = append(want, strings.Join(fields, "\x1f"))
	}
	slices.Sort(got)
	if slices.Sort(want); !slices.Equal(got, want) {
		for i := range got {
			if got[i] != want[i] {
				t.Errorf("%q\nwant %q", got[i], want[i])
				break
			}
		}
	}
	if formula := slices.ContainsFunc(records, func(r []string) bool { return r[9] == "=1+1" && strings.Contains(r[3], digits) }); !formula {
		t.Errorf("a text that looks like a formula is changed")
	}
}

// imported sends the form of the import with a file.
func (s *site) imported(name, text string) answer {
	s.t.Helper()
	return s.upload("table/things/import", url.Values{"token": {s.token()}}, name, []byte(text))
}

// TestImport: files of JSON lines, in both kinds, and of CSV become items; a later item replaces an
// earlier one with its key.
func TestImport(t *testing.T) {
	for _, c := range []struct{ name, text, result, want string }{
		{"a.jsonl", `{"id":{"S":"a"},"b":{"B":"AAE="}}` + "\n\n  \r\n" + `{"id":"b","n":` + digits + `,"l":[1,"x",null,{"m":true}]}` + "\r\n", "2 items written.",
			`{"b":{"B":"AAE="},"id":{"S":"a"}} {"id":{"S":"b"},"l":{"L":[{"N":"1"},{"S":"x"},{"NULL":true},{"M":{"m":{"BOOL":true}}}]},"n":{"N":"` + digits + `"}}`},
		{"a.json", "\ufeff" + `{"id":"a","n":1}` + "\n" + `{"id":"a","n":2}`, "1 item written.", `{"id":{"S":"a"},"n":{"N":"2"}}`},
		{"A.CSV", "\ufeff\"id\",n,text\r\na,1,\"x\ny\"\r\nb,,=1+1\r\n", "2 items written.", `{"id":{"S":"a"},"n":{"S":"1"},"text":{"S":"x\ny"}} {"id":{"S":"b"},"text":{"S":"=1+1"}}`},
		{"empty.jsonl", "", "0 items written.", ""}, {"empty.csv", "id,n\n", "0 items written.", ""},
	} {
		s := open(t, mayfly.Options{})
		s.table("things")
		if text := s.followed(s.imported(c.name, c.text)).text(); !strings.Contains(text, c.result) {
			t.Errorf("%s: %.500s", c.name, text)
		}
		if got := strings.Join(s.contents("things"), " "); got != c.want {
			t.Errorf("%s: %s; want %s", c.name, got, c.want)
		}
	}
}

// TestImportRefused: a file with a fault is refused with the line and the reason, and nothing of it
// is written.
func TestImportRefused(t *testing.T) {
	s := open(t, mayfly.Options{})
	s.table("things")
	good := `{"id":"a"}` + "\n"
	for _, c := range []struct {
		name, text, why string
		status          int
	}{
		{"a.jsonl", good + "\n" + good + "{", "line 4: ", 400}, {"a.jsonl", good + "<script>alert(1)</script>\n" + good, "line 2: ", 400}, {"a.jsonl", good + `{"id":"b","x":"` + strings.Repeat("x", lineMost) + `"}`, "line 2: it has more than 2.1 MB", 400},
		{"a.jsonl", good + "\xff\xfe\n", "line 2: ", 400}, {"a.jsonl", "\x1f\x8b\x08\x00", "line 1: ", 400}, {"a.json", "[" + good + "]", "line 1: ", 400},
		{"a.csv", "", "the line of names: EOF", 400}, {"a.csv", "id,id\na,b\n", `the line of names: column 2 has no name of its own: "id"`, 400}, {"a.csv", "id,\na,b\n", "column 2 has no name", 400},
		{"a.csv", "id,x\na,1\nb\n", "line 3", 400}, {"a.csv", "id,x\na,\"1\nb,2\n", "line ", 400},
	} {
		text := s.imported(c.name, c.text).refused(t, c.status)
		if !strings.Contains(text, c.why) || !strings.Contains(text, "Nothing was written.") {
			t.Errorf("%.60q: %.600s; want %q", c.text, text, c.why)
		}
		if got := s.contents("things"); len(got) > 0 {
			t.Fatalf("%.60q: %q was written", c.text, got)
		}
	}
	many := bytes.Repeat([]byte(good), 3)
	for i := range importItems + 1 {
		many = fmt.Appendf(many, "{\"id\":\"%d\"}\n", i)
	}
	if text := s.imported("a.jsonl", string(many)).refused(t, http.StatusBadRequest); !strings.Contains(text, "50,000 items: use mayfly import") {
		t.Errorf("too many items: %.500s", text)
	}
	for _, more := range []int{1, bodyMost + 1} {
		a := s.imported("a.jsonl", good+strings.Repeat(" ", importBytes+more))
		a.refused(t, http.StatusRequestEntityTooLarge)
	}
	if text := s.post("table/things/import", nil).refused(t, http.StatusBadRequest); !strings.Contains(text, "Choose a file.") {
		t.Errorf("without a file: %.500s", text)
	}
	if got := s.contents("things"); len(got) > 0 {
		t.Errorf("%d items were written", len(got))
	}
}

// TestImportChecks: an item that the table would refuse is found before any item is written.
func TestImportChecks(t *testing.T) {
	s := open(t, mayfly.Options{})
	s.table("things")
	for line, why := range map[string]string{
		`{"id":"large","x":"` + strings.Repeat("x", 401<<10) + `"}`: "the limit is 409600", `{"other":"no key"}`: `the item lacks the key attribute "id"`, `{"id":1}`: `the key attribute "id" has the type N`, `{"id":""}`: "is empty",
	} {
		if text := s.imported("a.jsonl", `{"id":"a"}`+"\n"+line).refused(t, http.StatusBadRequest); !strings.Contains(text, "line 2: ") || !strings.Contains(text, why) || !strings.Contains(text, "Nothing was written.") {
			t.Errorf("%.60s: %.600s", line, text)
		}
	}
	if got := s.contents("things"); len(got) > 0 {
		t.Errorf("%d items were written", len(got))
	}
}
