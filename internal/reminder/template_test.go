package reminder

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
)

// visit is an item for templates.
var visit = item{
	"name": text(`Ann "A" <ann@example.com>`), "n": &types.AttributeValueMemberN{Value: "1.50"}, "yes": &types.AttributeValueMemberBOOL{Value: true},
	"none": &types.AttributeValueMemberNULL{Value: true}, "b": &types.AttributeValueMemberB{Value: []byte{0, 255}},
	"tags": &types.AttributeValueMemberSS{Value: []string{"x", "y"}}, "ns": &types.AttributeValueMemberNS{Value: []string{"1", "2"}},
	"deep": &types.AttributeValueMemberM{Value: item{"list": &types.AttributeValueMemberL{Value: []types.AttributeValue{text("first"), text("second")}}}},
	"a.b":  text("dotted"),
}

// What a template comes to, as text and as JSON.
func TestTemplate(t *testing.T) {
	for template, want := range map[string]string{
		"Dear <$.name>,\nit is <mayfly.at>.":                                                                 "Dear Ann \"A\" <ann@example.com>,\nit is noon.",
		"<b>bold</b> <$x> <mayfly> <$.n> <$.yes> <$.none>|<$.no>":                                            `<b>bold</b> <$x> <mayfly> 1.50 true null|`,
		"<$.deep.list[1]> <$.deep> <$.tags> <$.b>":                                                           `second {"list":["first","second"]} ["x","y"] "AP8="`,
		`{"to": "<$.name>", "n": <$.n>, "s": "n is <$.n>", "yes": <$.yes>, "no": <$.no>, "empty": "<$.no>"}`: `{"to": "Ann \"A\" <ann@example.com>", "n": 1.50, "s": "n is 1.50", "yes": true, "no": null, "empty": ""}`,
		`[<$.deep>, <$.tags>, <$.ns>, <$.b>, "<$.deep.list[0]>", "\"<$.name>\\"]`:                            `[{"list":["first","second"]}, ["x","y"], [1,2], "AP8=", "first", "\"Ann \"A\" <ann@example.com>\\"]`,
		`"<mayfly.key>"`:         `"{\"k\":\"1\"}"`,
		` {"key": <mayfly.key>}`: ` {"key": {"k":"1"}}`,
	} {
		want = strings.Replace(want, `"\"Ann "A" <`, `"\"Ann \"A\" <`, 1)
		compiled, err := newTemplate(template)
		if err != nil {
			t.Errorf("%s: %v", template, err)
			continue
		}
		got := string(compiled.fill(reminderOf{item: visit, key: item{"k": text("1")}, known: map[string]string{knownAt: "noon"}}))
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", template, d)
		}
		if compiled.json && !json.Valid([]byte(got)) {
			t.Errorf("not JSON: %s", got)
		}
	}
}

// A bad template is refused with its reason.
func TestBadTemplate(t *testing.T) {
	for template, want := range map[string]string{
		`{"a": <$.n>`: "it begins like JSON, and is none", `{"a": <b>}`: "it begins like JSON, and is none", `["a" "<$.n>"]`: "it begins like JSON, and is none",
		`<$.>`: `"" is not a path such as a.b[0]["c.d"]`, `<$.a..b>`: `"a..b" is not a path such as a.b[0]["c.d"]`, `<$.a[x]>`: `"a[x]" is not a path such as a.b[0]["c.d"]`,
		`<mayfly.now>`:                "<mayfly.now> is none of <mayfly.id>, <mayfly.rule>, <mayfly.table>, <mayfly.at>, <mayfly.time>, <mayfly.key>, <mayfly.item>",
		strings.Repeat("x", 64<<10+1): "it has 65537 bytes, and at most 65536 are allowed",
	} {
		if _, err := newTemplate(template); err == nil || err.Error() != want {
			t.Errorf("%.40s: %v", template, err)
		}
	}
}

// Whatever an item holds, a template that is JSON stays JSON.
func FuzzTemplate(f *testing.F) {
	f.Add(`{"a": "<$.s>", "b": <$.s>, "c": <$.n>, "d": "<$.n> <mayfly.at>"}`, "quote \" and \\", "1e5")
	f.Add(`["<$.s>\\", "<$.s>"]`, "\x00\xff", "-0")
	f.Fuzz(func(t *testing.T, template, s, n string) {
		compiled, err := newTemplate(template)
		if err != nil {
			return
		}
		it := item{"s": text(s), "n": &types.AttributeValueMemberN{Value: n}}
		got := compiled.fill(reminderOf{item: it, key: it, known: map[string]string{knownAt: s}})
		if compiled.json && !json.Valid(got) {
			t.Errorf("%q with %q and %q is %q", template, s, n, got)
		}
	})
}

// An instant is the same however it is written, and never earlier than what was written.
func TestInstant(t *testing.T) {
	noon := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	for written, want := range map[types.AttributeValue]time.Time{
		&types.AttributeValueMemberN{Value: "1893499200"}: noon, &types.AttributeValueMemberN{Value: "1893499200.0"}: noon, &types.AttributeValueMemberN{Value: "18934992E2"}: noon,
		&types.AttributeValueMemberN{Value: "1893499200.0001"}: noon.Add(time.Millisecond), &types.AttributeValueMemberN{Value: "0"}: time.UnixMilli(0).UTC(),
		text("2030-01-01T12:00:00Z"): noon, text("2030-01-01t12:00:00z"): noon, text("2030-01-01T13:00:00+01"): noon, text("2030-01-01T12:00:00.000000001Z"): noon.Add(time.Millisecond),
		text(" 2030-01-01 12:00Z "): noon, text("20300101T120000Z"): noon, text("2030-01-01T06:30:00-0530"): noon,
	} {
		if got, ok := instant(written); !ok || !got.Equal(want) {
			t.Errorf("%v: %v, %v", textOf(written), got, ok)
		}
	}
	for _, written := range []types.AttributeValue{
		text(""), text("12:00"), text("2030-01-01"), text("2030-01-01T12:00:00"), text("2030-13-01T12:00:00Z"), text("1969-12-31T23:59:59Z"), text(strings.Repeat("2", 100)),
		&types.AttributeValueMemberN{Value: "-1"}, &types.AttributeValueMemberN{Value: "1893499200000"}, &types.AttributeValueMemberN{Value: "1e99999999"},
		&types.AttributeValueMemberN{Value: "1/2"}, &types.AttributeValueMemberN{Value: ""}, &types.AttributeValueMemberBOOL{Value: true}, nil,
	} {
		if got, ok := instant(written); ok {
			t.Errorf("%v: %v", textOf(written), got)
		}
	}
}

func FuzzInstant(f *testing.F) {
	for _, s := range []string{"1893499200.25", "2030-01-01T12:00:00.5+02:00", "1e3", "-0", "0x10", "1_0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, v := range []types.AttributeValue{text(s), &types.AttributeValueMemberN{Value: s}} {
			if got, ok := instant(v); ok && (got.Before(earliest) || got.Nanosecond()%int(time.Millisecond) != 0) {
				t.Errorf("%q is %v", s, got)
			}
		}
	})
}

// A path leads to what it says.
func TestPathOf(t *testing.T) {
	for written, want := range map[string]string{
		"name": `Ann "A" <ann@example.com>`, "deep.list[1]": "second", `deep["list"][0]`: "first", `["a.b"]`: "dotted", "a.b": "", "deep.list[2]": "", "name.x": "",
		"deep[0]": "", "n": "1.50", `["deep"].list[0]`: "first",
	} {
		p, err := parsePath(written)
		if err != nil {
			t.Errorf("%s: %v", written, err)
			continue
		}
		if got := textOf(p.of(visit)); got != want {
			t.Errorf("%s: %q", written, got)
		}
	}
	for _, written := range []string{"", ".", "a.", ".a", "[0]", "a[0", "a[0]b", "a[-1]", "a[99999]", `[""]`, `["a]`, "a]", "a..b", "a.[0]", strings.Repeat("a.", 40) + "a"} {
		if p, err := parsePath(written); err == nil {
			t.Errorf("%s: %v", written, p)
		}
	}
}

func FuzzPath(f *testing.F) {
	f.Add(`a.b[0]["c.d"].e`)
	f.Add(`["\u00e9"][1][2]`)
	f.Fuzz(func(t *testing.T, written string) {
		p, err := parsePath(written)
		if err == nil && (len(p) == 0 || len(p) > pathMax) {
			t.Errorf("%q has %d steps", written, len(p))
		}
		p.of(visit)
	})
}
