package keyenc

import (
	"bytes"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// genBytes draws strings full of the bytes that the escaping treats specially.
var genBytes = rapid.SliceOfN(rapid.OneOf(rapid.SampledFrom([]byte{0x00, 0x01, 0xFE, 0xFF, 'a'}), rapid.Byte()), 0, 12)

// genValue draws a key part of a kind.
func genValue(kind dynamo.Kind) *rapid.Generator[dynamo.Value] {
	return rapid.Custom(func(t *rapid.T) dynamo.Value {
		switch kind {
		case dynamo.KindNumber:
			text := rapid.StringMatching(`-?[0-9]{1,4}(\.[0-9]{1,4})?(e-?[0-9]{1,2})?`).Draw(t, "number")
			n, err := dynamo.AppendNumber(nil, []byte(text))
			if err != nil {
				t.Fatal(err)
			}
			return dynamo.AppendN(nil, n)
		case dynamo.KindBinary:
			return dynamo.AppendBinary(nil, genBytes.Draw(t, "binary"))
		default:
			return dynamo.AppendString(nil, rapid.StringOfN(rapid.RuneFrom([]rune("\x00\x01aé")), 0, 8, -1).Draw(t, "string"))
		}
	})
}

var genKind = rapid.SampledFrom([]dynamo.Kind{dynamo.KindString, dynamo.KindNumber, dynamo.KindBinary})

// genTuples draws two tuples of the same one to eight kinds, often with equal first parts.
func genTuples(t *rapid.T) (kinds []dynamo.Kind, a, b []dynamo.Value) {
	kinds = rapid.SliceOfN(genKind, 1, 8).Draw(t, "kinds")
	for i, kind := range kinds {
		v := genValue(kind).Draw(t, "part")
		w := v
		if i > 0 && rapid.Bool().Draw(t, "differs") {
			w = genValue(kind).Draw(t, "other part")
		}
		a, b = append(a, v), append(b, w)
	}
	return kinds, a, b
}

func compareTuples(a, b []dynamo.Value) int {
	for i := range a {
		if c := dynamo.Compare(a[i], b[i]); c != 0 {
			return c
		}
	}
	return 0
}

// appendTuple appends the parts of a key, one after the other.
func appendTuple(dst []byte, parts ...dynamo.Value) []byte {
	for _, v := range parts {
		dst = AppendValue(dst, v)
	}
	return dst
}

// cutPart splits the part of a kind off the head of key.
func cutPart(kind dynamo.Kind, key []byte) (encoded, rest []byte, err error) {
	rest, err = SkipPart(kind, key)
	return key[:len(key)-len(rest)], rest, err
}

func TestOrder(t *testing.T) {
	t.Run("bytes", rapid.MakeCheck(func(t *rapid.T) {
		a, b := genBytes.Draw(t, "a"), genBytes.Draw(t, "b")
		if got, want := bytes.Compare(AppendBytes(nil, a), AppendBytes(nil, b)), bytes.Compare(a, b); got != want {
			t.Fatalf("%x and %x compare as %d, want %d", a, b, got, want)
		}
	}))
	t.Run("tuples", rapid.MakeCheck(func(t *rapid.T) {
		_, a, b := genTuples(t)
		if got, want := bytes.Compare(appendTuple(nil, a...), appendTuple(nil, b...)), compareTuples(a, b); got != want {
			t.Fatalf("%v and %v compare as %d, want %d", a, b, got, want)
		}
	}))
}

func TestRoundTrip(t *testing.T) {
	t.Run("bytes", rapid.MakeCheck(func(t *rapid.T) {
		b, rest := genBytes.Draw(t, "b"), genBytes.Draw(t, "rest")
		key := append(AppendBytes(nil, b), rest...)
		out, behind, err := CutBytes([]byte("head"), key)
		if err != nil || !bytes.Equal(out, append([]byte("head"), b...)) || !bytes.Equal(behind, rest) {
			t.Fatalf("%x: %x, %x, %v", b, out, behind, err)
		}
		if behind, err := SkipBytes(key); err != nil || !bytes.Equal(behind, rest) {
			t.Fatalf("%x: skipped to %x, %v", b, behind, err)
		}
	}))
	t.Run("tuples", rapid.MakeCheck(func(t *rapid.T) {
		kinds, a, _ := genTuples(t)
		tail := genBytes.Draw(t, "rest")
		rest := append(appendTuple(nil, a...), tail...)
		for i, kind := range kinds {
			encoded, behind, err := cutPart(kind, rest)
			if err != nil || !bytes.Equal(encoded, AppendValue(nil, a[i])) {
				t.Fatalf("part %d of %v: %x, %v", i, a, encoded, err)
			}
			v, behind2, err := CutValue(nil, kind, rest)
			if err != nil || !dynamo.Equal(v, a[i]) || !bytes.Equal(behind, behind2) {
				t.Fatalf("part %d of %v: %s, %v", i, a, dynamo.Value(v), err)
			}
			rest = behind
		}
		if !bytes.Equal(rest, tail) {
			t.Fatalf("%x is left, want %x", rest, tail)
		}
	}))
}

func TestPrefixFree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		_, a, b := genTuples(t)
		x, y := appendTuple(nil, a...), appendTuple(nil, b...)
		if !bytes.Equal(x, y) && (bytes.HasPrefix(x, y) || bytes.HasPrefix(y, x)) {
			t.Fatalf("%x and %x", x, y)
		}
	})
}

// A value is encoded as its number or its bytes are.
func TestAppendValue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kind := genKind.Draw(t, "kind")
		v := genValue(kind).Draw(t, "value")
		var want []byte
		if kind == dynamo.KindNumber {
			want = AppendNumber(nil, v.Number())
		} else {
			want = AppendBytes(nil, v.Bytes())
		}
		if got := AppendValue(nil, v); !bytes.Equal(got, want) {
			t.Fatalf("%s: %x, want %x", v, got, want)
		}
	})
}

// The range of a prefix holds the strings that begin with it, and no others.
func TestPrefixRange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		prefix, s := genBytes.Draw(t, "prefix"), genBytes.Draw(t, "s")
		if rapid.Bool().Draw(t, "begins") {
			s = append(bytes.Clone(prefix), s...)
		}
		low := AppendBytesPrefix([]byte("table"), prefix)
		high := PrefixSuccessor(low)
		key := AppendBytes([]byte("table"), s)
		in := bytes.Compare(low, key) <= 0 && bytes.Compare(key, high) < 0
		if in != bytes.HasPrefix(s, prefix) {
			t.Fatalf("%x in the range of %x: %v", s, prefix, in)
		}
	})
}

func TestPrefixSuccessor(t *testing.T) {
	for _, c := range []struct{ in, out string }{
		{"a", "b"}, {"a\xff", "b"}, {"\x00", "\x01"}, {"a\xff\xff", "b"}, {"\xfe\xff", "\xff"},
	} {
		if got := PrefixSuccessor([]byte(c.in)); string(got) != c.out {
			t.Errorf("%x: %x, want %x", c.in, got, c.out)
		}
	}
	if PrefixSuccessor(nil) != nil || PrefixSuccessor([]byte("\xff\xff")) != nil {
		t.Error("nothing is greater")
	}
	rapid.Check(t, func(t *rapid.T) {
		prefix, s := genBytes.Draw(t, "prefix"), genBytes.Draw(t, "s")
		before := bytes.Clone(prefix)
		next := PrefixSuccessor(prefix)
		if !bytes.Equal(prefix, before) {
			t.Fatal("the prefix changed")
		}
		if next != nil && bytes.HasPrefix(s, prefix) != (bytes.Compare(s, prefix) >= 0 && bytes.Compare(s, next) < 0) {
			t.Fatalf("%x, prefix %x, successor %x", s, prefix, next)
		}
	})
}

func TestMalformed(t *testing.T) {
	for _, key := range []string{"", "a", "a\x00", "a\x00\x02", "a\x00\xff", "\x00\xff\x00"} {
		if _, _, err := CutBytes(nil, []byte(key)); !errors.Is(err, ErrMalformed) {
			t.Errorf("CutBytes(%x): %v", key, err)
		}
		if _, err := SkipBytes([]byte(key)); !errors.Is(err, ErrMalformed) {
			t.Errorf("SkipBytes(%x): %v", key, err)
		}
		for _, kind := range []dynamo.Kind{dynamo.KindString, dynamo.KindBinary, dynamo.KindNumber} {
			if _, _, err := CutValue(nil, kind, []byte(key)); !errors.Is(err, ErrMalformed) {
				t.Errorf("CutValue(%s, %x): %v", kind, key, err)
			}
			if _, _, err := cutPart(kind, []byte(key)); !errors.Is(err, ErrMalformed) {
				t.Errorf("cutPart(%s, %x): %v", kind, key, err)
			}
		}
	}
	if _, _, err := CutValue(nil, dynamo.KindString, AppendBytes(nil, []byte{0xFF})); !errors.Is(err, ErrMalformed) {
		t.Error("an S that is not UTF-8:", err)
	}
}

// The examples in FORMAT.md.
func TestVectors(t *testing.T) {
	number := func(text string) []byte {
		n, err := dynamo.AppendNumber(nil, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return AppendNumber(nil, n)
	}
	for what, c := range map[string][2][]byte{
		"ab":     {AppendBytes(nil, []byte("ab")), []byte("ab\x00\x01")},
		"a\\0b":  {AppendBytes(nil, []byte("a\x00b")), []byte("a\x00\xffb\x00\x01")},
		"empty":  {AppendBytes(nil, nil), []byte("\x00\x01")},
		"0":      {number("0"), []byte("\x80")},
		"1":      {number("1"), []byte("\xc0\x82\x14")},
		"-1":     {number("-1"), []byte("\x40\x7d\xeb")},
		"123.45": {number("123.45"), []byte("\xc0\x84\x19\x45\x64")},
	} {
		if !bytes.Equal(c[0], c[1]) {
			t.Errorf("%s: %x, want %x", what, c[0], c[1])
		}
	}
}

func TestAllocations(t *testing.T) {
	key := appendTuple(nil, dynamo.AppendString(nil, "device\x007"), dynamo.AppendBinary(nil, []byte{0, 1}))
	v := dynamo.Value(dynamo.AppendString(nil, "device\x007"))
	dst := make([]byte, 0, 256)
	for what, f := range map[string]func(){
		"AppendValue": func() { AppendValue(AppendValue(dst, v), v) },
		"CutValue":    func() { CutValue(dst, dynamo.KindString, key) },
		"SkipPart":    func() { SkipPart(dynamo.KindString, key) },
	} {
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s allocates %v times", what, n)
		}
	}
}

// The decoder accepts only output of the encoder, and encoded keys order as their values.
func FuzzKey(f *testing.F) {
	f.Add([]byte("a\x00\xff\x00\x01tail"), []byte("\x00\x01"))
	f.Add([]byte("\xc0\x82\x14"), []byte("\x40\x7d\xeb\x80"))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		for _, kind := range []dynamo.Kind{dynamo.KindBinary, dynamo.KindNumber} {
			v, rest, err := CutValue(nil, kind, a)
			if err != nil {
				if _, _, err := cutPart(kind, a); err == nil {
					t.Fatalf("%x can be cut but not decoded", a)
				}
				continue
			}
			x := AppendValue(nil, v)
			if !bytes.Equal(append(bytes.Clone(x), rest...), a) {
				t.Fatalf("%x decodes to %s, which encodes to %x", a, dynamo.Value(v), x)
			}
			w, _, err := CutValue(nil, kind, b)
			if err != nil {
				continue
			}
			y := AppendValue(nil, w)
			if got, want := bytes.Compare(x, y), dynamo.Compare(v, w); got != want {
				t.Fatalf("%x and %x compare as %d, want %d", x, y, got, want)
			}
			if !bytes.Equal(x, y) && bytes.HasPrefix(y, x) {
				t.Fatalf("%x is a prefix of %x", x, y)
			}
		}
		enc := AppendBytes(nil, a)
		if out, rest, err := CutBytes(nil, enc); err != nil || !bytes.Equal(out, a) || len(rest) > 0 {
			t.Fatalf("%x: %x, %x, %v", a, out, rest, err)
		}
	})
}
