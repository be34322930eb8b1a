package conformance

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

// attributes is an item or a key, as the SDK spells it.
type attributes = map[string]types.AttributeValue

// number is a decimal as text, for one that no Go number holds exactly and for unusual spellings:
// number("1E-130").
type number string

// stringSet, numberSet and binarySet are sets.
type (
	stringSet []string
	numberSet []string
	binarySet [][]byte
)

// item returns an item or a key of alternating names and values: item("pk", "a", "n", 1).
func item(pairs ...any) attributes {
	built := attributes{}
	for i := 0; i+1 < len(pairs); i += 2 {
		built[pairs[i].(string)] = value(pairs[i+1])
	}
	return built
}

// value builds an attribute value: string S, int, int64 and number N, []byte B, bool BOOL, nil
// NULL, []any L, attributes M, stringSet SS, numberSet NS, binarySet BS. An attribute value stays
// as it is; other types panic.
func value(v any) types.AttributeValue {
	switch v := v.(type) {
	case string:
		return &types.AttributeValueMemberS{Value: v}
	case int:
		return &types.AttributeValueMemberN{Value: strconv.Itoa(v)}
	case int64:
		return &types.AttributeValueMemberN{Value: strconv.FormatInt(v, 10)}
	case number:
		return &types.AttributeValueMemberN{Value: string(v)}
	case []byte:
		return &types.AttributeValueMemberB{Value: v}
	case bool:
		return &types.AttributeValueMemberBOOL{Value: v}
	case nil:
		return &types.AttributeValueMemberNULL{Value: true}
	case stringSet:
		return &types.AttributeValueMemberSS{Value: v}
	case numberSet:
		return &types.AttributeValueMemberNS{Value: v}
	case binarySet:
		return &types.AttributeValueMemberBS{Value: v}
	case attributes:
		return &types.AttributeValueMemberM{Value: v}
	case []any:
		list := make([]types.AttributeValue, len(v))
		for i, element := range v {
			list[i] = value(element)
		}
		return &types.AttributeValueMemberL{Value: list}
	case types.AttributeValue:
		return v
	default:
		panic(fmt.Sprintf("conformance: no attribute value for a %T", v))
	}
}

// wantItem compares items. The elements of sets have no order; nil is no item.
func wantItem(t *testing.T, what string, got, want attributes) {
	t.Helper()
	if g, w := itemText(got), itemText(want); g != w {
		t.Errorf("%s:\n got %s\nwant %s", what, g, w)
	}
}

// wantItems compares lists of items, order included.
func wantItems(t *testing.T, what string, got, want []attributes) {
	t.Helper()
	if g, w := itemsText(got), itemsText(want); g != w {
		t.Errorf("%s:\n got %s\nwant %s", what, g, w)
	}
}

// itemText returns an item as text. Equal items have equal text.
func itemText(it attributes) string {
	if it == nil {
		return "(none)"
	}
	return canonicalJSON(wireItem(it))
}

func itemsText(items []attributes) string {
	texts := make([]any, len(items))
	for i, it := range items {
		texts[i] = wireItem(it)
	}
	return canonicalJSON(texts)
}

// wireItem returns an item in the shape of its JSON.
func wireItem(it attributes) map[string]any {
	wire := make(map[string]any, len(it))
	for name, v := range it {
		wire[name] = wireValue(v)
	}
	return wire
}

func wireValue(v types.AttributeValue) any {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return map[string]any{"S": v.Value}
	case *types.AttributeValueMemberN:
		return map[string]any{"N": v.Value}
	case *types.AttributeValueMemberB:
		return map[string]any{"B": base64.StdEncoding.EncodeToString(v.Value)}
	case *types.AttributeValueMemberBOOL:
		return map[string]any{"BOOL": v.Value}
	case *types.AttributeValueMemberNULL:
		return map[string]any{"NULL": v.Value}
	case *types.AttributeValueMemberSS:
		return map[string]any{"SS": anys(v.Value)}
	case *types.AttributeValueMemberNS:
		return map[string]any{"NS": anys(v.Value)}
	case *types.AttributeValueMemberBS:
		set := make([]any, len(v.Value))
		for i, b := range v.Value {
			set[i] = base64.StdEncoding.EncodeToString(b)
		}
		return map[string]any{"BS": set}
	case *types.AttributeValueMemberL:
		list := make([]any, len(v.Value))
		for i, element := range v.Value {
			list[i] = wireValue(element)
		}
		return map[string]any{"L": list}
	case *types.AttributeValueMemberM:
		return map[string]any{"M": wireItem(v.Value)}
	default:
		return fmt.Sprintf("%T", v)
	}
}

// anys widens a list of strings.
func anys(texts []string) []any {
	wide := make([]any, len(texts))
	for i, text := range texts {
		wide[i] = text
	}
	return wide
}

// canonicalJSON returns decoded JSON with sorted names and sorted elements of sets.
func canonicalJSON(v any) string {
	text, err := json.Marshal(sortSets(v))
	if err != nil {
		return fmt.Sprintf("(unprintable: %v)", err)
	}
	return string(text)
}

// sortSets returns decoded JSON with the elements of every SS, NS and BS sorted, in a copy.
func sortSets(v any) any {
	switch v := v.(type) {
	case answer:
		return sortSets(map[string]any(v))
	case map[string]any:
		sorted := make(map[string]any, len(v))
		for name, member := range v {
			sorted[name] = sortSets(member)
			set, isList := member.([]any)
			if isList && len(v) == 1 && (name == "SS" || name == "NS" || name == "BS") {
				set = slices.Clone(set)
				slices.SortFunc(set, func(a, b any) int { return compareText(fmt.Sprint(a), fmt.Sprint(b)) })
				sorted[name] = set
			}
		}
		return sorted
	case []any:
		sorted := make([]any, len(v))
		for i, element := range v {
			sorted[i] = sortSets(element)
		}
		return sorted
	default:
		return v
	}
}

func compareText(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	default:
		return 0
	}
}

// fromStream turns an image or a key of a stream record into the table's vocabulary: the Streams
// client has types of its own.
func fromStream(image map[string]streamtypes.AttributeValue) attributes {
	if image == nil {
		return nil
	}
	converted := make(attributes, len(image))
	for name, v := range image {
		converted[name] = fromStreamValue(v)
	}
	return converted
}

func fromStreamValue(v streamtypes.AttributeValue) types.AttributeValue {
	switch v := v.(type) {
	case *streamtypes.AttributeValueMemberS:
		return value(v.Value)
	case *streamtypes.AttributeValueMemberN:
		return value(number(v.Value))
	case *streamtypes.AttributeValueMemberB:
		return value(v.Value)
	case *streamtypes.AttributeValueMemberBOOL:
		return value(v.Value)
	case *streamtypes.AttributeValueMemberSS:
		return value(stringSet(v.Value))
	case *streamtypes.AttributeValueMemberNS:
		return value(numberSet(v.Value))
	case *streamtypes.AttributeValueMemberBS:
		return value(binarySet(v.Value))
	case *streamtypes.AttributeValueMemberM:
		return value(fromStream(v.Value))
	case *streamtypes.AttributeValueMemberL:
		list := make([]any, len(v.Value))
		for i, element := range v.Value {
			list[i] = fromStreamValue(element)
		}
		return value(list)
	default:
		return value(nil)
	}
}
