package pattern

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// The plain definition, as AWS's matcher states it. An event is flattened to leaves, each with its
// path and its index in every array around it. A branch holds if each of its fields has a passing
// leaf at its path, or has none and wants none. The chosen leaves must agree on the index in every
// array that they share.

type plainLeaf struct {
	path    string
	indexes map[string]int // by array
	leaf    leaf
}

func flatten(v any, path, array string, indexes map[string]int, to *[]plainLeaf) {
	add := func(k kind, text string) {
		*to = append(*to, plainLeaf{path, indexes, leaf{k, []byte(text)}})
	}
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			flatten(member, path+"\x00"+name, array+"\x00"+name, indexes, to)
		}
	case []any:
		for i, element := range v {
			within := maps.Clone(indexes)
			within[array] = i
			flatten(element, path, fmt.Sprintf("%s\x01%d", array, i), within, to)
		}
	case string:
		add(kindString, v)
	case json.Number:
		add(kindNumber, v.String())
	case bool:
		if v {
			add(kindTrue, "")
		} else {
			add(kindFalse, "")
		}
	case nil:
		add(kindNull, "")
	}
}

func plainMatch(t interface{ Fatal(...any) }, pattern, event string) bool {
	b, err := parse(pattern)
	if err != nil {
		t.Fatal(err)
	}
	var v any
	d := json.NewDecoder(strings.NewReader(event))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	var leaves []plainLeaf
	flatten(v, "", "", map[string]int{}, &leaves)
	return slices.ContainsFunc(b, func(fields []field) bool { return plainBranch(fields, leaves, nil) })
}

func plainBranch(fields []field, leaves []plainLeaf, chosen []plainLeaf) bool {
	if len(fields) == 0 {
		return true
	}
	f, others := fields[0], fields[1:]
	path := "\x00" + strings.Join(f.path, "\x00")
	there := false
	for _, l := range leaves {
		if l.path != path {
			continue
		}
		there = true
		if passes(f.tests, l.leaf) && agrees(l, chosen) && plainBranch(others, leaves, append(slices.Clone(chosen), l)) {
			return true
		}
	}
	return !there && f.absent && plainBranch(others, leaves, chosen)
}

func agrees(l plainLeaf, chosen []plainLeaf) bool {
	for _, other := range chosen {
		for array, i := range l.indexes {
			if j, shared := other.indexes[array]; shared && i != j {
				return false
			}
		}
	}
	return true
}

// few names and leaves, so that patterns and events often meet.
var (
	someName = rapid.SampledFrom([]string{"a", "b", "c"})
	someLeaf = rapid.SampledFrom([]string{`"x"`, `"xy"`, `""`, `5`, `5.0`, `-1`, `true`, `false`, `null`})
	someTest = rapid.SampledFrom([]string{`{"exists": true}`, `{"exists": false}`, `{"prefix": "x"}`, `{"anything-but": "x"}`, `{"anything-but": [5]}`,
		`{"numeric": [">", 0]}`, `{"suffix": "y"}`, `{"wildcard": "*y"}`})
)

func someEvent(depth int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		switch n := rapid.IntRange(0, 5).Draw(t, "kind"); {
		case depth == 0 || n < 2:
			return someLeaf.Draw(t, "leaf")
		case n < 4:
			return someObject(depth).Draw(t, "object")
		default:
			return "[" + strings.Join(rapid.SliceOfN(someEvent(depth-1), 0, 3).Draw(t, "array"), ",") + "]"
		}
	})
}

func someObject(depth int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		var members []string
		for _, name := range rapid.SliceOfNDistinct(someName, 0, 3, rapid.ID).Draw(t, "names") {
			members = append(members, fmt.Sprintf("%q: %s", name, someEvent(depth-1).Draw(t, "member")))
		}
		return "{" + strings.Join(members, ", ") + "}"
	})
}

func somePattern(depth int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		var members []string
		for _, name := range rapid.SliceOfNDistinct(someName, 1, 3, rapid.ID).Draw(t, "names") {
			value := "[" + strings.Join(rapid.SliceOfN(rapid.OneOf(someLeaf, someTest), 1, 2).Draw(t, "tests"), ",") + "]"
			if depth > 0 && rapid.Bool().Draw(t, "deeper") {
				value = somePattern(depth-1).Draw(t, "below")
			}
			members = append(members, fmt.Sprintf("%q: %s", name, value))
		}
		if depth > 0 && rapid.IntRange(0, 3).Draw(t, "or") == 0 {
			members = append(members, `"$or": [`+strings.Join(rapid.SliceOfN(somePattern(depth-1), 2, 3).Draw(t, "alternatives"), ", ")+"]")
		}
		return "{" + strings.Join(members, ", ") + "}"
	})
}

// SameAsPlain: the matcher agrees with the plain definition for any pattern and event.
func TestSameAsPlain(t *testing.T) {
	matched, all := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		pattern, event := somePattern(2).Draw(t, "pattern"), someObject(3).Draw(t, "event")
		p, err := Compile(pattern)
		if err != nil {
			t.Skip(err) // a duplicate path
		}
		got, err := p.Match([]byte(event))
		if err != nil {
			t.Fatal(err)
		}
		if want := plainMatch(t, pattern, event); got != want {
			t.Fatalf("pattern %s\nevent   %s\nmatches %v, want %v", pattern, event, got, want)
		}
		if all++; got {
			matched++
		}
	})
	t.Logf("%d of %d matched", matched, all)
}

// OrderFree: the order of an event's members and white space are irrelevant.
func TestOrderFree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pattern, event := somePattern(2).Draw(t, "pattern"), someObject(3).Draw(t, "event")
		p, err := Compile(pattern)
		if err != nil {
			t.Skip(err)
		}
		var v any
		if err := json.Unmarshal([]byte(event), &v); err != nil {
			t.Fatal(err)
		}
		sorted, err := json.MarshalIndent(v, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		got, err1 := p.Match([]byte(event))
		again, err2 := p.Match(sorted)
		if got != again || err1 != nil || err2 != nil {
			t.Fatalf("pattern %s\nevent   %s: %v, %v, %v, %v", pattern, event, got, again, err1, err2)
		}
	})
}

// For any bytes, a pattern compiles or is refused, and an event matches, does not match, or is
// refused. Valid JSON is never refused.
func FuzzMatch(f *testing.F) {
	f.Add(`{"eventName": ["MODIFY"], "$or": [{"a": [{"exists": false}]}, {"b": {"c": [{"numeric": [">", 1]}, null]}}]}`, record)
	f.Add(`{"a": [{"anything-but": {"wildcard": ["a*", "\\*"]}}, {"cidr": "::1/8"}]}`, `{"a": ["\ud83d\ude00", -1.5e+3, [], {}]}`)
	f.Add(`{"a": {"b": [1]}}`, `{"a": [[{"b": 1.0}], 2]}`)
	f.Fuzz(func(t *testing.T, pattern, event string) {
		p, err := Compile(pattern)
		if err != nil {
			return
		}
		if !json.Valid([]byte(pattern)) {
			t.Errorf("compiled what is not JSON: %q", pattern)
		}
		_, err = p.Match([]byte(event))
		if err != nil && json.Valid([]byte(event)) && strings.HasPrefix(strings.TrimLeft(event, " \t\r\n"), "{") && strings.Count(event, "[")+strings.Count(event, "{") <= maxEventDepth {
			t.Errorf("refused a valid event: %v\n%q", err, event)
		}
	})
}

// A number equals its millionths exactly.
func TestParseFixed(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "-0": 0, "0.0e9": 0, "1": 1e6, "1.0": 1e6, "10e-1": 1e6, "0.000001": 1, "-0.000001": -1, "5e9": maxFixed, "-5000000000.000000": minFixed, "3.018e2": 301_800_000,
		"1E+3": 1e9, "0.1e1": 1e6, "4999999999.999999": 4_999_999_999_999_999, "100e-8": 1,
	} {
		if got, ok := parseFixed(text); got != want || !ok {
			t.Errorf("%s: %d, %v", text, got, ok)
		}
	}
	for _, text := range []string{"", "-", "x", "1.", ".5", "1e", "1e+", "5000000000.000001", "-5e10", "0.0000001", "1e99999", "1e-99999", "1e400", "--1", "1.2.3", "1e1e1"} {
		if got, ok := parseFixed(text); ok {
			t.Errorf("%q: %d", text, got)
		}
	}
}

// BenchmarkMatch measures filtering a record.
func BenchmarkMatch(b *testing.B) {
	for name, pattern := range map[string]string{
		"name":  `{"eventName": ["INSERT", "REMOVE"]}`,
		"image": `{"eventName": ["MODIFY"], "dynamodb": {"NewImage": {"status": {"S": [{"prefix": "O"}]}, "lines": {"L": {"M": {"sku": {"S": ["B"]}}}}}}}`,
	} {
		b.Run(name, func(b *testing.B) {
			p, err := Compile(pattern)
			if err != nil {
				b.Fatal(err)
			}
			event := []byte(record)
			b.ReportAllocs()
			b.SetBytes(int64(len(event)))
			for b.Loop() {
				if _, err := p.Match(event); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
