// Package template fills in the body of a delivery from an item and named values: the input of a
// reminder, or of a lifecycle's transition.
//
// A template is text with placeholders. <$.path> is replaced by the value at a path of the item,
// and <mayfly.name> by a named value. A template that begins like JSON must be JSON, and stays JSON
// when filled in: inside its strings a placeholder becomes the value's text, and elsewhere the
// value without types. A path without a value becomes an empty text or null.
package template

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// Template is a parsed template. It is immutable.
type Template struct {
	parts []part
	json  bool
}

// part is a text and the placeholder after it.
type part struct {
	text   string
	quoted bool   // the placeholder is inside a JSON string
	path   Path   // in the item; or
	known  string // a name; both empty after the last text
}

const (
	BytesMost  = 64 << 10 // of a template
	FilledMost = 1 << 20  // of the result: more than any target accepts
)

// levels is the depth that a template must leave for values that are filled in, and for a document
// around the result. encoding/json reads 10,000 levels.
const levels = 100

var placeholder = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`<(\$\.[^<>]*|mayfly\.[^<>]*)>`)
})

// Parse parses a template. names are the named values that it may use.
func Parse(text string, names []string) (*Template, error) {
	if len(text) > BytesMost {
		return nil, fmt.Errorf("%d bytes are too many; the limit is %d", len(text), BytesMost)
	}
	begin := strings.TrimLeft(text, " \t\r\n")
	t := &Template{json: begin != "" && strings.Contains(`{["`, begin[:1])}
	quoted, last := false, 0
	for _, at := range placeholder().FindAllStringSubmatchIndex(text, -1) {
		p := part{text: text[last:at[0]]}
		quoted = EndsQuoted(p.text, quoted)
		p.quoted = quoted
		name := text[at[2]:at[3]]
		if quoted && t.json {
			name = unquoted(name)
		}
		if path, ok := strings.CutPrefix(name, "$."); ok {
			var err error
			if p.path, err = ParsePath(path); err != nil {
				return nil, err
			}
		} else if p.known = strings.TrimPrefix(name, "mayfly."); !slices.Contains(names, p.known) {
			return nil, fmt.Errorf("unknown variable <%s>; use one of <mayfly.%s>", name, strings.Join(names, ">, <mayfly."))
		}
		t.parts = append(t.parts, p)
		last = at[1]
	}
	t.parts = append(t.parts, part{text: text[last:]})
	if sample := t.sample(); t.json && !json.Valid(sample) {
		return nil, errors.New("it begins like JSON but is not valid JSON")
	} else if t.json && !json.Valid([]byte(strings.Repeat("[", levels)+string(sample)+strings.Repeat("]", levels))) {
		return nil, errors.New("it is nested too deeply")
	}
	return t, nil
}

// JSON reports whether the result is JSON rather than text.
func (t *Template) JSON() bool { return t.json }

// unquoted returns a placeholder from inside a JSON string in its plain form. The quotation marks
// of its path may be escaped there, as a JSON encoder does, or not.
func unquoted(name string) string {
	var plain string
	if json.Unmarshal([]byte(`"`+name+`"`), &plain) != nil {
		return name
	}
	return plain
}

// sample returns a filled-in text that is JSON if the template is, for any values. Inside strings
// it inserts a letter that cannot complete an escape. An empty text would join its two sides, as in
// "\<$.a>"".
func (t *Template) sample() (b []byte) {
	for _, p := range t.parts {
		b = append(b, p.text...)
		switch {
		case p.path == nil && p.known == "":
		case p.quoted:
			b = append(b, '.')
		default:
			b = append(b, "null"...)
		}
	}
	return b
}

// EndsQuoted reports whether a piece of JSON ends inside a string. quoted says whether it begins
// inside one.
func EndsQuoted(text string, quoted bool) bool {
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

// Fill returns the template filled in for an item and the named values. It stops at more than
// FilledMost bytes, since a template may name a large value thousands of times; such a result is
// useless.
func (t *Template) Fill(item, known map[string]types.AttributeValue) []byte {
	var b []byte
	for _, p := range t.parts {
		if len(b) > FilledMost {
			break
		}
		b = append(b, p.text...)
		var value types.AttributeValue
		switch {
		case p.path != nil:
			value = p.path.Of(item)
		case p.known != "":
			value = known[p.known]
		default:
			continue
		}
		if t.json && !p.quoted {
			b = AppendPlain(b, value)
			continue
		}
		text := Text(value)
		if t.json {
			quoted := dynamo.AppendQuoted(nil, text)
			b = append(b, quoted[1:len(quoted)-1]...)
		} else {
			b = append(b, text...)
		}
	}
	return b
}

// Text returns a value as text: a string unchanged, an empty text for no value, JSON for all
// others.
func Text(v types.AttributeValue) string {
	switch v := v.(type) {
	case nil:
		return ""
	case *types.AttributeValueMemberS:
		return v.Value
	}
	return string(AppendPlain(nil, v))
}

// AppendPlain appends a value as plain JSON without types: numbers unchanged, binary values in
// base64, sets as arrays, and null for no value.
func AppendPlain(dst []byte, v types.AttributeValue) []byte {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return dynamo.AppendQuoted(dst, v.Value)
	case *types.AttributeValueMemberN:
		return appendNumber(dst, v.Value)
	case *types.AttributeValueMemberB:
		return dynamo.AppendBase64(dst, v.Value)
	case *types.AttributeValueMemberBOOL:
		return fmt.Append(dst, v.Value)
	case *types.AttributeValueMemberM:
		return dynamo.AppendObject(dst, v.Value, AppendPlain)
	case *types.AttributeValueMemberL:
		return dynamo.AppendArray(dst, v.Value, AppendPlain)
	case *types.AttributeValueMemberSS:
		return dynamo.AppendArray(dst, v.Value, dynamo.AppendQuoted[string])
	case *types.AttributeValueMemberNS:
		return dynamo.AppendArray(dst, v.Value, appendNumber)
	case *types.AttributeValueMemberBS:
		return dynamo.AppendArray(dst, v.Value, dynamo.AppendBase64)
	}
	return append(dst, "null"...)
}

// AppendTyped appends a value in DynamoDB's typed JSON, as in {"S":"x"}.
func AppendTyped(dst []byte, v types.AttributeValue) []byte {
	kind := func(name string) []byte { return append(append(append(dst, `{"`...), name...), `":`...) }
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		dst = dynamo.AppendQuoted(kind("S"), v.Value)
	case *types.AttributeValueMemberN:
		dst = dynamo.AppendQuoted(kind("N"), v.Value)
	case *types.AttributeValueMemberB:
		dst = dynamo.AppendBase64(kind("B"), v.Value)
	case *types.AttributeValueMemberBOOL:
		dst = fmt.Append(kind("BOOL"), v.Value)
	case *types.AttributeValueMemberM:
		dst = AppendItem(kind("M"), v.Value)
	case *types.AttributeValueMemberL:
		dst = dynamo.AppendArray(kind("L"), v.Value, AppendTyped)
	case *types.AttributeValueMemberSS:
		dst = dynamo.AppendArray(kind("SS"), v.Value, dynamo.AppendQuoted[string])
	case *types.AttributeValueMemberNS:
		dst = dynamo.AppendArray(kind("NS"), v.Value, dynamo.AppendQuoted[string])
	case *types.AttributeValueMemberBS:
		dst = dynamo.AppendArray(kind("BS"), v.Value, dynamo.AppendBase64)
	default:
		dst = append(kind("NULL"), "true"...)
	}
	return append(dst, '}')
}

// AppendItem appends an item in DynamoDB's typed JSON, with its attributes in the order of their
// names.
func AppendItem(dst []byte, it map[string]types.AttributeValue) []byte {
	return dynamo.AppendObject(dst, it, AppendTyped)
}

// CompactJSON returns a value as JSON, without escapes for <, > and &, so that placeholders and texts
// stay readable.
func CompactJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// appendNumber appends a number unchanged if it is valid JSON.
func appendNumber(dst []byte, n string) []byte {
	if !json.Valid([]byte(n)) {
		return dynamo.AppendQuoted(dst, n)
	}
	return append(dst, n...)
}
