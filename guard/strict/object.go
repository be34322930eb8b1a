package strict

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// object is a JSON object of which only the members that matter here are looked into. The others stay as they came.
type object map[string]json.RawMessage

// readObject reads an object; ok is false where raw is something else. Of equal names the last counts.
func readObject(raw json.RawMessage) (o object, ok bool) {
	if json.Unmarshal(raw, &o) != nil || o == nil {
		return nil, false
	}
	return o, true
}

// readList reads a list of objects.
func readList(raw json.RawMessage) (list []object, ok bool) {
	if json.Unmarshal(raw, &list) != nil || list == nil {
		return nil, false
	}
	return list, true
}

// has reports whether a member is there: null is absent.
func (o object) has(name string) bool {
	raw, ok := o[name]
	return ok && string(raw) != "null"
}

func (o object) hasAny(names ...string) bool { return slices.ContainsFunc(names, o.has) }

// text gives a member that is a string; empty where it is absent or something else.
func (o object) text(name string) (s string) {
	if json.Unmarshal(o[name], &s) != nil {
		return ""
	}
	return s
}

// member gives a member that is an object. It is nil where it is absent; ok is false where it is something else.
func (o object) member(name string) (m object, ok bool) {
	if !o.has(name) {
		return nil, true
	}
	return readObject(o[name])
}

// with gives a copy in which a member is what it is told.
func (o object) with(name string, raw json.RawMessage) object {
	c := maps.Clone(o)
	c[name] = raw
	return c
}

// bytes writes the object, members in order of their names.
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

// listBytes writes a list of objects.
func listBytes(list []object) json.RawMessage {
	b := []byte{'['}
	for i, o := range list {
		if i > 0 {
			b = append(b, ',')
		}
		if o == nil {
			b = append(b, "null"...) // as it came
			continue
		}
		b = append(b, o.bytes()...)
	}
	return append(b, ']')
}

// quoted writes a string.
func quoted(s string) json.RawMessage { return dynamo.AppendQuoted(nil, s) }
