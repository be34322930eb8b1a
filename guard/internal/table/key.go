package table

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/guard/internal/armed"
	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/work/attr"
)

// append appends the attribute's part of a key: see KeyOf.
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
		text, err := Canonical(v.Value)
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

// Canonical returns the decimal digits of a number, without exponent or needless zeros: equal
// numbers have equal digits.
func Canonical(text string) ([]byte, error) {
	n, err := dynamo.AppendNumber(nil, []byte(text))
	if err != nil {
		return nil, err
	}
	return dynamo.Number(n).AppendText(nil), nil
}

// KeyOf returns the key of an item, or of any map with its key attributes, in canonical bytes, so
// that equal keys are equal strings in every process:
//
//	key  = part [part]          the partition key, and the sort key if the table has one
//	part = type length bytes    type: 'S', 'N' or 'B'; length: uvarint; a number's bytes are its
//	                            decimal digits, without exponent or needless zeros
func (t *Table) KeyOf(item map[string]types.AttributeValue) (armed.Key, error) {
	var room [64]byte
	b := room[:0]
	for _, a := range t.keys {
		var err error
		if b, err = a.append(b, item[a.name]); err != nil {
			return "", fmt.Errorf("key attribute %s: %w", a.name, err)
		}
	}
	return armed.Key(b), nil
}

// Attributes is the reverse of KeyOf. It returns nil for a key that the table cannot have, for
// example from another table's checkpoint.
func (t *Table) Attributes(k armed.Key) map[string]types.AttributeValue {
	item := make(map[string]types.AttributeValue, len(t.keys))
	tail := string(k)
	for _, a := range t.keys {
		if len(tail) == 0 || tail[0] != a.kind[0] {
			return nil
		}
		var head [binary.MaxVarintLen64]byte
		size, n := binary.Uvarint(head[:copy(head[:], tail[1:])])
		if n <= 0 || size > uint64(len(tail)-1-n) {
			return nil
		}
		value := tail[1+n : 1+n+int(size)]
		tail = tail[1+n+int(size):]
		switch a.kind {
		case types.ScalarAttributeTypeS:
			item[a.name] = attr.S(value)
		case types.ScalarAttributeTypeN:
			item[a.name] = attr.N(value)
		case types.ScalarAttributeTypeB:
			item[a.name] = attr.B([]byte(value))
		}
	}
	if tail != "" {
		return nil
	}
	return item
}

// KeyJSON returns a key for events and logs: the API's JSON of its attributes.
func (t *Table) KeyJSON(k armed.Key) string {
	text, err := attributevalue.MarshalMapJSON(t.Attributes(k))
	if err != nil {
		return fmt.Sprintf("%q", string(k))
	}
	return string(text)
}
