package console

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/lifecycle"
)

const (
	hostileKey = `<script>alert("key")</script>'`        // name of a key attribute
	hostileTTL = `"><img src=x onerror=alert('ttl')>`    // name of a TTL attribute
	hostileURL = `"><svg/onload=alert(1)><!--' <b>&amp;` // in fields of URLs
)

// hostile creates a table of items full of markup.
func (s *site) hostile() (items []attr.Item) {
	s.t.Helper()
	s.table("hostile", func(in *dynamodb.CreateTableInput) {
		in.KeySchema, in.AttributeDefinitions = keySchema(hostileKey, "s"), defined(hostileKey, "S", "s", "B")
		in.GlobalSecondaryIndexes = []types.GlobalSecondaryIndex{{IndexName: aws.String("swapped"), KeySchema: keySchema("s", hostileKey), Projection: &types.Projection{ProjectionType: types.ProjectionTypeAll}}}
	})
	s.expires("hostile", hostileTTL)
	for i, text := range append([]string{"\x00", "\xff\xfe<script>"}, hostileTexts...) {
		item := attr.Item{hostileKey: attr.S(fmt.Sprint(i, " ", strings.ToValidUTF8(text, "?"))), "s": attr.B([]byte(text))}
		if i > 1 {
			item[text] = attr.S(text)
		}
		item[hostileTTL] = attr.N("1893502800")
		if i%3 == 1 {
			item[hostileTTL] = attr.S(hostileURL) // a mistake, which the timeline shows
		}
		text = strings.ToValidUTF8(text, "?")
		item["m"] = attr.M(attr.Item{"<i>" + text: &types.AttributeValueMemberL{Value: []types.AttributeValue{attr.S(text), attr.B([]byte("\xff<b>"))}}})
		item["set"] = &types.AttributeValueMemberSS{Value: []string{"<u>" + text, "b"}}
		item["blobs"] = &types.AttributeValueMemberBS{Value: [][]byte{[]byte("\xff</code>"), []byte(text + "!")}}
		s.put("hostile", item)
		items = append(items, item)
	}
	return items
}

// TestMarkupInItems: data full of markup is text on every page that shows it.
func TestMarkupInItems(t *testing.T) {
	s := open(t, mayfly.Options{})
	items := s.hostile()
	want := func(where string, m markup, all ...string) {
		t.Helper()
		for _, text := range all {
			if !m.has(readable(text)) {
				t.Errorf("%s does not show %q", where, text)
			}
		}
	}
	want("tables", s.page("tables", nil), hostileKey, hostileTTL)
	want("settings", s.page("table/hostile", nil), hostileKey, hostileTTL)
	stored := s.contents("hostile")
	list := s.page("table/hostile/items", url.Values{"limit": {"200"}})
	want("items", list, hostileKey, hostileTTL)
	want("index", s.page("table/hostile/items", url.Values{"index": {"swapped"}}), hostileKey)
	keys := []string{hostileKey, "s"}
	for _, item := range items {
		text, _ := attr.AsString(item[hostileKey])
		want("items", list, keyJSON(item, keys))
		m := s.page("table/hostile/item", url.Values{"key": {keyJSON(item, keys)}})
		want("item", m, text, hostileKey, hostileTTL)
		if !slices.ContainsFunc(m.texts, func(text string) bool {
			var b bytes.Buffer
			return json.Compact(&b, []byte(text)) == nil && slices.Contains(stored, b.String())
		}) {
			t.Errorf("the editor of %q does not have the item", text)
		}
	}
	want("timeline", s.page("table/hostile/timeline", url.Values{"next": {"24h"}, "values": {"yes"}}), hostileURL)
	want("timeline at", s.page("table/hostile/timeline", url.Values{"next": {"24h"}, "at": {"1893502800000"}}), "0 "+readable("\x00"))
	want("partiql", s.page("partiql", url.Values{"statement": {`SELECT * FROM "hostile"`}}), hostileKey, hostileTTL)
	want("clock", s.post("clock", url.Values{"do": {"step"}}).page(t, http.StatusOK), "0 "+readable("\x00"))
}

// TestMarkupInEvents: records full of markup arrive as text.
func TestMarkupInEvents(t *testing.T) {
	s := open(t, mayfly.Options{Shards: 1})
	items := s.hostile()
	s.page("table/hostile/stream", url.Values{"from": {"oldest"}})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+below+"live/stream/hostile?from=oldest", nil)
	must(t, err)
	answer, err := s.client.Do(r)
	must(t, err)
	defer answer.Body.Close()
	if kind := answer.Header.Get("Content-Type"); kind != "text/event-stream" {
		t.Fatalf("the stream has the type %q", kind)
	}
	checkHeaders(t, withoutBody(answer))
	var text strings.Builder
	for !strings.Contains(text.String(), "event: replace\ndata: position") {
		part := make([]byte, 1<<16)
		n, err := answer.Body.Read(part)
		text.Write(part[:n])
		if err == io.EOF {
			t.Fatalf("the stream ends after %.500q", text.String())
		}
		must(t, err)
	}
	rows := readMarkup(t, readEvents(t, text.String())[0].html)
	checkRows(t, rows)
	for _, item := range items {
		key, _ := attr.AsString(item[hostileKey])
		if !rows.has(readable(key)) {
			t.Errorf("no record of %q", key)
		}
	}
	if n := len(rows.all("tr")); n != len(items) {
		t.Errorf("%d rows; want %d", n, len(items))
	}
	if !rows.has(hostileTTL) {
		t.Errorf("the rows do not name %q", hostileTTL)
	}
}

// withoutBody returns an answer without its body.
func withoutBody(r *http.Response) answer {
	return answer{r.StatusCode, r.Header, "", r.Request.URL.Path}
}

// checkRows is checkMarkup for a part of a page, which has no script.
func checkRows(t *testing.T, m markup) {
	t.Helper()
	m.tags = append(m.tags, tag{"script", map[string]string{"src": assetPath("console.js")}})
	checkMarkup(t, "an event", m)
}

// TestMarkupInURLs: what a link has in its path and its fields is text on the page, also in its
// errors. A foreign page can make such a link.
func TestMarkupInURLs(t *testing.T) {
	s := open(t, mayfly.Options{})
	s.populate()
	for _, c := range []struct {
		path   string
		fields string // names, with commas
		shown  bool
	}{
		{"tables", "q", true}, {"tables", "from", false}, {"new", "name,pk,sk,ttl,index1,index1pk", true}, {"table/things/items", "k0,f0,fv0,projection", true}, {"table/things/items", "fo0,ft0,order", false},
		{"table/things/items", "index", true}, {"table/things/items", "limit,start", false}, {"table/things/item", "key", false}, {"table/things/timeline", "next", false}, {"table/things/timeline", "from,to", false}, {"table/things/timeline", "at", false},
		{"table/things/timeline", "x", true}, {"table/things/stream", "q", true}, {"table/things/stream", "event,from", false}, {"table/things/export", "index", true}, {"partiql", "statement", true}, {"schedules", "q,group", true}, {"schedules", "from", false},
		{"reminders", "rule", true}, {"deadletters", "source,code,target", true}, {"deadletters", "from", false}, {"guard", "table,attribute", true}, {"triggers", "from", false}, {"lifecycle/none/entity", "id", false}, {"clock", "by", false}, {"nowhere", "x", false},
	} {
		for field := range strings.SplitSeq(c.fields, ",") {
			for _, text := range []string{hostileURL, "\x00<script>\r\nx", "\xff\xfe"} {
				a := s.get(c.path, url.Values{field: {text}})
				m := a.page(t, a.status)
				if shown := m.has(strings.TrimSpace(readable(text))) || m.has(url.QueryEscape(text)); c.shown && !shown && text == hostileURL {
					t.Errorf("%s does not show the field %s: %.300s", c.path, field, m.text())
				}
				if a.status >= http.StatusInternalServerError {
					t.Errorf("%s?%s=%q has the status %d: %.300s", c.path, field, text, a.status, m.text())
				}
			}
		}
	}
	for _, path := range []string{"table/%s", "table/%s/items", "table/%s/item", "table/%s/timeline", "table/%s/stream", "table/%s/import", "table/%s/export", "lifecycle/%s", "lifecycle/%s/entity", "lifecycle/%s/drawing.svg", "%s"} {
		a := s.get(fmt.Sprintf(path, url.PathEscape(hostileURL)), nil)
		if a.page(t, a.status); a.status != http.StatusNotFound && a.status != http.StatusBadRequest {
			t.Errorf("%s has the status %d", path, a.status)
		}
	}
}

// TestMarkupInForms: what a form sends is text in its preview and in its errors.
func TestMarkupInForms(t *testing.T) {
	s := open(t, mayfly.Options{})
	s.populate()
	for _, c := range []struct {
		path   string
		fields url.Values
		shown  string
	}{
		{"table/things/bulk", url.Values{"do": {"set"}, "name": {hostileURL}, "kind": {"S"}, "value": {hostileTTL}, "key": {`{"id":{"S":"<script>"}}`}}, hostileURL},
		{"table/things/bulk", url.Values{"do": {"set"}, "name": {hostileURL}, "kind": {"S"}, "value": {hostileTTL}, "key": {hostileTTL}}, ""},
		{"table/things/bulk", url.Values{"do": {"set"}, "name": {"x"}, "kind": {"S"}, "value": {hostileTTL}, "key": {hostileURL}, "was": {hostileURL}, "confirmed": {"yes"}}, ""},
		{"table/things/bulk", url.Values{"do": {"set"}, "name": {"x"}, "kind": {"N"}, "value": {hostileTTL}, "key": {hostileURL}}, hostileTTL},
		{"table/things/bulk", url.Values{"do": {"renew"}, "by": {hostileTTL}, "key": {hostileURL}}, hostileTTL},
		{"table/things/item", url.Values{"do": {"create"}, "item": {hostileURL}}, hostileURL},
		{"table/things/item", url.Values{"do": {"edit"}, "key": {`{"id":{"S":"a"}}`}, "was": {hostileTTL}, "item": {"\n" + hostileURL}}, hostileURL},
		{"table/things/item", url.Values{"do": {"delete"}, "key": {hostileURL}}, ""},
		{"table/things", url.Values{"do": {hostileURL}}, ""}, {"table/things", url.Values{"do": {"ttl-on"}, "attribute": {hostileURL}}, ""}, {"table/things", url.Values{"do": {"stream-on"}, "view": {hostileURL}}, ""},
		{"new", url.Values{"name": {hostileURL}, "pk": {hostileTTL}, "pkType": {hostileTTL}}, hostileURL}, {"partiql", url.Values{"statement": {hostileURL}}, hostileURL},
		{"clock", url.Values{"do": {"advance"}, "by": {hostileURL}}, hostileURL}, {"clock", url.Values{"do": {"set"}, "to": {hostileURL}}, hostileURL}, {"clock", url.Values{"do": {"rate"}, "rate": {hostileURL}}, ""},
		{"schedules", url.Values{"do": {"pause"}, "name": {hostileURL}, "group": {hostileURL}}, ""}, {"triggers", url.Values{"do": {"delete"}, "uuid": {hostileURL}}, ""}, {"deadletters", url.Values{"do": {hostileURL}, "key": {hostileURL}}, ""},
		{"lifecycle/none/entity", url.Values{"do": {"cancel"}, "id": {hostileURL}}, ""}, {"table/things/import", url.Values{"file": {"{}\n" + hostileURL}, "name": {hostileURL}}, ""},
	} {
		a := s.submit(c.path, withToken(c.fields, s.token()))
		m := a.page(t, a.status)
		if !m.has(c.shown) {
			t.Errorf("%s %v does not show %q: %.500s", c.path, c.fields, c.shown, m.text())
		}
		if a.status >= http.StatusInternalServerError {
			t.Errorf("%s %v has the status %d: %.500s", c.path, c.fields, a.status, m.text())
		}
	}
}

// TestMarkupInWork: dead letters and lifecycles full of markup are text.
func TestMarkupInWork(t *testing.T) {
	s := open(t, mayfly.Options{})
	for i, text := range hostileTexts {
		s.letter(fmt.Sprint(i, text), attr.Item{"target": attr.S(text), "source": attr.S(text), "code": attr.S(text), "message": attr.S(text), "body": attr.B([]byte(text))})
	}
	s.letter("binary", attr.Item{"body": attr.B([]byte("\xff<script>"))})
	letters := s.page("deadletters", nil)
	for i, text := range hostileTexts {
		if !letters.has(fmt.Sprint(i, text)) || !letters.has(text) {
			t.Errorf("the dead letters do not show %q", text)
		}
	}
	l, err := lifecycle.New(lifecycle.Options{DB: s.db.DynamoDB(), Streams: s.db.Streams(), Now: s.db.Clock().Now, Registry: s.db.Registry(), Unmapped: true})
	must(t, err)
	_, err = l.Apply(t.Context(), lifecycle.Definition{Name: "parcel", States: []lifecycle.State{
		{Name: "waiting", Next: []lifecycle.Transition{{To: "done", After: "3 days", When: "attribute_exists(title)"}}}, {Name: "done"},
	}, Attributes: map[string]string{"title": "S"}}, lifecycle.ApplyOptions{})
	must(t, err)
	name, err := lifecycle.Value(hostileURL)
	must(t, err)
	_, err = l.Create(t.Context(), "parcel", hostileURL, lifecycle.Item{"title": name})
	must(t, err)
	if m := s.page("lifecycle/parcel", nil); !m.has(hostileURL) {
		t.Errorf("the lifecycle does not show its entity: %.300s", m.text())
	}
	if m := s.page("lifecycle/parcel/entity", url.Values{"id": {hostileURL}}); !m.has(hostileURL) {
		t.Errorf("the entity's page does not show it: %.300s", m.text())
	}
	drawing := s.get("lifecycle/parcel/drawing.svg", nil)
	if got := drawing.header.Get("Content-Security-Policy"); drawing.status != http.StatusOK || got != "default-src 'none'; style-src 'unsafe-inline'; sandbox" {
		t.Errorf("the drawing has the status %d and the policy %q", drawing.status, got)
	}
	if strings.Contains(drawing.body, "<script") {
		t.Errorf("the drawing has a script")
	}
}
