package attr

import (
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Size returns the size of an item in bytes, as DynamoDB documents it: the names and the values in
// UTF-8, and three bytes more for a list or map, with one for each element.
func Size(item Item) (n int) {
	for name, v := range item {
		n += len(name) + sizeOf(v)
	}
	return n
}

func sizeOf(v types.AttributeValue) (n int) {
	switch v := v.(type) {
	case *types.AttributeValueMemberN:
		return numberSize(v.Value)
	case *types.AttributeValueMemberM:
		return 3 + len(v.Value) + Size(v.Value)
	case *types.AttributeValueMemberL:
		n = 3 + len(v.Value)
		for _, e := range v.Value {
			n += sizeOf(e)
		}
		return n
	case *types.AttributeValueMemberSS:
		for _, e := range v.Value {
			n += len(e)
		}
		return n
	case *types.AttributeValueMemberNS:
		for _, e := range v.Value {
			n += numberSize(e)
		}
		return n
	case *types.AttributeValueMemberBS:
		for _, e := range v.Value {
			n += len(e)
		}
		return n
	case *types.AttributeValueMemberBOOL, *types.AttributeValueMemberNULL:
		return 1
	}
	return len(Bytes(v))
}

// numberSize returns about one byte for two significant digits, and one.
func numberSize(text string) int {
	digits, _, _ := strings.Cut(strings.ToUpper(text), "E")
	digits = strings.Trim(strings.ReplaceAll(strings.TrimLeft(digits, "+-"), ".", ""), "0")
	return (len(digits)+1)/2 + 1
}
