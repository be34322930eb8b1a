package template

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
)

type item = map[string]types.AttributeValue

func text(s string) *types.AttributeValueMemberS { return &types.AttributeValueMemberS{Value: s} }

// names are the named values of the templates.
var names = []string{"at", "key"}

// visit is an item for templates.
var visit = item{
	"name": text(`Ann "A" <ann@example.com>`), "n": &types.AttributeValueMemberN{Value: "1.50"}, "yes": &types.AttributeValueMemberBOOL{Value: true},
	"none": &types.AttributeValueMemberNULL{Value: true}, "b": &types.AttributeValueMemberB{Value: []byte{0, 255}},
	"tags": &types.AttributeValueMemberSS{Value: []string{"x", "y"}}, "ns": &types.AttributeValueMemberNS{Value: []string{"1", "2"}},
	"deep": &types.AttributeValueMemberM{Value: item{"list": &types.AttributeValueMemberL{Value: []types.AttributeValue{text("first"), text("second")}}}},
	"a.b":  text("dotted"),
}

// The results of templates, as text and as JSON.
func TestTemplate(t *testing.T) {
	for written, want := range map[string]string{
		"Dear <$.name>,\nit is <mayfly.at>.":                                                                 "Dear Ann \"A\" <ann@example.com>,\nit is noon.",
		"<b>bold</b> <$x> <mayfly> <$.n> <$.yes> <$.none>|<$.no>":                                            `<b>bold</b> <$x> <mayfly> 1.50 true null|`,
		"<$.deep.list[1]> <$.deep> <$.tags> <$.b>":                                                           `second {"list":["first","second"]} ["x","y"] "AP8="`,
		`{"to": "<$.name>", "n": <$.n>, "s": "n is <$.n>", "yes": <$.yes>, "no": <$.no>, "empty": "<$.no>"}`: `{"to": "Ann \"A\" <ann@example.com>", "n": 1.50, "s": "n is 1.50", "yes": true, "no": null, "empty": ""}`,
		`[<$.deep>, <$.tags>, <$.ns>, <$.b>, "<$.deep.list[0]>", "\"<$.name>\\"]`:                            `[{"list":["first","second"]}, ["x","y"], [1,2], "AP8=", "first", "\"Ann \"A\" <ann@example.com>\\"]`,
		`"<mayfly.key>"`:         `"{\"k\":\"1\"}"`,
		` {"key": <mayfly.key>}`: ` {"key": {"k":"1"}}`,
		`{"raw": "<$.["a.b"]>", "escaped": "<$.[\"a.b\"]>", "plain": <$.["a.b"]>}`: `{"raw": "dotted", "escaped": "dotted", "plain": "dotted"}`,
	} {
		want = strings.Replace(want, `"\"Ann "A" <`, `"\"Ann \"A\" <`, 1)
		compiled, err := Parse(written, names)
		if err != nil {
			t.Errorf("%s: %v", written, err)
			continue
		}
		got := string(compiled.Fill(visit, item{"key": &types.AttributeValueMemberM{Value: item{"k": text("1")}}, "at": text("noon")}))
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", written, d)
		}
		if compiled.JSON() && !json.Valid([]byte(got)) {
			t.Errorf("not JSON: %s", got)
		}
	}
}

// An invalid template is refused with its reason.
func TestBadTemplate(t *testing.T) {
	for written, want := range map[string]string{
		`{"a": <$.n>`: "it begins like JSON but is not valid JSON", `{"a": <b>}`: "it begins like JSON but is not valid JSON", `["a" "<$.n>"]`: "it begins like JSON but is not valid JSON",
		`<$.>`: `invalid path ""; use the form a.b[0]["c.d"]`, `<$.a..b>`: `invalid path "a..b"; use the form a.b[0]["c.d"]`, `<$.a[x]>`: `invalid path "a[x]"; use the form a.b[0]["c.d"]`,
		`["\<$.name>""]`: "it begins like JSON but is not valid JSON", `["\u00<$.name>41"]`: "it begins like JSON but is not valid JSON",
		`<mayfly.now>`: "unknown variable <mayfly.now>; use one of <mayfly.at>, <mayfly.key>",
		strings.Repeat("[", 9_999) + strings.Repeat("]", 9_999): "it is nested too deeply",
		strings.Repeat("x", 64<<10+1):                           "65537 bytes are too many; the limit is 65536",
	} {
		if _, err := Parse(written, names); err == nil || err.Error() != want {
			t.Errorf("%.40s: %v", written, err)
		}
	}
}

// A template that names a large value often is filled in only up to the limit.
func TestFilledMost(t *testing.T) {
	large := text(strings.Repeat("x", 400<<10))
	compiled, err := Parse(strings.Repeat("<$.x>", 10_000), nil)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(compiled.Fill(item{"x": large}, nil)); n <= FilledMost || n > FilledMost+400<<10 {
		t.Errorf("it has come to %d bytes", n)
	}
}

// A template that is JSON stays JSON with any item.
func FuzzTemplate(f *testing.F) {
	f.Add(`{"a": "<$.s>", "b": <$.s>, "c": <$.n>, "d": "<$.n> <mayfly.at>"}`, "quote \" and \\", "1e5")
	f.Add(`["<$.s>\\", "<$.s>"]`, "\x00\xff", "-0")
	f.Add(`["\<$.s>"", "\u00<$.n>41", "<$.[\"s\"]>"]`, "x", "1")
	f.Add(`["\<$.s>""]`, "x", "1")
	f.Fuzz(func(t *testing.T, written, s, n string) {
		compiled, err := Parse(written, names)
		if err != nil {
			return
		}
		it := item{"s": text(s), "n": &types.AttributeValueMemberN{Value: n}}
		got := compiled.Fill(it, item{"key": &types.AttributeValueMemberM{Value: it}, "at": text(s)})
		if compiled.JSON() && !json.Valid(got) {
			t.Errorf("%q with %q and %q is %q", written, s, n, got)
		}
	})
}

// A path leads to its value.
func TestPathOf(t *testing.T) {
	for written, want := range map[string]string{
		"name": `Ann "A" <ann@example.com>`, "deep.list[1]": "second", `deep["list"][0]`: "first", `["a.b"]`: "dotted", "a.b": "", "deep.list[2]": "", "name.x": "",
		"deep[0]": "", "n": "1.50", `["deep"].list[0]`: "first",
	} {
		p, err := ParsePath(written)
		if err != nil {
			t.Errorf("%s: %v", written, err)
			continue
		}
		if got := Text(p.Of(visit)); got != want {
			t.Errorf("%s: %q", written, got)
		}
	}
	for _, written := range []string{"", ".", "a.", ".a", "[0]", "a[0", "a[0]b", "a[-1]", "a[99999]", `[""]`, `["a]`, "a]", "a..b", "a.[0]", strings.Repeat("a.", 40) + "a"} {
		if p, err := ParsePath(written); err == nil {
			t.Errorf("%s: %v", written, p)
		}
	}
}

func FuzzPath(f *testing.F) {
	f.Add(`a.b[0]["c.d"].e`)
	f.Add(`["\u00e9"][1][2]`)
	f.Fuzz(func(t *testing.T, written string) {
		p, err := ParsePath(written)
		if err == nil && (len(p) == 0 || len(p) > pathMax) {
			t.Errorf("%q has %d steps", written, len(p))
		}
		p.Of(visit)
	})
}
