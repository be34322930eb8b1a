package dynamo

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"unicode/utf8"
)

// errTruncated is the error for bytes that end too early, or a length that points beyond them.
var errTruncated = errors.New("dynamo: binary form is truncated")

// CheckItem returns an error unless b is a canonical item, on which every method of Item and Value
// is safe.
func CheckItem(b []byte) error {
	tail, err := checkAttributes(b, 1)
	if err == nil && len(tail) > 0 {
		err = fmt.Errorf("dynamo: %d bytes after the item", len(tail))
	}
	return err
}

// checkUvarint cuts a uvarint of minimal length off the head of b.
func checkUvarint(b []byte) (v int, tail []byte, err error) {
	u, n := binary.Uvarint(b)
	if n <= 0 || u > 1<<31 {
		return 0, nil, errTruncated
	}
	if n > 1 && b[n-1] == 0 {
		return 0, nil, errors.New("dynamo: length in more bytes than it needs")
	}
	return int(u), b[n:], nil
}

// checkCut cuts a uvarint and as many bytes off the head of b.
func checkCut(b []byte) (head, tail []byte, err error) {
	n, tail, err := checkUvarint(b)
	if err != nil {
		return nil, nil, err
	}
	if n > len(tail) {
		return nil, nil, errTruncated
	}
	return tail[:n], tail[n:], nil
}

func checkAttributes(b []byte, level int) (tail []byte, err error) {
	n, tail, err := checkUvarint(b)
	if err != nil {
		return nil, err
	}
	var before []byte
	for i := range n {
		var name []byte
		if name, tail, err = checkCut(tail); err != nil {
			return nil, err
		}
		switch {
		case len(name) == 0 || len(name) > maxNameBytes:
			return nil, fmt.Errorf("dynamo: attribute name of %d bytes", len(name))
		case !utf8.Valid(name):
			return nil, fmt.Errorf("dynamo: attribute name %q is not UTF-8", name)
		case i > 0 && bytes.Compare(before, name) >= 0:
			return nil, fmt.Errorf("dynamo: attribute %q does not ascend", name)
		}
		before = name
		if tail, err = checkValue(tail, level); err != nil {
			return nil, err
		}
	}
	return tail, nil
}

func checkValue(b []byte, level int) (tail []byte, err error) {
	if level > MaxDepth {
		return nil, errors.New("dynamo: value nests too deep")
	}
	if len(b) == 0 {
		return nil, errTruncated
	}
	kind, b := Kind(b[0]), b[1:]
	switch kind {
	case KindNull:
		return b, nil
	case KindBool:
		if len(b) == 0 || b[0] > 1 {
			return nil, errors.New("dynamo: malformed BOOL")
		}
		return b[1:], nil
	case KindNumber:
		_, tail, err = checkNumber(b)
		return tail, err
	case KindString, KindBinary:
		head, tail, err := checkCut(b)
		if err == nil && kind == KindString && !utf8.Valid(head) {
			err = errors.New("dynamo: S is not UTF-8")
		}
		return tail, err
	case KindList, KindMap, KindSS, KindNS, KindBS:
		return checkCollection(kind, b, level)
	}
	return nil, fmt.Errorf("dynamo: unknown kind %d", kind)
}

// checkNumber cuts a length byte and a number off the head of b.
func checkNumber(b []byte) (head, tail []byte, err error) {
	if len(b) == 0 || len(b) <= int(b[0]) || b[0] == 0 {
		return nil, nil, errTruncated
	}
	head, tail = b[1:1+int(b[0])], b[1+int(b[0]):]
	if NumberLen(head) != len(head) {
		return nil, nil, errors.New("dynamo: malformed number")
	}
	return head, tail, nil
}

func checkCollection(kind Kind, b []byte, level int) (tail []byte, err error) {
	body, tail, err := checkCut(b)
	if err != nil {
		return nil, err
	}
	switch kind {
	case KindMap:
		body, err = checkAttributes(body, level+1)
	case KindList:
		body, err = checkList(body, level+1)
	default:
		body, err = checkSet(kind, body)
	}
	if err == nil && len(body) > 0 {
		err = fmt.Errorf("dynamo: %d bytes after the elements of a %s", len(body), kind)
	}
	return tail, err
}

func checkList(b []byte, level int) (tail []byte, err error) {
	n, tail, err := checkUvarint(b)
	for range n {
		if tail, err = checkValue(tail, level); err != nil {
			return nil, err
		}
	}
	return tail, err
}

func checkSet(kind Kind, b []byte) (tail []byte, err error) {
	n, tail, err := checkUvarint(b)
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, fmt.Errorf("dynamo: empty %s", kind)
	}
	take := checkCut
	if kind == KindNS {
		take = checkNumber
	}
	var before []byte
	for i := range n {
		var e []byte
		if e, tail, err = take(tail); err != nil {
			return nil, err
		}
		if kind == KindSS && !utf8.Valid(e) {
			return nil, errors.New("dynamo: element of an SS is not UTF-8")
		}
		if i > 0 && bytes.Compare(before, e) >= 0 {
			return nil, fmt.Errorf("dynamo: element of a %s does not ascend", kind)
		}
		before = e
	}
	return tail, nil
}
