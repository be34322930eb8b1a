package rpc

import (
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"io"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aws/smithy-go/encoding/cbor"
)

// message has a member of each kind.
type message struct {
	Name    *string
	Period  *int32
	Ratio   *float64
	On      *bool
	At      *Time
	Words   []string
	Numbers []float64
	Parts   []part
	Inner   *part
}

type part struct{ Key, Value *string }

func ptr[T any](v T) *T { return &v }

var full = message{
	Name: ptr("a & b=<ü>\n"), Period: ptr(int32(60)), Ratio: ptr(-0.25), On: ptr(true), At: &Time{time.UnixMilli(1_700_000_000_500).UTC()},
	Words: []string{"one", "two"}, Numbers: []float64{1, 2.5}, Parts: []part{{ptr("k"), ptr("v")}, {Key: ptr("only")}}, Inner: &part{Value: ptr("x")},
}

// form is full in the query protocol.
var form = url.Values{
	"Action": {"Do"}, "Version": {"2010-08-01"}, "Name": {*full.Name}, "Period": {"60"}, "Ratio": {"-0.25"}, "On": {"true"}, "At": {"2023-11-14T22:13:20.500Z"},
	"Words.member.1": {"one"}, "Words.member.2": {"two"}, "Numbers.member.1": {"1"}, "Numbers.member.2": {"2.5"},
	"Parts.member.1.Key": {"k"}, "Parts.member.1.Value": {"v"}, "Parts.member.10.Key": {"only"}, "Inner.Value": {"x"},
}.Encode()

// What a form writes, or its client, it reads.
func TestRoundTrip(t *testing.T) {
	for _, c := range []struct {
		form Form
		body []byte
	}{
		{JSON, JSON.Append(nil, Answer{}, full)}, {CBOR, CBOR.Append(nil, Answer{}, &full)}, {Query, []byte(form)},
	} {
		var got message
		if err := c.form.Decode(c.body, &got); err != nil || !reflect.DeepEqual(got, full) {
			t.Errorf("form %d: got %+v, %v", c.form, got, err)
		}
		var empty message
		if err := c.form.Decode(nil, &empty); err != nil || !reflect.DeepEqual(empty, message{}) {
			t.Errorf("form %d, empty: %+v, %v", c.form, empty, err)
		}
	}
}

// The SDK's own reader of CBOR understands the writer.
func TestCBORBySDK(t *testing.T) {
	v, err := cbor.Decode(CBOR.Append(nil, Answer{}, full))
	if err != nil {
		t.Fatal(err)
	}
	members := v.(cbor.Map)
	if len(members) != 9 || members["Name"] != cbor.String(*full.Name) || members["Period"] != cbor.Uint(60) || len(members["Parts"].(cbor.List)) != 2 {
		t.Errorf("got %v", members)
	}
	if at, ok := members["At"].(*cbor.Tag); !ok || at.ID != 1 || at.Value != cbor.Float64(1_700_000_000.5) {
		t.Errorf("time %v", members["At"])
	}
	back := cbor.Encode(cbor.Map{"Name": cbor.String("n"), "Period": cbor.Uint(300), "At": &cbor.Tag{ID: 1, Value: cbor.Uint(5)}, "Words": cbor.List{cbor.String("w")}})
	var got message
	if err := CBOR.Decode(back, &got); err != nil || *got.Name != "n" || *got.Period != 300 || got.At.Unix() != 5 || len(got.Words) != 1 {
		t.Errorf("got %+v, %v", got, err)
	}
}

// The appendices of RFC 8949 have these encodings.
func TestCBORValues(t *testing.T) {
	for text, want := range map[string]any{
		"00": int64(0), "17": int64(23), "1818": int64(24), "1903e8": int64(1000), "1a000f4240": int64(1000000), "20": int64(-1), "3903e7": int64(-1000),
		"f90000": 0.0, "f93c00": 1.0, "f93e00": 1.5, "f97bff": 65504.0, "fa47c35000": 100000.0, "fb3ff199999999999a": 1.1, "f90001": 5.960464477539063e-8, "f9c400": -4.0,
		"f4": false, "f5": true, "f6": nil, "f7": nil, "60": "", "6449455446": "IETF", "7f657374726561646d696e67ff": "streaming",
		"80": []any{}, "83010203": []any{int64(1), int64(2), int64(3)}, "9f018202039f0405ffff": []any{int64(1), []any{int64(2), int64(3)}, []any{int64(4), int64(5)}},
		"a0": map[string]any{}, "bf6346756ef563416d7421ff": map[string]any{"Fun": true, "Amt": int64(-2)},
		"c11a514b67b0": Time{time.Unix(1363896240, 0).UTC()}, "c1fb41d452d9ec200000": Time{time.UnixMilli(1363896240500).UTC()},
	} {
		b, _ := hex.DecodeString(text)
		if got, err := readCBOR(b); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %#v, %v; want %#v", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", "18", "1c", "1bffffffffffffffff", "ff", "f97e00", "f97c00", "f0", "f801", "61", "61ff", "7f", "7f01ff", "7f7fffff", "5f42010243030405ff", "4401020304",
		"81", "9f", "a1", "a101", "a10102", "bf61", "c1", "c161", "c16161", "c1fb7ff8000000000000", "0000", "9b7fffffffffffffff", "bb7fffffffffffffff", "7b7fffffffffffffff",
		"1f", "3f", "df00",
	} {
		b, _ := hex.DecodeString(text)
		if got, err := readCBOR(b); err == nil {
			t.Errorf("%s: got %#v, want an error", text, got)
		}
	}
}

// nested returns a form of parameters, each in 31 structures of its own.
func nested(parameters int) string {
	var b strings.Builder
	for i := range parameters {
		fmt.Fprintf(&b, "&%d%s=", i, strings.Repeat(".a", 31))
	}
	return b.String()[1:]
}

// Depth and number are bounded in every form.
func TestBounds(t *testing.T) {
	var any struct{}
	for what, c := range map[string]struct {
		form Form
		body string
		want error
	}{
		"JSON, deep":  {JSON, strings.Repeat("[", 100_000), errDeep},
		"JSON, many":  {JSON, "[" + strings.Repeat("1,", valuesMax) + "1]", errMany},
		"CBOR, deep":  {CBOR, strings.Repeat("\x81", 100_000), errDeep},
		"CBOR, tags":  {CBOR, strings.Repeat("\xc1", 100_000), errDeep},
		"CBOR, many":  {CBOR, "\x9f" + strings.Repeat("\x01", valuesMax) + "\xff", errMany},
		"Query, deep": {Query, strings.Repeat("a.", 50_000) + "a=1", errDeep},
		"Query, many": {Query, strings.Repeat("a=1&", valuesMax), errMany},
		// few parameters with many structures of one member
		"Query, nested":   {Query, nested(valuesMax/32 + 1), errMany},
		"Query, unnested": {Query, nested(valuesMax / 32), nil},
	} {
		if err := c.form.Decode([]byte(c.body), &any); err != c.want {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestWrongTypes(t *testing.T) {
	for _, c := range []struct {
		form       Form
		body, want string
	}{
		{JSON, `{"Period":"60"}`, "Period: STRING_VALUE cannot be converted to Integer"},
		{JSON, `{"Period":1.5}`, "Period: NUMBER_VALUE cannot be converted to Integer"},
		{JSON, `{"Period":3000000000}`, "Period: NUMBER_VALUE cannot be converted to Integer"},
		{JSON, `{"Ratio":1e999}`, "Ratio: NUMBER_VALUE cannot be converted to Double"},
		{JSON, `{"At":"2023-11-14T22:13:20Z"}`, "At: STRING_VALUE cannot be converted to Timestamp"},
		{JSON, `{"At":1e300}`, "At: NUMBER_VALUE cannot be converted to Timestamp"},
		{JSON, `{"Words":{}}`, "Words: STRUCTURE_VALUE cannot be converted to List"},
		{JSON, `{"Words":[null]}`, "Words.1.member is null"},
		{JSON, `{"Parts":[{"Key":"a"},{"Key":1}]}`, "Parts.2.member.Key: NUMBER_VALUE cannot be converted to String"},
		{JSON, `[]`, "LIST_VALUE cannot be converted to Structure"},
		{JSON, `{"Name":true}`, "Name: BOOLEAN_VALUE cannot be converted to String"},
		{JSON, `{"Name":"a"`, "the message ends too early"},
		{JSON, `{} {}`, "the body has more than one value"},
		{JSON, "{\"Name\":\"\xff\"}", "the body is not UTF-8"},
		{CBOR, "\xa1\x64Name\xc1\x01", "Name: TIMESTAMP_VALUE cannot be converted to String"},
		{CBOR, "\xa1\x64Name\x41a", "CBOR: a value of bytes"},
		{CBOR, "\xa1\x64Name\x61\xff", "CBOR: a text is not UTF-8"},
		{Query, "Period=x", "Period: STRING_VALUE cannot be converted to Integer"},
		{Query, "Ratio=NaN", "Ratio: STRING_VALUE cannot be converted to Double"},
		{Query, "On=yes", "On: STRING_VALUE cannot be converted to Boolean"},
		{Query, "At=yesterday", "At: STRING_VALUE cannot be converted to Timestamp"},
		{Query, "Words=x", "Words: STRING_VALUE cannot be converted to List"},
		{Query, "Words.member.x=1", "Words: STRUCTURE_VALUE cannot be converted to List"},
		{Query, "Inner=x", "Inner: STRING_VALUE cannot be converted to Structure"},
		{Query, "Name=%zz", `the form is malformed: invalid URL escape "%zz"`},
		{Query, "Name=%ff", "the form is not percent-encoded UTF-8"},
	} {
		var m message
		if err := c.form.Decode([]byte(c.body), &m); err == nil || err.Error() != c.want {
			t.Errorf("%s:\n got %v\nwant %s", c.body, err, c.want)
		}
	}
	// A parameter may be beside others that are below it, in either order.
	var m message
	if err := Query.Decode([]byte("Name=a&Name.b=c"), &m); err == nil {
		t.Error("a parameter has a value, and others are below it")
	}
}

// Forms have empty lists as an empty parameter, and instants in several formats.
func TestQueryTexts(t *testing.T) {
	var m message
	if err := Query.Decode([]byte("Words=&At=2023-11-14T22%3A13%3A20%2B01%3A00&Unknown.member.1.x=y"), &m); err != nil {
		t.Fatal(err)
	}
	if m.Words == nil || len(m.Words) != 0 || m.At.Format(time.RFC3339) != "2023-11-14T21:13:20Z" {
		t.Errorf("got %+v", m)
	}
}

func TestAnswers(t *testing.T) {
	v := struct {
		Label  string
		Times  []Time
		Empty  []string
		Absent []string
		None   *string
		Parts  []part
	}{"<&>", []Time{{time.Unix(60, 0)}}, []string{}, nil, nil, []part{{Key: ptr("k")}}}
	frame := Answer{"Do", "http://ns/", "id-1"}
	for form, want := range map[Form]string{
		JSON:  `{"Label":"\u003c\u0026\u003e","Times":[60],"Empty":[],"Parts":[{"Key":"k"}]}`,
		Query: `<DoResponse xmlns="http://ns/"><DoResult><Label>&lt;&amp;&gt;</Label><Times><member>1970-01-01T00:01:00Z</member></Times><Empty></Empty><Parts><member><Key>k</Key></member></Parts></DoResult><ResponseMetadata><RequestId>id-1</RequestId></ResponseMetadata></DoResponse>`,
		CBOR:  "\xa4\x65Label\x63<&>\x65Times\x81\xc1\xfb\x40\x4e\x00\x00\x00\x00\x00\x00\x65Empty\x80\x65Parts\x81\xa1\x63Key\x61k",
	} {
		if got := string(form.Append(nil, frame, v)); got != want {
			t.Errorf("form %d:\n got %q\nwant %q", form, got, want)
		}
	}
	fault := Fault{"InvalidThingException", "InvalidThing", "no <thing>", false, "http://ns/", "id-1"}
	for form, want := range map[Form]string{
		JSON:  `{"__type":"InvalidThingException","message":"no \u003cthing\u003e"}`,
		Query: `<ErrorResponse xmlns="http://ns/"><Error><Type>Sender</Type><Code>InvalidThing</Code><Message>no &lt;thing&gt;</Message></Error><RequestId>id-1</RequestId></ErrorResponse>`,
		CBOR:  "\xa2\x66__type\x75InvalidThingException\x67message\x6ano <thing>",
	} {
		if got := string(form.AppendFault(nil, fault)); got != want {
			t.Errorf("fault in form %d:\n got %q\nwant %q", form, got, want)
		}
	}
}

// A reader of XML gets every text that XML can have, and a replacement for the characters of others.
func TestXMLTexts(t *testing.T) {
	for text, want := range map[string]string{
		"a&<b>\"' \t\n\r ü 𝄞]]>": "a&<b>\"' \t\n\r ü 𝄞]]>", "\x00\x1f\uffff": "\ufffd\ufffd\ufffd", "\xff": "\ufffd",
	} {
		var got struct {
			Result struct{ Name string } `xml:"DoResult"`
		}
		answer := Query.Append(nil, Answer{"Do", "ns", "id"}, named{text})
		if err := xml.Unmarshal(answer, &got); err != nil || got.Result.Name != want {
			t.Errorf("%q: got %q, %v", text, got.Result.Name, err)
		}
	}
}

type named struct{ Name string }

// Any bytes are a message or an error, and what was read can be written and read again.
func FuzzDecode(f *testing.F) {
	f.Add(byte(JSON), JSON.Append(nil, Answer{}, full))
	f.Add(byte(CBOR), CBOR.Append(nil, Answer{}, full))
	f.Add(byte(CBOR), []byte("\xbf\x64Name\x7f\x61a\xff\x65Words\x9f\x61b\xff\xff"))
	f.Add(byte(Query), []byte(form))
	f.Add(byte(Query), []byte("a.b=1&a=2&a.member.1=3"))
	f.Fuzz(func(t *testing.T, form byte, body []byte) {
		var m, again message
		if Form(form%3+1).Decode(body, &m) != nil {
			return
		}
		if err := CBOR.Decode(CBOR.Append(nil, Answer{}, m), &again); err != nil || !equal(m, again) {
			t.Errorf("in CBOR: %+v became %+v, %v", m, again, err)
		}
		again = message{}
		if err := JSON.Decode(JSON.Append(nil, Answer{}, m), &again); err != nil || !equal(m, again) {
			t.Errorf("in JSON: %+v became %+v, %v", m, again, err)
		}
		for d := xml.NewDecoder(strings.NewReader(string(Query.Append(nil, Answer{"Do", "ns", "id"}, m)))); ; {
			if _, err := d.Token(); err == io.EOF {
				break
			} else if err != nil {
				t.Fatalf("in XML: %v", err)
			}
		}
	})
}

func equal(a, b message) bool {
	if a.At != nil && b.At != nil && a.At.UnixMilli() == b.At.UnixMilli() {
		a.At, b.At = nil, nil
	}
	return reflect.DeepEqual(a, b)
}
