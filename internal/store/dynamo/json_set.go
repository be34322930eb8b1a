package dynamo

import (
	"bytes"
	"encoding/base64"
)

// appendSet reads the elements of an SS, NS or BS and appends the set in ascending order.
func (j *JSON) appendSet(dst []byte, kind Kind) ([]byte, *Error) {
	dst = append(dst, byte(kind), 0, 0)
	if !j.List() {
		return dst, nil
	}
	var (
		bad       *Error
		head      = len(dst) - 1
		base      = len(j.entries.list)
		ascending = true
	)
	for j.NextElement() {
		start := len(dst)
		var badElement *Error
		dst, badElement = j.appendSetElement(dst, kind)
		if badElement != nil {
			if bad == nil {
				bad = badElement
			}
			dst = dst[:start]
			continue
		}
		if j.err != nil {
			break
		}
		n, size := uvarint(dst[start:])
		if !j.entries.add(base, dst, start, start+size, n) {
			ascending = false
		}
	}
	count := len(j.entries.list) - base
	if !ascending {
		switch {
		case !j.entries.sort(base, dst):
			dst = j.entries.arrange(base, dst, head+1)
		case bad == nil:
			bad = duplicates(kind, dst[head+1:], count)
		}
	}
	j.entries.list = j.entries.list[:base]
	if count == 0 && bad == nil {
		bad = emptySet(kind)
	}
	dst = fillUvarint(dst, head, count)
	return fillUvarint(dst, head-1, len(dst)-head), bad
}

// appendSetElement reads an element and appends it with its length.
func (j *JSON) appendSetElement(dst []byte, kind Kind) ([]byte, *Error) {
	null := j.null()
	switch kind {
	case KindNS:
		if null {
			return dst, invalidValue(FaultNumber, msgNotNumeric)
		}
		return j.appendNumber(dst)
	case KindBS:
		if null {
			return dst, invalidValue(FaultContent, msgNullInBS)
		}
		return j.appendBlob(dst), nil
	default:
		if null {
			return dst, invalidValue(FaultContent, msgNullInSS)
		}
		s := j.Text()
		return append(appendUvarint(dst, len(s)), s...), nil
	}
}

func emptySet(kind Kind) *Error {
	switch kind {
	case KindSS:
		return invalidValue(FaultContent, msgEmptySS)
	case KindNS:
		return invalidValue(FaultSet, msgEmptyNS)
	default:
		return invalidValue(FaultContent, msgEmptyBS)
	}
}

// duplicates returns the error for a set whose elements are in b, in the order of the request.
func duplicates(kind Kind, b []byte, count int) *Error {
	if kind == KindNS {
		return invalidValue(FaultSet, msgDuplicateNS)
	}
	elems := make([][]byte, count)
	for i := range elems {
		elems[i], b = cut(b)
		if kind == KindBS {
			elems[i] = base64.StdEncoding.AppendEncode(nil, elems[i])
		}
	}
	text := msgInvalidPrefix + "Input collection [" + string(bytes.Join(elems, []byte(", "))) + "]"
	if kind == KindBS {
		// without a blank, as AWS writes it
		return invalidValue(FaultSet, text+"of type BS contains duplicates.")
	}
	return invalidValue(FaultSet, text+" contains duplicates.")
}
