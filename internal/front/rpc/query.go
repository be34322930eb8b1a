package rpc

import (
	"bytes"
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// readQuery returns the tree of a form: "Metrics.member.1.Name=n" is a list of structures.
func readQuery(body []byte) (any, error) {
	if bytes.Count(body, []byte("&")) >= valuesMax {
		return nil, errMany
	}
	parameters, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, errors.New("the form is malformed: " + err.Error())
	}
	root := map[string]any{}
	room := valuesMax
	for name, values := range parameters {
		if !utf8.ValidString(name) || !utf8.ValidString(values[0]) {
			return nil, errors.New("the form is not percent-encoded UTF-8")
		}
		if err := insert(root, name, values[0], &room); err != nil {
			return nil, err
		}
	}
	return listed(root), nil
}

// insert puts a parameter's value at its place in the tree. The value and each new structure around
// it take from room.
func insert(root map[string]any, name, value string, room *int) error {
	parts := strings.Split(name, ".")
	if len(parts) > 2*depthMax { // a list takes two
		return errDeep
	}
	at := root
	for _, part := range parts[:len(parts)-1] {
		inner, ok := at[part].(map[string]any)
		if !ok {
			if at[part] != nil {
				return errors.New("the parameter " + name + " is below one with a value")
			}
			if *room--; *room < 0 {
				return errMany
			}
			inner = map[string]any{}
			at[part] = inner
		}
		at = inner
	}
	last := parts[len(parts)-1]
	if at[last] != nil {
		return errors.New("the parameter " + name + " has a value, and others are below it")
	}
	if *room--; *room < 0 {
		return errMany
	}
	at[last] = value
	return nil
}

// listed returns a tree with lists in place of the structures that are lists.
func listed(tree any) any {
	members, ok := tree.(map[string]any)
	if !ok {
		return tree
	}
	if list, ok := asList(members); ok {
		return list
	}
	for name, v := range members {
		members[name] = listed(v)
	}
	return members
}

// asList returns the elements of a structure whose only member has numbers as names, in their order.
func asList(members map[string]any) (list []any, ok bool) {
	numbered, ok := members[element].(map[string]any)
	if !ok || len(members) != 1 {
		return nil, false
	}
	numbers := make([]int, 0, len(numbered))
	for name := range numbered {
		n, err := strconv.Atoi(name)
		if err != nil || strconv.Itoa(n) != name {
			return nil, false
		}
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	for _, n := range numbers {
		list = append(list, listed(numbered[strconv.Itoa(n)]))
	}
	return list, true
}

// xmlSink writes the content of XML elements.
type xmlSink struct{ b []byte }

func (s *xmlSink) beginStruct(int)   {}
func (s *xmlSink) endStruct()        {}
func (s *xmlSink) beginList(int)     {}
func (s *xmlSink) endList()          {}
func (s *xmlSink) begin(name string) { s.b = append(s.b, "<"+name+">"...) }
func (s *xmlSink) end(name string)   { s.b = append(s.b, "</"+name+">"...) }

func (s *xmlSink) text(v string) {
	for _, c := range v {
		switch {
		case c == '&':
			s.b = append(s.b, "&amp;"...)
		case c == '<':
			s.b = append(s.b, "&lt;"...)
		case c == '>':
			s.b = append(s.b, "&gt;"...)
		case c == '\r': // a reader would make it a new line
			s.b = append(s.b, "&#xD;"...)
		case inXML(c):
			s.b = utf8.AppendRune(s.b, c)
		default:
			s.b = utf8.AppendRune(s.b, utf8.RuneError)
		}
	}
}

// inXML reports whether XML can have a character (XML 1.0, section 2.2).
func inXML(c rune) bool {
	return c == '\t' || c == '\n' || 0x20 <= c && c <= 0xd7ff || 0xe000 <= c && c <= 0xfffd || 0x10000 <= c && c <= utf8.MaxRune
}

func (s *xmlSink) integer(v int64)  { s.b = strconv.AppendInt(s.b, v, 10) }
func (s *xmlSink) float(v float64)  { s.b = appendFloat(s.b, v) }
func (s *xmlSink) boolean(v bool)   { s.b = strconv.AppendBool(s.b, v) }
func (s *xmlSink) time(v time.Time) { s.b = v.UTC().AppendFormat(s.b, "2006-01-02T15:04:05.999Z") }
