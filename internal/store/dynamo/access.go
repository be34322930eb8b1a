package dynamo

import (
	"bytes"
	"iter"
)

// The methods in this file read the binary form in place: their results alias the value. They
// expect a well-formed value (see CheckItem), and a method of one kind must not be called on
// another.

// Kind returns the value's type, or 0 for the nil Value.
func (v Value) Kind() Kind {
	if len(v) == 0 {
		return 0
	}
	return Kind(v[0])
}

// Bool returns the payload of a BOOL.
func (v Value) Bool() bool { return v[1] != 0 }

// Bytes returns the payload of an S or a B.
func (v Value) Bytes() []byte {
	head, _ := cut(v[1:])
	return head
}

// Number returns the payload of an N.
func (v Value) Number() Number {
	head, _ := cutNumber(v[1:])
	return Number(head)
}

// body returns the part after the length of an L, M or set: count and elements.
func (v Value) body() []byte {
	head, _ := cut(v[1:])
	return head
}

// Len returns the number of elements of an L, M, SS, NS or BS.
func (v Value) Len() int {
	n, _ := uvarint(v.body())
	return n
}

// Map returns the content of an M as an item.
func (v Value) Map() Item { return Item(v.body()) }

// Index returns the i-th element of an L, counted from zero, or nil beyond the end.
func (v Value) Index(i int) Value {
	tail := v.body()
	n, at := uvarint(tail)
	if i < 0 || i >= n {
		return nil
	}
	tail = tail[at:]
	for ; i > 0; i-- {
		tail = tail[valueLen(tail):]
	}
	e, _ := cutValue(tail)
	return e
}

// Elements returns the elements of an L, or of a set as values of kind S, N or B. Each element of a
// set costs an allocation; Payloads costs none.
func (v Value) Elements() iter.Seq[Value] {
	return func(yield func(Value) bool) { v.eachElement(yield) }
}

func (v Value) eachElement(yield func(Value) bool) {
	if v.Kind() == KindList {
		v.eachValue(yield)
		return
	}
	kind := v.Kind().Element()
	for payload := range v.Payloads() {
		if !yield(appendScalar(nil, kind, payload)) {
			return
		}
	}
}

func (v Value) eachValue(yield func(Value) bool) {
	tail := v.body()
	n, at := uvarint(tail)
	tail = tail[at:]
	for range n {
		var e Value
		e, tail = cutValue(tail)
		if !yield(e) {
			return
		}
	}
}

// Payloads returns the elements of a set in ascending order: strings and binaries unchanged,
// numbers as Number. It does not allocate.
func (v Value) Payloads() iter.Seq[[]byte] {
	return func(yield func([]byte) bool) { v.eachPayload(yield) }
}

func (v Value) eachPayload(yield func([]byte) bool) {
	take := cut
	if v.Kind() == KindNS {
		take = cutNumber
	}
	tail := v.body()
	n, at := uvarint(tail)
	tail = tail[at:]
	for range n {
		var e []byte
		e, tail = take(tail)
		if !yield(e) {
			return
		}
	}
}

// payload returns the contents of an S, N or B.
func (v Value) payload() []byte {
	if v.Kind() == KindNumber {
		return v.Number()
	}
	return v.Bytes()
}

// Contains reports whether e is an element of the list or set. An e of another kind than the set's
// elements is not.
func (v Value) Contains(e Value) bool {
	switch {
	case v.Kind() == KindList:
		for have := range v.Elements() {
			if bytes.Equal(have, e) {
				return true
			}
		}
	case v.Kind().IsSet() && e.Kind() == v.Kind().Element():
		want := e.payload()
		for have := range v.Payloads() {
			if c := bytes.Compare(have, want); c >= 0 {
				return c == 0
			}
		}
	}
	return false
}

// Compare orders two values of the same kind, which is S, N or B: strings and binaries by their
// bytes, numbers by value.
func Compare(a, b Value) int { return bytes.Compare(a.payload(), b.payload()) }

// Equal reports whether two values are the same, whatever their kinds. The form is canonical, so
// this is bytes.Equal.
func Equal(a, b Value) bool { return bytes.Equal(a, b) }

// Size returns the value's size in DynamoDB bytes (docs/spec/limits-and-capacity.md §5).
func (v Value) Size() int {
	switch v.Kind() {
	case KindString, KindBinary:
		return len(v.Bytes())
	case KindNumber:
		return v.Number().Size()
	case KindMap:
		it := v.Map()
		return 3 + it.Len() + it.Size()
	case KindList:
		size := 3
		for e := range v.Elements() {
			size += 1 + e.Size()
		}
		return size
	case KindSS, KindBS, KindNS:
		size := 0
		for e := range v.Payloads() {
			if v.Kind() == KindNS {
				size += Number(e).Size()
			} else {
				size += len(e)
			}
		}
		return size
	default:
		return 1
	}
}

// Depth returns the levels of nesting: 1 for a scalar. An item's values must not be deeper than
// MaxDepth.
func (v Value) Depth() int {
	deepest := 0
	switch v.Kind() {
	case KindList:
		for e := range v.Elements() {
			deepest = max(deepest, e.Depth())
		}
	case KindMap:
		deepest = v.Map().Depth()
	}
	return 1 + deepest
}

// String returns the value as JSON, for tests and messages.
func (v Value) String() string {
	if v == nil {
		return "(none)"
	}
	return string(AppendValueJSON(nil, v))
}
