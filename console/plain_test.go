package console

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"pgregory.net/rapid"

	"github.com/mayflydb/mayfly/internal/work/attr"
)

// plain returns a value as plain JSON, as a visitor would write it.
func plain(v types.AttributeValue) string {
	list := func(parts []string) string { return "[" + strings.Join(parts, ", ") + "]" }
	text := func(s string) string { return string(jsonOf(s)) }
	blob := func(b []byte) string { return text(base64.StdEncoding.EncodeToString(b)) }
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return text(v.Value)
	case *types.AttributeValueMemberN:
		return v.Value
	case *types.AttributeValueMemberB:
		return blob(v.Value)
	case *types.AttributeValueMemberBOOL:
		return fmt.Sprint(v.Value)
	case *types.AttributeValueMemberM:
		var parts []string
		for _, name := range slices.Sorted(maps.Keys(v.Value)) {
			parts = append(parts, text(name)+": "+plain(v.Value[name]))
		}
		return "{" + strings.Join(parts, ",\n") + "}"
	case *types.AttributeValueMemberL:
		return list(each(v.Value, plain))
	case *types.AttributeValueMemberSS:
		return list(each(v.Value, text))
	case *types.AttributeValueMemberNS:
		return list(v.Value)
	case *types.AttributeValueMemberBS:
		return list(each(v.Value, blob))
	}
	return "null"
}

// values generates values with at most so many levels.
func values(levels int) *rapid.Generator[types.AttributeValue] {
	text := rapid.OneOf(rapid.String(), rapid.SampledFrom(append(slices.Clone(hostileTexts), "", "\x00", "null", "1", "AAE=")))
	number := rapid.OneOf(rapid.StringMatching(`-?[1-9][0-9]{0,37}`), rapid.StringMatching(`-?0\.[0-9]{0,30}[1-9]`), rapid.StringMatching(`[1-9](\.[0-9]{1,20})?E[+-]?[1-9][0-9]?`), rapid.SampledFrom([]string{"0", "1E+125", "1e-130", "9007199254740993"}))
	blob := rapid.SliceOfN(rapid.Byte(), 0, 9)
	kinds := []*rapid.Generator[types.AttributeValue]{
		rapid.Map(text, attr.S), rapid.Map(number, attr.N), rapid.Map(blob, attr.B), rapid.Map(rapid.Bool(), attr.Bool),
		rapid.Just[types.AttributeValue](&types.AttributeValueMemberNULL{Value: true}),
		rapid.Map(rapid.SliceOfNDistinct(text, 1, 3, rapid.ID), func(all []string) types.AttributeValue { return &types.AttributeValueMemberSS{Value: all} }),
		rapid.Map(rapid.SliceOfNDistinct(number, 1, 3, rapid.ID), func(all []string) types.AttributeValue { return &types.AttributeValueMemberNS{Value: all} }),
		rapid.Map(rapid.SliceOfN(blob, 1, 3), func(all [][]byte) types.AttributeValue { return &types.AttributeValueMemberBS{Value: all} }),
	}
	if levels > 0 {
		inner := values(levels - 1)
		kinds = append(kinds,
			rapid.Map(rapid.SliceOfN(inner, 0, 3), func(all []types.AttributeValue) types.AttributeValue {
				return &types.AttributeValueMemberL{Value: all}
			}),
			rapid.Map(rapid.MapOfN(text, inner, 0, 3), func(all map[string]types.AttributeValue) types.AttributeValue { return attr.M(all) }),
		)
	}
	return rapid.OneOf(kinds...)
}

// TestPlainRoundTrip: an item that a visitor saves as plain JSON without a change is the same, with
// all types, digits and bytes.
func TestPlainRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		was := attr.Item(rapid.MapOfN(rapid.String(), values(3), 0, 6).Draw(t, "item"))
		text := plain(attr.M(was))
		if !json.Valid([]byte(text)) {
			t.Fatalf("%s is no JSON", text)
		}
		for _, written := range []string{text, pretty(text), " \n" + text + "\t"} {
			got, err := readPlain(written, was)
			if err != nil {
				t.Fatalf("%s: %v", written, err)
			}
			if a, b := jsonText(got), jsonText(was); a != b {
				t.Fatalf("%s\nis read as %s\nwant       %s", written, a, b)
			}
		}
	})
}

// TestPlainChanges: changed values keep the type of the attribute where they can have it; others
// have the type in JSON.
func TestPlainChanges(t *testing.T) {
	set := func(all ...string) types.AttributeValue { return &types.AttributeValueMemberSS{Value: all} }
	was := attr.Item{"b": attr.B([]byte("x")), "ss": set("a", "b"), "ns": &types.AttributeValueMemberNS{Value: []string{"1"}}, "bs": &types.AttributeValueMemberBS{Value: [][]byte{[]byte("x")}}, "s": attr.S("1"), "l": &types.AttributeValueMemberL{Value: []types.AttributeValue{attr.B([]byte("x"))}}}
	for text, want := range map[string]string{
		`{"b":"AAE="}`: `{"b":{"B":"AAE="}}`, `{"b":1}`: `{"b":{"N":"1"}}`, `{"b":null}`: `{"b":{"NULL":true}}`, `{"new":"AAE="}`: `{"new":{"S":"AAE="}}`,
		`{"ss":["c"]}`: `{"ss":{"SS":["c"]}}`, `{"ss":[1]}`: `{"ss":{"L":[{"N":"1"}]}}`, `{"ss":["a",1]}`: `{"ss":{"L":[{"S":"a"},{"N":"1"}]}}`,
		`{"ns":[2, 3.0]}`: `{"ns":{"NS":["2","3.0"]}}`, `{"ns":["2"]}`: `{"ns":{"L":[{"S":"2"}]}}`, `{"bs":["AAE=",""]}`: `{"bs":{"BS":["AAE=",""]}}`, `{"s":1}`: `{"s":{"N":"1"}}`,
		`{"m":{"a":[{}]}}`: `{"m":{"M":{"a":{"L":[{"M":{}}]}}}}`, `{}`: `{}`,
	} {
		got, err := readPlain(text, was)
		if err != nil || jsonText(got) != want {
			t.Errorf("%s is read as %s, %v; want %s", text, jsonText(got), err, want)
		}
	}
	for text, why := range map[string]string{
		``: "EOF", `{`: "EOF", `[]`: "not an object", `"a"`: "not an object", `{"a":1} {}`: "text after", `{"a":1,"a":2}`: "twice", `{"b":"?"}`: "not base64", `{"a":01}`: "invalid", `{a:1}`: "invalid", `{"a":NaN}`: "invalid",
		strings.Repeat(`{"a":`, 40): "deeper", strings.Repeat("[", 1_000_000): "deeper", `{"a":1,}`: "invalid", "{\"a\":\"\x01\"}": "invalid",
	} {
		if got, err := readPlain(text, was); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%.60s: %v, %v; want an error with %q", text, got, err, why)
		}
	}
}
