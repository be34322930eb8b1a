package console

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/work/attr"
)

// fields returns the fields of the form of a page that makes a change.
func fields(t *testing.T, m markup, do string) url.Values {
	t.Helper()
	var all url.Values
	for _, one := range m.tags {
		switch name := one.values["name"]; {
		case one.name == "form":
			all = url.Values{}
		case one.name == "input" && name != "":
			all.Set(name, one.values["value"])
		}
		if all.Get("do") == do && (one.name == "button" || one.name == "textarea") {
			return all
		}
	}
	t.Fatalf("no form for %s: %.300s", do, m.text())
	return nil
}

const thing = `{"id":{"S":"a"}}`

// things returns a site with an item in the table "things".
func things(t *testing.T, item attr.Item) *site {
	s := open(t, mayfly.Options{})
	s.table("things")
	s.expires("things", "ends")
	item["id"] = attr.S("a")
	s.put("things", item)
	return s
}

// itemPage returns the page of the item.
func (s *site) itemPage() markup {
	s.t.Helper()
	return s.page("table/things/item", url.Values{"key": {thing}})
}

// edit sends the form of an item's page with a text.
func (s *site) edit(form url.Values, text, as string) answer {
	s.t.Helper()
	form.Set("item", text)
	form.Set("as", as)
	return s.post("table/things/item?"+url.Values{"token": {s.token()}}.Encode(), form) // as the editor's form, which may be large
}

// TestEditItem: the text of the editor becomes the item, in either kind of JSON, and the visitor
// sees it.
func TestEditItem(t *testing.T) {
	const digits = "12345678901234567890123456789012345678"
	s := things(t, attr.Item{"b": attr.B([]byte("\x00\xff")), "n": attr.N(digits), "set": &types.AttributeValueMemberNS{Value: []string{digits, "1"}}})
	for text, want := range map[string]string{
		`{"id": "a", "b": "AP8=", "n": ` + digits + `, "set": [1, ` + digits + `]}`:                          `{"b":{"B":"AP8="},"id":{"S":"a"},"n":{"N":"` + digits + `"},"set":{"NS":["1","` + digits + `"]}}`,
		`{"id": {"S": "a"}, "b": {"B": "AAE="}, "n": {"N": "1.50"}, "set": {"NS": ["1", "` + digits + `"]}}`: `{"b":{"B":"AAE="},"id":{"S":"a"},"n":{"N":"1.5"},"set":{"NS":["1","` + digits + `"]}}`,
		"{\"id\": \"a\",\r\n\"b\": \"AAE=\"}":                                                                `{"b":{"B":"AAE="},"id":{"S":"a"}}`,
		`{"id": "a"}`:                                                                                        `{"id":{"S":"a"}}`,
	} {
		s.put("things", attr.Item{"id": attr.S("a"), "b": attr.B([]byte("\x00\xff")), "n": attr.N(digits), "set": &types.AttributeValueMemberNS{Value: []string{digits, "1"}}})
		a := s.edit(fields(t, s.itemPage(), "edit"), text, "edit")
		if a.status != http.StatusSeeOther || !strings.HasPrefix(a.header.Get("Location"), below+"table/things/item?"+(url.Values{"key": {thing}}).Encode()) {
			t.Errorf("%s: %d, to %q: %.300s", text, a.status, a.header.Get("Location"), a.body)
		}
		if got := s.contents("things"); len(got) != 1 || got[0] != want {
			t.Errorf("%s is stored as %q; want %q", text, got, want)
		}
	}
}

// TestEditConflict: an item that has changed since its page was made is not written, and the
// visitor keeps the text.
func TestEditConflict(t *testing.T) {
	many := attr.Item{"id": attr.S("a")}
	for i := range 2 * comparedMost {
		many[fmt.Sprintf("a%03d", i)] = attr.Int(i)
	}
	for name, change := range map[string]func(s *site){
		"changed":      func(s *site) { s.put("things", attr.Item{"id": attr.S("a"), "x": attr.N("2")}) },
		"more":         func(s *site) { s.put("things", attr.Item{"id": attr.S("a"), "x": attr.N("1"), "y": attr.N("1")}) },
		"another type": func(s *site) { s.put("things", attr.Item{"id": attr.S("a"), "x": attr.S("1")}) },
		"many":         func(s *site) { s.put("things", many) },
		"gone":         func(s *site) { s.delete("things", attr.Item{"id": attr.S("a")}) },
	} {
		s := things(t, attr.Item{"x": attr.N("1")})
		form := fields(t, s.itemPage(), "edit")
		change(s)
		before := s.contents("things")
		a := s.edit(form, `{"id":"a","x":"mine"}`, "edit")
		want := errChanged.text
		if name == "gone" {
			want = errMissing.text
		}
		if text := a.refused(t, http.StatusConflict); !strings.Contains(text, want) || !strings.Contains(text, `{"id":"a","x":"mine"}`) {
			t.Errorf("%s: %.600s", name, text)
		}
		if after := s.contents("things"); !slices.Equal(after, before) {
			t.Errorf("%s: %q became %q", name, before, after)
		}
	}
}

// TestEditRefused: a text that is no item, or has another key, changes nothing, names the fault,
// and stays in the editor.
func TestEditRefused(t *testing.T) {
	s := things(t, attr.Item{"x": attr.N("1"), "b": attr.B([]byte("x"))})
	before := s.contents("things")
	for text, want := range map[string]string{
		"{": "The text is not an item.", "[1]": "it is not an object", `{"id":"a","id":"b"}`: "twice", "": "The text is not an item.", `{"id":"a"} trailing`: "after the object",
		`{"x":1}`: `the item lacks the key attribute "id"`, `{"id":"b"}`: "The key of an item cannot change: save it as a new item, then delete this one.", `{"id":{"S":"b"}}`: "The key of an item cannot change",
		`{"id":1}`: `the key attribute "id" has the type N`, `{"id":"a","b":"?"}`: "not base64", `{"id":"a","x":1e999}`: "", `{"id":"a","x":123456789012345678901234567890123456789}`: "",
		`{"id":"a","x":{"deep":` + strings.Repeat("[", 40) + strings.Repeat("]", 40) + `}}`: "deeper", `{"id":"a","x":"` + strings.Repeat("x", 401<<10) + `"}`: "",
		"\n\n{\"</textarea><script>\": ": "The text is not an item.",
	} {
		a := s.edit(fields(t, s.itemPage(), "edit"), text, "edit")
		m := a.page(t, http.StatusBadRequest)
		if !strings.Contains(m.text(), want) {
			t.Errorf("%.60s: %.500s; want %q", text, m.text(), want)
		}
		if !slices.Contains(m.texts, text) && text != "" {
			t.Errorf("%.60q is not in the editor", text)
		}
		if after := s.contents("things"); !slices.Equal(after, before) {
			t.Fatalf("%.60s: %q became %.300q", text, before, after)
		}
		if again := fields(t, m, "edit"); again.Get("key") != thing || again.Get("was") == "" {
			t.Errorf("%.60s: the form has the fields %q", text, again)
		}
	}
	// the text is mended in the editor that the refusal shows
	again := fields(t, s.edit(fields(t, s.itemPage(), "edit"), "{", "edit").page(t, http.StatusBadRequest), "edit")
	if a := s.edit(again, `{"id":"a","x":2}`, "edit"); a.status != http.StatusSeeOther || s.contents("things")[0] != `{"id":{"S":"a"},"x":{"N":"2"}}` {
		t.Errorf("the mended text: %d, %q", a.status, s.contents("things"))
	}
}

// TestDeepItems: an item as deep as the database allows can be shown and edited, in either kind of
// JSON.
func TestDeepItems(t *testing.T) {
	s := things(t, attr.Item{})
	text := `{"id":"a","x":` + strings.Repeat("[", 31) + `"end"` + strings.Repeat("]", 31) + `}`
	if a := s.edit(fields(t, s.itemPage(), "edit"), text, "edit"); a.status != http.StatusSeeOther {
		t.Fatalf("%.900s", readMarkup(t, a.body).text())
	}
	stored := s.contents("things")
	if m := s.itemPage(); !strings.Contains(m.text(), "end") {
		t.Errorf("the page does not show the end: %.600s", m.text())
	}
	for _, same := range []string{text, stored[0]} {
		if a := s.edit(fields(t, s.itemPage(), "edit"), same, "edit"); a.status != http.StatusSeeOther || !slices.Equal(s.contents("things"), stored) {
			t.Errorf("%.60s: %d, %.300q", same, a.status, s.contents("things"))
		}
	}
}

// TestCreateItem: a new item is written if there is none with its key; a copy of an item keeps the
// types of the original.
func TestCreateItem(t *testing.T) {
	s := things(t, attr.Item{"b": attr.B([]byte("x")), "set": &types.AttributeValueMemberSS{Value: []string{"one"}}})
	form := fields(t, s.page("table/things/item", nil), "create")
	if a := s.edit(form, `{"id":"new","n":1}`, "create"); a.status != http.StatusSeeOther {
		t.Errorf("%d: %.300s", a.status, a.body)
	}
	text := s.edit(form, `{"id":"new","n":2}`, "create").refused(t, http.StatusConflict)
	if !strings.Contains(text, "The table has an item with this key already.") || !strings.Contains(text, `{"id":"new","n":2}`) {
		t.Errorf("%.500s", text)
	}
	if a := s.edit(fields(t, s.itemPage(), "edit"), `{"id":"copy","b":"AAE=","set":["one","two"]}`, "create"); a.status != http.StatusSeeOther {
		t.Errorf("%d: %.300s", a.status, a.body)
	}
	s.edit(fields(t, s.itemPage(), "edit"), `{"id":"a"}`, "create").refused(t, http.StatusConflict)
	want := []string{`{"b":{"B":"AAE="},"id":{"S":"copy"},"set":{"SS":["one","two"]}}`, `{"b":{"B":"eA=="},"id":{"S":"a"},"set":{"SS":["one"]}}`, `{"id":{"S":"new"},"n":{"N":"1"}}`}
	if got := s.contents("things"); !slices.Equal(got, want) {
		t.Errorf("the items are\n%q; want\n%q", got, want)
	}
	if text := s.edit(form, `{"n":1}`, "create").refused(t, http.StatusBadRequest); !strings.Contains(text, "id") {
		t.Errorf("an item without a key: %.300s", text)
	}
}

// TestDeleteItem: an item is deleted, and its page then says so.
func TestDeleteItem(t *testing.T) {
	s := things(t, attr.Item{})
	s.put("things", attr.Item{"id": attr.S("stays")})
	form := fields(t, s.itemPage(), "delete")
	form.Set("confirmed", "yes")
	if a := s.post("table/things/item", form); a.status != http.StatusSeeOther || !strings.HasPrefix(a.header.Get("Location"), below+"table/things/items") {
		t.Errorf("%d, to %q", a.status, a.header.Get("Location"))
	}
	if got := s.contents("things"); !slices.Equal(got, []string{`{"id":{"S":"stays"}}`}) {
		t.Errorf("the items are %q", got)
	}
	if text := s.get("table/things/item", url.Values{"key": {thing}}).refused(t, http.StatusNotFound); !strings.Contains(text, "was deleted or has expired") {
		t.Errorf("%.300s", text)
	}
	s.post("table/things/item", url.Values{"do": {"delete"}, "confirmed": {"yes"}}).refused(t, http.StatusBadRequest)
}

// TestRenewItem: "one hour more" adds 3600 to the TTL attribute, which is in seconds, to the last
// digit, and changes nothing else. An item that has changed meanwhile is not renewed.
func TestRenewItem(t *testing.T) {
	for _, c := range []struct{ was, by, want string }{
		{"1893502800", "3600", "1893506400"}, {"1893502800", "60", "1893502860"}, {"1893502800", "86400", "1893589200"}, {"1893502800.5", "3600", "1893506400.5"}, {"1893502800.000000001", "3600", "1893506400.000000001"},
		{"99999999999", "3600", "100000003599"},
	} {
		s := things(t, attr.Item{"ends": attr.N(c.was), "other": attr.S("stays")})
		form := fields(t, s.itemPage(), "renew")
		form.Set("by", c.by)
		if a := s.post("table/things/item", form); a.status != http.StatusSeeOther {
			t.Errorf("%v: %d: %.500s", c, a.status, readMarkup(t, a.body).text())
		}
		want := `{"ends":{"N":"` + c.want + `"},"id":{"S":"a"},"other":{"S":"stays"}}`
		if got := s.contents("things"); got[0] != want {
			t.Errorf("%v: %q", c, got)
		}
		if text := s.post("table/things/item", form).refused(t, http.StatusConflict); !strings.Contains(text, errChanged.text) {
			t.Errorf("%v again: %.300s", c, text)
		}
		if got := s.contents("things"); got[0] != want {
			t.Errorf("%v again: %q", c, got)
		}
	}
	s := things(t, attr.Item{"ends": attr.N("1893502800")})
	form := fields(t, s.itemPage(), "renew")
	for _, wrong := range []url.Values{{"by": {"an hour"}}, {"by": {""}}, {"by": {"3600"}, "was": {"soon"}}, {"by": {"3600"}, "was": {""}}} {
		for name, values := range wrong {
			form[name] = values
		}
		s.post("table/things/item", form).refused(t, http.StatusBadRequest)
	}
	s.delete("things", attr.Item{"id": attr.S("a")})
	form.Set("was", "1893502800")
	s.post("table/things/item", form).refused(t, http.StatusConflict)
	if got := s.contents("things"); len(got) != 0 {
		t.Errorf("a renewed item that was gone is %q", got)
	}
}

// TestEditByOtherKeyText: the key in a URL may be written in other ways, and it is the same item.
func TestEditByOtherKeyText(t *testing.T) {
	s := things(t, attr.Item{})
	for _, key := range []string{` { "id" : { "S" : "a" } } `, `{"\u0069d":{"S":"\u0061"}}`} {
		m := s.page("table/things/item", url.Values{"key": {key}})
		if a := s.edit(fields(t, m, "edit"), `{"id":"a","x":1}`, "edit"); a.status != http.StatusSeeOther {
			t.Errorf("%s: %d: %.500s", key, a.status, readMarkup(t, a.body).text())
		}
		s.put("things", attr.Item{"id": attr.S("a")})
	}
}
