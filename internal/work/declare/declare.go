// Package declare reads files of declarations: triggers, reminders.
//
// Such a file is YAML, which includes JSON: a list of declarations, or an object with the list as
// its member. An unknown member is an error. Some members hold a text such as a JSON pattern, and
// may be written as the value itself. They are converted to texts first, so that the structures
// need no types of their own for them.
package declare

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/mayflydb/mayfly/internal/when"
	"github.com/mayflydb/mayfly/internal/yamlfile"
)

// maxBytes is the size of the largest file.
const maxBytes = 1 << 20

// Text rewrites the node of a member in place: from any form that a user may write to the text that
// is decoded.
type Text func(node *yaml.Node) error

// Read reads the declarations in a file. named is the name of the list; texts are by the names of
// members.
func Read[T any](r io.Reader, named string, texts map[string]Text) ([]T, error) {
	file, err := io.ReadAll(io.LimitReader(r, maxBytes+1))
	if err != nil {
		return nil, err
	}
	if len(file) > maxBytes {
		return nil, fmt.Errorf("the file is larger than %d bytes", maxBytes)
	}
	top, err := yamlfile.Parse(file)
	if top == nil || err != nil {
		return nil, err
	}
	if top.Kind == yaml.ScalarNode && top.Tag == "!!null" {
		return nil, nil
	}
	left := maxNodes
	if top, err = inlined(top, &left); err != nil {
		return nil, err
	}
	list, err := listOf(top, named)
	if list == nil || err != nil {
		return nil, err
	}
	all := make([]T, len(list.Content))
	var faults []error
	for i, element := range list.Content {
		faults = append(faults, decode(element, texts, &all[i])...)
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	return all, nil
}

// maxNodes is the most values of a file; those behind aliases count each time.
const maxNodes = 100_000

// inlined returns a node with its aliases replaced by their values, so that each part is complete
// by itself.
func inlined(node *yaml.Node, left *int) (*yaml.Node, error) {
	if *left--; *left < 0 {
		return nil, fmt.Errorf("the file has more than %d values", maxNodes)
	}
	if node.Kind == yaml.AliasNode {
		return inlined(node.Alias, left)
	}
	out := *node
	out.Anchor, out.Content = "", make([]*yaml.Node, len(node.Content))
	for i, c := range node.Content {
		var err error
		if out.Content[i], err = inlined(c, left); err != nil {
			return nil, err
		}
	}
	return &out, nil
}

// listOf returns the list in a file, or nil if the file is empty.
func listOf(top *yaml.Node, named string) (*yaml.Node, error) {
	list := top
	if top.Kind == yaml.MappingNode {
		for i := 0; i < len(top.Content); i += 2 {
			if name := top.Content[i].Value; name != named {
				return nil, faultAt(top.Content[i], "unknown setting %q; the file must be a list, or have one under %q", name, named)
			}
			list = top.Content[i+1]
		}
		if list == top || list.Kind == yaml.ScalarNode && list.Tag == "!!null" {
			return nil, nil
		}
	}
	if list.Kind != yaml.SequenceNode {
		return nil, faultAt(list, "expected a list, or an object with a list under %q", named)
	}
	return list, nil
}

// decode decodes one declaration and returns all its faults, with their places in the file.
func decode(element *yaml.Node, texts map[string]Text, into any) (faults []error) {
	rewriteDurations(element, reflect.TypeOf(into).Elem())
	if element.Kind == yaml.MappingNode {
		for i := 0; i < len(element.Content); i += 2 {
			if text := texts[element.Content[i].Value]; text != nil {
				if err := text(element.Content[i+1]); err != nil {
					faults = append(faults, err)
				}
			}
		}
	}
	if len(faults) > 0 {
		return faults
	}
	// Only a decoder of text refuses unknown settings.
	text, err := yaml.Marshal(element)
	if err != nil {
		return []error{faultAt(element, "%w", err)}
	}
	strict := yaml.NewDecoder(bytes.NewReader(text))
	strict.KnownFields(true)
	if err = strict.Decode(into); err == nil {
		return nil
	}
	encoded, unreadable := yamlfile.Parse(text)
	if unreadable != nil || encoded == nil {
		return []error{faultAt(element, "%w", err)}
	}
	for _, f := range yamlfile.Faults(err, encoded) {
		faults = append(faults, errors.New(f.In(element).String()))
	}
	return faults
}

// rewriteDurations replaces the durations of a declaration, such as 2d, by their form in Go, such as
// 48h0m0s, which is the only one that yaml decodes. It leaves invalid ones to yaml's complaint.
func rewriteDurations(element *yaml.Node, declaration reflect.Type) {
	if element.Kind != yaml.MappingNode {
		return
	}
	for i := range declaration.NumField() {
		field := declaration.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("yaml"), ",")
		if field.Type != reflect.TypeFor[time.Duration]() {
			continue
		}
		for j := 0; j < len(element.Content); j += 2 {
			value := element.Content[j+1]
			if d, err := when.Duration(value.Value); err == nil && element.Content[j].Value == name && value.Kind == yaml.ScalarNode {
				Set(value, d.String())
			}
		}
	}
}

// faultAt returns an error with the place of a node.
func faultAt(node *yaml.Node, format string, args ...any) error {
	return fmt.Errorf("line %d, column %d: %w", node.Line, node.Column, fmt.Errorf(format, args...))
}

// JSON accepts a member that holds JSON as text or as the value itself.
func JSON(node *yaml.Node) error {
	if node.Kind == yaml.ScalarNode {
		return nil
	}
	var v any
	if err := node.Decode(&v); err != nil {
		return err
	}
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return faultAt(node, "this is not JSON: %w", err)
	}
	Set(node, strings.TrimSpace(text.String()))
	return nil
}

// ListOfJSON accepts a list of such members, or a single one without a list.
func ListOfJSON(node *yaml.Node) error {
	if node.Kind != yaml.SequenceNode {
		one := *node
		*node = yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Line: one.Line, Column: one.Column, Content: []*yaml.Node{&one}}
	}
	for _, element := range node.Content {
		if element.Kind != yaml.ScalarNode && element.Kind != yaml.MappingNode {
			return faultAt(element, "expected an object, or a string with its JSON")
		}
		if err := JSON(element); err != nil {
			return err
		}
	}
	return nil
}

// Set turns a node into a text.
func Set(node *yaml.Node, text string) {
	*node = yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Style: yaml.DoubleQuotedStyle, Value: text, Line: node.Line, Column: node.Column}
}
