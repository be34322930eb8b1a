package transfer

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/work/attr"
)

// Limits of DynamoDB, in bytes.
const (
	itemMax      = 400 << 10
	partitionMax = 2048
	sortMax      = 1024
)

// AppendItem appends an item as DynamoDB JSON, with its attributes in the order of their names.
func AppendItem(dst []byte, item attr.Item) []byte {
	dst = append(dst, '{')
	for i, name := range slices.Sorted(maps.Keys(item)) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dynamo.AppendQuoted(dst, name), ':')
		dst = appendValue(dst, item[name])
	}
	return append(dst, '}')
}

func appendValue(dst []byte, v types.AttributeValue) []byte {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		dst = dynamo.AppendQuoted(append(dst, `{"S":`...), v.Value)
	case *types.AttributeValueMemberN:
		dst = dynamo.AppendQuoted(append(dst, `{"N":`...), v.Value)
	case *types.AttributeValueMemberB:
		dst = dynamo.AppendBase64(append(dst, `{"B":`...), v.Value)
	case *types.AttributeValueMemberBOOL:
		dst = fmt.Appendf(dst, `{"BOOL":%t`, v.Value)
	case *types.AttributeValueMemberNULL:
		dst = append(dst, `{"NULL":true`...)
	case *types.AttributeValueMemberM:
		dst = AppendItem(append(dst, `{"M":`...), v.Value)
	case *types.AttributeValueMemberL:
		dst = dynamo.AppendArray(append(dst, `{"L":`...), v.Value, appendValue)
	case *types.AttributeValueMemberSS:
		dst = dynamo.AppendArray(append(dst, `{"SS":`...), v.Value, dynamo.AppendQuoted[string])
	case *types.AttributeValueMemberNS:
		dst = dynamo.AppendArray(append(dst, `{"NS":`...), v.Value, dynamo.AppendQuoted[string])
	case *types.AttributeValueMemberBS:
		dst = dynamo.AppendArray(append(dst, `{"BS":`...), v.Value, dynamo.AppendBase64)
	default:
		panic(fmt.Sprintf("transfer: unknown type of value %T", v)) // the API has ten
	}
	return append(dst, '}')
}

// Reader reads items from DynamoDB JSON and checks them as a table does. It is not safe for
// concurrent use.
type Reader struct {
	table Table
	kinds map[string]dynamo.Kind // of the key attributes of the table and of its indexes
	json  *dynamo.JSON
	bytes []byte
}

// NewReader returns a reader of a table's items.
func (t Table) NewReader() *Reader {
	r := &Reader{table: t, kinds: make(map[string]dynamo.Kind), json: dynamo.NewJSON(nil)}
	for name, kind := range t.Types() {
		r.kinds[name] = dynamo.KindOf(kind)
	}
	return r
}

// Check returns an error if the table would refuse an item. It returns the item's size in
// DynamoDB's bytes.
func (r *Reader) Check(text []byte) (size int, err error) {
	item, err := r.decode(text)
	if err != nil {
		return 0, err
	}
	if err := r.checkKey(item); err != nil {
		return 0, err
	}
	for name, kind := range r.kinds {
		v := item.Get(name)
		switch {
		case v == nil:
		case v.Kind() != kind:
			return 0, fmt.Errorf("the key attribute %q has the type %s; the table needs %s", name, v.Kind(), kind)
		case kind != dynamo.KindNumber && len(v.Bytes()) == 0:
			return 0, fmt.Errorf("the key attribute %q is empty", name)
		}
	}
	if size = item.Size(); size > itemMax {
		return 0, fmt.Errorf("the item has %d bytes; the limit is %d", size, itemMax)
	}
	return size, nil
}

// CheckKey returns an error if the table would refuse the key of an item to delete.
func (r *Reader) CheckKey(text []byte) error {
	key, err := r.decode(text)
	if err != nil {
		return err
	}
	if n := len(r.table.KeySchema); key.Len() != n {
		return fmt.Errorf("the key has %s; the table needs %d", counted(key.Len(), "attribute"), n)
	}
	return r.checkKey(key)
}

// checkKey checks the key attributes of the table in an item.
func (r *Reader) checkKey(item dynamo.Item) error {
	for i, name := range r.table.Keys() {
		v, most := item.Get(name), partitionMax
		if i > 0 {
			most = sortMax
		}
		switch kind := r.kinds[name]; {
		case v == nil:
			return fmt.Errorf("the item lacks the key attribute %q", name)
		case v.Kind() != kind:
			return fmt.Errorf("the key attribute %q has the type %s; the table needs %s", name, v.Kind(), kind)
		case kind != dynamo.KindNumber && len(v.Bytes()) > most:
			return fmt.Errorf("the key attribute %q has %d bytes; the limit is %d", name, len(v.Bytes()), most)
		case kind != dynamo.KindNumber && len(v.Bytes()) == 0:
			return fmt.Errorf("the key attribute %q is empty", name)
		}
	}
	return nil
}

// decode returns an item that is valid until the next call.
func (r *Reader) decode(text []byte) (dynamo.Item, error) {
	r.json.Reset(text)
	var invalid, fatal error
	r.bytes, invalid, fatal = r.json.AppendItemElement(r.bytes[:0])
	if err := r.json.End(); err != nil {
		fatal = err
	}
	switch {
	case fatal != nil:
		return nil, readable(fatal)
	case invalid != nil:
		return nil, readable(invalid)
	case len(r.bytes) == 0:
		return nil, errors.New("the item is null")
	}
	return r.bytes, nil
}

// readable returns an error of the API without its code.
func readable(err error) error {
	if wrong, ok := errors.AsType[*dynamo.Error](err); ok {
		if wrong.Message == "" {
			return errors.New("invalid DynamoDB JSON")
		}
		return errors.New(wrong.Message)
	}
	return err
}

// Read returns an item, and the bytes of its key, which are equal for equal keys.
func (r *Reader) Read(text []byte) (item attr.Item, key string, err error) {
	stored, err := r.decode(text)
	if err != nil {
		return nil, "", err
	}
	for _, name := range r.table.Keys() {
		key += string(stored.Get(name))
	}
	return itemOf(stored), key, nil
}

func itemOf(stored dynamo.Item) attr.Item {
	item := make(attr.Item, stored.Len())
	for name, v := range stored.All() {
		item[string(name)] = valueOf(v)
	}
	return item
}

func valueOf(v dynamo.Value) types.AttributeValue {
	switch v.Kind() {
	case dynamo.KindString:
		return attr.S(string(v.Bytes()))
	case dynamo.KindNumber:
		return attr.N(v.Number().String())
	case dynamo.KindBinary:
		return attr.B(slices.Clone(v.Bytes()))
	case dynamo.KindBool:
		return attr.Bool(v.Bool())
	case dynamo.KindNull:
		return &types.AttributeValueMemberNULL{Value: true}
	case dynamo.KindMap:
		return attr.M(itemOf(v.Map()))
	case dynamo.KindList:
		list := make([]types.AttributeValue, 0, v.Len())
		for e := range v.Elements() {
			list = append(list, valueOf(e))
		}
		return &types.AttributeValueMemberL{Value: list}
	case dynamo.KindBS:
		var set [][]byte
		for p := range v.Payloads() {
			set = append(set, slices.Clone(p))
		}
		return &types.AttributeValueMemberBS{Value: set}
	case dynamo.KindNS:
		var set []string
		for p := range v.Payloads() {
			set = append(set, dynamo.Number(p).String())
		}
		return &types.AttributeValueMemberNS{Value: set}
	}
	var set []string
	for p := range v.Payloads() {
		set = append(set, string(p))
	}
	return &types.AttributeValueMemberSS{Value: set}
}

// ReadKey returns a key from its JSON; no JSON is no key.
func ReadKey(text []byte) (attr.Item, error) {
	if len(text) == 0 {
		return nil, nil
	}
	r := &Reader{json: dynamo.NewJSON(nil)}
	key, err := r.decode(text)
	if err != nil {
		return nil, fmt.Errorf("a saved key: %w", err)
	}
	if key.Len() == 0 {
		return nil, errors.New("a saved key has no attributes")
	}
	return itemOf(key), nil
}
