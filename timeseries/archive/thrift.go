package archive

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// compact checks Thrift's compact protocol, the format of a Parquet file's metadata, without
// storing values. The library allocates by the promised length of a list; so this reader goes
// first, and a length beyond the remaining bytes is an error.
type compact struct {
	left     []byte
	elements int // of all lists so far
}

// Types of fields and of lists' elements.
const (
	thriftStop   = 0
	thriftTrue   = 1
	thriftFalse  = 2
	thriftByte   = 3
	thriftI16    = 4
	thriftI32    = 5
	thriftI64    = 6
	thriftDouble = 7
	thriftBinary = 8
	thriftList   = 9
	thriftSet    = 10
	thriftStruct = 12

	thriftDepth   = 12      // nesting levels; a footer has 7
	thriftListMax = 1 << 16 // elements
	// of all lists; the library allocates up to 32 bytes for an element of one byte
	thriftElementsMax = 1 << 22
)

var (
	errThriftEnds = errors.New("its metadata end too early")
	errThriftDeep = fmt.Errorf("its metadata are nested deeper than %d levels", thriftDepth)
)

func (c *compact) take(n int) ([]byte, error) {
	if n < 0 || n > len(c.left) {
		return nil, errThriftEnds
	}
	b := c.left[:n]
	c.left = c.left[n:]
	return b, nil
}

func (c *compact) uvarint() (uint64, error) {
	v, n := binary.Uvarint(c.left)
	if n <= 0 {
		return 0, errThriftEnds
	}
	c.left = c.left[n:]
	return v, nil
}

// integer reads an i16, i32 or i64.
func (c *compact) integer() (int64, error) {
	v, err := c.uvarint()
	return int64(v>>1) ^ -int64(v&1), err
}

// structure calls read for each field. read reports whether it has read the field's value;
// otherwise structure skips it. Fields must be in the order of their numbers, as all writers have
// them: of a repeated field this reader and the library might use different values.
func (c *compact) structure(depth int, read func(id int, kind byte) (done bool, err error)) error {
	if depth > thriftDepth {
		return errThriftDeep
	}
	id := 0
	for {
		b, err := c.take(1)
		if err != nil {
			return err
		}
		if b[0] == thriftStop {
			return nil
		}
		kind, before := b[0]&0x0f, id
		if delta := int(b[0] >> 4); delta > 0 {
			id += delta
		} else {
			long, err := c.integer()
			if err != nil {
				return err
			}
			id = int(min(max(long, 0), math.MaxInt16+1))
		}
		if id <= before || id > math.MaxInt16 {
			return errors.New("its metadata have fields that are not in order")
		}
		done := false
		if read != nil {
			if done, err = read(id, kind); err != nil {
				return err
			}
		}
		if !done {
			if err := c.skip(kind, depth, false); err != nil {
				return err
			}
		}
	}
}

// list reads the header of a list. Each element has at least one byte.
func (c *compact) list() (kind byte, n int, err error) {
	b, err := c.take(1)
	if err != nil {
		return 0, 0, err
	}
	long := uint64(b[0] >> 4)
	if long == 15 {
		if long, err = c.uvarint(); err != nil {
			return 0, 0, err
		}
	}
	if long > thriftListMax || long > uint64(len(c.left)) {
		return 0, 0, fmt.Errorf("its metadata claim a list of %d elements, which is too long", long)
	}
	if c.elements += int(long); c.elements > thriftElementsMax {
		return 0, 0, fmt.Errorf("its metadata have lists of more than %d elements", thriftElementsMax)
	}
	return b[0] & 0x0f, int(long), nil
}

func (c *compact) skip(kind byte, depth int, element bool) (err error) {
	if depth > thriftDepth {
		return errThriftDeep
	}
	switch kind {
	case thriftTrue, thriftFalse:
		if element { // as a field its type is its value
			_, err = c.take(1)
		}
	case thriftByte:
		_, err = c.take(1)
	case thriftI16, thriftI32, thriftI64:
		_, err = c.uvarint()
	case thriftDouble:
		_, err = c.take(8)
	case thriftBinary:
		var n uint64
		if n, err = c.uvarint(); err == nil {
			_, err = c.take(int(min(n, 1<<40)))
		}
	case thriftList, thriftSet:
		of, n, err := c.list()
		for ; err == nil && n > 0; n-- {
			err = c.skip(of, depth+1, true)
		}
		return err
	case thriftStruct:
		return c.structure(depth+1, nil)
	default:
		err = fmt.Errorf("its metadata have a field of the unknown type %d", kind)
	}
	return err
}
