package console

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/work/attr"
)

// TestPlainKeepsHiddenTypes: plain JSON has no sets and no binary values. A change of another value
// keeps their types, and a change that leaves open which values have them is refused.
func TestPlainKeepsHiddenTypes(t *testing.T) {
	list := func(all ...types.AttributeValue) types.AttributeValue {
		return &types.AttributeValueMemberL{Value: all}
	}
	blob, set := attr.B([]byte("\x00\x01")), &types.AttributeValueMemberSS{Value: []string{"a", "b"}}
	member := attr.M(attr.Item{"name": attr.S("x"), "photo": blob})
	for name, c := range map[string]struct {
		was        types.AttributeValue
		text, want string // "": refused
	}{
		"an emptied set":                      {set, `[]`, ""},
		"an emptied set of numbers":           {&types.AttributeValueMemberNS{Value: []string{"1"}}, `[]`, ""},
		"an emptied set of binary values":     {&types.AttributeValueMemberBS{Value: [][]byte{{1}}}, `[]`, ""},
		"an emptied list":                     {list(blob), `[]`, `{"L":[]}`},
		"a set with another element":          {set, `["b","c"]`, `{"SS":["b","c"]}`},
		"a text before a binary element":      {list(blob), `["text","AAE="]`, `{"L":[{"S":"text"},{"B":"AAE="}]}`},
		"a text in place of a binary element": {list(blob), `["text"]`, ""},
		"another binary element or text":      {list(blob, attr.S("x")), `["AAI=","x"]`, ""},
		"an element less":                     {list(attr.S("x"), blob), `["AAE="]`, `{"L":[{"B":"AAE="}]}`},
		"a binary element less":               {list(attr.S("x"), blob), `["x"]`, `{"L":[{"S":"x"}]}`},
		"two changes":                         {list(attr.S("x"), blob), `["AAI=","y"]`, ""},
		"another order":                       {list(attr.S("x"), set), `[["a","b"],"x"]`, `{"L":[{"SS":["a","b"]},{"S":"x"}]}`},
		"a list with a set, longer":           {list(set), `[["a","b","c"]]`, `{"L":[{"SS":["a","b","c"]}]}`},
		"a member beside a binary one":        {list(attr.N("1"), member), `[1,{"name":"y","photo":"AAE="}]`, `{"L":[{"N":"1"},{"M":{"name":{"S":"y"},"photo":{"B":"AAE="}}}]}`},
		"that and another place":              {list(attr.N("1"), member), `[{"name":"y","photo":"AAE="}]`, ""},
		"the same text as text and binary":    {list(attr.S("AAE="), blob), `["AAE="]`, ""},
		"the same, with nothing changed":      {list(attr.S("AAE="), blob), `["AAE=","AAE="]`, `{"L":[{"S":"AAE="},{"B":"AAE="}]}`},
		"a list without hidden types":         {list(attr.S("x")), `["AAE=","x"]`, `{"L":[{"S":"AAE="},{"S":"x"}]}`},
	} {
		got, err := readPlain(`{"v":`+c.text+`}`, attr.Item{"v": c.was})
		switch {
		case c.want == "" && (err == nil || !strings.Contains(err.Error(), `"v"`) || !strings.Contains(err.Error(), "DynamoDB JSON")):
			t.Errorf("%s: %s is read as %s, %v; want an error", name, c.text, jsonText(got), err)
		case c.want != "" && (err != nil || jsonText(got) != `{"v":`+c.want+`}`):
			t.Errorf("%s: %s is read as %s, %v; want %s", name, c.text, jsonText(got), err, c.want)
		}
	}
}
