package dynamo

import (
	"bytes"
	"encoding/json"
	"io"
	"testing"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// wellFormed returns jsontext's verdict on a body: one value, strict UTF-8. Like the reader, it
// allows equal names.
func wellFormed(body []byte) bool {
	d := jsontext.NewDecoder(bytes.NewReader(body), jsontext.AllowDuplicateNames(true))
	if _, err := d.ReadValue(); err != nil {
		return false
	}
	_, err := d.ReadToken()
	return err == io.EOF
}

func FuzzJSON(f *testing.F) {
	for _, body := range malformed {
		f.Add([]byte(body))
	}
	f.Add([]byte(` {"a" : [1, -2.5e3, true, false, null, "x\u00e9\ud83d\ude00"], "a": {"": {}}} `))
	f.Add([]byte(benchItem))
	f.Fuzz(func(t *testing.T, body []byte) {
		if got, want := ValidJSON(body), wellFormed(body); got != want && bytes.Count(body, []byte("["))+bytes.Count(body, []byte("{")) < maxJSONDepth {
			t.Fatalf("%q: well-formed %v, want %v", body, got, want)
		}
		j := NewJSON(body)
		if j.next() != '"' {
			return
		}
		text := j.CopyText()
		if j.End() != nil {
			return
		}
		var want string
		if err := json.Unmarshal(body, &want); err != nil || text != want {
			t.Fatalf("%s: %q, want %q (%v)", body, text, want, err)
		}
		j.Reset(AppendQuoted(nil, text))
		if j.CopyText() != text || j.End() != nil {
			t.Fatalf("%q does not come back", text)
		}
	})
}

// An accepted item is well-formed JSON and canonical, and its JSON reads back as the same item.
func FuzzItemJSON(f *testing.F) {
	f.Add([]byte(benchItem))
	for _, body := range []string{
		`{}`, `null`, `{"a":{"S":"x","S":"y"},"a":{"NULL":true}}`, `{"a":{"SS":["b","a"]},"b":{"NS":["2","10"]},"c":{"BS":["Yg==","YQ=="]}}`,
		`{"a":{"L":[{"M":{"x":{"B":"AAE="}}},{"BOOL":"yes"}]}}`, `{"a":{"S":"x"},"b":{"N":"1.50"},"c":{}}`, `{"a": {"X": [], "S":"\u00e9"}}`,
		`{"a":{"N":"x"},"b":{"S":1}}`, `{"":{"S":""}}`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		j := NewJSON(body)
		it, invalid, fatal := j.AppendItem([]byte{})
		err := j.End()
		if fatal == nil && err == nil && !wellFormed(body) {
			t.Fatalf("%q is accepted but malformed", body)
		}
		if fatal != nil && err == nil {
			t.Fatalf("%q: %v is forgotten", body, fatal)
		}
		if err != nil || invalid != nil || len(it) == 0 {
			return
		}
		if err := CheckItem(it); err != nil {
			t.Fatalf("%q: %v", body, err)
		}
		text := AppendItemJSON(nil, it)
		back := mustItem(t, string(text))
		if !bytes.Equal(back, it) {
			t.Fatalf("%s came back as %s", text, back)
		}
		sameForOracle(t, body, text)
	})
}

// sameForOracle checks with a decoder of its own that the item's JSON has the same strings as the
// request.
func sameForOracle(t *testing.T, request, answer []byte) {
	type scalar struct{ S *string }
	var want, got map[string]scalar
	if jsonv2.Unmarshal(request, &want, jsontext.AllowDuplicateNames(true)) != nil {
		return // the reader accepts more: spelled booleans, and members to ignore
	}
	if err := jsonv2.Unmarshal(answer, &got); err != nil {
		t.Fatalf("%s: %v", answer, err)
	}
	for name, v := range got {
		if v.S != nil && (want[name].S == nil || *want[name].S != *v.S) {
			t.Fatalf("%s: %q is %q", request, name, *v.S)
		}
	}
}

// After CheckItem has passed, no accessor panics, and the JSON reads back as the same bytes.
func FuzzCheckItem(f *testing.F) {
	it, _, _ := NewJSON([]byte(benchItem)).AppendItem(nil)
	f.Add(it)
	f.Add([]byte("\x00"))
	f.Add([]byte("\x01\x01a\x06\x05\x02\x04\x01\x80\x01"))
	f.Add([]byte("\x01\x01a\x09\x07\x02\x01\x80\x03\xc0\x82\x14"))
	f.Fuzz(func(t *testing.T, b []byte) {
		checkWhole(b)
		NumberLen(b)
		if CheckItem(b) != nil {
			return
		}
		it := Item(b)
		for name, v := range it.All() {
			if !Equal(it.Get(string(name)), v) {
				t.Fatalf("Get(%q) is another value", name)
			}
			touch(v)
			if removed := it.With(string(name), nil); CheckItem(removed) != nil || removed.Len() != it.Len()-1 {
				t.Fatalf("without %q: %s", name, removed)
			}
			if replaced := it.With(string(name), v); !bytes.Equal(replaced, it) {
				t.Fatalf("with %q: %s", name, replaced)
			}
		}
		if it.Depth() > MaxDepth || it.Size() > 25*len(b) {
			t.Fatalf("%d levels, %d bytes of %d", it.Depth(), it.Size(), len(b))
		}
		if back := mustItem(t, string(AppendItemJSON(nil, it))); !bytes.Equal(back, it) {
			t.Fatalf("%s came back as %s", it, back)
		}
	})
}

// touch calls every accessor of the value's kind.
func touch(v Value) {
	switch v.Kind() {
	case KindBool:
		v.Bool()
	case KindString, KindBinary:
		v.Bytes()
		Compare(v, v)
	case KindNumber:
		n := v.Number()
		n.Millis()
		AddNumbers(nil, n, n)
		SubNumbers(nil, n, n)
		Compare(v, v)
	case KindMap:
		for _, e := range v.Map().All() {
			touch(e)
		}
	case KindList:
		v.Index(v.Len())
		fallthrough
	case KindSS, KindNS, KindBS:
		for e := range v.Elements() {
			touch(e)
			v.Contains(e)
		}
	}
	v.Contains(v)
	_ = v.String()
}
