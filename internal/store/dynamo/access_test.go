package dynamo

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestKinds(t *testing.T) {
	for kind := KindNull; kind <= KindBS; kind++ {
		if KindOf(kind.String()) != kind {
			t.Errorf("KindOf(%s) = %d", kind, KindOf(kind.String()))
		}
		if kind.IsSet() != (kind.Element() != 0) {
			t.Errorf("%s: set %v of %s", kind, kind.IsSet(), kind.Element())
		}
	}
	if KindOf("X") != 0 || KindOf("") != 0 || Kind(0).String() != "?" || Kind(11).String() != "?" {
		t.Error("names of what is no kind")
	}
}

func TestScalars(t *testing.T) {
	it := mustItem(t, `{"s":{"S":"é"},"b":{"B":"AAE="},"n":{"N":"-7.50"},"t":{"BOOL":true},"f":{"BOOL":false},"z":{"NULL":true}}`)
	if got := string(it.Get("s").Bytes()); got != "é" {
		t.Errorf("s is %q", got)
	}
	if got := it.Get("b").Bytes(); !bytes.Equal(got, []byte{0, 1}) {
		t.Errorf("b is %x", got)
	}
	if got := it.Get("n").Number().String(); got != "-7.5" {
		t.Errorf("n is %s", got)
	}
	if !it.Get("t").Bool() || it.Get("f").Bool() || it.Get("z").Kind() != KindNull || Value(nil).Kind() != 0 {
		t.Error("BOOL or NULL")
	}
}

func TestListAccess(t *testing.T) {
	v := mustValue(t, `{"L":[{"S":"a"},{"L":[]},{"N":"3"}]}`)
	if v.Len() != 3 || v.Index(0).String() != `{"S":"a"}` || v.Index(2).Number().String() != "3" {
		t.Errorf("%s: %d elements, %s, %s", v, v.Len(), v.Index(0), v.Index(2))
	}
	if v.Index(3) != nil || v.Index(-1) != nil || v.Index(1).Index(0) != nil {
		t.Error("an element beyond the end")
	}
	var seen []string
	for e := range v.Elements() {
		seen = append(seen, e.String())
	}
	if got := strings.Join(seen, " "); got != `{"S":"a"} {"L":[]} {"N":"3"}` {
		t.Error(got)
	}
	for range v.Elements() {
		break
	}
}

func TestSetAccess(t *testing.T) {
	for _, c := range []struct{ set, elements string }{
		{`{"SS":["b","a","ab",""]}`, `{"S":""} {"S":"a"} {"S":"ab"} {"S":"b"}`},
		{`{"NS":["10","-2","3.5","1"]}`, `{"N":"-2"} {"N":"1"} {"N":"3.5"} {"N":"10"}`},
		{`{"BS":["/w==","AA==",""]}`, `{"B":""} {"B":"AA=="} {"B":"/w=="}`},
	} {
		v := mustValue(t, c.set)
		var seen []string
		for e := range v.Elements() {
			seen = append(seen, e.String())
			if !v.Contains(e) {
				t.Errorf("%s does not contain its element %s", v, e)
			}
		}
		if got := strings.Join(seen, " "); got != c.elements || v.Len() != len(seen) {
			t.Errorf("%s holds %s, want %s", c.set, got, c.elements)
		}
	}
}

func TestContains(t *testing.T) {
	for _, c := range []struct {
		in, element string
		want        bool
	}{
		{`{"SS":["a","c"]}`, `{"S":"b"}`, false},
		{`{"SS":["a","c"]}`, `{"S":"d"}`, false},
		{`{"NS":["1","3"]}`, `{"N":"1.0"}`, true},
		{`{"NS":["1","3"]}`, `{"S":"1"}`, false},
		{`{"BS":["YQ=="]}`, `{"B":"YQ=="}`, true},
		{`{"BS":["YQ=="]}`, `{"S":"a"}`, false},
		{`{"L":[{"N":"1"},{"M":{"a":{"S":"x"}}}]}`, `{"M":{"a":{"S":"x"}}}`, true},
		{`{"L":[{"N":"1"}]}`, `{"S":"1"}`, false},
		{`{"S":"abc"}`, `{"S":"b"}`, false},
	} {
		if got := mustValue(t, c.in).Contains(mustValue(t, c.element)); got != c.want {
			t.Errorf("%s contains %s: %v", c.in, c.element, got)
		}
	}
}

func TestCompare(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{`{"S":"a"}`, `{"S":"b"}`, -1}, {`{"S":"a"}`, `{"S":"a"}`, 0}, {`{"S":"b"}`, `{"S":"aaa"}`, 1},
		{`{"N":"-1"}`, `{"N":"1"}`, -1}, {`{"N":"9"}`, `{"N":"10"}`, -1}, {`{"N":"1.0"}`, `{"N":"1"}`, 0},
		{`{"B":"/w=="}`, `{"B":"AAAA"}`, 1},
	} {
		a, b := mustValue(t, c.a), mustValue(t, c.b)
		if got := Compare(a, b); got != c.want || Equal(a, b) != (c.want == 0) {
			t.Errorf("%s and %s compare as %d", c.a, c.b, got)
		}
	}
}

// The sizes of docs/spec/limits-and-capacity.md §5.
func TestSizes(t *testing.T) {
	for _, c := range []struct {
		json string
		size int
	}{
		{`{"S":""}`, 0}, {`{"S":"é"}`, 2}, {`{"B":"AAE="}`, 2}, {`{"N":"123"}`, 3}, {`{"NULL":true}`, 1}, {`{"BOOL":false}`, 1},
		{`{"L":[]}`, 3}, {`{"M":{}}`, 3}, {`{"L":[{"S":"ab"},{"NULL":true}]}`, 3 + 2 + 2 + 1},
		{`{"M":{"key":{"S":"ab"}}}`, 3 + 1 + 3 + 2}, {`{"SS":["a","bc"]}`, 3}, {`{"NS":["1","-22"]}`, 2 + 3}, {`{"BS":["AAE="]}`, 2},
		{`{"M":{"a":{"L":[{"M":{"b":{"N":"1"}}}]}}}`, 3 + 1 + 1 + (3 + 1 + (3 + 1 + 1 + 2))},
	} {
		if got := mustValue(t, c.json).Size(); got != c.size {
			t.Errorf("%s counts %d bytes, want %d", c.json, got, c.size)
		}
	}
	if got := mustItem(t, `{"pk":{"S":"a"},"number":{"N":"0"}}`).Size(); got != 2+1+6+1 {
		t.Errorf("the item counts %d bytes", got)
	}
}

func TestDepth(t *testing.T) {
	for _, c := range []struct {
		json  string
		depth int
	}{
		{`{"S":""}`, 1}, {`{"SS":["a"]}`, 1}, {`{"L":[]}`, 1}, {`{"L":[{"S":"a"}]}`, 2}, {`{"M":{"a":{"S":""},"b":{"L":[{"N":"1"}]}}}`, 3},
	} {
		if got := mustValue(t, c.json).Depth(); got != c.depth {
			t.Errorf("%s has %d levels, want %d", c.json, got, c.depth)
		}
	}
}

// AppendSet writes elements in any order in the canonical one.
func TestAppendSetIsCanonical(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom([]Kind{KindSS, KindNS, KindBS}).Draw(t, "kind")
		elems := genElements(kind).Draw(t, "elements")
		other := rapid.Permutation(elems).Draw(t, "other order")
		other = append(other, elems[0])
		a, b := AppendSet(nil, kind, slices.Clone(elems)), AppendSet(nil, kind, other)
		if !bytes.Equal(a, b) {
			t.Fatalf("%s and %s", Value(a), Value(b))
		}
		if err := checkWhole(a); err != nil {
			t.Fatal(err)
		}
	})
}
