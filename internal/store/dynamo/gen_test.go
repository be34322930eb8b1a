package dynamo

import (
	"testing"

	"pgregory.net/rapid"
)

// The generators draw well-formed binary forms through the appenders.

var genName = rapid.OneOf(rapid.StringMatching(`[a-z]{1,3}`), rapid.StringN(1, 20, 40))

var genNumber = rapid.Custom(func(t *rapid.T) []byte {
	n, err := AppendNumber(nil, []byte(numberText.Draw(t, "number")))
	if err != nil {
		t.Fatal(err)
	}
	return n
})

var genBytes = rapid.SliceOfN(rapid.Byte(), 0, 30)

// genValue draws a value of at most depth levels.
func genValue(depth int) *rapid.Generator[Value] {
	return rapid.Custom(func(t *rapid.T) Value {
		kinds := []Kind{KindNull, KindBool, KindString, KindNumber, KindBinary, KindSS, KindNS, KindBS}
		if depth > 1 {
			kinds = append(kinds, KindList, KindMap)
		}
		switch kind := rapid.SampledFrom(kinds).Draw(t, "kind"); kind {
		case KindNull:
			return AppendNull(nil)
		case KindBool:
			return AppendBool(nil, rapid.Bool().Draw(t, "bool"))
		case KindString:
			return AppendString(nil, rapid.String().Draw(t, "string"))
		case KindNumber:
			return AppendN(nil, genNumber.Draw(t, "number"))
		case KindBinary:
			return AppendBinary(nil, genBytes.Draw(t, "bytes"))
		case KindList:
			return AppendList(nil, rapid.SliceOfN(genValue(depth-1), 0, 4).Draw(t, "list"))
		case KindMap:
			return AppendMap(nil, genItem(depth-1).Draw(t, "map"))
		default:
			return AppendSet(nil, kind, genElements(kind).Draw(t, "set"))
		}
	})
}

// genElements draws payloads for a set, some of them equal.
func genElements(kind Kind) *rapid.Generator[[][]byte] {
	switch kind {
	case KindNS:
		return rapid.SliceOfN(genNumber, 1, 6)
	case KindBS:
		return rapid.SliceOfN(genBytes, 1, 6)
	default:
		return rapid.SliceOfN(rapid.Map(rapid.String(), func(s string) []byte { return []byte(s) }), 1, 6)
	}
}

func genItem(depth int) *rapid.Generator[Item] {
	return rapid.Custom(func(t *rapid.T) Item {
		var b Builder
		for range rapid.IntRange(0, 6).Draw(t, "attributes") {
			b.Set(genName.Draw(t, "name"), genValue(depth).Draw(t, "value"))
		}
		return b.Item()
	})
}

// mustItem returns the item of a JSON text.
func mustItem(t testing.TB, json string) Item {
	t.Helper()
	j := NewJSON([]byte(json))
	it, invalid, _ := j.AppendItem(nil)
	if err := j.End(); err != nil || invalid != nil {
		t.Fatalf("%s: %v, %v", json, invalid, err)
	}
	return it
}

// mustValue returns the value of a JSON text.
func mustValue(t testing.TB, json string) Value {
	t.Helper()
	j := NewJSON([]byte(json))
	v, invalid, _ := j.AppendValue(nil)
	if err := j.End(); err != nil || invalid != nil {
		t.Fatalf("%s: %v, %v", json, invalid, err)
	}
	return v
}
