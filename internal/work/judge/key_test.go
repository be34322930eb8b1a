package judge

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/work/transfer"
)

var keyKinds = map[string]string{"s": "S", "n": "N", "b": "B"}

// A key is read from its values, from JSON and from DynamoDB JSON.
func TestReadKey(t *testing.T) {
	for _, c := range []struct{ names, text, want string }{
		{"s", "a", `{"s":{"S":"a"}}`}, {"s", "a,b", `{"s":{"S":"a,b"}}`}, {"s", `{"s":"a"}`, `{"s":{"S":"a"}}`}, {"s", ` {"s":{"S":"a"}} `, `{"s":{"S":"a"}}`},
		{"s", "", `{"s":{"S":""}}`}, {"n", "7", `{"n":{"N":"7"}}`}, {"n", "-1.5e3", `{"n":{"N":"-1.5e3"}}`}, {"n", `{"n":7}`, `{"n":{"N":"7"}}`}, {"n", `{"n":"7"}`, `{"n":{"N":"7"}}`},
		{"b", "AQI=", `{"b":{"B":"AQI="}}`}, {"b", `{"b":{"B":"AQI="}}`, `{"b":{"B":"AQI="}}`},
		{"s n", "a,7", `{"n":{"N":"7"},"s":{"S":"a"}}`}, {"n s", "7,a,b", `{"n":{"N":"7"},"s":{"S":"a,b"}}`}, {"s n", `{"n":7,"s":"a,b"}`, `{"n":{"N":"7"},"s":{"S":"a,b"}}`},
	} {
		key, err := ReadKey(c.text, strings.Fields(c.names), keyKinds)
		if err != nil || string(transfer.AppendItem(nil, key)) != c.want {
			t.Errorf("%s: %q: %s, %v; want %s", c.names, c.text, transfer.AppendItem(nil, key), err, c.want)
		}
	}
	for _, c := range []struct{ names, text, want string }{
		{"n", "seven", `the key attribute "n" is a number, and "seven" is none`}, {"n", "", "is a number"}, {"n", " 7", "is a number"}, {"n", "null", "is a number"}, {"n", `{"n":null}`, "is none"},
		{"b", "=", "is not base64"}, {"s n", "a", "has 2 values, and this has 1"}, {"s", `{"s":`, "invalid JSON"}, {"s", `{}`, `lacks the key attribute "s"`},
		{"s", `{"s":"a","t":"b"}`, `"t" is not a key attribute`}, {"s", `{"s":7}`, "is of type S, and 7 is not a string"}, {"s", `{"s":{"N":"7"}}`, `is of type S, and not {"N":"7"}`},
		{"s", `{"s":{"X":"7"}}`, "is of type S"}, {"s", `{"s":{}}`, "is of type S"}, {"n", `{"n":{"N":"x"}}`, "is a number"}, {"s", `{"s":["a"]}`, "is not a string"},
	} {
		if key, err := ReadKey(c.text, strings.Fields(c.names), keyKinds); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %q: %s, %v; want %s", c.names, c.text, transfer.AppendItem(nil, key), err, c.want)
		}
	}
}

// Any text is a key of exactly these attributes and types, or an error.
func FuzzReadKey(f *testing.F) {
	for _, text := range []string{"a", "a,7", `{"s":"a"}`, `{"s":{"S":"a"},"n":{"N":"1"}}`, "AQI=", `{"b":{"B":"AQI="}}`, `{"s":{"S":null}}`, `{"s":{"S":7}}`, `{"n":{"N":7}}`} {
		for i := range 4 {
			f.Add(text, i)
		}
	}
	schemas := [][]string{{"s"}, {"n"}, {"b"}, {"s", "n"}}
	f.Fuzz(func(t *testing.T, text string, schema int) {
		names := schemas[uint(schema)%uint(len(schemas))]
		key, err := ReadKey(text, names, keyKinds)
		if err != nil {
			return
		}
		if len(key) != len(names) {
			t.Fatalf("%q: %d attributes", text, len(key))
		}
		for _, name := range names {
			var kind string
			switch v := key[name].(type) {
			case *types.AttributeValueMemberS:
				kind = "S"
			case *types.AttributeValueMemberN:
				if kind = "N"; !IsNumber(v.Value) {
					t.Fatalf("%q: the number %q", text, v.Value)
				}
			case *types.AttributeValueMemberB:
				kind = "B"
			}
			if kind != keyKinds[name] {
				t.Fatalf("%q: %s is of type %q", text, name, kind)
			}
		}
	})
}
