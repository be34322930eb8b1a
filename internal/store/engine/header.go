package engine

import (
	"encoding/binary"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// header precedes every stored item and every index entry (FORMAT.md "Header"). It suffices to
// judge whether an item exists, so hidden items are never decoded.
type header struct {
	deadline   Instant // Never: none
	removal    Instant // when the reaper removes it; equals deadline in strict mode. Never: none
	generation uint32  // the TTL generation that decided the deadline
	size       int     // the item's size in DynamoDB bytes
}

const (
	flagDeadline   = 1 << 0
	flagRemoval    = 1 << 1 // the removal instant follows: it differs from the deadline
	flagGeneration = 1 << 2
)

// noDeadline returns the header of an item that never expires.
func noDeadline(generation uint32, size int) header {
	return header{deadline: Never, removal: Never, generation: generation, size: size}
}

func (h header) append(dst []byte) []byte {
	at := len(dst)
	dst = append(dst, 0)
	flags := byte(0)
	if h.generation != 0 {
		flags |= flagGeneration
		dst = binary.AppendUvarint(dst, uint64(h.generation))
	}
	if h.deadline != Never {
		flags |= flagDeadline
		dst = appendInstant(dst, h.deadline)
		if h.removal != h.deadline {
			flags |= flagRemoval
			dst = appendInstant(dst, h.removal)
		}
	}
	dst[at] = flags
	return binary.AppendUvarint(dst, uint64(h.size))
}

// splitStored splits a stored value into header and item.
func splitStored(b []byte) (header, dynamo.Item, error) {
	h := header{deadline: Never, removal: Never}
	if len(b) == 0 || b[0]&^(flagDeadline|flagRemoval|flagGeneration) != 0 {
		return h, nil, corrupt("stored item has no valid header")
	}
	flags, rest := b[0], b[1:]
	if flags&flagGeneration != 0 {
		g, n := binary.Uvarint(rest)
		if n <= 0 || g > 1<<32-1 {
			return h, nil, corrupt("header's TTL generation does not decode")
		}
		h.generation, rest = uint32(g), rest[n:]
	}
	if flags&flagDeadline != 0 {
		need := instantLen
		if flags&flagRemoval != 0 {
			need = 2 * instantLen
		}
		if len(rest) < need {
			return h, nil, corrupt("header's deadline is cut short")
		}
		h.deadline = readInstant(rest)
		h.removal = h.deadline
		if flags&flagRemoval != 0 {
			h.removal = readInstant(rest[instantLen:])
		}
		rest = rest[need:]
	}
	size, n := binary.Uvarint(rest)
	if n <= 0 || size > 1<<30 {
		return h, nil, corrupt("header's size does not decode")
	}
	h.size = int(size)
	return h, dynamo.Item(rest[n:]), nil
}
