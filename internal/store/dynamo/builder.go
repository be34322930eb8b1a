package dynamo

// Builder collects the attributes of an item, or of a map, in any order. The zero Builder is ready; one that is used again
// after Reset allocates nothing but the items that it gives.
type Builder struct {
	buf     []byte // entries, one after the other
	entries entries
	mixed   bool // not in ascending order
}

// Set gives an attribute a value, which it copies. Setting an attribute again replaces its value; a nil v is ignored.
func (b *Builder) Set(name string, v Value) {
	if v == nil {
		return
	}
	start := len(b.buf)
	b.buf = appendUvarint(b.buf, len(name))
	b.buf = append(b.buf, name...)
	b.setValue(start, len(name), v)
}

// SetBytes is Set for a name that is bytes.
func (b *Builder) SetBytes(name []byte, v Value) {
	if v == nil {
		return
	}
	start := len(b.buf)
	b.buf = appendUvarint(b.buf, len(name))
	b.buf = append(b.buf, name...)
	b.setValue(start, len(name), v)
}

func (b *Builder) setValue(start, nameLen int, v Value) {
	name := len(b.buf) - nameLen
	b.buf = append(b.buf, v...)
	if !b.entries.add(0, b.buf, start, name, nameLen) {
		b.mixed = true
	}
}

// Item gives the item, in memory of its own. More attributes may be set afterwards.
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

// Reset forgets the attributes and keeps the memory.
func (b *Builder) Reset() {
	b.buf = b.buf[:0]
	b.entries.list = b.entries.list[:0]
	b.mixed = false
}
