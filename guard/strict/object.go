package strict

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// object is a JSON object. Only the members that matter here are decoded; the others stay
// unchanged.
type object map[string]json.RawMessage

// readObject returns an object; ok is false if raw is something else. Of equal names, the last
// counts.
func readObject(raw json.RawMessage) (o object, ok bool) {
	if json.Unmarshal(raw, &o) != nil || o == nil {
		return nil, false
	}
	return o, true
}

// readList returns a list of objects, with nil for each null. ok is false if raw is missing or
// something else.
func readList(raw json.RawMessage) (list []object, ok bool) {
	if json.Unmarshal(raw, &list) != nil || list == nil {
		return nil, false
	}
	return list, true
}

// has reports whether a member is present. null is absent.
func (o object) has(name string) bool {
	raw, ok := o[name]
	return ok && string(raw) != "null"
}

func (o object) hasAny(names ...string) bool { return slices.ContainsFunc(names, o.has) }

// text returns a member that is a string, or "" if it is absent or something else.
func (o object) text(name string) (s string) {
	if json.Unmarshal(o[name], &s) != nil {
		return ""
	}
	return s
}

// member returns a member that is an object, or nil if it is absent. ok is false if it is something
// else.
func (o object) member(name string) (m object, ok bool) {
	if !o.has(name) {
		return nil, true
	}
	return readObject(o[name])
}

// part is member for an endpoint's answers: anything else than an object is errUnreadable.
func (o object) part(name string) (object, error) {
	m, ok := o.member(name)
	if !ok {
		return nil, errUnreadable
	}
	return m, nil
}

// partList returns a list of objects in an endpoint's answer, or errUnreadable.
func partList(raw json.RawMessage) ([]object, error) {
	list, ok := readList(raw)
	if !ok {
		return nil, errUnreadable
	}
	return list, nil
}

// with returns a copy with a changed member.
func (o object) with(name string, raw json.RawMessage) object {
	c := maps.Clone(o)
	c[name] = raw
	return c
}

// bytes returns the object as JSON, with members in the order of their names.
func (o object) bytes() json.RawMessage {
	b := []byte{'{'}
	for i, name := range slices.Sorted(maps.Keys(o)) {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(dynamo.AppendQuoted(b, name), ':')
		b = append(b, o[name]...)
	}
	return append(b, '}')
}

// listBytes returns a list of objects as JSON.
func listBytes(list []object) json.RawMessage {
	b := []byte{'['}
	for i, o := range list {
		if i > 0 {
			b = append(b, ',')
		}
		if o == nil {
			b = append(b, "null"...) // unchanged
			continue
		}
		b = append(b, o.bytes()...)
	}
	return append(b, ']')
}

// quoted returns a string as JSON.
func quoted(s string) json.RawMessage { return dynamo.AppendQuoted(nil, s) }
