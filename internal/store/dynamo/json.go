package dynamo

// JSON reads a complete request body in one pass. It builds only the values that the caller asks
// for, and does not allocate for well-formed input. Errors stick: after the first, every method
// returns zero, nil or false, loops end, and Err returns the error. So the caller reads a structure
// without checks in between:
//
//	var name []byte
//	for ok := j.Object(); ok && j.NextMember(&name); {
//		switch string(name) {
//		case "TableName":
//			in.TableName = service.Some(j.CopyText())
//		case "ExpressionAttributeNames":
//			for ok := j.Map("String"); ok && j.NextEntry(&name); {
//				key := string(name)
//				in.Names[key] = j.CopyText()
//			}
//		default:
//			j.Skip()
//		}
//	}
//	if err := j.End(); err != nil { … }
//
// Rules of use: each turn of a loop reads exactly one value (Skip an unwanted one), and a loop runs
// until it ends by itself. NextMember skips null members, since those count as absent. Elsewhere
// null can occur (NextEntry, NextElement, the body itself). The value methods treat it as absent
// too: they consume it and return nil or false without an error.
//
// Returned byte slices are views that stay valid until Reset, as long as the body does.
//
// Errors are *Error with code SerializationException and AWS's texts (docs/spec/errors.md §6).
// Malformed JSON has no message and precedes every type error, wherever in the body it is: a type
// error makes the reader check the rest of the body. Malformed means: not RFC 8259, deeper than
// 1,000 levels, not UTF-8, or with half of a surrogate pair in an escape. (AWS's parser stores such
// halves as question marks. Refusing them keeps the stored text equal to the sent one.) Of equal
// member names, the last one wins.
type JSON struct {
	body    []byte
	pos     int
	depth   int  // open containers
	first   bool // nothing has been read in the innermost container yet
	err     *Error
	text    []byte // strings that needed unescaping, one after the other
	entries entries
}

// maxJSONDepth limits the nesting of arrays and objects. An attribute value of MaxDepth levels
// needs twice that many.
const maxJSONDepth = 1000

// NewJSON returns a reader of body.
func NewJSON(body []byte) *JSON { return &JSON{body: body} }

// Reset starts reading another body. Views of the previous one become invalid.
func (j *JSON) Reset(body []byte) {
	*j = JSON{body: body, text: j.text[:0], entries: entries{list: j.entries.list[:0], moved: j.entries.moved[:0]}}
}

// Err returns nil, or the *Error that ended the reading.
func (j *JSON) Err() error {
	if j.err == nil {
		return nil
	}
	return j.err
}

// End declares that the last value has been read, and returns Err. Anything but blanks after it
// makes the body malformed.
func (j *JSON) End() error {
	if j.next() != 0 || j.pos < len(j.body) {
		j.malformed()
	}
	return j.Err()
}

// ValidJSON reports whether the body is one well-formed JSON value, by the rules of JSON.
func ValidJSON(body []byte) bool {
	j := JSON{body: body}
	j.Skip()
	return j.End() == nil
}

// Object begins the object that is the whole body. It returns false, without an error, if the body
// begins with anything else.
func (j *JSON) Object() bool { return j.next() == '{' && j.open() }

// null consumes a null if one comes next, and reports that.
func (j *JSON) null() bool { return j.next() == 'n' && j.literal("null") }

// next skips blanks and returns the byte after them, or 0 at the end.
func (j *JSON) next() byte {
	for j.pos < len(j.body) {
		c := j.body[j.pos]
		if c > ' ' {
			return c
		}
		if c != ' ' && c != '\n' && c != '\r' && c != '\t' {
			j.malformed()
			return 0
		}
		j.pos++
	}
	return 0
}

// malformed ends the reading with an error without text.
func (j *JSON) malformed() {
	if j.err == nil {
		j.err = &Error{Code: CodeSerialization}
	}
	j.pos = len(j.body)
}

// wrongType ends the reading with a type error, unless the body is malformed as well.
func (j *JSON) wrongType(message string) {
	if j.err == nil {
		j.err = &Error{Code: CodeSerialization}
		if ValidJSON(j.body) {
			j.err.Message = message
		}
	}
	j.pos = len(j.body)
}

// literal consumes true, false or null.
func (j *JSON) literal(word string) bool {
	if end := j.pos + len(word); end <= len(j.body) && string(j.body[j.pos:end]) == word {
		j.pos = end
		return true
	}
	j.malformed()
	return false
}

// Skip skips the next value.
func (j *JSON) Skip() {
	switch c := j.next(); c {
	case '{':
		var key []byte
		for ok := j.open() && j.NextEntry(&key); ok; ok = j.NextEntry(&key) {
			j.Skip()
		}
	case '[':
		for ok := j.open() && j.NextElement(); ok; ok = j.NextElement() {
			j.Skip()
		}
	case '"':
		j.passString()
	case 't':
		j.literal("true")
	case 'f':
		j.literal("false")
	case 'n':
		j.literal("null")
	default:
		j.number()
	}
}

// passString skips a string, and drops its unescaped form.
func (j *JSON) passString() {
	length := len(j.text)
	j.str()
	j.text = j.text[:length]
}
