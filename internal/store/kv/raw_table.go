package kv

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"sort"
	"sync"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/sstable/block"
	"github.com/cockroachdb/pebble/v2/sstable/colblk"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// rawTable reads a table file block by block, below Pebble's iterators, which end at the first bad
// block. It reads tables of the format that formatVersion pins: columnar blocks, CRC-32C, every
// value beside its key.
type rawTable struct {
	name   string
	file   vfs.File
	size   int64
	reader *sstable.Reader // nil: footer, metaindex or properties are unreadable
	layout *sstable.Layout // nil: so is the index
	fault  error           // why one of them is nil
	data   []block.Handle  // the data blocks, in key order
	// data was found without the index, and ends before a block that is not of data
	found bool
}

// entry is one version of a key.
type entry struct {
	key, value []byte
	seq        uint64
	deleted    bool
}

// span is a range deletion.
type span struct {
	start, end []byte // end is exclusive
	seq        uint64
	rank       int // of the file that it comes from
}

// keySchema is the one that Pebble uses if its options name none.
var keySchema = sync.OnceValue(func() *colblk.KeySchema {
	schema := colblk.DefaultKeySchema(pebble.DefaultComparer, 16)
	return &schema
})

// openRawTable opens a table file. It returns an error if the file cannot be opened at all; later
// calls find damage.
func openRawTable(fs FS, dir, name string) (*rawTable, error) {
	file, err := fs.Open(fs.PathJoin(dir, name))
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	t := &rawTable{name: name, file: file, size: info.Size()}
	if t.fault = t.readIndex(); t.layout == nil {
		t.data, t.found = t.find()
		return t, nil
	}
	for _, h := range t.layout.Data {
		t.data = append(t.data, h.Handle)
	}
	return t, nil
}

// readIndex reads footer and index. Damaged ones may make Pebble panic.
func (t *rawTable) readIndex() (err error) {
	defer rescue(&err, errors.New("index does not decode"))
	reader, err := newTableReader(t.file)
	if err != nil {
		return err
	}
	t.reader = reader
	layout, err := reader.Layout()
	if err == nil {
		t.layout = layout
	}
	return err
}

// newTableReader returns Pebble's reader of a table file. It may panic over damaged bytes.
func newTableReader(f sstable.ReadableFile) (*sstable.Reader, error) {
	readable, err := sstable.NewSimpleReadable(f)
	if err != nil {
		return nil, err
	}
	options := pebbleOptions(Options{})
	options.EnsureDefaults()
	return sstable.NewReader(context.Background(), readable, options.MakeReaderOptions())
}

func (t *rawTable) close() error { return t.file.Close() }

// read returns a block, decompressed, after checking its checksum.
func (t *rawTable) read(h block.Handle) ([]byte, error) {
	if h.Offset+h.Length+block.TrailerLen > uint64(t.size) {
		return nil, errors.New("block lies behind the end of the file")
	}
	raw := make([]byte, h.Length+block.TrailerLen)
	if _, err := t.file.ReadAt(raw, int64(h.Offset)); err != nil {
		return nil, err
	}
	if block.ValidateChecksum(block.ChecksumTypeCRC32c, raw, h) != nil {
		return nil, errors.New("block checksum mismatch")
	}
	kind := block.CompressionIndicator(raw[h.Length])
	if kind == block.NoCompressionIndicator {
		return raw[:h.Length], nil
	}
	return decompress(kind, raw[:h.Length])
}

// decompress decompresses bytes whose checksum is right. Pebble panics over an unknown method.
func decompress(kind block.CompressionIndicator, raw []byte) (data []byte, err error) {
	defer rescue(&err, errors.New("block does not decompress"))
	n, err := block.DecompressedLen(kind, raw)
	if err != nil || n < 0 || n > blockMax {
		return nil, fmt.Errorf("block does not decompress: length %d: %w", n, err)
	}
	data = make([]byte, n)
	return data, block.DecompressInto(kind, raw, data)
}

// blockMax bounds a block: one entry of the largest stream record, with room.
const blockMax = 16 << 20

// entries decodes a data block.
func (t *rawTable) entries(h block.Handle) (out []entry, err error) {
	data, err := t.read(h)
	if err != nil {
		return nil, err
	}
	defer rescue(&err, errors.New("block does not decode"))
	var decoder colblk.DataBlockDecoder
	decoder.Init(keySchema(), data)
	var it colblk.DataBlockIter
	it.InitOnce(keySchema(), pebble.DefaultComparer, nil)
	if err := it.Init(&decoder, block.NoTransforms); err != nil {
		return nil, err
	}
	for kv := it.First(); kv != nil; kv = it.Next() {
		e := entry{key: bytes.Clone(kv.K.UserKey), value: kv.InPlaceValue(), seq: uint64(kv.SeqNum())}
		switch kv.Kind() {
		case pebble.InternalKeyKindSet, pebble.InternalKeyKindSetWithDelete:
		case pebble.InternalKeyKindDelete, pebble.InternalKeyKindSingleDelete:
			e.deleted = true
		default:
			return nil, fmt.Errorf("block holds an entry of kind %d", kv.Kind())
		}
		if n := len(out); n > 0 && compareEntries(out[n-1], e) >= 0 {
			return nil, errors.New("keys are out of order")
		}
		out = append(out, e)
	}
	return out, nil
}

// compareEntries orders by key, and newer versions of one first.
func compareEntries(a, b entry) int {
	if c := bytes.Compare(a.key, b.key); c != 0 {
		return c
	}
	return cmp.Compare(b.seq, a.seq)
}

// spans returns the range deletions of the table.
func (t *rawTable) spans() (out []span, err error) {
	if t.reader == nil {
		return nil, t.fault
	}
	defer rescue(&err, errors.New("range deletions do not decode"))
	it, err := t.reader.NewRawRangeDelIter(context.Background(), sstable.NoFragmentTransforms, sstable.NoReadEnv)
	if err != nil || it == nil {
		return nil, err
	}
	defer it.Close()
	s, err := it.First()
	for ; s != nil; s, err = it.Next() {
		for _, k := range s.Keys {
			out = append(out, span{start: bytes.Clone(s.Start), end: bytes.Clone(s.End), seq: uint64(k.SeqNum())})
		}
	}
	return out, err
}

// find searches for the data blocks without an index. They come first in the file, one after
// another, and each ends in the checksum of its bytes. ended reports whether none is missing: they
// have the size in the properties, or a sound block of another kind follows.
func (t *rawTable) find() (data []block.Handle, ended bool) {
	size := t.size
	if t.reader != nil {
		if p, err := t.reader.ReadPropertiesBlock(context.Background(), nil); err == nil {
			size = min(size, int64(p.DataSize))
		}
	}
	for offset := int64(0); offset < size; {
		length := t.blockLength(offset)
		if length == 0 {
			return data, false
		}
		h := block.Handle{Offset: uint64(offset), Length: uint64(length)}
		if !t.isData(h) {
			return data, true
		}
		data = append(data, h)
		offset += int64(length) + block.TrailerLen
	}
	return data, size < t.size
}

// blockLength returns the length at which the bytes from an offset on match the checksum that
// follows them, or 0.
func (t *rawTable) blockLength(offset int64) int {
	table := crc32.MakeTable(crc32.Castagnoli)
	for size := int64(64 << 10); ; size *= 4 {
		window := make([]byte, min(size, t.size-offset, blockMax))
		if _, err := t.file.ReadAt(window, offset); err != nil {
			return 0
		}
		sum := ^uint32(0)
		for i := 0; i+block.TrailerLen <= len(window); i++ {
			sum = table[byte(sum)^window[i]] ^ sum>>8
			c := ^sum
			// masked as Pebble does
			if i > 0 && (c>>15|c<<17)+0xa282ead8 == binary.LittleEndian.Uint32(window[i+1:]) {
				return i
			}
		}
		if int64(len(window)) < size {
			return 0
		}
	}
}

// isData reports whether a block is a data block, which has a fixed number of columns.
func (t *rawTable) isData(h block.Handle) bool {
	const header, columns = 4, 7 // of a data block
	data, err := t.read(h)
	if err != nil || len(data) < header+7 || data[header] != byte(colblk.Version1) || binary.LittleEndian.Uint16(data[header+1:]) != columns {
		return false
	}
	_, err = t.entries(h)
	return err == nil
}

// checkMeta reads every block except the data blocks, and reports the faults. Together with the
// data blocks they must cover the file.
func (t *rawTable) checkMeta(report func(Damage)) {
	if t.layout == nil {
		report(Damage{File: t.name, Offset: -1, Fault: "footer or index is unreadable: " + faultText(t.fault)})
		return
	}
	l := t.layout
	type part struct {
		block.Handle
		what string
	}
	parts := []part{
		{l.TopIndex, "index"}, {l.RangeDel, "range deletion"}, {l.RangeKey, "range key"}, {l.ValueIndex, "value index"}, {l.Properties, "properties"},
		{l.MetaIndex, "metaindex"}, {l.BlobReferenceIndex, "blob index"},
	}
	for _, h := range l.Index {
		parts = append(parts, part{h, "index"})
	}
	for _, h := range l.Filter {
		parts = append(parts, part{h.Handle, "filter"})
	}
	for _, h := range l.ValueBlock {
		parts = append(parts, part{h, "value"})
	}
	for _, h := range t.data {
		parts = append(parts, part{h, ""}) // the caller reads it
	}
	sort.Slice(parts, func(i, j int) bool { return parts[i].Offset < parts[j].Offset })
	end := uint64(0)
	for _, p := range parts {
		if p.Length == 0 {
			continue
		}
		if p.Offset != end {
			report(Damage{File: t.name, Offset: int64(end), Fault: fmt.Sprintf("the bytes up to %d belong to no block", p.Offset)})
		}
		end = p.Offset + p.Length + block.TrailerLen
		if p.what == "" {
			continue
		}
		if _, err := t.read(p.Handle); err != nil {
			report(Damage{File: t.name, Offset: int64(p.Offset), Fault: p.what + " " + err.Error()})
		}
	}
	if end != l.Footer.Offset {
		report(Damage{File: t.name, Offset: int64(end), Fault: fmt.Sprintf("the bytes up to %d belong to no block", l.Footer.Offset)})
	}
}

// tableIter iterates over the entries of a table file, past its bad blocks.
type tableIter struct {
	t      *rawTable
	report func(d Damage, lost bool)
	lower  []byte  // no key lies below it; nil: unknown
	upper  []byte  // no key lies above it; nil: unknown
	next   int     // the next block
	batch  []entry // of the present block, from the present entry on
	last   []byte  // the last readable key
	holes  []Damage
	done   bool
}

// advance moves to the next entry.
func (it *tableIter) advance() bool {
	it.last = it.batch[0].key
	if it.batch = it.batch[1:]; len(it.batch) > 0 {
		return true
	}
	return it.fill()
}

// fill reads blocks until there is an entry, and reports whether there is one. The first call moves
// to the table's first entry.
func (it *tableIter) fill() bool {
	for it.next < len(it.t.data) {
		h := it.t.data[it.next]
		it.next++
		batch, err := it.t.entries(h)
		if err == nil && len(batch) > 0 && bytes.Compare(batch[0].key, it.last) < 0 {
			err = errors.New("keys are out of order")
		}
		if err != nil {
			it.hole(int64(h.Offset), err.Error())
			continue
		}
		if it.batch = batch; len(batch) > 0 {
			it.reportHoles(batch[0].key)
			return true
		}
	}
	if !it.done {
		it.done = true
		it.end()
	}
	return false
}

// end handles the end of the blocks. Without an index, everything behind the last block found may
// be lost.
func (it *tableIter) end() {
	if it.t.layout == nil && !it.t.found {
		end := int64(0)
		if n := len(it.t.data); n > 0 {
			end = int64(it.t.data[n-1].Offset + it.t.data[n-1].Length + block.TrailerLen)
		}
		it.hole(end, "no block can be found from here on")
	}
	it.reportHoles(it.upper)
}

// hole records a bad block. Its keys lie above the last readable one, and below the next one, which
// is not known yet.
func (it *tableIter) hole(offset int64, fault string) {
	lower := it.last
	if lower == nil {
		lower = it.lower
	}
	it.holes = append(it.holes, Damage{File: it.t.name, Offset: offset, Fault: fault, Lower: lower})
}

// reportHoles reports the bad blocks since the last readable key. upper is the next readable key,
// or the table's last one.
func (it *tableIter) reportHoles(upper []byte) {
	for _, d := range it.holes {
		d.Upper = upper
		it.report(d, true)
	}
	it.holes = nil
}

// faultText returns an error's text for Damage.Fault, on one line.
func faultText(err error) string {
	return string(bytes.ReplaceAll([]byte(err.Error()), []byte("\n"), []byte(" ")))
}
