package dynamo

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
)

// entry is the position of a map's attribute, or of a set's element, in a buffer, and the
// position of its name (the element itself) in it.
type entry struct {
	prefix             uint64 // the name's first eight bytes, which decide most comparisons
	start, name        uint32
	nameLen, entrySize uint32
}

// entries sorts maps and sets under construction into their canonical order. Maps nest, so the list
// is a stack: a map's entries begin at a base, and its nested maps have removed their entries
// before the next one is added.
type entries struct {
	list  []entry
	moved []byte // scratch for arrange
}

// add records the entry from start to the end of buf. It reports whether the order still ascends:
// the entry is the first since base, or greater than the one before it.
func (s *entries) add(base int, buf []byte, start, name, nameLen int) (ascending bool) {
	e := entry{
		prefix:    prefixOf(buf, name, nameLen),
		start:     uint32(start),
		name:      uint32(name),
		nameLen:   uint32(nameLen),
		entrySize: uint32(len(buf) - start),
	}
	ascending = len(s.list) == base || s.list[len(s.list)-1].compare(&e, buf) < 0
	s.list = append(s.list, e)
	return ascending
}

// prefixOf returns the head of the name in buf as a number that orders like it. A shorter name is
// padded with zeros.
func prefixOf(buf []byte, name, nameLen int) uint64 {
	if name+8 <= len(buf) {
		p := binary.BigEndian.Uint64(buf[name:])
		if nameLen < 8 {
			p &^= 1<<(64-8*nameLen) - 1
		}
		return p
	}
	var p uint64 // near the end of buf, so the name is short
	for i, c := range buf[name : name+nameLen] {
		p |= uint64(c) << (56 - 8*i)
	}
	return p
}

func (e *entry) nameIn(buf []byte) []byte { return buf[e.name : e.name+e.nameLen] }

func (e *entry) compare(f *entry, buf []byte) int {
	if e.prefix != f.prefix {
		return cmp.Compare(e.prefix, f.prefix)
	}
	if e.nameLen <= 8 && f.nameLen <= 8 {
		return cmp.Compare(e.nameLen, f.nameLen)
	}
	return bytes.Compare(e.nameIn(buf), f.nameIn(buf))
}

// insertionMax is the number of entries up to which insertion sort is faster.
const insertionMax = 16

// sort orders the entries since base by name, and keeps the order of equal names. It reports
// whether a name occurs twice. It does not move the bytes.
func (s *entries) sort(base int, buf []byte) (duplicates bool) {
	list := s.list[base:]
	if len(list) <= insertionMax {
		return insertionSort(list, buf)
	}
	slices.SortFunc(list, func(e, f entry) int {
		if c := e.compare(&f, buf); c != 0 {
			return c
		}
		return cmp.Compare(e.start, f.start)
	})
	for i := 1; i < len(list); i++ {
		if list[i-1].compare(&list[i], buf) == 0 {
			return true
		}
	}
	return false
}

// insertionSort is sort for few entries. It compares each entry with its later predecessor, so it
// detects equal names.
func insertionSort(list []entry, buf []byte) (duplicates bool) {
	for i := 1; i < len(list); i++ {
		e := list[i]
		k := i
		for ; k > 0; k-- {
			c := e.compare(&list[k-1], buf)
			if c >= 0 {
				duplicates = duplicates || c == 0
				break
			}
			list[k] = list[k-1]
		}
		list[k] = e
	}
	return duplicates
}

// dropReplaced keeps only the last of several sorted entries with the same name.
func (s *entries) dropReplaced(base int, buf []byte) {
	list := s.list[base:]
	unique := list[:1]
	for _, e := range list[1:] {
		if unique[len(unique)-1].compare(&e, buf) == 0 {
			unique[len(unique)-1] = e
		} else {
			unique = append(unique, e)
		}
	}
	s.list = s.list[:base+len(unique)]
}

// arrange moves the bytes of the entries since base, which lie in buf from first to its end, into
// the order of the list. It returns buf up to the end of the last one, and updates the entries'
// positions.
func (s *entries) arrange(base int, buf []byte, first int) []byte {
	s.moved = append(s.moved[:0], buf[first:]...)
	out := buf[:first]
	list := s.list[base:]
	for i := range list {
		e := &list[i]
		from, at := int(e.start)-first, uint32(len(out))
		out = append(out, s.moved[from:from+int(e.entrySize)]...)
		e.name += at - e.start
		e.start = at
	}
	return out
}
