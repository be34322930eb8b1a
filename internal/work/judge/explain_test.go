package judge

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/ttl"
	"github.com/mayflydb/mayfly/internal/work/attr"
)

const now = int64(1_767_225_600_000) // 2026-01-01

// mapOf is a map with one member.
func mapOf(name string, v types.AttributeValue) types.AttributeValue {
	return &types.AttributeValueMemberM{Value: attr.Item{name: v}}
}

// An explanation has the outcome, the reason in words, and what to do about it.
func TestExplain(t *testing.T) {
	const fixed = "write seconds since 1970"
	for name, c := range map[string]struct {
		item                attr.Item
		attribute, own      string
		outcome, text, next string
	}{
		"no TTL":           {attr.Item{"e": attr.N("1")}, "", "", Never, "the item never expires: the table's TTL is off", "mayfly doctor --table orders --attribute ATTRIBUTE"},
		"coming":           {attr.Item{"e": attr.N("1767225661.5")}, "e", "e", Expires, "the item expires at 2026-01-01 00:01:01.500Z, in 1m 1s", ""},
		"far":              {attr.Item{"e": attr.N("95617584000")}, "e", "e", Expires, "the item expires at 5000-01-01 00:00:00Z, in more than 292 years", ""},
		"now":              {attr.Item{"e": attr.N("1767225600")}, "e", "e", Expired, "the item expired at 2026-01-01 00:00:00Z, just now, and is still there", "mayfly guard"},
		"passed":           {attr.Item{"e": attr.N("1767222000")}, "e", "e", Expired, "the item expired at 2025-12-31 23:00:00Z, 1h ago, and is still there", "mayfly guard"},
		"other attribute":  {attr.Item{"e": attr.N("1767225660")}, "e", "f", Never, "since the table's TTL uses f; by e its deadline is 2026-01-01 00:01:00Z, in 1m", "mayfly doctor --table orders --attribute e"},
		"off, would be":    {attr.Item{"e": attr.N("1767225540")}, "e", "", Never, "since the table's TTL is off; by e its deadline is 2025-12-31 23:59:00Z, 1m ago: enabling TTL would delete it now", "mayfly doctor"},
		"absent":           {attr.Item{"id": attr.S("a")}, "e", "e", Never, "the item never expires: it has no attribute e", ""},
		"null":             {attr.Item{"e": &types.AttributeValueMemberNULL{Value: true}}, "e", "e", Never, "its attribute e is NULL", ""},
		"text":             {attr.Item{"e": attr.S("1767225660")}, "e", "e", Never, `the item never expires: e = {"S":"1767225660"} `, "number"},
		"list":             {attr.Item{"e": &types.AttributeValueMemberL{}}, "e", "e", Never, `e = {"L":[]} `, ""},
		"milliseconds":     {attr.Item{"e": attr.N("1767225660000")}, "e", "e", Never, `e = {"N":"1767225660000"} `, ""},
		"too far":          {attr.Item{"e": attr.N("253402300799")}, "e", "e", Never, "is after the year 5138", fixed},
		"too old":          {attr.Item{"e": attr.N("3600")}, "e", "e", Never, "more than five years in the past", fixed},
		"other case":       {attr.Item{"E": attr.N("1767225660")}, "e", "e", Never, `the item never expires: TTL reads e, and the item has E = {"N":"1767225660"}`, ""},
		"other case, text": {attr.Item{"E": attr.S("1767225660")}, "e", "e", Never, `the item has E = {"S":"1767225660"}`, ""},
		"other case, name": {attr.Item{"E": attr.S("soon")}, "e", "e", Never, "it has no attribute e", ""},
		"in a map":         {attr.Item{"m": mapOf("e", attr.N("1767225660"))}, "e", "e", Never, `m.e = {"N":"1767225660"} `, ""},
		"in a map, text":   {attr.Item{"m": mapOf("e", attr.S("1767225660"))}, "e", "e", Never, "it has no attribute e", ""},
		"path":             {attr.Item{"m": mapOf("n", mapOf("e", attr.N("1767225660")))}, "m.n.e", "m.n.e", Never, `m.n.e = {"N":"1767225660"} `, ""},
		"path of nothing":  {attr.Item{"m": mapOf("n", attr.N("1"))}, "m.n.e", "m.n.e", Never, "it has no attribute m.n.e", ""},
		"long value":       {attr.Item{"e": attr.S(strings.Repeat("é", 300))}, "e", "e", Never, `e = {"S":"` + strings.Repeat("é", valueMost-len(`{"S":"`)) + "… ", ""},
	} {
		x := Explain(c.item, c.attribute, c.own, time.UnixMilli(now).Add(999*time.Microsecond))
		x.EnableWith("orders")
		if x.Outcome != c.outcome || !strings.Contains(x.Text, c.text) || !strings.Contains(x.Next, c.next) || c.next == "" && strings.Contains(x.Next, "mayfly") {
			t.Errorf("%s: %s, %q, next %q", name, x.Outcome, x.Text, x.Next)
		}
		if x.TTL != (c.attribute != "" && c.attribute == c.own) || x.Now.UnixMilli() != now || (x.Deadline != nil) != (x.Reason == ttl.Good.String()) {
			t.Errorf("%s: %+v", name, x)
		}
		if x.Value != nil && !json.Valid(x.Value) {
			t.Errorf("%s: the value is %s", name, x.Value)
		}
	}
}

// One item has one explanation, although a map has no order.
func TestExplainIsStable(t *testing.T) {
	item := attr.Item{}
	for _, name := range []string{"EXPIRES", "Expires", "eXpires", "expireS"} {
		item[name] = attr.N("1767225660")
	}
	for range 50 {
		if x := Explain(item, "expires", "expires", time.UnixMilli(now)); !strings.Contains(x.Text, "has EXPIRES = ") {
			t.Fatal(x.Text)
		}
	}
}

func TestTexts(t *testing.T) {
	item := attr.Item{"s": attr.S("a"), "n": attr.N("7"), "b": attr.B([]byte("a")), "other": attr.S("x")}
	for _, c := range []struct{ got, want string }{
		{KeyText(item, []string{"s", "n"}), `{"n":{"N":"7"},"s":{"S":"a"}}`},
		{KeyText(item, []string{"s", "missing"}), `{"s":{"S":"a"}}`},
		{KeyText(attr.Item{"s": attr.S(strings.Repeat("é", 300))}, []string{"s"}), `{"s":{"S":"` + strings.Repeat("é", textMost-len(`{"s":{"S":"`)) + "…"},
		{ExampleKey([]string{"s", "n"}, keyKinds), `{"n":{"N":"1"},"s":{"S":"a"}}`},
		{ExampleKey([]string{"b"}, keyKinds), `{"b":{"B":"YQ=="}}`},
		{Judgement{Name: "e"}.Text(), "no e"},
		{Clip("éé", 2), "éé"}, {Clip("éééé", 2), "éé…"}, {Clip("", 0), ""},
	} {
		if c.got != c.want {
			t.Errorf("%s, want %s", c.got, c.want)
		}
	}
	for _, names := range [][]string{{"s"}, {"n"}, {"b"}, {"s", "n"}} {
		if key, err := ReadKey(ExampleKey(names, keyKinds), names, keyKinds); err != nil || len(key) != len(names) {
			t.Errorf("the example of %v is no key: %v, %v", names, key, err)
		}
	}
}
