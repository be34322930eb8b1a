package guard

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/work/attr"
)

// key is an item's key in canonical bytes, so that equal keys are equal strings, in every process:
//
//	key  = part [part]               the partition key, and the sort key where the table has one
//	part = type length bytes         type: 'S', 'N' or 'B'; length: uvarint; a number's bytes are its decimal digits, without exponent or needless zeros
type key string

// keyOf gives the key of an item, or of anything that has its key attributes.
func (g *Guard) keyOf(item map[string]types.AttributeValue) (key, error) { return g.table.keyOf(item) }

// attributes gives the key's attributes.
func (g *Guard) attributes(k key) map[string]types.AttributeValue { return g.table.attributes(k) }

func (t *table) keyOf(item map[string]types.AttributeValue) (key, error) {
	var room [64]byte
	b := room[:0]
	for _, a := range t.keys {
		var err error
		if b, err = a.append(b, item[a.name]); err != nil {
			return "", fmt.Errorf("key attribute %s: %w", a.name, err)
		}
	}
	return key(b), nil
}

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

// attributes is the reverse of keyOf. A key that this table does not have, such as one out of another's checkpoint, gives nil.
func (t *table) attributes(k key) map[string]types.AttributeValue {
	item := make(map[string]types.AttributeValue, len(t.keys))
	rest := string(k)
	for _, a := range t.keys {
		if len(rest) == 0 || rest[0] != a.kind[0] {
			return nil
		}
		var head [binary.MaxVarintLen64]byte
		size, n := binary.Uvarint(head[:copy(head[:], rest[1:])])
		if n <= 0 || size > uint64(len(rest)-1-n) {
			return nil
		}
		value := rest[1+n : 1+n+int(size)]
		rest = rest[1+n+int(size):]
		switch a.kind {
		case types.ScalarAttributeTypeS:
			item[a.name] = attr.S(value)
		case types.ScalarAttributeTypeN:
			item[a.name] = attr.N(value)
		case types.ScalarAttributeTypeB:
			item[a.name] = attr.B([]byte(value))
		}
	}
	if rest != "" {
		return nil
	}
	return item
}

// keyJSON is a key as events and logs tell it: the API's JSON of its attributes.
func (g *Guard) keyJSON(k key) string {
	text, err := attributevalue.MarshalMapJSON(g.attributes(k))
	if err != nil {
		return fmt.Sprintf("%q", string(k))
	}
	return string(text)
}
