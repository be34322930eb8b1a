package dynamo

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// The example in JSON's comment, with all values read as one flat text.
func TestReadingAStructure(t *testing.T) {
	const body = ` { "TableName" : "T\u00e4\/b", "Limit": 7.9, "Absent": null, "ConsistentRead": "YES",
		"AttributesToGet": ["a", "b\n"], "ExpressionAttributeNames": {"#a": "x", "#b\t": null}, "Total": -1.5,
		"Unknown": [{"x": [1, {}, []]}, true, null], "Nested": {"Deep": {"Er": false}}, "Raw": {"k":  [1] } }  `
	var (
		got  []string
		name []byte
		note = func(format string, args ...any) { got = append(got, fmt.Sprintf(format, args...)) }
	)
	j := NewJSON([]byte(body))
	if j.Struct("GetItemInput") {
		for j.NextMember(&name) {
			switch string(name) {
			case "TableName":
				note("table %s", j.CopyText())
			case "Limit":
				note("limit %d", j.Int())
			case "Total":
				note("total %d", j.Long())
			case "ConsistentRead":
				note("consistent %v", j.Bool())
			case "AttributesToGet":
				for ok := j.List(); ok && j.NextElement(); {
					note("get %q", j.Text())
				}
			case "ExpressionAttributeNames":
				for ok := j.Map("String"); ok && j.NextEntry(&name); {
					note("name %q %q", name, j.Text())
				}
			case "Nested":
				for ok := j.Struct("A"); ok && j.NextMember(&name); {
					for ok := j.Struct("B"); ok && j.NextMember(&name); {
						note("deep %v", j.Bool())
					}
				}
			default:
				note("skip %s", name)
				j.Skip()
			}
		}
	}
	if err := j.End(); err != nil {
		t.Fatal(err)
	}
	want := `table Tä/b|limit 7|consistent true|get "a"|get "b\n"|name "#a" "x"|name "#b\t" ""|total -2|skip Unknown|deep false|skip Raw`
	if got := strings.Join(got, "|"); got != want {
		t.Errorf("read\n%s, want\n%s", got, want)
	}
}

func TestObjectAndNull(t *testing.T) {
	for body, want := range map[string]bool{
		" {": true, "{}": true, "[": false, `"`: false, "-": false, "0": false, "t": false, "f": false,
		"\n\tnull": false, "": false, "}": false, "x": false, "+1": false,
	} {
		if j := NewJSON([]byte(body)); j.Object() != want || j.Err() != nil {
			t.Errorf("%q: object %v, %v", body, !want, j.Err())
		}
	}
	j := NewJSON([]byte("null"))
	if !j.null() || j.null() || j.End() != nil {
		t.Error("null")
	}
	j = NewJSON([]byte("nul"))
	if j.null() || j.Err() == nil {
		t.Error("half a null")
	}
	// The value methods treat null as absent.
	j = NewJSON([]byte("[null,null,null,null,null,null,null,null]"))
	j.List()
	for i := 0; j.NextElement(); i++ {
		switch i {
		case 0:
			if j.Text() != nil {
				t.Error("Text")
			}
		case 1:
			j.Int()
		case 2:
			j.Bool()
		case 3:
			j.Struct("S")
		case 4:
			j.MapElement("S")
		case 5:
			j.ListElement()
		case 6:
			j.appendBlob(nil)
		case 7:
			if out, invalid, fatal := j.AppendItem(nil); out != nil || invalid != nil || fatal != nil {
				t.Error("AppendItem")
			}
		}
	}
	if err := j.End(); err != nil {
		t.Error(err)
	}
}

func TestIntegers(t *testing.T) {
	for _, c := range []struct {
		body string
		long int64
		i    int
	}{
		{"0", 0, 0}, {"-0", 0, 0}, {"42", 42, 42}, {"-7", -7, -7}, {"1.9", 1, 1}, {"-1.1", -2, -2}, {"1e3", 1000, 1000}, {"0.5E1", 5, 5},
		{"2147483647", 1<<31 - 1, 1<<31 - 1}, {"-2147483648", -1 << 31, -1 << 31}, {"2147483647.9", 1<<31 - 1, 1<<31 - 1}, {"1e-400", 0, 0},
	} {
		j := NewJSON([]byte(c.body))
		if got := j.Long(); got != c.long || j.End() != nil {
			t.Errorf("%s as a Long: %d, %v; want %d", c.body, got, j.Err(), c.long)
		}
		j = NewJSON([]byte(c.body))
		if got := j.Int(); got != c.i || j.End() != nil {
			t.Errorf("%s as an Integer: %d, %v; want %d", c.body, got, j.Err(), c.i)
		}
	}
}

// A Long is larger than an Integer, and has a range of its own.
func TestLongs(t *testing.T) {
	for body, want := range map[string]int64{
		"2147483648": 1 << 31, "9223372036854775807": 1<<63 - 1, "-9223372036854775808": -1 << 63, "-123456789012345678": -123456789012345678, "9.2e18": 9200000000000000000,
	} {
		j := NewJSON([]byte(body))
		if got := j.Long(); got != want || j.End() != nil {
			t.Errorf("%s: %d, %v; want %d", body, got, j.Err(), want)
		}
	}
}

// The texts of docs/spec/errors.md §6.
func TestTypeErrors(t *testing.T) {
	text := func(j *JSON) { j.Text() }
	boolean := func(j *JSON) { j.Bool() }
	integer := func(j *JSON) { j.Int() }
	long := func(j *JSON) { j.Long() }
	blob := func(j *JSON) { j.appendBlob(nil) }
	list := func(j *JSON) { j.List() }
	values := func(j *JSON) { j.Map("AttributeValue") }
	names := func(j *JSON) { j.Map("String") }
	member := func(j *JSON) { j.Struct("ProvisionedThroughput") }
	element := func(j *JSON) { j.StructElement("AttributeValue") }
	keys := func(j *JSON) { j.MapElement("AttributeValue") }
	writes := func(j *JSON) { j.ListElement() }
	const (
		java = "com.amazonaws.dynamodb.v20120810."
		cast = "class sun.reflect.generics.reflectiveObjects.ParameterizedTypeImpl cannot be cast to class java.lang.Class " +
			"(sun.reflect.generics.reflectiveObjects.ParameterizedTypeImpl and java.lang.Class are in module java.base of loader 'bootstrap')"
	)
	for _, c := range []struct {
		read    func(*JSON)
		body    string
		message string
	}{
		{text, `true`, "TRUE_VALUE cannot be converted to String"},
		{text, `false`, "FALSE_VALUE cannot be converted to String"},
		{text, `1`, "NUMBER_VALUE cannot be converted to String"},
		{text, `-1.5`, "DECIMAL_VALUE cannot be converted to String"},
		{text, `["a"]`, "Unrecognized collection type class java.lang.String"},
		{text, `{}`, "Start of structure or map found where not expected"},
		{boolean, `1`, "NUMBER_VALUE cannot be converted to Boolean"},
		{boolean, `"maybe"`, "Unexpected token received from parser"},
		{boolean, `""`, "Unexpected token received from parser"},
		{boolean, `"true but long"`, "Unexpected token received from parser"},
		{boolean, `[]`, "Unrecognized collection type class java.lang.Boolean"},
		{boolean, `{}`, "Start of structure or map found where not expected"},
		{integer, `"1"`, "STRING_VALUE cannot be converted to Integer"},
		{long, `"1"`, "STRING_VALUE cannot be converted to Long"},
		{long, `true`, "TRUE_VALUE cannot be converted to Long"},
		{integer, `2147483648`, "NUMBER_VALUE cannot be converted to Integer"},
		{integer, `-2147483649`, "NUMBER_VALUE cannot be converted to Integer"},
		{integer, `2147483648.5`, "DECIMAL_VALUE cannot be converted to Integer"},
		{integer, `1e30`, "DECIMAL_VALUE cannot be converted to Integer"},
		{long, `9223372036854775808`, "NUMBER_VALUE cannot be converted to Long"},
		{long, `-9223372036854775809`, "NUMBER_VALUE cannot be converted to Long"},
		{long, `99999999999999999999999`, "NUMBER_VALUE cannot be converted to Long"},
		{long, `9223372036854775808.0`, "DECIMAL_VALUE cannot be converted to Long"},
		{long, `-1e400`, "DECIMAL_VALUE cannot be converted to Long"},
		{integer, `[]`, "Unrecognized collection type class java.lang.Integer"},
		{long, `[]`, "Unrecognized collection type class java.lang.Long"},
		{long, `{}`, "Start of structure or map found where not expected"},
		{blob, `true`, "only base-64-encoded strings are convertible to bytes"},
		{blob, `1`, "only base-64-encoded strings are convertible to bytes"},
		{blob, `[]`, "Unrecognized collection type class java.nio.ByteBuffer"},
		{blob, `{}`, "Start of structure or map found where not expected"},
		{blob, `"abc"`, "Base64 encoded length is expected a multiple of 4 bytes but found: 3"},
		{blob, `"YWJ="`, "Invalid last non-pad Base64 character dectected"},
		{blob, `"YX=="`, "Invalid last non-pad Base64 character dectected"},
		{blob, `"YW%j"`, "Invalid Base64 character: '%'"},
		{blob, `"YQ==YQ=="`, "Invalid Base64 character: '='"},
		{blob, `"a==="`, "Invalid Base64 character: '='"},
		{blob, `"YW\nj"`, "Invalid Base64 character: '\n'"},
		{list, `"a"`, "Unexpected field type"},
		{list, `{}`, "Start of structure or map found where not expected"},
		{values, `1`, "Unexpected field type"},
		{values, `[]`, "Unrecognized collection type java.util.Map<java.lang.String, " + java + "AttributeValue>"},
		{names, `[]`, "Unrecognized collection type java.util.Map<java.lang.String, java.lang.String>"},
		{func(j *JSON) { j.Map("java.util.List<x>") }, `[]`, "Unrecognized collection type java.util.Map<java.lang.String, java.util.List<x>>"},
		{member, `"a"`, "Unexpected field type"},
		{member, `[]`, "Unrecognized collection type class " + java + "ProvisionedThroughput"},
		{element, `1`, "Unexpected value type in payload"},
		{element, `[]`, "Unrecognized collection type class " + java + "AttributeValue"},
		{keys, `"a"`, cast},
		{writes, `"a"`, cast},
	} {
		j := NewJSON([]byte(`{"a":` + c.body + `,"b":[1,2]}`))
		var name []byte
		if !j.Struct("In") || !j.NextMember(&name) {
			t.Fatal(j.Err())
		}
		c.read(j)
		got, ok := j.Err().(*Error)
		if !ok || got.Code != CodeSerialization || got.Message != c.message {
			t.Errorf("%s: %v, want %s", c.body, j.Err(), c.message)
		}
		if j.NextMember(&name) || j.next() != 0 {
			t.Errorf("%s: goes on after the error", c.body)
		}
		// Malformed JSON comes first, even after the type error.
		j = NewJSON([]byte(`{"a":` + c.body + `,"b":[1,2}`))
		j.Struct("In")
		j.NextMember(&name)
		c.read(j)
		if got, ok := j.Err().(*Error); !ok || got.Message != "" {
			t.Errorf("%s in malformed JSON: %v", c.body, j.Err())
		}
	}
}

func TestSpelledBooleans(t *testing.T) {
	for body, want := range map[string]bool{
		`"true"`: true, `"TRUE"`: true, `"Yes"`: true, `"1"`: true, `true`: true,
		`"false"`: false, `"FaLsE"`: false, `"NO"`: false, `"0"`: false, `false`: false,
	} {
		j := NewJSON([]byte(body))
		if got := j.Bool(); got != want || j.End() != nil {
			t.Errorf("%s: %v, %v", body, got, j.Err())
		}
	}
}

// malformed bodies. encoding/json refuses them too, except where a comment says so.
var malformed = []string{
	"", " ", "{", "}", "[", "]", `"`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{,}`, `{"a":1 "b":2}`, `{a:1}`, `{"a":1}}`, `[1,]`, `[,1]`, `[1 2]`,
	`[1}`, `{"a":1]`, "01", "-", "1.", ".5", "1e", "1e+", "+1", "0x1", "tru", "truefalse", "nulll", "[nul]", `"a`, `"\`, `"\x"`, `"\u12"`,
	`"\u12g4"`, "\"\n\"", "\"\x01\"", "\x00", "1\x00", "{}x", "'a'", "NaN", "// c\n1", "\ufeff1", "\v1",
	// encoding/json replaces these; they are refused here.
	"\"\xff\"", "\"abcdefgh\xc3\"", `"\ud800"`, `"\udc00"`, `"\ud800\u0041"`, `"\ud800\ud800"`, `"\ud800x"`, "\"\\n\xff\"",
}

func TestMalformed(t *testing.T) {
	for _, body := range malformed {
		if ValidJSON([]byte(body)) {
			t.Errorf("%q is valid", body)
		}
		j := NewJSON([]byte(body))
		j.Skip()
		if err, ok := j.End().(*Error); !ok || err.Code != CodeSerialization || err.Message != "" {
			t.Errorf("%q: %v", body, err)
		}
	}
}

// Every method refuses absurd nesting.
func TestAbsurdDepth(t *testing.T) {
	for _, open := range []string{"[", `{"a":`, `{"L":[`, `{"M":{"a":`} {
		body := []byte(strings.Repeat(open, 10_000))
		if ValidJSON(body) {
			t.Errorf("%s: valid", open)
		}
		if _, _, err := NewJSON(body).AppendValue(nil); err == nil {
			t.Errorf("%s: accepted as a value", open)
		}
		if _, _, err := NewJSON(body).AppendItem(nil); err == nil {
			t.Errorf("%s: accepted as an item", open)
		}
	}
	deepest := strings.Repeat("[", maxJSONDepth) + strings.Repeat("]", maxJSONDepth)
	if !ValidJSON([]byte(deepest)) || ValidJSON([]byte("["+deepest+"]")) {
		t.Errorf("the limit is not %d", maxJSONDepth)
	}
}

// Strings of every length around the eight bytes that the scanner handles at once, with every kind
// of byte in every position.
func TestStrings(t *testing.T) {
	for length := range 20 {
		for at := range length {
			for _, insert := range []string{"x", "\u00e9", `\n`, `\"`, `\\`, `\/`, `\b\f\r\t`, `\u0041`, `\u20AC`, `\ud83d\ude00`, "\x7f", "😀"} {
				body := `"` + strings.Repeat("a", at) + insert + strings.Repeat("b", length-at) + `"`
				var want string
				if err := json.Unmarshal([]byte(body), &want); err != nil {
					t.Fatal(err)
				}
				for _, tail := range []string{"", "  ", "          "} {
					j := NewJSON([]byte(body + tail))
					got := j.CopyText()
					if j.End() != nil || got != want {
						t.Fatalf("%s: %q, %v; want %q", body, got, j.Err(), want)
					}
				}
				quoted := AppendQuoted(nil, want)
				var back string
				if err := json.Unmarshal(quoted, &back); err != nil || back != want {
					t.Fatalf("%q quoted as %s", want, quoted)
				}
			}
		}
	}
}

func TestQuotedControls(t *testing.T) {
	var all []byte
	for c := range byte(0x80) {
		all = append(all, c)
	}
	quoted := AppendQuoted([]byte("x"), string(all))
	var back string
	if err := json.Unmarshal(quoted[1:], &back); err != nil || back != string(all) || quoted[0] != 'x' {
		t.Errorf("%s: %v", quoted, err)
	}
	if got := string(AppendQuoted(nil, "a<b>&\u2028")); got != "\"a<b>&\u2028\"" {
		t.Errorf("escaped what needs no escape: %s", got)
	}
}

// Returned views stay valid while the reader goes on.
func TestViewsStay(t *testing.T) {
	j := NewJSON([]byte(`["a\u0062", "c\u0064", "` + strings.Repeat(`\n`, 5000) + `"]`))
	var views [][]byte
	for ok := j.List(); ok && j.NextElement(); {
		views = append(views, j.Text())
	}
	if string(views[0]) != "ab" || string(views[1]) != "cd" || len(views[2]) != 5000 {
		t.Errorf("%q", views[:2])
	}
	j.Reset([]byte(`"next"`))
	if j.CopyText() != "next" || j.End() != nil {
		t.Error("Reset")
	}
}

func TestSkip(t *testing.T) {
	j := NewJSON([]byte(`{"a": [1, "x\u0041"] , "b":2}`))
	var name []byte
	j.Struct("S")
	j.NextMember(&name)
	j.Skip()
	if !j.NextMember(&name) || string(name) != "b" || j.Int() != 2 || j.NextMember(&name) || j.End() != nil {
		t.Errorf("%s, %v", name, j.Err())
	}
}
