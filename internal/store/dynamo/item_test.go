package dynamo

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestItemGet(t *testing.T) {
	it := mustItem(t, `{"b":{"S":"2"},"a":{"S":"1"},"ab":{"S":"3"}}`)
	for name, want := range map[string]string{"a": `{"S":"1"}`, "ab": `{"S":"3"}`, "b": `{"S":"2"}`, "": "(none)", "aa": "(none)", "c": "(none)"} {
		if got := it.Get(name).String(); got != want {
			t.Errorf("Get(%q) = %s, want %s", name, got, want)
		}
	}
	if Item(nil).Get("a") != nil || Item(nil).Len() != 0 || Item(nil).Size() != 0 || Item(nil).String() != "(none)" {
		t.Error("the nil item has something")
	}
	if it.Len() != 3 {
		t.Errorf("%d attributes", it.Len())
	}
	for name := range it.All() {
		if string(name) != "a" {
			t.Errorf("first is %q", name)
		}
		break
	}
}

// A Builder and With, in any order of calls, behave like a Go map.
func TestItemIsAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := map[string]Value{}
		var (
			b        Builder
			replaced Item
		)
		for range rapid.IntRange(0, 40).Draw(t, "steps") {
			name, v := genName.Draw(t, "name"), genValue(2).Draw(t, "value")
			if rapid.Bool().Draw(t, "bytes") {
				b.SetBytes([]byte(name), v)
			} else {
				b.Set(name, v)
			}
			replaced = replaced.With(name, v)
			want[name] = v
			if rapid.IntRange(0, 9).Draw(t, "look") == 0 {
				b.Item()
			}
		}
		built := b.Item()
		if want := replaced; len(want) > 0 && !bytes.Equal(built, want) {
			t.Fatalf("the Builder says %s, With %s", built, want)
		}
		if err := CheckItem(built); err != nil {
			t.Fatal(err)
		}
		if built.Len() != len(want) {
			t.Fatalf("%d attributes, want %d", built.Len(), len(want))
		}
		names := slices.Sorted(maps.Keys(want))
		for name, v := range built.All() {
			if string(name) != names[0] || !Equal(v, want[names[0]]) || !Equal(v, built.Get(names[0])) {
				t.Fatalf("%q is %s, want %q, %s", name, v, names[0], want[names[0]])
			}
			names = names[1:]
		}
		for name := range want {
			replaced = replaced.With(name, nil)
			if replaced.Get(name) != nil {
				t.Fatalf("%q is still there", name)
			}
		}
		if !bytes.Equal(replaced.With("absent", nil), []byte{0}) {
			t.Fatalf("left: %s", replaced)
		}
	})
}

func TestBuilderReset(t *testing.T) {
	var b Builder
	b.Set("b", AppendNull(nil))
	b.Set("a", AppendNull(nil))
	b.Set("ignored", nil)
	b.SetBytes([]byte("ignored"), nil)
	first := b.Item()
	b.Reset()
	b.Set("c", AppendNull(nil))
	if first.String() != `{"a":{"NULL":true},"b":{"NULL":true}}` || b.Item().String() != `{"c":{"NULL":true}}` {
		t.Errorf("%s, then %s", first, b.Item())
	}
}

// More attributes than one byte can count, unsorted, with names that share a long head.
func TestManyAttributes(t *testing.T) {
	var json strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&json, `,"a long common head %d":{"M":{"x%03d":{"N":"%d"}}}`, i*7919%1000, i%130, i)
	}
	it := mustItem(t, "{"+json.String()[1:]+"}")
	if err := CheckItem(it); err != nil || it.Len() != 1000 {
		t.Fatal(err, it.Len())
	}
	if got := it.Get("a long common head 919").String(); got != `{"M":{"x001":{"N":"1"}}}` {
		t.Error(got)
	}
}

// Nothing on the hot path allocates.
func TestAllocations(t *testing.T) {
	it := mustItem(t, benchItem)
	var (
		j    JSON
		dst  = make([]byte, 0, 4096)
		body = []byte(benchItem)
		b    Builder
		sink int
		tags = it.Get("tags")
		one  = mustNumber(t, "1")
	)
	for about, f := range map[string]func(){
		"AppendItem":     func() { j.Reset(body); j.AppendItem(dst) },
		"AppendItemJSON": func() { AppendItemJSON(dst, it) },
		"Get":            func() { sink += len(it.Get("location").Map().Get("lat")) },
		"All": func() {
			for name, v := range it.All() {
				sink += len(name) + len(v)
			}
		},
		"Size": func() { sink += it.Size() + it.Depth() },
		"Payloads": func() {
			for e := range tags.Payloads() {
				sink += len(e)
			}
		},
		"Contains":   func() { tags.Contains(it.Get("status")) },
		"AddNumbers": func() { AddNumbers(dst, one, it.Get("humidity").Number()) },
		"AppendText": func() { it.Get("humidity").Number().AppendText(dst) },
		"Millis":     func() { it.Get("expiresAt").Number().Millis() },
		"Builder": func() {
			b.Reset()
			b.Set("b", it.Get("status"))
			b.SetBytes([]byte("a"), it.Get("sk"))
			b.AppendItem(dst)
		},
	} {
		f()
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s allocates %v times", about, n)
		}
	}
	_ = sink
}
