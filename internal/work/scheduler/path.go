package scheduler

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// path is a JSON path of EventBridge: $, names after dots, indexes and wildcards.
//
//	$.detail.items[0].name    $.resources[*]
type path []step

type step struct {
	name  string // of a member
	index int    // of an element, if isIndex
	kind  stepKind
}

type stepKind int

const (
	stepName stepKind = iota
	stepIndex
	stepAll // every element, or every member's value
)

var errPath = errors.New("a path begins with $ and goes on with .name, [n], .* or [*]")

// newPath parses a path.
func newPath(text string) (path, error) {
	suffix, ok := strings.CutPrefix(text, "$")
	if !ok {
		return nil, errPath
	}
	p := path{}
	for suffix != "" {
		var s step
		switch suffix[0] {
		case '.':
			end := cmp.Or(strings.IndexAny(suffix[1:], ".[")+1, len(suffix))
			s = step{name: suffix[1:end]}
			if s.name == "*" {
				s.kind = stepAll
			} else if !isPathName(s.name) {
				return nil, errPath
			}
			suffix = suffix[end:]
		case '[':
			inside, after, found := strings.Cut(suffix[1:], "]")
			if s.kind = stepAll; inside != "*" {
				n, err := strconv.ParseUint(inside, 10, 31)
				if err != nil {
					return nil, errPath
				}
				s = step{index: int(n), kind: stepIndex}
			}
			if !found {
				return nil, errPath
			}
			suffix = after
		default:
			return nil, errPath
		}
		p = append(p, s)
	}
	return p, nil
}

func isPathName(name string) bool {
	for i := 0; i < len(name); i++ {
		if c := name[i]; !alphanumeric(c) && c != '-' && c != '_' && c != '/' {
			return false
		}
	}
	return name != ""
}

// find returns the value at the path in parsed JSON. After a wildcard it is a list.
func (p path) find(v any) (found any, ok bool) {
	if len(p) == 0 {
		return v, true
	}
	s, further := p[0], p[1:]
	switch in := v.(type) {
	case map[string]any:
		if s.kind == stepAll {
			return further.findAll(sortedValues(in)), true
		}
		member, there := in[s.name]
		if s.kind != stepName || !there {
			return nil, false
		}
		return further.find(member)
	case []any:
		switch {
		case s.kind == stepAll:
			return further.findAll(in), true
		case s.kind == stepIndex && s.index < len(in):
			return further.find(in[s.index])
		}
	}
	return nil, false
}

func (p path) findAll(values []any) []any {
	all := []any{}
	for _, v := range values {
		if found, ok := p.find(v); ok {
			all = append(all, found)
		}
	}
	return all
}

// sortedValues returns the values of an object, sorted by name.
func sortedValues(object map[string]any) []any {
	values := make([]any, 0, len(object))
	for _, name := range slices.Sorted(maps.Keys(object)) {
		values = append(values, object[name])
	}
	return values
}
