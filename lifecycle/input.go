package lifecycle

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"gopkg.in/yaml.v3"

	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/template"
)

// Placeholders for the fields of the call.
const (
	knownID        = "id"        // of the call: the same at each attempt
	knownLifecycle = "lifecycle" // name
	knownEntity    = "entity"    // name
	knownFrom      = "from"      // state
	knownTo        = "to"        // state
	// the instant at which the transition was due, or at which Move made it
	knownDue        = "due"
	knownGeneration = "generation" // a number
	knownAttributes = "attributes" // an object: all attributes of the entity
)

var knowns = []string{knownID, knownLifecycle, knownEntity, knownFrom, knownTo, knownDue, knownGeneration, knownAttributes}

// Shapes of a call's input, in attrShape. Without an input there is no shape, and a target receives
// the Call.
const (
	shapeJSON     = "json"      // a target receives the input, which is JSON
	shapeText     = "text"      // a target receives the input as text
	shapeTooLarge = "too large" // no target accepts it; the stored input is its size
)

// readInput compiles a transition's input. It calls fault for each problem, with the path of the
// member.
func readInput(input any, fault func(path, problem string)) *template.Template {
	if text, ok := input.(string); ok {
		t, err := template.Parse(text, knowns)
		if err != nil {
			fault("", err.Error())
		}
		return t
	}
	text, err := template.CompactJSON(input)
	if err != nil {
		fault("", "not valid JSON: "+err.Error())
		return nil
	}
	t, err := template.Parse(string(text), knowns)
	if err == nil {
		return t
	}
	found := false
	eachText("", input, func(path, text string) {
		if _, err := template.Parse(asText(text), knowns); err != nil && len(text) <= template.BytesMost {
			fault(path, err.Error())
			found = true
		}
	})
	if !found {
		fault("", err.Error())
	}
	return nil
}

// asText returns a text that no template mistakes for JSON.
func asText(s string) string { return "." + s }

// eachText calls f for each text in a value of YAML or JSON, with its path.
func eachText(path string, v any, f func(path, text string)) {
	switch v := v.(type) {
	case string:
		f(path, v)
	case []any:
		for i, e := range v {
			eachText(fmt.Sprintf("%s[%d]", path, i), e, f)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			f(path+"."+name, name)
			eachText(path+"."+name, v[name], f)
		}
	}
}

// plainInput converts any Go value to the stored form of an input: a value of YAML or JSON.
func plainInput(input any) (any, error) {
	if input == nil {
		return nil, nil
	}
	if _, ok := input.(string); ok {
		return input, nil
	}
	text, err := template.CompactJSON(input)
	if err != nil {
		return nil, err
	}
	var plain any
	err = yaml.Unmarshal([]byte(asYAML(string(text))), &plain) // YAML keeps whole numbers exact
	return plain, err
}

// asYAML converts JSON to YAML. It escapes the characters that JSON allows in texts and YAML does
// not.
func asYAML(text string) string {
	var b strings.Builder
	for _, r := range text {
		if r >= 0x7f && r <= 0x9f || r == 0xfffe || r == 0xffff {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// fill returns a transition's input for a call, as JSON, and its shape.
func (s *step) fill(c *Call, attributes Item) (json.RawMessage, string) {
	due, _ := c.Due.MarshalText() // cannot fail between the years 1970 and 9999
	filled := s.input.Fill(attributes, map[string]types.AttributeValue{
		knownID: attr.S(c.ID), knownLifecycle: attr.S(c.Lifecycle), knownEntity: attr.S(c.Entity), knownFrom: attr.S(c.From), knownTo: attr.S(c.To), knownDue: attr.S(string(due)),
		knownGeneration: attr.Int(c.Generation), knownAttributes: attr.M(attributes),
	})
	switch _, text := s.Input.(string); {
	case len(filled) > bodyMost:
		return fmt.Append(nil, len(filled)), shapeTooLarge
	case s.input.JSON() && bytes.HasPrefix(bytes.TrimLeft(filled, " \t\r\n"), []byte(`"`)):
		return filled, shapeText
	case s.input.JSON() || !text: // a number, for example
		return filled, shapeJSON
	}
	quoted, _ := template.CompactJSON(string(filled)) // a text cannot fail
	return quoted, shapeText
}

// inputOf returns the body that a target receives for a call in the history, and its media type.
func inputOf(body []byte, shape string) ([]byte, string) {
	var c struct {
		Input json.RawMessage `json:"input"`
	}
	if shape == "" || json.Unmarshal(body, &c) != nil || c.Input == nil {
		return body, "application/json"
	}
	var text string
	if shape == shapeText && json.Unmarshal(c.Input, &text) == nil {
		return []byte(text), "text/plain"
	}
	return c.Input, "application/json"
}

// tooLarge returns the error text for a call with an oversized input.
func tooLarge(body []byte) string {
	size, _ := inputOf(body, shapeTooLarge)
	return fmt.Sprintf("the call with its input has at least %s bytes; the limit is %d", size, bodyMost)
}

// shown returns a short form of an input for a drawing.
func (t *Transition) shown() string {
	if t.Input == nil {
		return ""
	}
	if text, ok := t.Input.(string); ok {
		return text
	}
	text, _ := template.CompactJSON(t.Input)
	return string(text)
}
