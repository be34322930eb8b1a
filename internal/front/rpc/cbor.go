package rpc

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"
	"unicode/utf8"
)

// The major types of CBOR (RFC 8949, section 3.1).
const (
	majorUint = iota
	majorNegative
	majorBytes
	majorText
	majorList
	majorMap
	majorTag
	majorSimple
)

const (
	tagTime    = 1  // seconds since the epoch
	indefinite = 31 // the length is not given; a break ends the value
	breakByte  = 0xff
)

// readCBOR returns the tree of a CBOR text.
func readCBOR(body []byte) (any, error) {
	r := &cborReader{b: body}
	tree, err := r.value(0)
	if err == nil && len(r.b) > 0 {
		err = errors.New("the body has more than one value")
	}
	return tree, err
}

type cborReader struct {
	b      []byte
	values int
}

// head reads the first bytes of a value: its major type, and its argument. short is the argument's
// place in the first byte: 0 to 23 is the argument itself, and 31 is none.
func (r *cborReader) head() (major int, short byte, argument uint64, err error) {
	if len(r.b) == 0 {
		return 0, 0, 0, errEnds
	}
	major, short = int(r.b[0]>>5), r.b[0]&31
	r.b = r.b[1:]
	switch {
	case short < 24:
		return major, short, uint64(short), nil
	case short == indefinite:
		return major, short, 0, nil
	case short > 27:
		return 0, 0, 0, errors.New("CBOR: a reserved length")
	}
	size := 1 << (short - 24)
	if len(r.b) < size {
		return 0, 0, 0, errEnds
	}
	var wide [8]byte
	copy(wide[8-size:], r.b)
	r.b = r.b[size:]
	return major, short, binary.BigEndian.Uint64(wide[:]), nil
}

func (r *cborReader) value(depth int) (any, error) {
	if r.values++; r.values > valuesMax {
		return nil, errMany
	}
	if depth > depthMax {
		return nil, errDeep
	}
	major, short, n, err := r.head()
	if err != nil {
		return nil, err
	}
	if short == indefinite && major != majorText && major != majorList && major != majorMap {
		return nil, errors.New("CBOR: an unexpected break or indefinite length")
	}
	switch major {
	case majorUint, majorNegative:
		if n > math.MaxInt64 {
			return nil, errors.New("CBOR: an integer has more than 64 bits")
		}
		if major == majorNegative {
			return -1 - int64(n), nil
		}
		return int64(n), nil
	case majorText:
		return r.text(short, n)
	case majorList:
		return r.list(depth, short, n)
	case majorMap:
		return r.members(depth, short, n)
	case majorTag:
		return r.tagged(depth, n)
	case majorSimple:
		return simple(short, n)
	}
	return nil, errors.New("CBOR: a value of bytes")
}

// more reports whether a list or map has another element, and takes the break at the end of an
// indefinite one.
func (r *cborReader) more(short byte, n uint64, read int) (bool, error) {
	switch {
	case short != indefinite:
		return uint64(read) < n, nil
	case len(r.b) == 0:
		return false, errEnds
	case r.b[0] == breakByte:
		r.b = r.b[1:]
		return false, nil
	}
	return true, nil
}

func (r *cborReader) list(depth int, short byte, n uint64) (any, error) {
	list := []any{} // grows with what is there, not with what the length promises
	for {
		more, err := r.more(short, n, len(list))
		if err != nil || !more {
			return list, err
		}
		v, err := r.value(depth + 1)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
}

func (r *cborReader) members(depth int, short byte, n uint64) (any, error) {
	members := map[string]any{}
	for read := 0; ; read++ {
		more, err := r.more(short, n, read)
		if err != nil || !more {
			return members, err
		}
		name, err := r.value(depth + 1)
		if err != nil {
			return nil, err
		}
		text, ok := name.(string)
		if !ok {
			return nil, errors.New("CBOR: a member's name is not a text")
		}
		if members[text], err = r.value(depth + 1); err != nil {
			return nil, err
		}
	}
}

func (r *cborReader) text(short byte, n uint64) (any, error) {
	var text []byte
	if short != indefinite {
		if n > uint64(len(r.b)) {
			return nil, errEnds
		}
		text, r.b = r.b[:n], r.b[n:]
	}
	for short == indefinite {
		more, err := r.more(short, 0, 0)
		if err != nil {
			return nil, err
		}
		if !more {
			break
		}
		major, inner, n, err := r.head()
		switch {
		case err != nil:
			return nil, err
		case major != majorText || inner == indefinite:
			return nil, errors.New("CBOR: a part of a text is no text")
		case n > uint64(len(r.b)):
			return nil, errEnds
		}
		text, r.b = append(text, r.b[:n]...), r.b[n:]
	}
	if !utf8.Valid(text) {
		return nil, errors.New("CBOR: a text is not UTF-8")
	}
	return string(text), nil
}

func (r *cborReader) tagged(depth int, tag uint64) (any, error) {
	v, err := r.value(depth + 1)
	if err != nil || tag != tagTime {
		return v, err
	}
	seconds, ok := (binder{}).number(v)
	if !ok || !(math.Abs(seconds) <= secondsMax) {
		return nil, errors.New("CBOR: a time is not a number of seconds up to the year 9999")
	}
	return instant(seconds), nil
}

// simple returns a boolean, null or a floating-point number.
func simple(short byte, n uint64) (any, error) {
	var v float64
	switch short {
	case 20, 21:
		return short == 21, nil
	case 22, 23: // null, undefined
		return nil, nil
	case 25:
		v = half(uint16(n))
	case 26:
		v = float64(math.Float32frombits(uint32(n)))
	case 27:
		v = math.Float64frombits(n)
	default:
		return nil, fmt.Errorf("CBOR: an unknown simple value %d", n)
	}
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil, errors.New("CBOR: a number is not finite")
	}
	return v, nil
}

// half returns the number in a 16-bit float (RFC 8949, appendix D).
func half(bits uint16) float64 {
	exponent, fraction := int(bits>>10&31), float64(bits&1023)
	v := 0.0
	switch exponent {
	case 0:
		v = math.Ldexp(fraction, -24)
	case 31:
		return math.NaN() // an infinity or no number
	default:
		v = math.Ldexp(fraction+1024, exponent-25)
	}
	if bits>>15 == 1 {
		return -v
	}
	return v
}

// cborSink writes CBOR.
type cborSink struct{ b []byte }

// head writes a major type with its argument in the fewest bytes.
func (s *cborSink) head(major int, n uint64) {
	first := byte(major << 5)
	switch {
	case n < 24:
		s.b = append(s.b, first|byte(n))
	case n <= math.MaxUint8:
		s.b = append(s.b, first|24, byte(n))
	case n <= math.MaxUint16:
		s.b = binary.BigEndian.AppendUint16(append(s.b, first|25), uint16(n))
	case n <= math.MaxUint32:
		s.b = binary.BigEndian.AppendUint32(append(s.b, first|26), uint32(n))
	default:
		s.b = binary.BigEndian.AppendUint64(append(s.b, first|27), n)
	}
}

func (s *cborSink) beginStruct(members int) { s.head(majorMap, uint64(members)) }
func (s *cborSink) endStruct()              {}
func (s *cborSink) beginList(elements int)  { s.head(majorList, uint64(elements)) }
func (s *cborSink) endList()                {}
func (s *cborSink) end(string)              {}

func (s *cborSink) begin(name string) {
	if name != element {
		s.text(name)
	}
}

func (s *cborSink) text(v string) {
	s.head(majorText, uint64(len(v)))
	s.b = append(s.b, v...)
}

func (s *cborSink) integer(v int64) {
	if v < 0 {
		s.head(majorNegative, uint64(-1-v))
		return
	}
	s.head(majorUint, uint64(v))
}

func (s *cborSink) float(v float64) {
	s.b = binary.BigEndian.AppendUint64(append(s.b, majorSimple<<5|27), math.Float64bits(v))
}

func (s *cborSink) boolean(v bool) {
	b := byte(20)
	if v {
		b = 21
	}
	s.b = append(s.b, majorSimple<<5|b)
}

func (s *cborSink) time(v time.Time) {
	s.head(majorTag, tagTime)
	s.float(float64(v.UnixMilli()) / 1000)
}
