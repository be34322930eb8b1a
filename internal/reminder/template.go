package reminder

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/dynamo"
)

// template is what a target gets, with placeholders that are filled in for each reminder: <$.path> stands for what is at a path of the item, and <mayfly.…> for what is
// known of the reminder. A template that is JSON is one with what is filled in, too: inside of its strings a value's text is filled in, elsewhere the value.
type template struct {
	parts []part
	json  bool
}

// part is text, and what follows it.
type part struct {
	text   string
	quoted bool   // what follows stands in a JSON string
	path   path   // of the item; or
	known  string // of the reminder; both empty behind the last text
}

// The known of a reminder.
const (
	knownID    = "id"    // of the delivery: the same however often it comes
	knownRule  = "rule"  // name
	knownTable = "table" // name
	knownAt    = "at"    // the instant that the item names
	knownTime  = "time"  // when the reminder is due: that with the offset
	knownKey   = "key"   // an object
	knownItem  = "item"  // an object
)

var knowns = []string{knownID, knownRule, knownTable, knownAt, knownTime, knownKey, knownItem}

// templateDefault is the input of a rule without one.
const templateDefault = `{"id":"<mayfly.id>","reminder":"<mayfly.rule>","time":"<mayfly.time>","at":"<mayfly.at>","table":"<mayfly.table>","key":<mayfly.key>,"item":<mayfly.item>}`

const (
	templateMax = 64 << 10
	inputMax    = 256 << 10 // of what a template comes to
)

var placeholder = regexp.MustCompile(`<(\$\.[^<>]*|mayfly\.[^<>]*)>`)

// newTemplate reads a template. An empty one is the default.
func newTemplate(text string) (*template, error) {
	if text == "" {
		text = templateDefault
	}
	if len(text) > templateMax {
		return nil, fmt.Errorf("it has %d bytes, and at most %d are allowed", len(text), templateMax)
	}
	begin := strings.TrimLeft(text, " \t\r\n")
	t := &template{json: begin != "" && strings.Contains(`{["`, begin[:1])}
	quoted, last := false, 0
	for _, at := range placeholder.FindAllStringSubmatchIndex(text, -1) {
		p := part{text: text[last:at[0]]}
		quoted = endsQuoted(p.text, quoted)
		p.quoted = quoted
		name := text[at[2]:at[3]]
		if path, ok := strings.CutPrefix(name, "$."); ok {
			var err error
			if p.path, err = parsePath(path); err != nil {
				return nil, err
			}
		} else if p.known = strings.TrimPrefix(name, "mayfly."); !slices.Contains(knowns, p.known) {
			return nil, fmt.Errorf("<%s> is none of <mayfly.%s>", name, strings.Join(knowns, ">, <mayfly."))
		}
		t.parts = append(t.parts, p)
		last = at[1]
	}
	t.parts = append(t.parts, part{text: text[last:]})
	if t.json && !json.Valid(t.fill(reminderOf{})) {
		return nil, errors.New("it begins like JSON, and is none")
	}
	return t, nil
}

// endsQuoted tells whether the end of a piece of JSON is inside of a string, where its beginning is or is not.
func endsQuoted(text string, quoted bool) bool {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			quoted = !quoted
		case '\\':
			if quoted {
				i++
			}
		}
	}
	return quoted
}

// reminderOf is what a template is filled with.
type reminderOf struct {
	item  map[string]types.AttributeValue
	known map[string]string // texts, but for key and item
	key   map[string]types.AttributeValue
}

// fill gives the input for a reminder.
func (t *template) fill(r reminderOf) []byte {
	var b []byte
	for _, p := range t.parts {
		b = append(b, p.text...)
		if p.path == nil && p.known == "" {
			continue
		}
		value := r.value(p)
		if t.json && !p.quoted {
			b = appendPlain(b, value)
			continue
		}
		text := textOf(value)
		if t.json {
			quoted := dynamo.AppendQuoted(nil, text)
			b = append(b, quoted[1:len(quoted)-1]...)
		} else {
			b = append(b, text...)
		}
	}
	return b
}

// value is what a placeholder stands for; nil where there is nothing.
func (r reminderOf) value(p part) types.AttributeValue {
	switch {
	case p.path != nil:
		return p.path.of(r.item)
	case p.known == knownKey:
		return &types.AttributeValueMemberM{Value: r.key}
	case p.known == knownItem:
		return &types.AttributeValueMemberM{Value: r.item}
	}
	return &types.AttributeValueMemberS{Value: r.known[p.known]}
}

// textOf is a value within text: a string as it is, nothing where there is nothing, JSON for the rest.
func textOf(v types.AttributeValue) string {
	switch v := v.(type) {
	case nil:
		return ""
	case *types.AttributeValueMemberS:
		return v.Value
	}
	return string(appendPlain(nil, v))
}

// appendPlain appends a value as plain JSON, without types: numbers as they are, binary values in base64, sets as arrays. Nothing is null.
func appendPlain(dst []byte, v types.AttributeValue) []byte {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return dynamo.AppendQuoted(dst, v.Value)
	case *types.AttributeValueMemberN:
		return appendNumber(dst, v.Value)
	case *types.AttributeValueMemberB:
		return dynamo.AppendQuoted(dst, base64.StdEncoding.EncodeToString(v.Value))
	case *types.AttributeValueMemberBOOL:
		return fmt.Append(dst, v.Value)
	case *types.AttributeValueMemberM:
		return appendMap(dst, v.Value, appendPlain)
	case *types.AttributeValueMemberL:
		return appendList(dst, v.Value, appendPlain)
	case *types.AttributeValueMemberSS:
		return appendList(dst, v.Value, dynamo.AppendQuoted[string])
	case *types.AttributeValueMemberNS:
		return appendList(dst, v.Value, appendNumber)
	case *types.AttributeValueMemberBS:
		return appendList(dst, v.Value, func(dst, b []byte) []byte { return dynamo.AppendQuoted(dst, base64.StdEncoding.EncodeToString(b)) })
	}
	return append(dst, "null"...)
}

// appendNumber appends a number as it is, as far as JSON knows it so.
func appendNumber(dst []byte, n string) []byte {
	if !json.Valid([]byte(n)) {
		return dynamo.AppendQuoted(dst, n)
	}
	return append(dst, n...)
}

func appendMap(dst []byte, m map[string]types.AttributeValue, appendValue func([]byte, types.AttributeValue) []byte) []byte {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	dst = append(dst, '{')
	for i, name := range names {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dynamo.AppendQuoted(dst, name), ':')
		dst = appendValue(dst, m[name])
	}
	return append(dst, '}')
}

func appendList[T any](dst []byte, elems []T, appendElem func([]byte, T) []byte) []byte {
	dst = append(dst, '[')
	for i, e := range elems {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendElem(dst, e)
	}
	return append(dst, ']')
}
