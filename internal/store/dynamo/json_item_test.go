package dynamo

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Binary → JSON → binary is the identity, and the JSON is valid.
func TestItemRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		it := genItem(5).Draw(t, "item")
		if err := CheckItem(it); err != nil {
			t.Fatal(err)
		}
		text := AppendItemJSON(nil, it)
		if !json.Valid(text) {
			t.Fatalf("not JSON: %s", text)
		}
		j := NewJSON(text)
		back, invalid, _ := j.AppendItem([]byte("head"))
		if err := j.End(); err != nil || invalid != nil {
			t.Fatalf("%s: %v, %v", text, invalid, err)
		}
		if !bytes.Equal(back[len("head"):], it) {
			t.Fatalf("%s came back as %s", it, Item(back[len("head"):]))
		}
	})
}

// Equal items have equal bytes, however they are written.
func TestCanonicalForm(t *testing.T) {
	want := mustItem(t, `{"a":{"N":"100"},"b":{"M":{"x":{"SS":["p","q"]},"y":{"NS":["1","2"]}}},"c":{"L":[{"S":"é"}]}}`)
	for _, body := range []string{
		` { "c" : { "L" : [ { "S" : "\u00e9" } ] } , "b" : { "M" : { "y" : { "NS" : [ "2" , "1.0" ] } , "x" : { "SS" : [ "q" , "p" ] } } } , "a" : { "N" : "1e2" } } `,
		`{"a":{"S":"first, replaced"},"b":{"M":{"x":{"SS":["q","p"]},"y":{"NULL":true},"y":{"NS":["2","1"]}}},"a":{"N":"+100.00"},"c":{"L":[{"S":"é"}]}}`,
		`{"a":{"Future":[{}],"N":"100","S":null},"b":{"M":{"x":{"SS":["p","q"]},"y":{"NS":["1","2"]}}},"c":{"L":[{"S":"e","S":"é"}]}}`,
	} {
		if got := mustItem(t, body); !bytes.Equal(got, want) {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// The texts of docs/spec/errors.md §9. Reading goes on after the bad value: the test counts the
// next element.
func TestInvalidValues(t *testing.T) {
	const p = "One or more parameter values were invalid: "
	for _, c := range []struct{ value, message string }{
		{`{}`, msgNoDatatype}, {`{"S":null}`, msgNoDatatype}, {`{"X":1}`, msgNoDatatype}, {`null`, msgNoDatatype},
		{`{"S":"a","N":"1"}`, msgTwoDatatypes}, {`{"S":"a","N":"1","S":"b"}`, msgTwoDatatypes},
		{`{"NULL":false}`, p + "Null attribute value types must have the value of true"},
		{`{"NULL":"no"}`, p + "Null attribute value types must have the value of true"},
		{`{"SS":[]}`, p + "An string set  may not be empty"},
		{`{"NS":[]}`, p + "An number set  may not be empty"},
		{`{"BS":[]}`, p + "Binary sets should not be empty"},
		{`{"SS":["a","a"]}`, p + "Input collection [a, a] contains duplicates."},
		{`{"SS":["b","a","b"]}`, p + "Input collection [b, a, b] contains duplicates."},
		{`{"BS":["Yg==","Yg=="]}`, p + "Input collection [Yg==, Yg==]of type BS contains duplicates."},
		{`{"NS":["1","1.0"]}`, "Input collection contains duplicates"},
		{`{"NS":["3","1","2","1e0"]}`, "Input collection contains duplicates"},
		{`{"NS":["1",""]}`, "The parameter cannot be converted to a numeric value"},
		{`{"NS":["1","x","y"]}`, "The parameter cannot be converted to a numeric value: x"},
		{`{"NS":[null]}`, "The parameter cannot be converted to a numeric value"},
		{`{"SS":["a",null]}`, p + "An string set may not have a null string as a member"},
		{`{"BS":[null]}`, p + "Binary sets may not contain null or empty values"},
		{`{"N":""}`, "The parameter cannot be converted to a numeric value"},
		{`{"N":"b"}`, "The parameter cannot be converted to a numeric value: b"},
		{`{"N":"1e126"}`, msgOverflow}, {`{"N":"1e-131"}`, msgUnderflow}, {`{"N":"` + strings.Repeat("7", 39) + `"}`, msgDigits},
		{`{"L":[{"S":"a"},{}]}`, msgNoDatatype},
		{`{"M":{"a":{"N":"b"},"b":{}}}`, msgNotNumeric + ": b"},
		{`{"M":{"":{"S":"a"}}}`, p + "Empty attribute name"},
		// The order of checks within one value: number, NULL, sets, nested, two datatypes.
		{`{"M":{"a":{}},"SS":[],"NULL":false,"N":"x"}`, msgNotNumeric + ": x"},
		{`{"M":{"a":{}},"SS":[],"NULL":false}`, p + "Null attribute value types must have the value of true"},
		{`{"M":{"a":{}},"SS":[]}`, p + "An string set  may not be empty"},
		{`{"M":{"a":{}},"S":"a"}`, msgNoDatatype},
	} {
		j := NewJSON([]byte(`[` + c.value + `,{"S":"next"}]`))
		j.List()
		j.NextElement()
		_, invalid, fatal := j.AppendValue(nil)
		if got, ok := invalid.(*Error); !ok || got.Code != CodeValidation || got.Message != c.message || fatal != nil {
			t.Errorf("%s: %v, %v; want %s", c.value, invalid, fatal, c.message)
		}
		if !j.NextElement() {
			t.Errorf("%s: nothing follows", c.value)
		} else if v, invalid, fatal := j.AppendValue(nil); Value(v).String() != `{"S":"next"}` || invalid != nil || fatal != nil {
			t.Errorf("%s: then %s", c.value, Value(v))
		}
	}
}

// The first bad value of a request is reported.
func TestFirstInvalidValue(t *testing.T) {
	j := NewJSON([]byte(`{"z":{"S":"fine"},"y":{"N":"first"},"a":{"N":"second"},"":{"S":"x"}}`))
	_, invalid, fatal := j.AppendItem(nil)
	if invalid == nil || !strings.HasSuffix(invalid.Error(), ": first") || fatal != nil || j.End() != nil {
		t.Error(invalid, fatal)
	}
}

func TestAttributeNames(t *testing.T) {
	long := strings.Repeat("n", 65535)
	if it := mustItem(t, `{"`+long+`":{"S":"a"}}`); it.Get(long) == nil || CheckItem(it) != nil {
		t.Error("65,535 bytes are allowed")
	}
	for body, part := range map[string]string{`{"` + long + `n":{"S":"a"}}`: "65536", `{"":{"S":"a"}}`: "Empty attribute name"} {
		if _, invalid, _ := NewJSON([]byte(body)).AppendItem(nil); invalid == nil || !strings.Contains(invalid.Error(), part) {
			t.Errorf("%v, want a text about %s", invalid, part)
		}
	}
}

// An attribute's value may have thirty-two levels, and not thirty-three.
func TestNesting(t *testing.T) {
	nested := func(open, leaf, end string, wraps int) string {
		return `{"a":` + strings.Repeat(open, wraps) + leaf + strings.Repeat(end, wraps) + `}`
	}
	for _, c := range [][3]string{{`{"M":{"n":`, `{"S":"leaf"}`, `}}`}, {`{"L":[`, `{"SS":["leaf"]}`, `]}`}, {`{"L": [`, `{"L": []}`, `]}`}} {
		it := mustItem(t, nested(c[0], c[1], c[2], 31))
		if it.Depth() != MaxDepth || CheckItem(it) != nil {
			t.Errorf("%d levels, %v", it.Depth(), CheckItem(it))
		}
		for _, wraps := range []int{32, 33, 63, 400} {
			j := NewJSON([]byte(nested(c[0], c[1], c[2], wraps)))
			_, invalid, _ := j.AppendItem(nil)
			if invalid == nil || invalid.(*Error).Message != msgNesting || j.End() != nil {
				t.Errorf("%d wraps: %v, %v", wraps, invalid, j.Err())
			}
		}
		deep := AppendList(nil, []Value{it.Get("a")})
		if checkWhole(deep) == nil || Value(deep).Depth() != 33 {
			t.Error("checkWhole accepts 33 levels")
		}
	}
}

// Type errors inside values end the reading.
func TestTypeErrorsInValues(t *testing.T) {
	const java = "com.amazonaws.dynamodb.v20120810."
	for _, c := range []struct{ item, message string }{
		{`"a"`, "Unexpected field type"},
		{`["a"]`, "Unrecognized collection type java.util.Map<java.lang.String, " + java + "AttributeValue>"},
		{`{"a":"b"}`, "Unexpected value type in payload"},
		{`{"a":["b"]}`, "Unrecognized collection type class " + java + "AttributeValue"},
		{`{"a":{"S":1}}`, "NUMBER_VALUE cannot be converted to String"},
		{`{"a":{"S":{}}}`, "Start of structure or map found where not expected"},
		{`{"a":{"N":123}}`, "NUMBER_VALUE cannot be converted to String"},
		{`{"a":{"N":true}}`, "TRUE_VALUE cannot be converted to String"},
		{`{"a":{"B":true}}`, "only base-64-encoded strings are convertible to bytes"},
		{`{"a":{"B":"abc"}}`, "Base64 encoded length is expected a multiple of 4 bytes but found: 3"},
		{`{"a":{"B": "abc"}}`, "Base64 encoded length is expected a multiple of 4 bytes but found: 3"},
		{`{"a":{"BOOL":1}}`, "NUMBER_VALUE cannot be converted to Boolean"},
		{`{"a":{"NULL":[]}}`, "Unrecognized collection type class java.lang.Boolean"},
		{`{"a":{"SS":"b"}}`, "Unexpected field type"},
		{`{"a":{"SS":{}}}`, "Start of structure or map found where not expected"},
		{`{"a":{"SS":[1]}}`, "NUMBER_VALUE cannot be converted to String"},
		{`{"a":{"NS":[1]}}`, "NUMBER_VALUE cannot be converted to String"},
		{`{"a":{"BS":["x"]}}`, "Base64 encoded length is expected a multiple of 4 bytes but found: 1"},
		{`{"a":{"L":{}}}`, "Start of structure or map found where not expected"},
		{`{"a":{"L":["b"]}}`, "Unexpected value type in payload"},
		{`{"a":{"M":[]}}`, "Unrecognized collection type java.util.Map<java.lang.String, " + java + "AttributeValue>"},
		{`{"a":{"M":{"b":1}}}`, "Unexpected value type in payload"},
		// They outrank invalid values, before and after them.
		{`{"a":{"N":"x"},"b":{"S":1},"c":{}}`, "NUMBER_VALUE cannot be converted to String"},
	} {
		j := NewJSON([]byte(c.item))
		_, _, fatal := j.AppendItem(nil)
		if got, ok := fatal.(*Error); !ok || got.Code != CodeSerialization || got.Message != c.message {
			t.Errorf("%s: %v, want %s", c.item, fatal, c.message)
		}
	}
}

func TestElementsAndMembers(t *testing.T) {
	j := NewJSON([]byte(`[{"a":{"S":"x"}}]`))
	j.List()
	j.NextElement()
	if it, invalid, fatal := j.AppendItemElement(nil); Item(it).String() != `{"a":{"S":"x"}}` || invalid != nil || fatal != nil {
		t.Error(Item(it), invalid, fatal)
	}
	j = NewJSON([]byte(`["a"]`))
	j.List()
	j.NextElement()
	if _, _, fatal := j.AppendItemElement(nil); fatal == nil || fatal.(*Error).Message != msgParameterizedType {
		t.Error(fatal)
	}
	for body, message := range map[string]string{
		`"a"`: "Unexpected field type", `["a"]`: "Unrecognized collection type class com.amazonaws.dynamodb.v20120810.AttributeValue",
	} {
		if _, _, fatal := NewJSON([]byte(body)).AppendValueMember(nil); fatal == nil || fatal.(*Error).Message != message {
			t.Errorf("%s: %v", body, fatal)
		}
	}
	if v, invalid, fatal := NewJSON([]byte(`null`)).AppendValueMember(nil); v != nil || invalid != nil || fatal != nil {
		t.Error(v, invalid, fatal)
	}
	if v, invalid, fatal := NewJSON([]byte(` {"N":"1"}`)).AppendValueMember(nil); Value(v).String() != `{"N":"1"}` || invalid != nil || fatal != nil {
		t.Error(Value(v), invalid, fatal)
	}
}
