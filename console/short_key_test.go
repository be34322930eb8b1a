package console

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/work/attr"
)

// TestLongestKeys: the pages of items with the longest keys can be reached, whatever their bytes:
// the item, its copy, its formats and the page after a change.
func TestLongestKeys(t *testing.T) {
	for name, keys := range map[string]struct {
		kinds string
		item  attr.Item
	}{
		"controls":    {"SS", attr.Item{"id": attr.S(strings.Repeat("\x01", 2048)), "line": attr.S(strings.Repeat("\x1f", 1024))}},
		"quotes":      {"SS", attr.Item{"id": attr.S(strings.Repeat(`"`, 2048)), "line": attr.S(strings.Repeat(`\`, 1024))}},
		"bytes":       {"BB", attr.Item{"id": attr.B([]byte(strings.Repeat("\xff", 2048))), "line": attr.B([]byte(strings.Repeat("\xfb", 1024)))}},
		"digits":      {"SN", attr.Item{"id": attr.S(strings.Repeat("\x02", 2048)), "line": attr.N("-1.5E-100")}},
		"butterflies": {"SS", attr.Item{"id": attr.S(strings.Repeat("\U0001F98B", 512)), "line": attr.S(strings.Repeat("\U0001F98B", 256))}},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, mayfly.Options{})
			s.table("things", func(in *dynamodb.CreateTableInput) { // the sort key's name comes first in the order of names
				in.KeySchema, in.AttributeDefinitions = keySchema("zone", "line"), defined("zone", keys.kinds[:1], "line", keys.kinds[1:])
			})
			item := attr.Item{"zone": keys.item["id"], "line": keys.item["line"], "n": attr.N("7654321")}
			s.put("things", item)
			a := s.onward(s.page("table/things/items", nil), below+"table/things/item", true)
			m := a.page(t, http.StatusOK)
			if !strings.Contains(m.text(), "7654321") {
				t.Fatalf("the item's page is %.500s", m.text())
			}
			for _, one := range m.all("a") {
				href := one.values["href"]
				if n := len(href); n > urlMost {
					t.Errorf("the item's page has a link of %d bytes", n)
				}
				if strings.Contains(href, "/item?") && !strings.Contains(s.do(http.MethodGet, href, "", "").page(t, http.StatusOK).text(), "7654321") {
					t.Errorf("the page at %.100s lacks the item", href)
				}
			}
			form := url.Values{"do": {"edit"}, "as": {"edit"}, "key": {field(t, m, "key")}, "was": {field(t, m, "was")}, "item": {strings.ReplaceAll(jsonText(item), "7654321", "42")}}
			if m := s.followed(s.post("table/things/item", form)); !strings.Contains(m.text(), "Saved.") || !m.has(`42`) {
				t.Errorf("after a change the page is %.500s", m.text())
			}
		})
	}
}

// TestShortKeyRefused: a short key that is damaged is refused.
func TestShortKeyRefused(t *testing.T) {
	s := open(t, mayfly.Options{})
	s.populate()
	for _, key := range []string{"~", "~.", "~SYQ.SYQ", "~XYQ", "~S?", "~SY", "~<script>"} {
		if text := s.get("table/things/item", url.Values{"key": {key}}).refused(t, http.StatusBadRequest); !strings.Contains(text, "This is not the key of an item: ") {
			t.Errorf("%q: %.300s", key, text)
		}
	}
	if m := s.page("table/things/item", url.Values{"key": {"~SYQ"}}); !m.has(keyOfA) {
		t.Errorf("the page of a short key is %.300s", m.text())
	}
}
