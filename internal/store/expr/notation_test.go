package expr

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// The tests write items and values in plain JSON: 1 is an N, "a" an S, [] an L, {} an M. {"SS":
// […]}, {"NS": […]}, {"BS": […]} and {"B": "base64"} mean the same as in DynamoDB's own notation.

// mustItem returns an item in the notation of the tests.
func mustItem(text string) dynamo.Item {
	v := mustValue(text)
	if v.Kind() != dynamo.KindMap {
		panic("not an item: " + text)
	}
	return v.Map()
}

// mustValue returns a value in the notation of the tests.
func mustValue(text string) dynamo.Value {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		panic(fmt.Sprintf("%v: %s", err, text))
	}
	return encode(v)
}

// mustValues returns the values of an object.
func mustValues(text string) map[string]dynamo.Value {
	values := map[string]dynamo.Value{}
	for name, v := range mustItem(text).All() {
		values[string(name)] = bytes.Clone(v)
	}
	return values
}

func encode(v any) dynamo.Value {
	switch v := v.(type) {
	case nil:
		return dynamo.AppendNull(nil)
	case bool:
		return dynamo.AppendBool(nil, v)
	case string:
		return dynamo.AppendString(nil, v)
	case json.Number:
		return dynamo.AppendN(nil, encodeNumber(v.String()))
	case []any:
		var elems []dynamo.Value
		for _, e := range v {
			elems = append(elems, encode(e))
		}
		return dynamo.AppendList(nil, elems)
	default:
		return encodeObject(v.(map[string]any))
	}
}

func encodeNumber(text string) dynamo.Number {
	n, err := dynamo.AppendNumber(nil, []byte(text))
	if err != nil {
		panic(err)
	}
	return n
}

func encodeObject(m map[string]any) dynamo.Value {
	if len(m) == 1 {
		for key, v := range m {
			switch kind := dynamo.KindOf(key); kind {
			case dynamo.KindBinary:
				return dynamo.AppendBinary(nil, decodeBase64(v.(string)))
			case dynamo.KindSS, dynamo.KindNS, dynamo.KindBS:
				return encodeSet(kind, v.([]any))
			}
		}
	}
	var b dynamo.Builder
	for key, v := range m {
		b.Set(key, encode(v))
	}
	return dynamo.AppendMap(nil, b.Item())
}

func encodeSet(kind dynamo.Kind, list []any) dynamo.Value {
	var elems [][]byte
	for _, e := range list {
		switch kind {
		case dynamo.KindSS:
			elems = append(elems, []byte(e.(string)))
		case dynamo.KindNS:
			elems = append(elems, encodeNumber(e.(json.Number).String()))
		default:
			elems = append(elems, decodeBase64(e.(string)))
		}
	}
	return dynamo.AppendSet(nil, kind, elems)
}

func decodeBase64(text string) []byte {
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		panic(err)
	}
	return b
}

// show returns a value in the notation of the tests, or "(none)" for nil.
func show(v dynamo.Value) string {
	switch v.Kind() {
	case 0:
		return "(none)"
	case dynamo.KindNull:
		return "null"
	case dynamo.KindBool:
		return fmt.Sprint(v.Bool())
	case dynamo.KindString:
		b, _ := json.Marshal(string(v.Bytes()))
		return string(b)
	case dynamo.KindNumber:
		return v.Number().String()
	case dynamo.KindBinary:
		return `{"B":"` + base64.StdEncoding.EncodeToString(v.Bytes()) + `"}`
	case dynamo.KindMap:
		return showItem(v.Map())
	}
	var elems []string
	for e := range v.Elements() {
		if e.Kind() == dynamo.KindBinary && v.Kind() == dynamo.KindBS {
			elems = append(elems, `"`+base64.StdEncoding.EncodeToString(e.Bytes())+`"`)
			continue
		}
		elems = append(elems, show(e))
	}
	list := "[" + strings.Join(elems, ",") + "]"
	if v.Kind() == dynamo.KindList {
		return list
	}
	return `{"` + v.Kind().String() + `":` + list + `}`
}

// showItem returns an item in the notation of the tests, or "(none)" for nil.
func showItem(item dynamo.Item) string {
	if item == nil {
		return "(none)"
	}
	var members []string
	for name, v := range item.All() {
		b, _ := json.Marshal(string(name))
		members = append(members, string(b)+":"+show(v))
	}
	return "{" + strings.Join(members, ",") + "}"
}
