package guard

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/guard/internal/armed"
	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// key is an item's key in canonical bytes, so that equal keys are equal strings in every process:
//
//	key  = part [part]          the partition key, and the sort key if the table has one
//	part = type length bytes    type: 'S', 'N' or 'B'; length: uvarint; a number's bytes are its
//	                            decimal digits, without exponent or needless zeros
type key = armed.Key

// keyOf returns the key of an item, or of any map with its key attributes.
func (g *Guard) keyOf(item map[string]types.AttributeValue) (key, error) { return g.table.keyOf(item) }

// attributes returns the key's attributes.
func (g *Guard) attributes(k key) map[string]types.AttributeValue { return g.table.attributes(k) }

// keyAttribute is a part of the table's key.
type keyAttribute struct {
	name string
	kind types.ScalarAttributeType
}

func (a keyAttribute) append(dst []byte, v types.AttributeValue) ([]byte, error) {
	var value []byte
	kind := types.ScalarAttributeType("")
	switch v := v.(type) {
	case nil:
		return nil, errors.New("it is missing")
	case *types.AttributeValueMemberS:
		kind, value = types.ScalarAttributeTypeS, []byte(v.Value)
	case *types.AttributeValueMemberB:
		kind, value = types.ScalarAttributeTypeB, v.Value
	case *types.AttributeValueMemberN:
		text, err := canonical(v.Value)
		if err != nil {
			return nil, err
		}
		kind, value = types.ScalarAttributeTypeN, text
	}
	if kind != a.kind {
		return nil, fmt.Errorf("its type is not %s", a.kind)
	}
	dst = append(dst, kind[0])
	dst = binary.AppendUvarint(dst, uint64(len(value)))
	return append(dst, value...), nil
}

// canonical is the one way in which guard writes a number.
func canonical(text string) ([]byte, error) {
	n, err := dynamo.AppendNumber(nil, []byte(text))
	if err != nil {
		return nil, err
	}
	return dynamo.Number(n).AppendText(nil), nil
}

// keyJSON returns a key for events and logs: the API's JSON of its attributes.
func (g *Guard) keyJSON(k key) string {
	text, err := attributevalue.MarshalMapJSON(g.attributes(k))
	if err != nil {
		return fmt.Sprintf("%q", string(k))
	}
	return string(text)
}
