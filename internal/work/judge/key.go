package judge

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/transfer"
)

// ReadKey reads the key of an item: JSON in DynamoDB's form or plain, or the values alone, with
// a comma between partition key and sort key. names are the key attributes, and kinds their types.
func ReadKey(text string, names []string, kinds map[string]string) (attr.Item, error) {
	if strings.HasPrefix(strings.TrimSpace(text), "{") {
		return readJSONKey(text, names, kinds)
	}
	values := strings.SplitN(text, ",", len(names))
	if len(values) < len(names) {
		return nil, fmt.Errorf("the table's key has %d values, and this has %d", len(names), len(values))
	}
	key := attr.Item{}
	for i, name := range names {
		v, err := keyValue(name, kinds[name], values[i])
		if err != nil {
			return nil, err
		}
		key[name] = v
	}
	return key, nil
}

// readJSONKey reads an object with exactly the key attributes.
func readJSONKey(text string, names []string, kinds map[string]string) (attr.Item, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &members); err != nil {
		return nil, fmt.Errorf("invalid JSON: %w", err)
	}
	key := attr.Item{}
	for _, name := range names {
		member, ok := members[name]
		if !ok {
			return nil, fmt.Errorf("it lacks the key attribute %q", name)
		}
		v, err := jsonKeyValue(name, kinds[name], member)
		if err != nil {
			return nil, err
		}
		key[name] = v
	}
	for name := range members {
		if _, ok := key[name]; !ok {
			return nil, fmt.Errorf("%q is not a key attribute of the table", name)
		}
	}
	return key, nil
}

// jsonKeyValue reads a value of a key: {"S":"a"}, "a" or 7.
func jsonKeyValue(name, kind string, member json.RawMessage) (types.AttributeValue, error) {
	if member[0] != '{' {
		text := string(member)
		if member[0] == '"' {
			if err := json.Unmarshal(member, &text); err != nil {
				return nil, err
			}
		} else if kind != "N" {
			return nil, fmt.Errorf("the key attribute %q is of type %s, and %s is not a string", name, kind, Clip(text, valueMost))
		}
		return keyValue(name, kind, text)
	}
	v, err := attributevalue.UnmarshalJSON(bytes.Clone(member))
	if err != nil {
		return nil, fmt.Errorf("the key attribute %q is neither a value nor DynamoDB JSON: %s", name, Clip(string(member), valueMost))
	}
	got := ""
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		got = "S"
	case *types.AttributeValueMemberN:
		if got = "N"; !IsNumber(v.Value) {
			return nil, notNumber(name, v.Value)
		}
	case *types.AttributeValueMemberB:
		got = "B"
	}
	if got != kind {
		return nil, fmt.Errorf("the key attribute %q is of type %s, and not %s", name, kind, Clip(string(member), valueMost))
	}
	return v, nil
}

// keyValue returns a value of a key from its text.
func keyValue(name, kind, text string) (types.AttributeValue, error) {
	switch kind {
	case "N":
		if !IsNumber(text) {
			return nil, notNumber(name, text)
		}
		return attr.N(text), nil
	case "B":
		b, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return nil, fmt.Errorf("the key attribute %q is binary, and %q is not base64", name, Clip(text, valueMost))
		}
		return attr.B(b), nil
	}
	return attr.S(text), nil
}

func notNumber(name, text string) error {
	return fmt.Errorf("the key attribute %q is a number, and %q is none", name, Clip(text, valueMost))
}

// IsNumber reports whether a text is a number in JSON.
func IsNumber(text string) bool {
	var n json.Number
	return text != "" && (text[0] == '-' || text[0] >= '0' && text[0] <= '9') && json.Unmarshal([]byte(text), &n) == nil
}

// ExampleKey returns a key in the form of --key, for messages.
func ExampleKey(names []string, kinds map[string]string) string {
	key := attr.Item{}
	for _, name := range names {
		switch kinds[name] {
		case "N":
			key[name] = attr.N("1")
		case "B":
			key[name] = attr.B([]byte("a"))
		default:
			key[name] = attr.S("a")
		}
	}
	return string(transfer.AppendItem(nil, key))
}
