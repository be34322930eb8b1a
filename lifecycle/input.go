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

	"github.com/mayflydb/mayfly/internal/work/template"
)

// What an input may name of its call, besides attributes of the entity.
const (
	knownID         = "id"         // of the call: the same however often it comes
	knownLifecycle  = "lifecycle"  // name
	knownEntity     = "entity"     // name
	knownFrom       = "from"       // state
	knownTo         = "to"         // state
	knownDue        = "due"        // when the transition was due, or was made by Move
	knownGeneration = "generation" // a number
	knownAttributes = "attributes" // an object: all of the entity's
)

var knowns = []string{knownID, knownLifecycle, knownEntity, knownFrom, knownTo, knownDue, knownGeneration, knownAttributes}

// What becomes of a call's input: what attrShape says. Without an input there is none, and a target gets the call.
const (
	shapeJSON     = "json"      // a target gets the input, which is JSON
	shapeText     = "text"      // a target gets the text that the input is
	shapeTooLarge = "too large" // nobody can be given that; the input says how large it was
)

// readInput reads a transition's input. fault is told what is wrong, with the path of the member where that is.
func readInput(input any, fault func(path, problem string)) *template.Template {
	if text, is := input.(string); is {
		t, err := template.Parse(text, knowns)
		if err != nil {
			fault("", err.Error())
		}
		return t
	}
	text, err := compactJSON(input)
	if err != nil {
		fault("", "not valid JSON: "+err.Error())
		return nil
	}
	t, err := template.Parse(text, knowns)
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

// compactJSON is a value as JSON, in which <, > and & stand as they are: placeholders, and what is for people to read.
func compactJSON(input any) (string, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(input); err != nil {
		return "", err
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}

// asText is a text that no template takes for JSON.
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

// plainInput is an input as it is stored: of what YAML and JSON have, whatever Go value it was.
func plainInput(input any) (any, error) {
	if input == nil {
		return nil, nil
	}
	if _, is := input.(string); is {
		return input, nil
	}
	text, err := compactJSON(input)
	if err != nil {
		return nil, err
	}
	var plain any
	err = yaml.Unmarshal([]byte(asYAML(text)), &plain) // which keeps whole numbers what they are
	return plain, err
}

// asYAML is JSON as YAML: without the characters that may stand in the texts of the one as they are, and not of the other.
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

// fill gives a transition's input for a call, as JSON, and its shape.
func (s *step) fill(c *Call, of Item) (json.RawMessage, string) {
	due, _ := c.Due.MarshalText() // between 1970 and 9999, so it cannot fail
	filled := s.input.Fill(of, map[string]types.AttributeValue{
		knownID: text(c.ID), knownLifecycle: text(c.Lifecycle), knownEntity: text(c.Entity), knownFrom: text(c.From), knownTo: text(c.To), knownDue: text(string(due)),
		knownGeneration: number(c.Generation), knownAttributes: &types.AttributeValueMemberM{Value: of},
	})
	switch _, text := s.Input.(string); {
	case len(filled) > bodyMost:
		return fmt.Append(nil, len(filled)), shapeTooLarge
	case s.input.JSON() && bytes.HasPrefix(bytes.TrimLeft(filled, " \t\r\n"), []byte(`"`)):
		return filled, shapeText
	case s.input.JSON() || !text: // a number, say
		return filled, shapeJSON
	}
	quoted, _ := compactJSON(string(filled)) // a text cannot fail
	return []byte(quoted), shapeText
}

// inputOf is what a target gets of a call as the history has it, and its media type.
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

// tooLarge says what is wrong with a call whose input is too large.
func tooLarge(body []byte) string {
	size, _ := inputOf(body, shapeTooLarge)
	return fmt.Sprintf("the call with its input has at least %s bytes; the limit is %d", size, bodyMost)
}

// shown is what an input is made of, in short, for a drawing.
func (t *Transition) shown() string {
	if t.Input == nil {
		return ""
	}
	if text, is := t.Input.(string); is {
		return text
	}
	text, _ := compactJSON(t.Input)
	return text
}
