package sink

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mayflydb/mayfly/target"
)

// Template computes a name, such as a subject or a topic, from a delivery. It is text in which
// {field} is replaced by a field of the delivery:
//
//	{id}       its ID
//	{source}   ARN of the schedule, the rule or the trigger
//	{type}     such as "Scheduled Event"
//	{subject}  its subject
//	{key}      its ordering key
//	{target}   its target's ARN
//	{name}     the last part of that ARN, after the last ":" or "/"
type Template struct {
	parts []part
}

// part is text, or a field.
type part struct {
	text  string
	field func(target.Delivery) string
}

var fields = map[string]func(target.Delivery) string{
	"id":      func(d target.Delivery) string { return d.ID },
	"source":  func(d target.Delivery) string { return d.Source },
	"type":    func(d target.Delivery) string { return d.Type },
	"subject": func(d target.Delivery) string { return d.Subject },
	"key":     func(d target.Delivery) string { return d.Key },
	"target":  func(d target.Delivery) string { return d.TargetARN },
	"name":    func(d target.Delivery) string { return d.TargetARN[strings.LastIndexAny(d.TargetARN, ":/")+1:] },
}

// maxTemplate is the length of the longest template, in bytes.
const maxTemplate = 1024

// ParseTemplate parses a template of at most maxTemplate bytes. An unknown field is an error, and
// so is a brace that belongs to no field.
func ParseTemplate(s string) (Template, error) {
	if len(s) > maxTemplate {
		return Template{}, fmt.Errorf("is longer than %d bytes", maxTemplate)
	}
	var t Template
	for s != "" {
		text, tail, opened := strings.Cut(s, "{")
		if strings.Contains(text, "}") {
			return Template{}, errors.New(`has a "}" without its "{"`)
		}
		if text != "" {
			t.parts = append(t.parts, part{text: text})
		}
		if !opened {
			return t, nil
		}
		name, after, closed := strings.Cut(tail, "}")
		if !closed {
			return Template{}, errors.New(`has a "{" without its "}"`)
		}
		field, known := fields[name]
		if !known {
			return Template{}, fmt.Errorf("has the unknown field {%s}; use one of %s", name, knownFields())
		}
		t.parts, s = append(t.parts, part{field: field}), after
	}
	return t, nil
}

func knownFields() string {
	return "{" + strings.Join(slices.Sorted(maps.Keys(fields)), "}, {") + "}"
}

// Expand returns the template filled in for a delivery. It passes each field's value through clean,
// which adapts it to its place.
func (t Template) Expand(d target.Delivery, clean func(string) string) string {
	var b strings.Builder
	for _, p := range t.parts {
		if p.field == nil {
			b.WriteString(p.text)
		} else {
			b.WriteString(clean(p.field(d)))
		}
	}
	return b.String()
}

// Text returns the template's text with standIn for each field, for checks before the first
// delivery.
func (t Template) Text(standIn string) string {
	return t.Expand(target.Delivery{}, func(string) string { return standIn })
}

// Word returns a cleaner for Expand. The cleaner replaces each character that is not allowed by an
// underscore, and an empty value by one underscore.
func Word(allowed func(rune) bool) func(string) string {
	return func(s string) string {
		if s == "" {
			return "_"
		}
		return strings.Map(func(r rune) rune {
			if allowed(r) {
				return r
			}
			return '_'
		}, s)
	}
}
