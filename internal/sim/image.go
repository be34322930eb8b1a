package sim

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	streams "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

// image is an item: the values of its attributes, each behind the letter of its type ("S" or "N").
// A nil image is no item.
type image map[string]string

// attributes are those that an item can have, in the order of text.
var attributes = [...]string{"pk", "sk", "v", "ttl", "alt", "g", "h", "n", "pad"}

// key is the primary key of an item.
type key struct{ pk, sk string }

func (k key) image() image { return image{"pk": "S" + k.pk, "sk": "N" + k.sk} }

func (k key) String() string { return k.pk + "/" + k.sk }

func (m image) key() key {
	if m == nil {
		return key{}
	}
	return key{value(m["pk"]), value(m["sk"])}
}

// value is an attribute without the letter of its type.
func value(typed string) string {
	if typed == "" {
		return ""
	}
	return typed[1:]
}

// text has all of an image. Equal texts are equal items. It is empty for no item.
func (m image) text() string {
	if m == nil {
		return ""
	}
	var b strings.Builder
	b.Grow(64)
	seen := 0
	for _, name := range attributes {
		if v, ok := m[name]; ok {
			seen++
			b.WriteString(name)
			b.WriteByte('=')
			b.WriteString(v)
			b.WriteByte(' ')
		}
	}
	if seen != len(m) {
		fmt.Fprint(&b, "and more: ", map[string]string(m))
	}
	return b.String()
}

// with returns a copy with changes; an empty value removes the attribute.
func (m image) with(changes image) image {
	out := make(image, len(m)+len(changes))
	for name, v := range m {
		out[name] = v
	}
	for name, v := range changes {
		if out[name] = v; v == "" {
			delete(out, name)
		}
	}
	return out
}

// never is the deadline of an item that does not expire.
const never = math.MaxInt64

// bubbleStart is the instant at which each bubble of testing/synctest begins, in milliseconds.
const bubbleStart = 946_684_800_000

// tooOld bounds the deadlines that count: a TTL value of five years ago does not expire an item. No
// plan comes near the bound.
const tooOld = bubbleStart - 5*365*24*3600*1000

// deadline returns an item's deadline in milliseconds under a TTL attribute, by the law: a fraction of the TTL number is
// rounded up to the millisecond, and a TTL of another type is none.
func (m image) deadline(attribute string) int64 {
	ttl := m[attribute]
	if !strings.HasPrefix(ttl, "N") {
		return never
	}
	whole, fraction, _ := strings.Cut(ttl[1:], ".")
	seconds, err := strconv.ParseInt(whole, 10, 64)
	if err != nil {
		return never
	}
	at := seconds * 1000
	if fraction != "" {
		padded := fraction + "000"
		ms, err := strconv.ParseInt(padded[:3], 10, 64)
		if err != nil {
			return never
		}
		at += ms
		if strings.Trim(padded[3:], "0") != "" {
			at++
		}
	}
	if at < tooOld {
		return never
	}
	return at
}

func (m image) item() map[string]types.AttributeValue {
	out := make(map[string]types.AttributeValue, len(m))
	for name, v := range m {
		out[name] = attribute(v)
	}
	return out
}

func attribute(typed string) types.AttributeValue {
	if typed[0] == 'N' {
		return &types.AttributeValueMemberN{Value: typed[1:]}
	}
	return &types.AttributeValueMemberS{Value: typed[1:]}
}

func fromItem(item map[string]types.AttributeValue) image {
	if len(item) == 0 {
		return nil
	}
	out := make(image, len(item))
	for name, v := range item {
		switch v := v.(type) {
		case *types.AttributeValueMemberS:
			out[name] = "S" + v.Value
		case *types.AttributeValueMemberN:
			out[name] = "N" + v.Value
		default:
			out[name] = fmt.Sprintf("?%T", v)
		}
	}
	return out
}

func fromRecord(item map[string]streams.AttributeValue) image {
	if len(item) == 0 {
		return nil
	}
	out := make(image, len(item))
	for name, v := range item {
		switch v := v.(type) {
		case *streams.AttributeValueMemberS:
			out[name] = "S" + v.Value
		case *streams.AttributeValueMemberN:
			out[name] = "N" + v.Value
		default:
			out[name] = fmt.Sprintf("?%T", v)
		}
	}
	return out
}
