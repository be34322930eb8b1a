package dynamo

import "iter"

// MaxDepth is the number of levels that an attribute's value may nest: one for a scalar, two for a
// list of scalars.
const MaxDepth = 32

// Len returns the number of attributes.
func (it Item) Len() int {
	if len(it) == 0 {
		return 0
	}
	n, _ := uvarint(it)
	return n
}

// Get returns the value of an attribute, or nil.
func (it Item) Get(name string) Value {
	if len(it) == 0 {
		return nil
	}
	n, at := uvarint(it)
	tail := []byte(it[at:])
	for range n {
		var have []byte
		have, tail = cut(tail)
		if string(have) >= name {
			if string(have) != name {
				return nil
			}
			v, _ := cutValue(tail)
			return v
		}
		tail = tail[valueLen(tail):]
	}
	return nil
}

// All returns the attributes in ascending order of their names. It does not allocate.
func (it Item) All() iter.Seq2[[]byte, Value] {
	return func(yield func([]byte, Value) bool) { it.each(yield) }
}

func (it Item) each(yield func([]byte, Value) bool) {
	if len(it) == 0 {
		return
	}
	n, at := uvarint(it)
	tail := []byte(it[at:])
	for range n {
		var (
			name []byte
			v    Value
		)
		name, tail = cut(tail)
		v, tail = cutValue(tail)
		if !yield(name, v) {
			return
		}
	}
}

// Size returns the item's size in DynamoDB bytes: the names and the values
// (docs/spec/limits-and-capacity.md §5).
func (it Item) Size() int {
	size := 0
	for name, v := range it.All() {
		size += len(name) + v.Size()
	}
	return size
}

// Depth returns the greatest Depth of the attributes' values, or 0 for an item without attributes.
func (it Item) Depth() int {
	deepest := 0
	for _, v := range it.All() {
		deepest = max(deepest, v.Depth())
	}
	return deepest
}

// With returns a copy of the item in which the attribute has the value v. A nil v removes the
// attribute.
func (it Item) With(name string, v Value) Item {
	var (
		count, at = 0, 0
		put       = v != nil
	)
	if len(it) > 0 {
		count, at = uvarint(it)
	}
	// before and after are the attributes on both sides of the changed one.
	before, after := []byte(it[at:]), []byte(nil)
	for tail := before; len(tail) > 0; {
		have, value := cut(tail)
		if string(have) >= name {
			before = before[:len(before)-len(tail)]
			after = tail
			if string(have) == name {
				after = value[valueLen(value):]
				count--
			}
			break
		}
		tail = value[valueLen(value):]
	}
	if put {
		count++
	}
	out := make([]byte, 0, len(it)+len(name)+len(v)+6)
	out = appendUvarint(out, count)
	out = append(out, before...)
	if put {
		out = appendUvarint(out, len(name))
		out = append(out, name...)
		out = append(out, v...)
	}
	return Item(append(out, after...))
}

// String returns the item as JSON, for tests and messages.
func (it Item) String() string {
	if it == nil {
		return "(none)"
	}
	return string(AppendItemJSON(nil, it))
}
