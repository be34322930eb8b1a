package console

import (
	"encoding/base64"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/transfer"
)

// As JSON, a control character of a key takes eight bytes in a URL, and a long key of them would
// not fit. Such a key has a short form: for each attribute, in the order of their names, a letter
// for its type, and its value in base64. No JSON begins with the mark.
const (
	shortMark  = "~"
	shortJoint = "."
	keyMost    = urlMost - 1<<10 // bytes of a key in a URL; the path and other values need some
)

// urlKey returns a key, which is JSON, as a URL has it.
func urlKey(key string) string {
	if len(url.QueryEscape(key)) <= keyMost {
		return key
	}
	item, err := transfer.ReadKey([]byte(key))
	if err != nil {
		return key
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(item)) {
		kind, value := "", []byte(nil)
		switch v := item[name].(type) {
		case *types.AttributeValueMemberS:
			kind, value = "S", []byte(v.Value)
		case *types.AttributeValueMemberN:
			kind, value = "N", []byte(v.Value)
		case *types.AttributeValueMemberB:
			kind, value = "B", v.Value
		}
		parts = append(parts, kind+base64.RawURLEncoding.EncodeToString(value))
	}
	return shortMark + strings.Join(parts, shortJoint)
}

// jsonKey returns a key of a URL as JSON.
func (t *table) jsonKey(key string) (string, error) {
	short, ok := strings.CutPrefix(key, shortMark)
	if !ok {
		return key, nil
	}
	item, err := t.readShort(short)
	if err != nil {
		return "", &pageError{http.StatusBadRequest, "This is not the key of an item: " + err.Error()}
	}
	return keyJSON(item, t.keys()), nil
}

var errShortKey = errors.New("a short key has a type and a value in base64 for each key attribute")

// readShort reads the short form of a key.
func (t *table) readShort(short string) (attr.Item, error) {
	parts, names := strings.Split(short, shortJoint), slices.Sorted(slices.Values(t.keys()))
	if len(parts) != len(names) {
		return nil, errShortKey
	}
	item := attr.Item{}
	for i, name := range names {
		if parts[i] == "" {
			return nil, errShortKey
		}
		value, err := base64.RawURLEncoding.DecodeString(parts[i][1:])
		if err != nil {
			return nil, err
		}
		switch parts[i][0] {
		case 'S':
			item[name] = attr.S(string(value))
		case 'N':
			item[name] = attr.N(string(value))
		case 'B':
			item[name] = attr.B(value)
		default:
			return nil, errShortKey
		}
	}
	return item, nil
}
