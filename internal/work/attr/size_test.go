package attr

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// The sizes are those that DynamoDB documents.
func TestSize(t *testing.T) {
	for _, c := range []struct {
		item Item
		want int
	}{
		{nil, 0}, {Item{"id": S("a")}, 3}, {Item{"é": S("é")}, 4}, {Item{"b": B([]byte{0, 1, 2})}, 4}, {Item{"t": Bool(true)}, 2}, {Item{"n": &types.AttributeValueMemberNULL{Value: true}}, 2},
		{Item{"n": N("0")}, 2}, {Item{"n": N("7")}, 3}, {Item{"n": N("-12.5")}, 4}, {Item{"n": N("100")}, 3}, {Item{"n": N("1.5E+20")}, 3}, {Item{"n": N("2208988799.5")}, 8},
		{Item{"m": M(Item{})}, 4}, {Item{"m": M(Item{"a": S("b")})}, 7}, {Item{"l": &types.AttributeValueMemberL{Value: []types.AttributeValue{S("a"), Bool(false)}}}, 8},
		{Item{"s": &types.AttributeValueMemberSS{Value: []string{"a", "bc"}}}, 4}, {Item{"s": &types.AttributeValueMemberNS{Value: []string{"1", "23"}}}, 5}, {Item{"s": &types.AttributeValueMemberBS{Value: [][]byte{{1}, {2, 3}}}}, 4},
	} {
		if got := Size(c.item); got != c.want {
			t.Errorf("%v: %d bytes, want %d", c.item, got, c.want)
		}
	}
}
