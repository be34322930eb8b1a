package console

import (
	"bytes"
	"strings"
)

// node is a part of a page: an element, an attribute of the element that it is a part of, or text.
// It is our own, since the functions of a library for this made each page three times as large. For
// the same reason the functions that pages call by the hundred are not inlined: it saves 130 KB.
type node interface{ write(b *bytes.Buffer) }

// words is text. All that comes from data is text, or the value of an attribute, and is escaped.
type words string

func (w words) write(b *bytes.Buffer) { writeEscaped(b, string(w)) }

// escapes replaces the characters with a meaning in HTML. A carriage return is escaped too, since
// parsers read it as a line feed. HTML has no NUL and nothing that is not UTF-8: U+FFFD stands for
// them, as parsers would have it in most places.
var escapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;", "'", "&#39;", "\r", "&#13;", "\x00", "\uFFFD")

func writeEscaped(b *bytes.Buffer, s string) {
	_, _ = escapes.WriteString(b, strings.ToValidUTF8(s, "\uFFFD")) // a buffer takes all
}

// raw is HTML as it is: the drawings of package chart, which escapes texts itself.
type raw string

func (r raw) write(b *bytes.Buffer) { b.WriteString(string(r)) }

// group is several parts. Nil ones are left out.
type group []node

func (g group) write(b *bytes.Buffer) {
	for _, part := range g {
		if part != nil {
			part.write(b)
		}
	}
}

// attribute is an attribute of an element.
type attribute struct {
	name, value string
	bare        bool // it has no value
}

func (a attribute) write(b *bytes.Buffer) {
	b.WriteByte(' ')
	b.WriteString(a.name)
	if !a.bare {
		b.WriteString(`="`)
		writeEscaped(b, a.value)
		b.WriteByte('"')
	}
}

// has returns an attribute; without a value it is there or not, such as "required".
//
//go:noinline
func has(name string, value ...string) node {
	if len(value) == 0 {
		return attribute{name: name, bare: true}
	}
	return attribute{name: name, value: value[0]}
}

// element is an element with its attributes and contents.
type element struct {
	tag   string
	parts []node
}

// el returns an element. Attributes may stand among the contents, also in groups.
//
//go:noinline
func el(tag string, parts ...node) node { return element{tag, parts} }

// void reports whether an element is one without contents and end.
func void(tag string) bool {
	switch tag {
	case "br", "img", "input", "link", "meta":
		return true
	}
	return false
}

func (e element) write(b *bytes.Buffer) {
	b.WriteByte('<')
	b.WriteString(e.tag)
	writeSome(b, e.parts, true)
	b.WriteByte('>')
	if void(e.tag) {
		return
	}
	if e.tag == "textarea" {
		b.WriteByte('\n') // parsers leave out a line feed at the beginning
	}
	writeSome(b, e.parts, false)
	b.WriteString("</")
	b.WriteString(e.tag)
	b.WriteByte('>')
}

// writeSome writes the attributes among the parts, or all others.
func writeSome(b *bytes.Buffer, parts []node, attributes bool) {
	for _, part := range parts {
		switch part := part.(type) {
		case nil:
		case group:
			writeSome(b, part, attributes)
		case attribute:
			if attributes {
				part.write(b)
			}
		default:
			if !attributes {
				part.write(b)
			}
		}
	}
}

// document returns a whole document of the element html.
func document(html node) node { return group{raw("<!doctype html>"), html} }

// optional returns a part if a condition holds, and otherwise nothing.
//
//go:noinline
func optional(holds bool, part node) node {
	if !holds {
		return nil
	}
	return part
}

// mapped returns a part for each element of a list.
func mapped[E any](all []E, show func(E) node) group {
	parts := make(group, len(all))
	for i, e := range all {
		parts[i] = show(e)
	}
	return parts
}

// optionally is optional for a part that can be made only if the condition holds.
func optionally(holds bool, part func() node) node {
	if !holds {
		return nil
	}
	return part()
}
