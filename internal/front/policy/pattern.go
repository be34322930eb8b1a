package policy

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// pattern is a text with wildcards and variables: "table/${aws:username}_*".
type pattern struct {
	written  string
	segments []segment // the parts between the stars, so one more than there are stars
}

// segment is a part of a pattern without stars. Its matches have the same number of characters.
type segment []atom

// atom is a literal, a question mark or a variable.
type atom struct {
	kind     atomKind
	text     string // of a literal; of a variable, the default, or empty
	variable Key
}

type atomKind uint8

const (
	literalAtom  atomKind = iota
	anyAtom               // "?": one character
	variableAtom          // "${aws:username}"
)

// compile returns the pattern for a text. Without wildcards, "*" and "?" stand for themselves;
// without variables, "${" does.
func compile(text string, wildcards, variables bool) (pattern, error) {
	if len(text) > patternSizeMax {
		return pattern{}, fmt.Errorf("a value of %d bytes is too long; the limit is %d", len(text), patternSizeMax)
	}
	p := pattern{written: text}
	var open segment
	for i := 0; i < len(text); {
		size := 1
		switch c := text[i]; {
		case variables && strings.HasPrefix(text[i:], "${"):
			end := strings.IndexByte(text[i:], '}')
			if end < 0 {
				return pattern{}, fmt.Errorf("%q has \"${\" without \"}\"; write ${$} for a dollar sign", text)
			}
			a, err := variable(text[i+2 : i+end])
			if err != nil {
				return pattern{}, err
			}
			open, size = open.with(a), end+1
		case wildcards && c == '*':
			p.segments, open = append(p.segments, open), nil
		case wildcards && c == '?':
			open = append(open, atom{kind: anyAtom})
		default: // up to the next character that may be special
			if next := strings.IndexAny(text[i+1:], "*?$"); next >= 0 {
				size += next
			} else {
				size = len(text) - i
			}
			open = open.with(atom{text: text[i : i+size]})
		}
		i += size
	}
	p.segments = append(p.segments, open)
	return p, nil
}

// with returns the segment with one more atom. Adjacent literals become one.
func (s segment) with(a atom) segment {
	if last := len(s) - 1; a.kind == literalAtom && last >= 0 && s[last].kind == literalAtom {
		s[last].text += a.text
		return s
	}
	return append(s, a)
}

// variable returns the atom for the text between "${" and "}": "aws:username",
// "aws:username, 'anonymous'", or one of the characters * ? $.
func variable(inside string) (atom, error) {
	if inside == "*" || inside == "?" || inside == "$" {
		return atom{text: inside}, nil
	}
	name, fallback, hasDefault := strings.Cut(inside, ", ")
	if hasDefault {
		n := len(fallback)
		if n < 3 || fallback[0] != '\'' || strings.IndexByte(fallback[1:], '\'') != n-2 {
			return atom{}, fmt.Errorf("the default value in ${%s} is not in single quotes; write ${%s, 'value'}", inside, name)
		}
		fallback = fallback[1 : n-1]
	}
	k, known := keyNamed(name)
	if !known || keys[k].many {
		return atom{}, fmt.Errorf("the variable ${%s} is not supported; use one of %s, or ${*}, ${?}, ${$} for the character", inside, keyNames(true))
	}
	return atom{kind: variableAtom, variable: k, text: fallback}, nil
}

// floating returns the number of question marks and variables between two stars.
func (p *pattern) floating() (n int) {
	for i, s := range p.segments {
		for _, a := range s {
			if i > 0 && i < len(p.segments)-1 && a.kind != literalAtom {
				n++
			}
		}
	}
	return n
}

// value returns the text of a literal or variable in a request. It reports false for a variable
// without a value.
func (a *atom) value(r *Request) (string, bool) {
	if a.kind == variableAtom && r.count(a.variable) > 0 {
		return r.text(a.variable, 0), true
	}
	return a.text, a.kind == literalAtom || a.text != ""
}

// variables calls found for each variable.
func (p *pattern) variables(found func(*atom)) {
	for _, s := range p.segments {
		for i := range s {
			if s[i].kind == variableAtom {
				found(&s[i])
			}
		}
	}
}

// unresolved reports whether a variable has no value, so that the pattern matches nothing.
func (p *pattern) unresolved(r *Request) bool {
	missing := false
	p.variables(func(a *atom) {
		_, ok := a.value(r)
		missing = missing || !ok
	})
	return missing
}

// expand returns the text of a pattern without wildcards. It reports false if a variable has no
// value.
func (p *pattern) expand(r *Request) (string, bool) {
	text := ""
	for i := range p.segments[0] {
		t, ok := p.segments[0][i].value(r)
		if !ok {
			return "", false
		}
		text += t
	}
	return text, true
}

// matcher matches patterns in a request. The number of steps is at most the length of the pattern,
// with the values of its variables, times the length of the text; it is the sum of both if there is
// neither a question mark nor a variable between two stars.
type matcher struct {
	r     *Request
	fold  bool // ignores case
	steps int  // compared bytes, for tests
}

// match reports whether a pattern matches the whole text. A pattern with a variable that has no
// value matches nothing.
//
// Each segment between two stars takes its first match, so nothing is tried twice: a later match
// would only leave less text to the segments after it.
func (m *matcher) match(p *pattern, text string) bool {
	last := len(p.segments) - 1
	n, ok := m.prefix(p.segments[0], text)
	if !ok || last == 0 {
		return ok && n == len(text)
	}
	text = text[n:]
	for _, s := range p.segments[1:last] {
		if n, ok = m.find(s, text); !ok {
			return false
		}
		text = text[n:]
	}
	return m.suffix(p.segments[last], text)
}

// prefix reports whether a text begins with a match of the segment, and returns the match's length.
func (m *matcher) prefix(s segment, text string) (length int, ok bool) {
	rest := text
	for i := range s {
		n, ok := m.size(&s[i], rest, utf8.DecodeRuneInString)
		if !ok || s[i].kind != anyAtom && !m.equal(&s[i], rest[:n]) {
			return 0, false
		}
		rest = rest[n:]
	}
	return len(text) - len(rest), true
}

// suffix reports whether a text ends with a match of the segment.
func (m *matcher) suffix(s segment, text string) bool {
	for i := range slices.Backward(s) {
		n, ok := m.size(&s[i], text, utf8.DecodeLastRuneInString)
		if !ok || s[i].kind != anyAtom && !m.equal(&s[i], text[len(text)-n:]) {
			return false
		}
		text = text[:len(text)-n]
	}
	return true
}

// find returns the end of the segment's first match in a text.
func (m *matcher) find(s segment, text string) (end int, ok bool) {
	if len(s) == 1 && s[0].kind == literalAtom && !m.fold {
		at := strings.Index(text, s[0].text)
		if at < 0 {
			m.steps += len(text)
			return 0, false
		}
		m.steps += at + len(s[0].text)
		return at + len(s[0].text), true
	}
	for at := 0; at <= len(text); {
		if n, ok := m.prefix(s, text[at:]); ok {
			return at + n, true
		}
		_, n := utf8.DecodeRuneInString(text[at:])
		at += max(n, 1)
	}
	return 0, false
}

// size returns the number of bytes that an atom takes at one end of a text. It reports false if the
// text is too short or the atom has no value.
func (m *matcher) size(a *atom, text string, decode func(string) (rune, int)) (n int, ok bool) {
	if a.kind == anyAtom {
		m.steps++
		_, n = decode(text)
		return n, n > 0
	}
	t, ok := a.value(m.r)
	return len(t), ok && len(t) <= len(text)
}

func (m *matcher) equal(a *atom, text string) bool {
	m.steps += len(text)
	t, _ := a.value(m.r)
	return t == text || m.fold && strings.EqualFold(t, text)
}
