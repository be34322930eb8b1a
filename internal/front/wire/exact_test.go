package wire

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
)

// exactInner and exactBody have a member of every kind that a body may have.
type exactInner struct {
	Key   string
	Lower string `json:"awsvpcConfiguration,omitempty"`
}

type exactEmbedded struct{ Deep *exactInner }

// selfRead has an UnmarshalJSON method.
type selfRead string

func (s *selfRead) UnmarshalJSON(text []byte) error {
	*s = selfRead(text)
	return nil
}

type exactBody struct {
	Name string
	exactEmbedded
	Tags   []exactInner
	Map    map[string]exactInner
	Self   *selfRead
	Raw    json.RawMessage
	Hidden string `json:"-"`
	Number *int64
}

// Names are case-sensitive at every depth; a name in another case is unknown.
func TestExactNames(t *testing.T) {
	for _, tt := range []struct{ body, want string }{
		{`{"Name":"a"}`, `{"Name":"a"}`},
		{`{"name":"a", "NAME" : "b"}`, `{"____":"a", "____" : "b"}`},
		{`{"\u004eame":"a","\u006eame":"b"}`, `{"\u004eame":"a","_________":"b"}`},
		{` { "Deep" : { "key" : "]}\"" , "Key" : "\\" } , "deep" : { "Key" : 1 } } `, ` { "Deep" : { "___" : "]}\"" , "Key" : "\\" } , "____" : { "Key" : 1 } } `},
		{`{"Deep":{"AwsvpcConfiguration":"a"}}`, `{"Deep":{"___________________":"a"}}`},
		{`{"Deep":{"awsvpcConfiguration":"a"}}`, `{"Deep":{"awsvpcConfiguration":"a"}}`},
		{`{"Tags":[{"Key":"a"},{"key":"b"},[],null,{}],"number":1}`, `{"Tags":[{"Key":"a"},{"___":"b"},[],null,{}],"______":1}`},
		{`{"Map":{"key":{"key":"b"}}}`, `{"Map":{"key":{"___":"b"}}}`},
		{`{"Self":{"key":[true]},"Raw":{"key":{}},"Hidden":"a","hidden":{"x":[{}]}}`, `{"Self":{"key":[true]},"Raw":{"key":{}},"______":"a","______":{"x":[{}]}}`},
		{`{"Number":-1.5e3,"Name":null}`, `{"Number":-1.5e3,"Name":null}`},
		{`{"kelvin":1,"` + "\u212aey" + `":2,"":3}`, `{"______":1,"_____":2,"":3}`},
		{`[{"name":1}]`, `[{"name":1}]`},
		{`"name"`, `"name"`},
		{`12`, `12`},
		{`{"name":`, `{"name":`},
		{``, ``},
	} {
		given := []byte(tt.body)
		if got := string(exactNames(given, reflect.TypeFor[*exactBody]())); got != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", tt.body, got, tt.want)
		}
		if string(given) != tt.body {
			t.Errorf("%s became %s", tt.body, given)
		}
	}
}

// FuzzExactNames checks that for any body the result has the same length and validity, that a
// second pass changes nothing, and that encoding/json reads from it only the exact names.
func FuzzExactNames(f *testing.F) {
	for _, s := range []string{`{"Name":"a","tags":[{"Key":"b"}]}`, `[1,{"x":"\""}]`, `{"Map":{"a":{"key":[[]]}}}`, "\t{\n} ", `{"Self":{"a":1},"Deep":{"Key":"\\"}}`, `{"a":{"b":`, `"\ud800"`} {
		f.Add([]byte(s))
	}
	into := reflect.TypeFor[exactBody]()
	f.Fuzz(func(t *testing.T, body []byte) {
		got := exactNames(body, into)
		if len(got) != len(body) || json.Valid(got) != json.Valid(body) {
			t.Fatalf("%q became %q", body, got)
		}
		if again := exactNames(got, into); string(again) != string(got) {
			t.Fatalf("%q became %q", got, again)
		}
		var members map[string]json.RawMessage
		var b exactBody
		if json.Unmarshal(body, &members) != nil || json.Unmarshal(got, &b) != nil {
			return
		}
		var name string
		if raw, there := members["Name"]; there && json.Unmarshal(raw, &name) == nil && string(raw) != "null" && name != b.Name {
			t.Fatalf("%q was read as %q", body, fmt.Sprint(b.Name))
		}
		if _, there := members["Name"]; !there && b.Name != "" {
			t.Fatalf("%q was read as %q", body, b.Name)
		}
	})
}
