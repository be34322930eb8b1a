package archive

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	runtimemetrics "runtime/metrics"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/mayflydb/mayfly/timeseries"
)

// memory is a read-only store.
type memory map[string][]byte

type memoryFile struct{ *bytes.Reader }

func (memoryFile) Close() error { return nil }

func (m memory) Open(_ context.Context, name string) (File, error) {
	b, ok := m[name]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return memoryFile{bytes.NewReader(b)}, nil
}

func (m memory) List(context.Context, string) ([]string, error) {
	return slices.Sorted(maps.Keys(m)), nil
}

func (m memory) Put(_ context.Context, name string, write func(io.Writer) error) error {
	var b bytes.Buffer
	err := write(&b)
	if err == nil {
		m[name] = b.Bytes()
	}
	return err
}

func (m memory) Remove(_ context.Context, name string) error {
	delete(m, name)
	return nil
}

func (m memory) String() string { return "memory" }

// written returns a file with this many rows, every third with metadata.
func written(t testing.TB, rows int) []byte {
	t.Helper()
	m := newMetrics()
	var all []*row
	for i := range rows {
		s := reading(i, rows)
		s.Key = s.Time.Format("2006-01-02T15:04:05.000000000Z") + "#0123456789ab"
		if i%3 == 0 {
			s.Tags = map[string]string{"place": "roof"}
			delete(s.Values, "wind")
		}
		r, err := m.row(&s)
		must(t, err)
		all = append(all, &r)
	}
	store := memory{}
	must(t, New(store).put(t.Context(), "x", m.names, fromSlice(sortRows(all))))
	return store["x"]
}

// rewritten returns the file with other encodings.
func rewritten(t testing.TB, options ...parquet.WriterOption) []byte {
	t.Helper()
	type line struct {
		Device string   `parquet:"deviceId"`
		Key    string   `parquet:"sample_key,plain"`
		At     int64    `parquet:"timestamp,delta"`
		V      *float64 `parquet:"v,optional,dict"`
	}
	var b bytes.Buffer
	w := parquet.NewGenericWriter[line](&b, options...)
	for i := range 20 {
		v := float64(i % 3)
		_, err := w.Write([]line{{"roof", fmt.Sprintf("2030-01-01T00:00:%02d.000000000Z#0123456789ab", i), int64(i), &v}})
		must(t, err)
	}
	must(t, w.Close())
	return b.Bytes()
}

// readAll returns the rows of a file.
func readAll(t testing.TB, file []byte) (rows []*row, err error) {
	for r, err := range New(memory{"dt=2030-01-01/x.parquet": file}).read(t.Context(), "dt=2030-01-01/x.parquet", "", newMetrics()) {
		if err != nil {
			return rows, err
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// pages calls each with the offsets and the column of every page.
func pages(t testing.TB, file []byte, each func(at, data int64, meta *format.ColumnMetaData)) {
	t.Helper()
	p, err := openParquet(memoryFile{bytes.NewReader(file)})
	must(t, err)
	for _, group := range p.Metadata().RowGroups {
		for i := range group.Columns {
			meta := &group.Columns[i].MetaData
			at := meta.DataPageOffset
			if meta.DictionaryPageOffset != 0 {
				at = meta.DictionaryPageOffset
			}
			for end := at + meta.TotalCompressedSize; at < end; {
				h, err := readPageHeader(bytes.NewReader(file), at, end)
				must(t, err)
				each(at, h.data, meta)
				at = h.data + h.packed
			}
		}
	}
}

// field returns the position of a field's value in a page header.
func field(t testing.TB, file []byte, at int64, wanted int) (begin, end int64) {
	t.Helper()
	c := &compact{left: file[at:]}
	place := func() int64 { return int64(len(file) - len(c.left)) }
	must(t, c.structure(0, func(id int, kind byte) (bool, error) {
		if id != wanted || kind != thriftI32 {
			return false, nil
		}
		begin = place()
		_, err := c.integer()
		end = place()
		return true, err
	}))
	return begin, end
}

// overwrite replaces an integer by another of the same length.
func overwrite(file []byte, begin, end, v int64) {
	var b [binary.MaxVarintLen64]byte
	n := binary.PutUvarint(b[:], uint64(v<<1^v>>63))
	for i := begin; i < end; i++ {
		if k := i - begin; k < int64(n) {
			file[i] = b[k] | 0x80
		} else {
			file[i] = 0x80
		}
	}
	file[end-1] &= 0x7f
}

// withoutChecksums returns the file without checksums, so that changes of its pages go unnoticed.
func withoutChecksums(t testing.TB, file []byte) []byte {
	t.Helper()
	file = bytes.Clone(file)
	pages(t, file, func(at, _ int64, _ *format.ColumnMetaData) {
		if begin, end := field(t, file, at, 4); end > begin {
			overwrite(file, begin, end, 0)
		}
	})
	return file
}

func allocated() uint64 {
	sample := []runtimemetrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	runtimemetrics.Read(sample)
	return sample[0].Value.Uint64()
}

// Reading a damaged or malicious file returns an error that names it, or other rows; it neither
// panics nor exceeds the memory limit.
func FuzzReadFile(f *testing.F) {
	for _, rows := range []int{1, 20, 300} {
		file := written(f, rows)
		f.Add(file)
		f.Add(withoutChecksums(f, file))
	}
	for _, o := range [][]parquet.WriterOption{{}, {parquet.DataPageVersion(1)}, {parquet.Compression(&parquet.Snappy), parquet.PageBufferSize(64)}} {
		f.Add(withoutChecksums(f, rewritten(f, o...)))
	}
	f.Add([]byte("PAR1PAR1"))
	f.Fuzz(func(t *testing.T, file []byte) {
		before := allocated()
		rows, err := readAll(t, file)
		if n := allocated() - before; n > 2*groupMemory+1000*uint64(len(file)) {
			t.Errorf("%d bytes make it allocate %d", len(file), n)
		}
		if err != nil && !strings.HasPrefix(err.Error(), "read dt=2030-01-01/x.parquet in memory: ") {
			t.Errorf("the error does not name the file: %v", err)
		}
		for _, r := range rows {
			if err := r.check(); err != nil {
				t.Error(err)
			}
		}
	})
}

// Reading a truncated file is an error. A change without a checksum is an error or other rows, and
// takes little memory.
func TestReadDamaged(t *testing.T) {
	whole := written(t, 300)
	if rows, err := readAll(t, whole); len(rows) != 300 || err != nil {
		t.Fatalf("%d rows: %v", len(rows), err)
	}
	for i := 0; i < len(whole); i += 7 {
		if rows, err := readAll(t, whole[:i]); err == nil || len(rows) > 0 {
			t.Errorf("of a file of %d bytes of %d %d rows are read, %v", i, len(whole), len(rows), err)
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	files := [][]byte{withoutChecksums(t, whole), withoutChecksums(t, rewritten(t)), withoutChecksums(t, rewritten(t, parquet.DataPageVersion(1)))}
	broken, tries := 0, 3000
	if testing.Short() {
		tries = 300
	}
	for range tries {
		file := bytes.Clone(files[random.IntN(len(files))])
		for range 1 + random.IntN(4) {
			file[random.IntN(len(file))] ^= 1 << random.IntN(8)
		}
		before := allocated()
		if _, err := readAll(t, file); err != nil {
			broken++
		}
		if n := allocated() - before; n > 64<<20 {
			t.Errorf("a file of %d bytes makes it allocate %d", len(file), n)
		}
	}
	if broken < tries/3 {
		t.Errorf("%d of %d are broken", broken, tries)
	}
}

// An error names the exact promise of a header that the file breaks, before memory is allocated for
// it.
func TestReadRefuses(t *testing.T) {
	t.Parallel()
	whole := withoutChecksums(t, written(t, 300))
	footer := int64(len(whole)-8) - int64(binary.LittleEndian.Uint32(whole[len(whole)-8:]))
	page := func(column string, number int64, wanted int) func([]byte) []byte {
		return func(file []byte) []byte {
			done := false
			pages(t, whole, func(at, _ int64, meta *format.ColumnMetaData) {
				if begin, end := field(t, whole, at, wanted); meta.PathInSchema[0] == column && !done {
					overwrite(file, begin, end, number)
					done = true
				}
			})
			return file
		}
	}
	withFooter := func(c ...byte) func([]byte) []byte {
		return func(file []byte) []byte {
			file = append(file[:footer:footer], c...)
			return append(binary.LittleEndian.AppendUint32(file, uint32(len(c))), magic...)
		}
	}
	for want, change := range map[string]func([]byte) []byte{
		"not a Parquet file: it has only 9 bytes":                                            func(file []byte) []byte { return file[:9] },
		"not a Parquet file, or cut off: its end is missing":                                 func(file []byte) []byte { return file[:len(file)-1] },
		"its metadata have 4294967295 bytes; the limit is 67108864":                          func(file []byte) []byte { return append(file[:len(file)-8], "\xff\xff\xff\xffPAR1"...) },
		"its metadata claim 16777215 bytes, more than the file has":                          func(file []byte) []byte { return append(file[:len(file)-8], "\xff\xff\xff\x00PAR1"...) },
		"its metadata claim a list of 268435455 elements":                                    withFooter(0x49, 0xfc, 0xff, 0xff, 0xff, 0x7f),
		"its metadata claim a list of 2147483647 elements":                                   withFooter(0x15, 0x02, 0x19, 0xfc, 0xff, 0xff, 0xff, 0xff, 0x07),
		"its metadata end too early":                                                         withFooter(0x15, 0x02),
		"its metadata are nested deeper than 12 levels":                                      withFooter(bytes.Repeat([]byte{0x1c}, 1000)...),
		"nested deeper than 12 levels":                                                       withFooter(append([]byte{0x99}, bytes.Repeat([]byte{0x19}, 12<<20)...)...), // lists in lists
		"its metadata have fields that are not in order":                                     withFooter(0x15, 0x02, 0x05, 0x02, 0x02),
		"its metadata have a field of the unknown type 11":                                   withFooter(0x1b),
		`the column "temperature": a page claims 8000 bytes, more`:                           page("temperature", 8000, 3),
		`the column "temperature": a page claims -1 bytes, more`:                             page("temperature", -1, 3),
		`the column "temperature": an unpacked page has -1 bytes`:                            page("temperature", -1, 2),
		`the column "temperature": an unpacked page has 2400 bytes, but its header says 995`: page("temperature", 1000, 2),
		`the column "temperature": a page has the kind 1, which is not a data page`:          page("temperature", 1, 1),
		`the column "temperature": a page has the unsupported encoding `:                     page("temperature", 0, 1),
	} {
		_, err := readAll(t, change(bytes.Clone(whole)))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("it gives %v, want %q", err, want)
		}
	}
}

// A footer whose row groups promise too many columns is refused before the library allocates memory
// for them.
func TestReadManyColumns(t *testing.T) {
	footer := []byte{0x15, 0x02, 0x19, 0x3c, 0x48, 4, 'r', 'o', 'o', 't', 0x15, 4, 0} // the root and two columns
	for _, name := range []string{columnDevice, columnKey} {
		footer = append(append(append(footer, 0x15, 12, 0x25, 0, 0x18, byte(len(name))), name...), 0)
	}
	footer = append(footer, 0x16, 0, 0x19, 0x4c) // no rows, in four groups
	for range 4 {
		footer = binary.AppendUvarint(append(footer, 0x19, 0xfc), 60_000)
		footer = append(footer, bytes.Repeat([]byte{0x26, 0, 0}, 60_000)...)
		footer = append(footer, 0x16, 0, 0x16, 0, 0)
	}
	footer = append(footer, 0)
	file := append([]byte(magic), footer...)
	file = append(binary.LittleEndian.AppendUint32(file, uint32(len(footer))), magic...)
	before := allocated()
	_, err := readAll(t, file)
	if n := allocated() - before; n > 16<<20 || err == nil || !strings.Contains(err.Error(), "a row group has 60000 columns of 2") {
		t.Errorf("%d bytes make it allocate %d, and give %v", len(file), n, err)
	}
}

// ending is a file that cancels its reader while the headers of pages are read.
type ending struct {
	memory
	end   context.CancelFunc
	reads int // after the cancellation
}

type endingFile struct {
	File
	of *ending
}

func (e *ending) Open(ctx context.Context, name string) (File, error) {
	f, err := e.memory.Open(ctx, name)
	return endingFile{f, e}, err
}

func (f endingFile) ReadAt(b []byte, at int64) (int, error) {
	if at >= 4 && at < f.Size()/4 {
		f.of.end()
		f.of.reads++
	}
	return f.File.ReadAt(b, at)
}

// Cancellation ends a reader while it checks pages, which a malicious file can make slow.
func TestReadEnds(t *testing.T) {
	t.Parallel()
	values := map[string]float64{}
	for i := range 100 {
		values[fmt.Sprint("m", i)] = 1
	}
	m := newMetrics()
	r, err := m.row(&timeseries.Sample{Device: "roof", Key: "2030-01-01T00:00:00.000000000Z#0123456789ab", Values: values})
	must(t, err)
	store := memory{}
	must(t, New(store).put(t.Context(), "x", m.names, fromSlice([]*row{&r})))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	e := &ending{memory: store, end: cancel}
	for _, err := range New(e).read(ctx, "x", "", newMetrics()) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("it gives %v", err)
		}
	}
	if e.reads > 5 {
		t.Errorf("it looks at %d pages more", e.reads)
	}
}
