package archive

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// A file may be truncated, damaged or malicious. The library trusts sizes and counts, and allocates
// by them. So checkFooter first compares the footer, and checkGroup the header of each page, with
// the file's contents and with the memory that a reader may use.

const (
	footerMax      = 64 << 20 // bytes
	columnsMax     = metricsMax + 100
	groupRowsMax   = 1 << 24
	pageBytesMax   = 128 << 20 // bytes of an uncompressed page
	pageValuesMax  = 1 << 20
	pageHeaderMax  = 8 << 20 // bytes: some writers include a page's least and greatest value
	pageHeaderRead = 128     // bytes; enough for most headers
	// bytes of the largest uncompressed pages of a row group's columns together
	groupMemory = 1 << 30
	// maximum overhead of a decoded value: its type, and whether it is NULL
	valueBytes = 9
	magic      = "PAR1"

	// older programs' name of a dictionary's encoding, in pages of either kind
	plainDictionary format.Encoding = 2
)

// checkFooter checks a file's metadata before the library reads it. The schema must be flat, like
// any table of samples.
func checkFooter(file io.ReaderAt, size int64) error {
	if size < int64(len(magic)+8) {
		return fmt.Errorf("not a Parquet file: it has only %d bytes", size)
	}
	var end [8]byte
	if _, err := file.ReadAt(end[:], size-8); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	length := int64(binary.LittleEndian.Uint32(end[:4]))
	switch {
	case string(end[4:]) != magic:
		return errors.New("not a Parquet file, or cut off: its end is missing")
	case length > footerMax:
		return fmt.Errorf("its metadata have %d bytes; the limit is %d", length, footerMax)
	case length > size-int64(len(magic)+8):
		return fmt.Errorf("its metadata claim %d bytes, more than the file has", length)
	}
	footer := make([]byte, length)
	if n, err := file.ReadAt(footer, size-8-length); n < len(footer) {
		return err
	}
	c := &compact{left: footer}
	columns := 0
	return c.structure(0, func(id int, kind byte) (_ bool, err error) {
		switch {
		case id == 2 && kind == thriftList:
			columns, err = checkSchema(c)
		case id == 4 && kind == thriftList:
			err = checkGroups(c, columns)
		default:
			return false, nil
		}
		return true, err
	})
}

// checkGroups checks the list of row groups. Each has every column: the library allocates 560 bytes
// for a column that takes three in the file.
func checkGroups(c *compact, columns int) error {
	kind, n, err := c.list()
	if err != nil {
		return err
	}
	if kind != thriftStruct || n*columns > chunksMax+columnsMax { // plus a writer's last row group
		return fmt.Errorf("it has %d row groups of %d columns; the limit is %d column chunks", n, columns, chunksMax+columnsMax)
	}
	for range n {
		err := c.structure(1, func(id int, kind byte) (bool, error) {
			if id != 1 || kind != thriftList {
				return false, nil
			}
			of, n, err := c.list()
			if err == nil && n != columns {
				err = fmt.Errorf("a row group has %d columns of %d", n, columns)
			}
			for ; err == nil && n > 0; n-- {
				err = c.skip(of, 2, true)
			}
			return true, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// checkSchema checks the list of columns, and returns their number. The first element is the root.
func checkSchema(c *compact) (columns int, err error) {
	kind, n, err := c.list()
	if err != nil {
		return 0, err
	}
	if kind != thriftStruct || n < 1 || n > columnsMax {
		return 0, fmt.Errorf("it has %d columns, not 1 to %d", max(n-1, 0), columnsMax-1)
	}
	for i := range n {
		children := int64(0)
		err := c.structure(1, func(id int, kind byte) (bool, error) {
			if id != 5 || kind != thriftI32 {
				return false, nil
			}
			children, err = c.integer()
			return true, err
		})
		if err != nil {
			return 0, err
		}
		if i == 0 && children != int64(n-1) || i > 0 && children != 0 {
			return 0, errors.New("its columns are nested: mayfly did not write this file")
		}
	}
	return n - 1, nil
}

// checkGroup checks the headers of all pages in a row group. optional reports by column whether
// values may be missing.
func checkGroup(ctx context.Context, file File, group *format.RowGroup, optional []bool) error {
	if group.NumRows < 0 || group.NumRows > groupRowsMax {
		return fmt.Errorf("a row group has %d rows; the limit is %d", group.NumRows, groupRowsMax)
	}
	memory := int64(0)
	for i := range group.Columns {
		meta := &group.Columns[i].MetaData
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := checkChunk(file, meta, group.NumRows, optional[i])
		if err != nil {
			return fmt.Errorf("the column %q: %w", strings.Join(meta.PathInSchema, "."), err)
		}
		if memory += n; memory > groupMemory {
			return fmt.Errorf("a row group takes more than %d MB of memory", groupMemory>>20)
		}
	}
	return nil
}

// checkChunk checks the headers of a column's pages, and returns the memory for reading them.
func checkChunk(file File, meta *format.ColumnMetaData, rows int64, optional bool) (memory int64, err error) {
	begin := meta.DataPageOffset
	if meta.DictionaryPageOffset != 0 {
		begin = meta.DictionaryPageOffset
	}
	switch {
	case meta.Codec != format.Snappy && meta.Codec != format.Uncompressed:
		return 0, fmt.Errorf("it is compressed with %s; only Snappy is supported", meta.Codec)
	case meta.NumValues != rows:
		return 0, fmt.Errorf("it has %d values in %d rows", meta.NumValues, rows)
	case begin < int64(len(magic)) || meta.DataPageOffset < begin || meta.TotalCompressedSize < 0 || begin > file.Size() || meta.TotalCompressedSize > file.Size()-begin:
		return 0, errors.New("its offset lies outside the file")
	}
	var dictionary, largest int64
	first := true // the first data page
	end := begin + meta.TotalCompressedSize
	for at := begin; at < end; {
		h, err := readPageHeader(file, at, end)
		if err != nil {
			return 0, err
		}
		h.optional = optional
		if err := h.check(file, meta.Codec, end); err != nil {
			return 0, err
		}
		cost := h.unpacked + valueBytes*h.values
		if h.kind == format.DictionaryPage {
			if at != begin {
				return 0, errors.New("its dictionary does not come first")
			}
			dictionary = 2 * cost // the library also stores the offsets of its values
		} else {
			if first && at != meta.DataPageOffset {
				return 0, errors.New("its first page is not at the given offset")
			}
			first = false
			if rows -= h.values; rows < 0 {
				return 0, errors.New("its pages have more values than rows")
			}
			largest = max(largest, cost)
		}
		at = h.data + h.packed
	}
	if rows != 0 {
		return 0, fmt.Errorf("its pages have %d values too few", rows)
	}
	return dictionary + largest, nil
}

// pageHeader is the header of a page.
type pageHeader struct {
	kind             format.PageType
	unpacked, packed int64
	values           int64
	encoding, levels format.Encoding
	levelBytes       int64 // length of definition levels, uncompressed in a page of version 2
	repeated         int64 // length of repetition levels
	plain            bool  // a page of version 2 without compression
	optional         bool  // values may be missing
	data             int64 // offset of the page after the header
}

// readPageHeader reads the page header at an offset of a column that ends at another.
func readPageHeader(file io.ReaderAt, at, end int64) (h pageHeader, err error) {
	for length := int64(pageHeaderRead); length <= pageHeaderMax; length *= 16 {
		b := make([]byte, min(length, end-at))
		if n, err := file.ReadAt(b, at); n < len(b) {
			return h, err
		}
		c := &compact{left: b}
		h = pageHeader{kind: -1, levels: format.RLE}
		if err = h.read(c); err == nil {
			h.data = at + int64(len(b)-len(c.left))
			return h, nil
		}
	}
	return h, fmt.Errorf("the header of a page: %w", err)
}

func (h *pageHeader) read(c *compact) error {
	// Within the header of a kind of page, field numbers have other meanings.
	inner := func(fields map[int]*int64) error {
		return c.structure(1, func(id int, kind byte) (bool, error) {
			if to := fields[id]; to != nil && kind == thriftI32 {
				v, err := c.integer()
				*to = v
				return true, err
			}
			if id == 7 && kind == thriftFalse {
				h.plain = true
			}
			return false, nil
		})
	}
	var kind, encoding, levels int64 = -1, -1, int64(format.RLE)
	err := c.structure(0, func(id int, is byte) (done bool, err error) {
		switch {
		case id == 1 && is == thriftI32:
			kind, err = c.integer()
		case id == 2 && is == thriftI32:
			h.unpacked, err = c.integer()
		case id == 3 && is == thriftI32:
			h.packed, err = c.integer()
		case id == 5 && is == thriftStruct && kind == int64(format.DataPage):
			err = inner(map[int]*int64{1: &h.values, 2: &encoding, 3: &levels})
		case id == 7 && is == thriftStruct && kind == int64(format.DictionaryPage):
			err = inner(map[int]*int64{1: &h.values, 2: &encoding})
			h.plain = false
		case id == 8 && is == thriftStruct && kind == int64(format.DataPageV2):
			err = inner(map[int]*int64{1: &h.values, 4: &encoding, 5: &h.levelBytes, 6: &h.repeated})
		default:
			return false, nil
		}
		return true, err
	})
	if kind != int64(format.DataPageV2) {
		h.plain = false
	}
	h.kind, h.encoding, h.levels = format.PageType(kind), format.Encoding(encoding), format.Encoding(levels)
	return err
}

// check compares a header with its column, and the compressed data with the header.
func (h *pageHeader) check(file io.ReaderAt, codec format.CompressionCodec, end int64) error {
	data := h.kind == format.DataPage || h.kind == format.DataPageV2
	switch {
	case !data && h.kind != format.DictionaryPage:
		return fmt.Errorf("a page has the kind %d, which is not a data page", h.kind)
	case h.packed < 0 || h.packed > end-h.data:
		return fmt.Errorf("a page claims %d bytes, more than the column has", h.packed)
	case h.unpacked < 0 || h.unpacked > pageBytesMax:
		return fmt.Errorf("an unpacked page has %d bytes; the limit is %d", h.unpacked, pageBytesMax)
	case h.values < 0 || h.values > pageValuesMax:
		return fmt.Errorf("a page has %d values; the limit is %d", h.values, pageValuesMax)
	case h.levels != format.RLE || h.repeated != 0 || h.levelBytes < 0 || h.levelBytes > min(h.packed, h.unpacked) || h.levelBytes > 0 && !h.optional:
		return errors.New("the levels of a page are not as those of a flat column")
	}
	switch h.encoding {
	case format.Plain, plainDictionary:
	case format.RLEDictionary, format.DeltaLengthByteArray, format.DeltaBinaryPacked:
		if !data {
			return fmt.Errorf("a dictionary has the unsupported encoding %s", h.encoding)
		}
	default:
		return fmt.Errorf("a page has the unsupported encoding %s", h.encoding)
	}
	at, packed, unpacked := h.data+h.levelBytes, h.packed-h.levelBytes, h.unpacked-h.levelBytes
	isPacked := codec != format.Uncompressed && !h.plain && (packed > 0 || unpacked > 0)
	if isPacked {
		var b [binary.MaxVarintLen32]byte // Snappy's block begins with its length
		n, err := file.ReadAt(b[:min(packed, int64(len(b)))], at)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if length, ok := binary.Uvarint(b[:n]); ok <= 0 || length != uint64(unpacked) {
			return fmt.Errorf("an unpacked page has %d bytes, but its header says %d", length, unpacked)
		}
	} else if packed != unpacked {
		return fmt.Errorf("a page that is not packed has %d bytes, and %d when it is unpacked", packed, unpacked)
	}
	return h.checkCounts(file, at, packed, isPacked)
}

// checkCounts compares the number of values in a page's contents with its header. Runs and deltas
// can promise any number in a few bytes.
func (h *pageHeader) checkCounts(file io.ReaderAt, at, packed int64, isPacked bool) error {
	read := func(at, n int64) ([]byte, error) {
		b := make([]byte, n)
		if n, err := file.ReadAt(b, at); n < len(b) {
			return nil, err
		}
		return b, nil
	}
	data, inside := h.kind != format.DictionaryPage, h.kind == format.DataPage && h.optional
	if h.levelBytes > 0 {
		levels, err := read(h.data, h.levelBytes)
		if err == nil {
			err = h.checkRuns(levels, 1)
		}
		if err != nil {
			return err
		}
	}
	if !data || h.encoding == format.Plain && !inside {
		return nil
	}
	b, err := read(at, packed)
	if err == nil && isPacked {
		b, err = parquet.Snappy.Decode(nil, b)
	}
	if err != nil {
		return fmt.Errorf("a page cannot be unpacked: %w", err)
	}
	if inside { // the page contains the levels, after their length
		if len(b) < 4 || int64(binary.LittleEndian.Uint32(b)) > int64(len(b)-4) {
			return errPageEnds
		}
		n := 4 + int(binary.LittleEndian.Uint32(b))
		if err := h.checkRuns(b[4:n], 1); err != nil {
			return err
		}
		b = b[n:]
	}
	switch h.encoding {
	case format.RLEDictionary, plainDictionary:
		if len(b) > 0 { // otherwise all values are missing
			return h.checkRuns(b[1:], int(b[0]))
		}
	case format.DeltaLengthByteArray, format.DeltaBinaryPacked:
		c := &compact{left: b}
		var header [3]uint64 // size of blocks, parts per block, number of values
		for i := range header {
			if header[i], err = c.uvarint(); err != nil {
				return errPageEnds
			}
		}
		if header[2] > uint64(h.values) {
			return fmt.Errorf("a page has %d values, but its header says %d", header[2], h.values)
		}
	}
	return nil
}

var errPageEnds = errors.New("a page ends too early")

// checkRuns checks run-length encoded numbers of a bit width against the number of values.
func (h *pageHeader) checkRuns(b []byte, bits int) error {
	if bits > 32 {
		return fmt.Errorf("a page has numbers of %d bits", bits)
	}
	c, left := &compact{left: b}, uint64(h.values)
	for len(c.left) > 0 {
		run, err := c.uvarint()
		if err != nil {
			return errPageEnds
		}
		n, bytes := run>>1, uint64(bits+7)/8
		if run&1 == 1 { // a number of groups of eight values; the last one may have padding
			n, bytes = min(n, 1<<40)*8, min(n, 1<<40)*uint64(bits)
		}
		if n > left+7 {
			return fmt.Errorf("a page has more values than the %d that its header says", h.values)
		}
		left -= min(n, left)
		_, _ = c.take(int(min(bytes, uint64(len(c.left))))) // some writers omit the padding
	}
	return nil
}

// broken turns a panic of the library, which it raises for some damaged files, into an error.
func broken(err *error) {
	if e := recover(); e != nil {
		*err = fmt.Errorf("it is broken: %v", e)
	}
}

// openParquet checks and reads the footer of a file. Before a row group is read, checkGroup must
// check its pages.
func openParquet(file File) (p *parquet.File, err error) {
	if file.Size() > fileMax {
		return nil, fmt.Errorf("it has %d bytes; the limit is %d", file.Size(), int64(fileMax))
	}
	if err := checkFooter(file, file.Size()); err != nil {
		return nil, err
	}
	defer broken(&err)
	return parquet.OpenFile(file, file.Size(), parquet.SkipBloomFilters(true), parquet.SkipPageIndex(true))
}
