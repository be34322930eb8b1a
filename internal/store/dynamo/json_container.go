package dynamo

import "strings"

// open consumes the bracket that begins a container.
func (j *JSON) open() bool {
	j.pos++
	j.depth++
	j.first = true
	if j.depth > maxJSONDepth {
		j.malformed()
		return false
	}
	return true
}

// more moves to the next entry of the innermost container, or past its closing bracket. It reports
// whether there is one.
func (j *JSON) more(closing byte) bool {
	c := j.next()
	if c == closing {
		j.pos++
		j.depth--
		j.first = false
		return false
	}
	if j.first {
		j.first = false
		return c != 0 || j.fail()
	}
	if c != ',' {
		return j.fail()
	}
	j.pos++
	return true
}

func (j *JSON) fail() bool {
	j.malformed()
	return false
}

// NextElement moves to the next element of the array, and reports whether there is one.
func (j *JSON) NextElement() bool { return j.more(']') }

// NextEntry moves to the next entry of the object, stores its key, and reports whether there is
// one. The value may be null.
func (j *JSON) NextEntry(key *[]byte) bool {
	if !j.more('}') {
		return false
	}
	if j.next() != '"' {
		return j.fail()
	}
	*key = j.str()
	if j.next() != ':' {
		return j.fail()
	}
	j.pos++
	return true
}

// NextMember is NextEntry for structures: it skips members that are null.
func (j *JSON) NextMember(name *[]byte) bool {
	for j.NextEntry(name) {
		if j.next() != 'n' {
			return true
		}
		j.literal("null")
	}
	return false
}

const (
	msgUnexpectedStart = "Start of structure or map found where not expected"
	msgUnexpectedField = "Unexpected field type"
	msgUnexpectedValue = "Unexpected value type in payload"
	msgUnexpectedToken = "Unexpected token received from parser"
	// AWS's error for a scalar in place of a collection in a collection.
	msgParameterizedType = "class sun.reflect.generics.reflectiveObjects.ParameterizedTypeImpl cannot be cast to class java.lang.Class" +
		" (sun.reflect.generics.reflectiveObjects.ParameterizedTypeImpl and java.lang.Class are in module java.base of loader 'bootstrap')"
)

// Struct begins a structure that is a member of another one; typ is its name in the service model.
// It returns false for null or an error.
func (j *JSON) Struct(typ string) bool { return j.structure(typ, msgUnexpectedField) }

// StructElement begins a structure that is an element of a list or map.
func (j *JSON) StructElement(typ string) bool { return j.structure(typ, msgUnexpectedValue) }

func (j *JSON) structure(typ, scalar string) bool { return j.object("class ", typ, "", scalar) }

// object begins a structure or a map. A list in its place is an error that names the type, with
// words around it; scalar is the error for a scalar.
func (j *JSON) object(before, typ, after, scalar string) bool {
	switch c := j.next(); c {
	case '{':
		return j.open()
	case '[':
		j.wrongType("Unrecognized collection type " + before + javaType(typ) + after)
		return false
	default:
		return j.notCollection(c, scalar)
	}
}

// Map begins a map that is a member of a structure, with values of the type typ in the service
// model ("String" for strings). It returns false for null or an error.
func (j *JSON) Map(typ string) bool { return j.mapOf(typ, msgUnexpectedField) }

// MapElement begins a map that is an element of a list or map.
func (j *JSON) MapElement(typ string) bool { return j.mapOf(typ, msgParameterizedType) }

func (j *JSON) mapOf(typ, scalar string) bool {
	return j.object("java.util.Map<java.lang.String, ", typ, ">", scalar)
}

// List begins a list that is a member of a structure. It returns false for null or an error.
func (j *JSON) List() bool { return j.list(msgUnexpectedField) }

// ListElement begins a list that is an element of a list or map.
func (j *JSON) ListElement() bool { return j.list(msgParameterizedType) }

func (j *JSON) list(scalar string) bool {
	c := j.next()
	if c == '[' {
		return j.open()
	}
	if c == '{' {
		j.wrongType(msgUnexpectedStart)
		return false
	}
	return j.notCollection(c, scalar)
}

// notCollection reads null or a scalar in place of a collection.
func (j *JSON) notCollection(c byte, message string) bool {
	if c == 'n' {
		j.literal("null")
		return false
	}
	j.wrongType(message)
	return false
}

// javaType returns the name of a model's type in AWS's texts.
func javaType(typ string) string {
	switch typ {
	case "String", "Boolean", "Integer", "Long":
		return "java.lang." + typ
	case "Blob":
		return "java.nio.ByteBuffer"
	}
	if strings.Contains(typ, ".") {
		return typ // the caller passes the final name
	}
	return "com.amazonaws.dynamodb.v20120810." + typ
}
