package dynamo

// The texts of docs/spec/errors.md §9.
const (
	msgInvalidPrefix = "One or more parameter values were invalid: "
	msgNoDatatype    = "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes"
	msgTwoDatatypes  = "Supplied AttributeValue has more than one datatypes set, must contain exactly one of the supported datatypes"
	msgNullFalse     = msgInvalidPrefix + "Null attribute value types must have the value of true"
	msgEmptySS       = msgInvalidPrefix + "An string set  may not be empty"
	msgEmptyNS       = msgInvalidPrefix + "An number set  may not be empty"
	msgEmptyBS       = msgInvalidPrefix + "Binary sets should not be empty"
	msgDuplicateNS   = "Input collection contains duplicates"
	msgNesting       = "Nesting Levels have exceeded supported limits: Attributes in the item have nested levels beyond supported limit"
	// AWS's texts for these are not established, except the words that distinguish them.
	msgEmptyName = "Empty attribute name"
	msgLongName  = "Attribute name is too large, must be less than 65536 bytes"
	msgNullInSS  = msgInvalidPrefix + "An string set may not have a null string as a member"
	msgNullInBS  = msgInvalidPrefix + "Binary sets may not contain null or empty values"
)

// maxNameBytes is the length of the longest attribute name.
const maxNameBytes = 65535

const attributeValue = "AttributeValue"

// AppendItem reads an AttributeMap that is a member of a structure, and appends it as an item.
// invalid is the first ValidationException among its attributes, in the order of the request.
// Reading goes on after it, and the appended item is useless then. fatal is Err. Null appends
// nothing.
//
// Of equal attribute names, the last one wins, but an error in an earlier one still counts.
func (j *JSON) AppendItem(dst []byte) (out []byte, invalid, fatal error) {
	return j.item(dst, j.Map(attributeValue))
}

// AppendItemElement is AppendItem for an AttributeMap that is an element of a list, like the Keys
// of BatchGetItem.
func (j *JSON) AppendItemElement(dst []byte) (out []byte, invalid, fatal error) {
	return j.item(dst, j.MapElement(attributeValue))
}

func (j *JSON) item(dst []byte, begun bool) (out []byte, invalid, fatal error) {
	if !begun {
		return dst, nil, j.Err()
	}
	return j.outcome(j.attributes(dst, 1))
}

// AppendValue reads an AttributeValue in a list or map, and appends it. The results are as in
// AppendItem, except that null is an empty AttributeValue and so invalid.
func (j *JSON) AppendValue(dst []byte) (out []byte, invalid, fatal error) {
	return j.outcome(j.value(dst, 1))
}

// AppendValueMember is AppendValue for the member of a structure. Null appends nothing.
func (j *JSON) AppendValueMember(dst []byte) (out []byte, invalid, fatal error) {
	if j.next() == '{' {
		return j.AppendValue(dst)
	}
	j.Struct(attributeValue)
	return dst, nil, j.Err()
}

func (j *JSON) outcome(dst []byte, bad *Error) (out []byte, invalid, fatal error) {
	if bad != nil {
		invalid = bad
	}
	return dst, invalid, j.Err()
}

// attributes reads the rest of an object of attribute values at nesting level, and appends it as an
// item.
func (j *JSON) attributes(dst []byte, level int) ([]byte, *Error) {
	var (
		bad       *Error
		name      []byte
		head      = len(dst)
		base      = len(j.entries.list)
		ascending = true
	)
	dst = append(dst, 0) // the count
	for j.NextEntry(&name) {
		start := len(dst)
		dst = appendUvarint(dst, len(name))
		nameAt := len(dst)
		dst = append(dst, name...)
		if message := CheckName(name); message != "" && bad == nil {
			bad = invalidValue(FaultContent, msgInvalidPrefix+message)
		}
		var badValue *Error
		dst, badValue = j.value(dst, level)
		if bad == nil {
			bad = badValue
		}
		if !j.entries.add(base, dst, start, nameAt, len(name)) {
			ascending = false
		}
	}
	if !ascending {
		if j.entries.sort(base, dst) {
			j.entries.dropReplaced(base, dst)
		}
		dst = j.entries.arrange(base, dst, head+1)
	}
	count := len(j.entries.list) - base
	j.entries.list = j.entries.list[:base]
	return fillUvarint(dst, head, count), bad
}

// CheckName returns the message about a text that cannot be the name of an attribute, or "".
func CheckName[T string | []byte](name T) (message string) {
	switch {
	case len(name) == 0:
		return msgEmptyName
	case len(name) > maxNameBytes:
		return msgLongName
	}
	return ""
}

// fillUvarint writes v in place of one byte of dst, and moves the bytes after it if v needs more.
func fillUvarint(dst []byte, at, v int) []byte {
	if v < 0x80 {
		dst[at] = byte(v)
		return dst
	}
	var room [8]byte
	extra := uvarintLen(v) - 1
	dst = append(dst, room[:extra]...)
	copy(dst[at+1+extra:], dst[at+1:len(dst)-extra])
	appendUvarint(dst[:at], v)
	return dst
}

// value reads an AttributeValue in a collection at nesting level, and appends it. The level is 1
// for an attribute of an item. The result is a ValidationException or nil: a value with one is
// consumed too, but its appended bytes are useless. Other errors are in j.err alone.
func (j *JSON) value(dst []byte, level int) ([]byte, *Error) {
	if j.next() == 'n' {
		j.literal("null")
		return dst, Invalid(msgNoDatatype)
	}
	if level > MaxDepth {
		j.Skip()
		return dst, Invalid(msgNesting)
	}
	if out, bad, ok := j.plainValue(dst); ok {
		return out, bad
	}
	if !j.StructElement(attributeValue) {
		return dst, nil
	}
	var (
		bad     *Error
		badRank int
		name    []byte
		seen    Kind
		several bool
		start   = len(dst)
	)
	for j.NextMember(&name) {
		kind := kindOf(name)
		if kind == 0 {
			j.Skip()
			continue
		}
		switch {
		case seen == kind && !several:
			bad = nil // the last of equal names wins
		case seen != 0:
			several = true
		}
		seen = kind
		var badPayload *Error
		dst, badPayload = j.payload(dst[:start], kind, level)
		if badPayload != nil && (bad == nil || rank(kind) < badRank) {
			bad, badRank = badPayload, rank(kind)
		}
	}
	switch {
	case bad != nil:
		return dst, bad
	case seen == 0:
		return dst, Invalid(msgNoDatatype)
	case several:
		return dst, Invalid(msgTwoDatatypes)
	}
	return dst, nil
}

// plainValue is value for the most common forms, {"S":"…"}, {"N":"…"} and {"B":"…"} without blanks,
// for speed. If ok is false, the value has another form and nothing has been consumed.
func (j *JSON) plainValue(dst []byte) (out []byte, bad *Error, ok bool) {
	// the positions of the payload's quote and of the kind's name
	const quoted, name = len(`{"S":`), len(`{"`)
	b, start := j.body[j.pos:], j.pos
	if len(b) <= quoted || string(b[:name]) != `{"` || string(b[name+1:quoted+1]) != `":"` {
		return dst, nil, false
	}
	kind := kindOf(b[name : name+1])
	if kind != KindString && kind != KindNumber && kind != KindBinary {
		return dst, nil, false
	}
	j.pos += quoted
	out, bad = j.payload(dst, kind, 0)
	if j.err == nil && j.pos < len(j.body) && j.body[j.pos] == '}' {
		j.pos++
		return out, bad, true
	}
	if j.err != nil {
		return out, nil, true
	}
	j.pos = start
	return dst, nil, false
}

// rank returns the place of a kind in DynamoDB's order of checks for a value with several kinds.
func rank(kind Kind) int {
	switch kind {
	case KindNumber:
		return 0
	case KindNull:
		return 1
	case KindList, KindMap:
		return 3
	}
	return 2
}

// kindOf returns the kind with this name on the wire, or 0.
func kindOf(name []byte) Kind {
	if len(name) == 1 {
		switch name[0] {
		case 'S':
			return KindString
		case 'N':
			return KindNumber
		case 'B':
			return KindBinary
		case 'L':
			return KindList
		case 'M':
			return KindMap
		}
		return 0
	}
	switch string(name) {
	case "NULL":
		return KindNull
	case "BOOL":
		return KindBool
	case "SS":
		return KindSS
	case "NS":
		return KindNS
	case "BS":
		return KindBS
	}
	return 0
}

// payload reads the part after the kind's name and appends the value.
func (j *JSON) payload(dst []byte, kind Kind, level int) ([]byte, *Error) {
	switch kind {
	case KindString:
		return AppendString(dst, j.Text()), nil
	case KindNumber:
		return j.appendNumber(append(dst, byte(KindNumber)))
	case KindBinary:
		return j.appendBlob(append(dst, byte(KindBinary))), nil
	case KindBool:
		return AppendBool(dst, j.Bool()), nil
	case KindNull:
		if !j.Bool() && j.err == nil {
			return dst, invalidValue(FaultContent, msgNullFalse)
		}
		return AppendNull(dst), nil
	case KindMap:
		dst = append(dst, byte(KindMap), 0)
		if !j.Map(attributeValue) {
			return dst, nil
		}
		head := len(dst)
		dst, bad := j.attributes(dst, level+1)
		return fillUvarint(dst, head-1, len(dst)-head), bad
	case KindList:
		return j.appendList(dst, level)
	default:
		return j.appendSet(dst, kind)
	}
}

// appendNumber reads a number, which is a string in JSON, and appends its length and binary form.
func (j *JSON) appendNumber(dst []byte) ([]byte, *Error) {
	at := len(dst)
	dst = append(dst, 0)
	text := j.Text()
	if j.err != nil {
		return dst, nil
	}
	var dec decimal
	if bad := dec.parse(text); bad != nil {
		return dst, bad
	}
	dst = dec.append(dst)
	dst[at] = byte(len(dst) - at - 1)
	return dst, nil
}

func (j *JSON) appendList(dst []byte, level int) ([]byte, *Error) {
	dst = append(dst, byte(KindList), 0, 0)
	if !j.List() {
		return dst, nil
	}
	var bad *Error
	head, count := len(dst)-1, 0
	for j.NextElement() {
		var badElement *Error
		dst, badElement = j.value(dst, level+1)
		if bad == nil {
			bad = badElement
		}
		count++
	}
	dst = fillUvarint(dst, head, count)
	return fillUvarint(dst, head-1, len(dst)-head), bad
}
