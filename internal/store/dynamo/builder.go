package dynamo

// Builder collects the attributes of an item, or of a map, in any order. The zero Builder is ready
// for use. One that is used again after Reset allocates only the items that it returns.
type Builder struct {
	buf     []byte // entries, one after the other
	entries entries
	mixed   bool // not in ascending order
}

// Set adds or replaces an attribute, and copies its value. It ignores a nil v.
func (b *Builder) Set(name string, v Value) {
	if v == nil {
		return
	}
	start := len(b.buf)
	b.buf = appendUvarint(b.buf, len(name))
	b.buf = append(b.buf, name...)
	b.setValue(start, len(name), v)
}

// SetBytes is Set for a name in bytes.
func (b *Builder) SetBytes(name []byte, v Value) {
	if v == nil {
		return
	}
	start := len(b.buf)
	b.buf = appendUvarint(b.buf, len(name))
	b.buf = append(b.buf, name...)
	b.setValue(start, len(name), v)
}

// setValue is not generic over the name: a call to generic code would move the callers' builders to
// the heap.
func (b *Builder) setValue(start, nameLen int, v Value) {
	name := len(b.buf) - nameLen
	b.buf = append(b.buf, v...)
	if !b.entries.add(0, b.buf, start, name, nameLen) {
		b.mixed = true
	}
}

// Item returns the item, in its own memory. More attributes may be set afterwards.
func (b *Builder) Item() Item {
	return Item(b.AppendItem(make([]byte, 0, len(b.buf)+uvarintLen(len(b.entries.list)))))
}

// AppendItem appends the item.
func (b *Builder) AppendItem(dst []byte) []byte {
	if b.mixed {
		if b.entries.sort(0, b.buf) {
			b.entries.dropReplaced(0, b.buf)
		}
		b.buf = b.entries.arrange(0, b.buf, 0)
		b.mixed = false
	}
	dst = appendUvarint(dst, len(b.entries.list))
	return append(dst, b.buf...)
}

// Reset removes the attributes and keeps the memory.
func (b *Builder) Reset() {
	b.buf = b.buf[:0]
	b.entries.list = b.entries.list[:0]
	b.mixed = false
}
