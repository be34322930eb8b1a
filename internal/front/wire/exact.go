package wire

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"sync"
)

// exactNames returns a body in which encoding/json finds only members with exact names; by itself,
// it ignores case. AWS's names are case-sensitive, and unknown members are ignored. The names of
// other members are blanked out in a copy of the same length. Invalid JSON stays as it is.
func exactNames(body []byte, into reflect.Type) []byte {
	if !json.Valid(body) {
		return body
	}
	x := exact{body: body}
	x.value(into)
	return x.body
}

// exact walks over valid JSON and the type that it is decoded into. A nil type stands for a value
// in which any name is allowed.
type exact struct {
	body   []byte
	at     int
	copied bool
}

// fieldTypes holds the types of a structure's fields, by their names in JSON.
type fieldTypes = map[string]reflect.Type

var fieldsOf sync.Map // by reflect.Type: fieldTypes

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

// value skips a value, and blanks out the names in it that are no field of t.
func (x *exact) value(t reflect.Type) {
	for t != nil {
		if reflect.PointerTo(t).Implements(unmarshaler) {
			t = nil // it has an UnmarshalJSON method
			break
		}
		if t.Kind() != reflect.Pointer {
			break
		}
		t = t.Elem()
	}
	switch x.space(); x.body[x.at] {
	case '{':
		x.object(t)
	case '[':
		x.array(t)
	case '"':
		x.text()
	default:
		for x.at < len(x.body) && !strings.ContainsRune(",]} \t\r\n", rune(x.body[x.at])) {
			x.at++
		}
	}
}

func (x *exact) object(t reflect.Type) {
	var fields fieldTypes
	var each reflect.Type // the type of a map's values
	if t != nil {
		switch t.Kind() {
		case reflect.Struct:
			fields = fieldsOfType(t)
		case reflect.Map:
			each = t.Elem()
		}
	}
	for x.next('}') {
		from := x.at
		raw := x.text()
		member := each
		if fields != nil {
			found, known := fields[unquoted(raw)]
			if member = found; !known {
				x.blank(from+1, x.at-1)
			}
		}
		x.space()
		x.at++ // the colon
		x.value(member)
	}
}

func (x *exact) array(t reflect.Type) {
	if t != nil && (t.Kind() == reflect.Slice || t.Kind() == reflect.Array) {
		t = t.Elem()
	} else {
		t = nil
	}
	for x.next(']') {
		x.value(t)
	}
}

// next moves to the next element after a bracket or a comma, or past the closing bracket. It
// reports whether there is one.
func (x *exact) next(closing byte) bool {
	x.space()
	if x.body[x.at] != closing {
		x.at++ // the opening bracket, or a comma
		x.space()
	}
	if x.body[x.at] == closing {
		x.at++
		return false
	}
	return true
}

// text skips a string and returns it with its quotes.
func (x *exact) text() []byte {
	from := x.at
	for x.at++; x.body[x.at] != '"'; x.at++ {
		if x.body[x.at] == '\\' {
			x.at++
		}
	}
	x.at++
	return x.body[from:x.at]
}

func (x *exact) space() {
	for x.at < len(x.body) && strings.IndexByte(" \t\r\n", x.body[x.at]) >= 0 {
		x.at++
	}
}

// blank overwrites a name, in a copy of the body.
func (x *exact) blank(from, to int) {
	if !x.copied {
		x.body, x.copied = bytes.Clone(x.body), true
	}
	for i := from; i < to; i++ {
		x.body[i] = '_' // no field's name consists of these
	}
}

func unquoted(raw []byte) string {
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1])
	}
	var name string
	_ = json.Unmarshal(raw, &name) // it is valid, so there is no error
	return name
}

func fieldsOfType(t reflect.Type) fieldTypes {
	if known, ok := fieldsOf.Load(t); ok {
		return known.(fieldTypes)
	}
	fields := fieldTypes{}
	addFields(fields, t)
	fieldsOf.Store(t, fields)
	return fields
}

// addFields adds the fields of a structure by encoding/json's names. The fields of an embedded
// structure count as its own.
func addFields(to fieldTypes, t reflect.Type) {
	for f := range t.Fields() {
		tag := f.Tag.Get("json")
		name, _, _ := strings.Cut(tag, ",")
		embedded := f.Type
		if embedded.Kind() == reflect.Pointer {
			embedded = embedded.Elem()
		}
		switch {
		case tag == "-":
		case f.Anonymous && name == "" && embedded.Kind() == reflect.Struct:
			addFields(to, embedded)
		case !f.IsExported():
		case name != "":
			to[name] = f.Type
		default:
			to[f.Name] = f.Type
		}
	}
}
