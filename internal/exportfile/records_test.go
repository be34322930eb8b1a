package exportfile

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

func zstdOf(t testing.TB, text string, o ...zstd.EOption) string {
	t.Helper()
	e, err := zstd.NewWriter(nil, o...)
	if err != nil {
		t.Fatal(err)
	}
	return string(e.EncodeAll([]byte(text), nil))
}

// A file is read with the compression that it has, which must be the format's.
func TestCompression(t *testing.T) {
	t.Parallel()
	const text = `{"Item":{"pk":{"S":"1"}}}` + "\n"
	packed := zstdOf(t, text)
	window := zstdOf(t, strings.Repeat(text, 64<<20/len(text)), zstd.WithWindowSize(64<<20), zstd.WithSingleSegment(false))
	for _, c := range []struct{ name, contents, compression, want string }{
		{"a", text, "", ""},
		{"a", zipped(text), "", ""},
		{"a", packed, "", ""},
		{"a", packed + packed, "", ""},
		{"a", text, "NONE", ""},
		{"a.gz", text, "NONE", ""},
		{"a", zipped(text), "GZIP", ""},
		{"a", packed, "ZSTD", ""},
		{"a", "", "ZSTD", ""},
		{"a.gz", "", "", ""},
		{"a", zipped(text), "NONE", "a: its compression is GZIP, not NONE"},
		{"a", packed, "NONE", "a: its compression is ZSTD, not NONE"},
		{"a.gz", text, "GZIP", "a.gz: its compression is NONE, not GZIP"},
		{"a", packed, "GZIP", "a: its compression is ZSTD, not GZIP"},
		{"a", zipped(text), "ZSTD", "a: its compression is GZIP, not ZSTD"},
		{"a", "x", "ZSTD", "a: its compression is NONE, not ZSTD"},
		{"a.gz", packed, "", "a.gz: the name ends with .gz, but the contents are not compressed with gzip"},
		{"a.zst", text, "", "a.zst: the name ends with .zst, but the contents are not compressed with zstd"},
		{"a", packed[:len(packed)-6], "", "a, line 1: the file is truncated: its compressed data ends too early"},
		{"a", window, "", "a, line 1: its zstd window is larger than 32 MB; compress it without --ultra and --long"},
		{"a", text, "zip", `the compression "zip" is not NONE, GZIP or ZSTD`},
	} {
		s, err := Open(t.Context(), memory{c.name: c.contents}, "", Format{Compression: c.compression})
		if err == nil {
			_, err = readAll(s)
		}
		if got := fmt.Sprint(err); c.want == "" && err != nil || c.want != "" && got != c.want {
			t.Errorf("%s with %q as %q: %v, want %s", c.name, c.contents[:min(10, len(c.contents))], c.compression, err, c.want)
		}
	}
}

// Bad receives every record that cannot be read, and the others are read. A fault of the file ends the
// reading without a call of Bad.
func TestBad(t *testing.T) {
	t.Parallel()
	const good = `{"Item":{"pk":{"S":"1"}}}` + "\n"
	sheet := &CSV{Delimiter: ',', Types: map[string]string{"id": "N"}, Keys: []string{"id"}}
	for _, c := range []struct {
		text string
		csv  *CSV
		want string // the good and bad lines
		err  string
	}{
		{good + "no\n" + `{"Items":{}}` + "\n" + good + "{\"Item\":{\"pk\":\"\xff\"}}\n" + `{"Item":{}`, nil, "1 (2) (3) 4 (5) (6)", ""},
		{good + `{"Keys":{},"NewImage":{}}` + "\n" + good, nil, "1 (2) 3", ""},
		{good + strings.Repeat("x", RecordMax+1), nil, "1", "a, line 2: the line is longer than 6291456 bytes"},
		{zipped(good + "no\nno")[:30], nil, "", "a, line 1: the file is truncated: its compressed data ends too early"},
		{zstdOf(t, "no\nno")[:13], nil, "", "a, line 1: the file is truncated: its compressed data ends too early"},
		{"id,v\n1,2\n1\n2,\xff\n3,a\"b\n4,5\n\"6", sheet, "2 (3) (4) (5) 6 (7)", ""},
		{"id,v\n\"7\"8,9\n1,2\n", sheet, "(2) 3", ""},
		{"v\n1\n", sheet, "", `a, line 1: the header lacks the key attribute "id"`},
		{"i\"d\n1\n", sheet, "", `a, line 1: bare " in non-quoted-field`},
		{"id\n1,1\n\"" + strings.Repeat("x", RecordMax+1<<20), sheet, "(2)", "a: the record is longer than 6291456 bytes"},
	} {
		var got []string
		f := Format{CSV: c.csv, Bad: func(e *Error) error {
			got = append(got, fmt.Sprintf("(%d)", e.Line))
			return nil
		}}
		s, err := Open(t.Context(), memory{"a": c.text}, "", f)
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Read(t.Context(), s.Files[0], func(r Record) error {
			got = append(got, fmt.Sprint(r.Line))
			return nil
		})
		if !slices.Equal(got, strings.Fields(c.want)) || c.err == "" && err != nil || c.err != "" && (err == nil || err.Error() != c.err) {
			t.Errorf("%.60q: lines %q, %v; want %s, %s", c.text, got, err, c.want, c.err)
		}
	}
}

// A row that a truncated file cuts off is no bad row.
func TestBadCutRow(t *testing.T) {
	t.Parallel()
	f := Format{CSV: &CSV{Delimiter: ','}, Bad: func(e *Error) error { return fmt.Errorf("bad: %w", e) }}
	packed := zipped("id\n1\n\"2\"3")
	s, err := Open(t.Context(), memory{"a": packed[:len(packed)-4]}, "", f)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = readAll(s); err == nil || err.Error() != "a: the file is truncated: its compressed data ends too early" {
		t.Error(err)
	}
}

// An error of Bad ends the reading. A bad record is an item of the manifest.
func TestBadCounts(t *testing.T) {
	t.Parallel()
	store := func(items int) memory {
		const data = "no\n{\"Item\":{}}\nno\n"
		return memory{
			"e/manifest-summary.json": fmt.Sprintf(`{"manifestFilesS3Key":"e/manifest-files.json","itemCount":%d,"outputFormat":"DYNAMODB_JSON"}`, items),
			"e/manifest-files.json":   fmt.Sprintf(`{"itemCount":%d,"md5Checksum":%q,"dataFileS3Key":"e/data/a"}`, items, sum(data)),
			"e/data/a":                data,
		}
	}
	stop := errors.New("enough")
	for _, c := range []struct {
		items, most int // bad records that Bad accepts
		want        string
	}{
		{3, 2, ""},
		{3, 1, "enough"},
		{2, 2, "e/data/a, line 3: the file has more items than the manifest says: 2"},
		{4, 2, "e/data/a: it has 3 items, but the manifest says 4"},
	} {
		bad := 0
		s, err := Open(t.Context(), store(c.items), "", Format{Bad: func(*Error) error {
			if bad++; bad > c.most {
				return stop
			}
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = readAll(s)
		if c.want == "" && err != nil || c.want != "" && (err == nil || err.Error() != c.want) {
			t.Errorf("%d items, %d bad ones: %v, want %s", c.items, c.most, err, c.want)
		}
	}
}

// Records have the sizes of their lines, and a file has the size of its contents.
func TestSizes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text, want string
		csv        *CSV
	}{
		{"{\"Item\":{}}\n\nno\n {\"Item\":{}}\r\n{\"Item\":{}}", "12 14 11 of 41", nil},
		{"id,v\n1,\"a\nb\"\n2,3\n4\n", "8 4 of 19", &CSV{Delimiter: ','}},
	} {
		s, err := Open(t.Context(), memory{"a": zipped(c.text)}, "", Format{CSV: c.csv, Bad: func(*Error) error { return nil }})
		if err != nil {
			t.Fatal(err)
		}
		var got strings.Builder
		contents, err := s.Read(t.Context(), s.Files[0], func(r Record) error {
			fmt.Fprint(&got, r.Size, " ")
			return nil
		})
		fmt.Fprint(&got, "of ", contents.Bytes)
		if err != nil || got.String() != c.want || contents.MD5 != sum(zipped(c.text)) {
			t.Errorf("%q: %s, %v, want %s", c.text, got.String(), err, c.want)
		}
	}
}
