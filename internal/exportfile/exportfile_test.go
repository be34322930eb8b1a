package exportfile

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/md5"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/objects"
)

// readAll returns all records of a source by file and line.
func readAll(s *Source) (all []string, err error) {
	for _, f := range s.Files {
		_, err := s.Read(context.Background(), f, func(r Record) error {
			all = append(all, fmt.Sprintf("%s:%d %s%s", filepath.Base(f.Name), r.Line, r.Keys, r.Item))
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

func open(dir string, csv *CSV) ([]string, error) {
	s, err := Open(context.Background(), objects.Dir(dir), "", Format{CSV: csv})
	if err != nil {
		return nil, err
	}
	return readAll(s)
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func zipped(text string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = io.WriteString(z, text)
	_ = z.Close()
	return b.String()
}

// RoundTrip: reading an export returns the items that were written.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	store := objects.Dir(dir)
	begun := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	id := NewID(begun)
	w := NewWriter(store, id, "backup", "/daily/")
	if err := w.Begin(t.Context(), []byte(`{}`)); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), store, "", Format{}); err == nil || err.Error() != "the export in AWSDynamoDB/"+id+" has not ended: it has no manifest-summary.json" {
		t.Errorf("an export without an end: %v", err)
	}
	var files []DataFile
	want := []string{"a.json.gz:1 {\"pk\":{\"S\":\"1\"}}", "a.json.gz:2 {\"pk\":{\"S\":\"2\"}}", "b.json.gz:1 {\"pk\":{\"S\":\"" + strings.Repeat("x", 600_000) + "\"}}"}
	for _, name := range []string{"a", "b"} {
		f, err := w.Data(t.Context(), name, func(add func([]byte) error) error {
			for _, line := range want {
				if strings.HasPrefix(line, name) {
					if err := add([]byte(ItemBegin + line[strings.Index(line, " ")+1:] + ItemEnd)); err != nil {
						return err
					}
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	if want := "daily/AWSDynamoDB/" + id + "/data/a.json.gz"; files[0].DataFileS3Key != want {
		t.Errorf("the key is %s, want %s", files[0].DataFileS3Key, want)
	}
	s, err := w.Finish(t.Context(), Summary{TableARN: "arn"}, files, begun, begun.Add(time.Minute))
	if err != nil || s.ItemCount != 3 || s.EndTime != "2030-01-01T00:01:00.000Z" || *s.S3Prefix != "daily" || s.ExportARN != "arn/export/"+id {
		t.Errorf("%+v, %v", s, err)
	}
	got, err := open(dir, nil)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%d records, %v", len(got), err)
	}
	// a failed file is not there
	if _, err := w.Data(t.Context(), "c", func(func([]byte) error) error { return errors.New("no") }); err == nil {
		t.Error("a failed file is no error")
	}
	if _, err := os.Stat(filepath.Join(dir, Folder(id), "data", "c.json.gz")); err == nil {
		t.Error("a failed file exists")
	}
}

// RoundTrip: two incremental exports share the data folder, and each is read with its own files. A third
// one has not ended, and a reader that names a folder does not see it.
func TestIncrementalRoundTrip(t *testing.T) {
	t.Parallel()
	bucket := objects.Dir(t.TempDir())
	begun := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, id := range []string{"01-a", "01-b", "01-c"} {
		w := NewWriter(objects.Below(bucket, "daily"), id, "backup", "daily")
		w.Incremental = true
		if err := w.Begin(t.Context(), []byte(`{}`)); err != nil {
			t.Fatal(err)
		}
		f, err := w.Data(t.Context(), "0000", func(add func([]byte) error) error {
			for _, record := range []string{
				`{"Metadata":{"WriteTimestampMicros":{"N":"1"}},"Keys":{"pk":{"S":"` + id + `"}},"OldImage":{"pk":{"S":"` + id + `"},"v":{"N":"1"}},"NewImage":{"pk":{"S":"` + id + `"}}}`,
				`{"Metadata":{"WriteTimestampMicros":{"N":"2"}},"Keys":{"pk":{"S":"gone"}},"OldImage":{"pk":{"S":"gone"}}}`,
			} {
				if err := add([]byte(record)); err != nil {
					return err
				}
			}
			return nil
		})
		if want := "daily/AWSDynamoDB/data/" + id + "-0000.json.gz"; err != nil || f.DataFileS3Key != want {
			t.Fatalf("the key is %s, want %s; %v", f.DataFileS3Key, want, err)
		}
		if id == "01-c" {
			break
		}
		from, to := Time(begun), Time(begun.Add(time.Hour))
		s, err := w.Finish(t.Context(), Summary{TableARN: "arn", ExportFromTime: from, ExportToTime: to}, []DataFile{f}, begun, begun)
		if err != nil {
			t.Fatal(err)
		}
		want := Summary{Version: "2023-08-01", ExportARN: "arn/export/" + id, StartTime: from, EndTime: from, TableARN: "arn", ExportFromTime: from, ExportToTime: to,
			S3Bucket: "backup", S3Prefix: s.S3Prefix, ManifestFilesS3Key: "daily/AWSDynamoDB/" + id + "/manifest-files.json", ItemCount: 2,
			OutputFormat: "DYNAMODB_JSON", OutputView: "NEW_AND_OLD_IMAGES", ExportType: "INCREMENTAL_EXPORT"}
		if s != want || *s.S3Prefix != "daily" {
			t.Errorf("%+v, want\n%+v", s, want)
		}
	}
	for _, prefix := range []string{"daily/AWSDynamoDB/01-a/", "daily/AWSDynamoDB/01-a", "daily/AWSDynamoDB/01-a/manifest-summary.json"} {
		s, err := Open(t.Context(), bucket, prefix, Format{})
		if err != nil {
			t.Errorf("%s: %v", prefix, err)
			continue
		}
		got, err := readAll(s)
		want := []string{`01-a-0000.json.gz:1 {"pk":{"S":"01-a"}}{"pk":{"S":"01-a"}}`, `01-a-0000.json.gz:2 {"pk":{"S":"gone"}}`}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v", prefix, got, err)
		}
	}
	if _, err := Open(t.Context(), bucket, "daily/", Format{}); err == nil || err.Error() != "the export in daily/AWSDynamoDB/01-c has not ended: it has no manifest-summary.json" {
		t.Errorf("an export that has not ended: %v", err)
	}
	// Of an export that was removed, the data files may remain.
	for _, name := range []string{"_started", "table.json"} {
		if err := bucket.Remove(t.Context(), "daily/AWSDynamoDB/01-c/"+name); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Open(t.Context(), bucket, "daily/", Format{}); err == nil || err.Error() != "there are 2 exports: daily/AWSDynamoDB/01-a, daily/AWSDynamoDB/01-b" {
		t.Errorf("two exports: %v", err)
	}
	for _, name := range []string{"_started", "table.json", "manifest-summary.json"} {
		if err := bucket.Remove(t.Context(), "daily/AWSDynamoDB/01-b/"+name); err != nil {
			t.Fatal(err)
		}
	}
	if s, err := Open(t.Context(), bucket, "", Format{}); err != nil || s.Folder != "daily/AWSDynamoDB/01-a" || len(s.Files) != 1 {
		t.Errorf("beside data files of others: %+v, %v", s, err)
	}
}

// A prefix is the beginning of names, and may end inside one.
func TestPrefix(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "backup"), os.DirFS("testdata/full")); err != nil {
		t.Fatal(err)
	}
	const id = "01693685827463-2d8752fd"
	write(t, dir, "people/1.json", `{"Item":{"pk":{"S":"1"}}}`)
	write(t, dir, "people/2.json", `{"Item":{"pk":{"S":"2"}}}`)
	write(t, dir, "people-more/3.json", `{"Item":{"pk":{"S":"3"}}}`)
	export := []string{"asdl123dasas.json.gz", "ufdl2a7r3q5p.json.gz", "zq6qixyo3mdf.json.gz"}
	for _, c := range []struct {
		prefix, folder string
		files          []string // without their folders
	}{
		{"people/", "", []string{"1.json", "2.json"}},
		{"people", "", []string{"3.json", "1.json", "2.json"}},
		{"people/2", "", []string{"2.json"}},
		{"back", "backup/AWSDynamoDB/" + id, export},
		{"backup/AWSDynamoDB/0169", "backup/AWSDynamoDB/" + id, export},
		{"backup/AWSDynamoDB/" + id + "/data/", "", export},
		{"backup/AWSDynamoDB/" + id + "/data/u", "", export[1:2]},
		{"none", "", nil},
	} {
		s, err := Open(t.Context(), objects.Dir(dir), c.prefix, Format{})
		if c.files == nil {
			if !errors.Is(err, ErrNoFiles) {
				t.Errorf("%q: %v", c.prefix, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", c.prefix, err)
			continue
		}
		var files []string
		for _, f := range s.Files {
			files = append(files, filepath.Base(f.Name))
		}
		if s.Folder != c.folder || !slices.Equal(files, c.files) {
			t.Errorf("%q: files %q in %q, want %q in %q", c.prefix, files, s.Folder, c.files, c.folder)
		}
		if _, err := readAll(s); err != nil {
			t.Errorf("%q: %v", c.prefix, err)
		}
	}
}

// The fixtures have the form that Amazon documents. They are read from above, from their own folder,
// and where only the folder of the export was copied.
func TestAmazonsForm(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{"testdata/full", "testdata/full/AWSDynamoDB/01693685827463-2d8752fd"} {
		got, err := open(dir, nil)
		if err != nil || len(got) != 3 || !strings.HasPrefix(got[0], `asdl123dasas.json.gz:1 {"Id":{"N":"103"}`) {
			t.Errorf("%s: %q, %v", dir, got, err)
		}
	}
	got, err := open("testdata/incremental", nil)
	want := []string{
		`sgad6417s6vss4p7owp0471bcq.json.gz:1 {"Id":{"N":"103"}}{"Id":{"N":"103"},"Title":{"S":"Book 103, second edition"}}`,
		`sgad6417s6vss4p7owp0471bcq.json.gz:2 {"Id":{"N":"205"}}`,
		`sgad6417s6vss4p7owp0471bcq.json.gz:3 {"Id":{"N":"404"}}{"Id":{"N":"404"},"Title":{"S":"Lamp 404"}}`,
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v", got, err)
	}
}

// sum returns a checksum as the manifests have it.
func sum(text string) string {
	s := md5.Sum([]byte(text))
	return base64.StdEncoding.EncodeToString(s[:])
}

// Checked: each fault of an export is an exact error.
func TestChecked(t *testing.T) {
	t.Parallel()
	const folder = "AWSDynamoDB/01/"
	data := zipped("{\"Item\":{\"pk\":{\"S\":\"1\"}}}\n{\"Item\":{\"pk\":{\"S\":\"2\"}}}\n")
	line := func(items int, sum, key string) string {
		return fmt.Sprintf(`{"itemCount":%d,"md5Checksum":%q,"etag":"","dataFileS3Key":%q}`+"\n", items, sum, key)
	}
	summary := func(items int) string {
		return fmt.Sprintf(`{"manifestFilesS3Key":"p/AWSDynamoDB/01/manifest-files.json","itemCount":%d,"outputFormat":"DYNAMODB_JSON"}`, items)
	}
	const key = "p/AWSDynamoDB/01/data/a.json.gz"
	good := map[string]string{"manifest-summary.json": summary(2), "manifest-files.json": line(2, sum(data), key), "data/a.json.gz": data}
	for _, c := range []struct {
		change map[string]string // "-": remove
		want   string
	}{
		{nil, ""},
		{map[string]string{"manifest-summary.checksum": "of an unknown form"}, ""},
		{map[string]string{"manifest-summary.checksum": sum("x")}, folder + `manifest-summary.json: its MD5 is ` + sum(summary(2)) + `, but manifest-summary.checksum has "` + sum("x") + `"`},
		{map[string]string{"manifest-files.md5": sum("y")}, folder + `manifest-files.json: its MD5 is ` + sum(line(2, sum(data), key)) + `, but manifest-files.md5 has "` + sum("y") + `"`},
		{map[string]string{"manifest-summary.json": summary(3)}, folder + "manifest-summary.json: itemCount is 3, but the files of manifest-files.json have 2"},
		{map[string]string{"manifest-summary.json": "{"}, folder + "manifest-summary.json: invalid JSON: unexpected end of JSON input"},
		{map[string]string{"manifest-summary.json": `{"outputFormat":"ION"}`}, folder + `manifest-summary.json: the export's format is "ION"; only DYNAMODB_JSON can be read`},
		{map[string]string{"manifest-summary.json": `{"outputFormat":"DYNAMODB_JSON"}`}, folder + `manifest-summary.json: manifestFilesS3Key is "", and not the name of a manifest-files.json`},
		{map[string]string{"manifest-files.json": "-"}, folder + "manifest-files.json: the file is missing"},
		{map[string]string{"manifest-files.json": "[]"}, folder + "manifest-files.json, line 1: invalid JSON: json: cannot unmarshal array into Go value of type exportfile.DataFile"},
		{map[string]string{"manifest-files.json": line(2, "?", key)}, folder + `manifest-files.json, line 1: md5Checksum "?" is not an MD5 in base64`},
		{map[string]string{"manifest-files.json": line(2, sum(data), key) + line(2, sum(data), key)}, folder + "manifest-files.json, line 2: " + key + " is listed twice"},
		{map[string]string{"manifest-files.json": line(2, sum(data), "q/data/a.json.gz")}, folder + `manifest-files.json, line 1: dataFileS3Key "q/data/a.json.gz" is not in the folder of "p/AWSDynamoDB/01/manifest-files.json"`},
		{map[string]string{"manifest-files.json": line(2, sum(data), "p/AWSDynamoDB/01/../../../x")}, folder + `manifest-files.json, line 1: dataFileS3Key "p/AWSDynamoDB/01/../../../x" is not a valid name`},
		{map[string]string{"manifest-files.json": line(1, sum(data), key), "manifest-summary.json": summary(1)}, folder + "data/a.json.gz, line 2: the file has more items than the manifest says: 1"},
		{map[string]string{"manifest-files.json": line(3, sum(data), key), "manifest-summary.json": summary(3)}, folder + "data/a.json.gz: it has 2 items, but the manifest says 3"},
		{map[string]string{"data/a.json.gz": "-"}, folder + "data/a.json.gz: the file is missing"},
		{map[string]string{"data/a.json.gz": data[:len(data)-10]}, folder + "data/a.json.gz, line 3: the file is truncated: its compressed data ends too early"},
		{map[string]string{"data/a.json.gz": data[:5]}, folder + "data/a.json.gz: the file is truncated: its compressed data ends too early"},
		{map[string]string{"data/a.json.gz": data + zipped("")}, folder + "data/a.json.gz: its MD5 is " + sum(data+zipped("")) + ", but the manifest says " + sum(data)},
	} {
		dir := t.TempDir()
		files := maps.Clone(good)
		maps.Copy(files, c.change)
		for name, text := range files {
			if text != "-" {
				write(t, dir, folder+name, text)
			}
		}
		got, err := open(dir, nil)
		if c.want == "" && (err != nil || len(got) != 2) || c.want != "" && (err == nil || err.Error() != c.want) {
			t.Errorf("%v:\n%v, want\n%s", c.change, err, c.want)
		}
	}
}

// A folder without manifests is read as DynamoDB's imports read it.
func TestPlainFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := open(dir, nil); !errors.Is(err, ErrNoFiles) {
		t.Errorf("an empty folder: %v", err)
	}
	write(t, dir, "b.json", `{"Item":{"pk":{"S":"2"}}}`+"\r\n\n  "+`{ "Item": {"pk":{"S":"3"}} }`)
	write(t, dir, "a/1.gz", zipped(`{"Item":{"pk":{"S":"1"}}}`))
	got, err := open(dir, nil)
	if want := []string{`1.gz:1 {"pk":{"S":"1"}}`, `b.json:1 {"pk":{"S":"2"}}`, `b.json:3 {"pk":{"S":"3"}}`}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v", got, err)
	}
	for text, want := range map[string]string{
		`{"Item":{}`:                                       "c.json, line 1: invalid JSON: unexpected end of JSON input",
		`{"Items":{}}`:                                     `c.json, line 1: the line has no "Item"`,
		`{"Keys":{},"NewImage":{}}`:                        "c.json, line 1: the line is a record of an incremental export, whose manifests are missing",
		"{\"Item\":{\"pk\":{\"S\":\"\xff\"}}}":             "c.json, line 1: the line is not UTF-8",
		`{"Item":{"pk":"` + strings.Repeat("x", RecordMax): "c.json, line 1: the line is longer than 6291456 bytes",
	} {
		write(t, dir, "c.json", text)
		if _, err := open(dir, nil); err == nil || err.Error() != want {
			t.Errorf("%.40s: %v, want %s", text, err, want)
		}
	}
	write(t, dir, "c.json.gz", "no")
	if err := os.Remove(filepath.Join(dir, "c.json")); err != nil {
		t.Fatal(err)
	}
	if _, err := open(dir, nil); err == nil || err.Error() != "c.json.gz: the name ends with .gz, but the contents are not compressed with gzip" {
		t.Errorf("a wrong name: %v", err)
	}
	for _, id := range []string{"1", "2"} {
		write(t, dir, "AWSDynamoDB/"+id+"/manifest-summary.json", "{}")
	}
	if _, err := open(dir, nil); err == nil || err.Error() != "there are 2 exports: AWSDynamoDB/1, AWSDynamoDB/2" {
		t.Errorf("two exports: %v", err)
	}
}

func TestCSV(t *testing.T) {
	t.Parallel()
	settings := func(c CSV) *CSV {
		c.Types, c.Keys = map[string]string{"id": "N", "by": "S"}, []string{"id"}
		return &c
	}
	for _, c := range []struct {
		text string
		csv  *CSV
		want string // the records, or the error
	}{
		{"\ufeffid,value\n1,\"a \"\"b\"\"\nc\"\n2,\n", settings(CSV{Delimiter: ','}), "x.csv:2 {\"id\":{\"N\":\"1\"},\"value\":{\"S\":\"a \\\"b\\\"\\nc\"}} x.csv:4 {\"id\":{\"N\":\"2\"},\"value\":{\"S\":\"\"}}"},
		{"1;x;\n", settings(CSV{Delimiter: ';', Header: []string{"id", "v", "by"}}), `x.csv:1 {"id":{"N":"1"},"v":{"S":"x"}}`},
		{"id\n1,2\n", settings(CSV{Delimiter: ','}), "x.csv, line 2: the row has 2 columns, but the header has 1"},
		{"di\n1\n", settings(CSV{Delimiter: ','}), `x.csv, line 1: the header lacks the key attribute "id"`},
		{"id,id\n", settings(CSV{Delimiter: ','}), `x.csv, line 1: the header has the column "id" twice`},
		{"id,\n", settings(CSV{Delimiter: ','}), "x.csv, line 1: the header has a column without a name"},
		{"id\n\"1", settings(CSV{Delimiter: ','}), `x.csv, line 2: extraneous or missing " in quoted-field`},
		{"id,v\n1,a \"b\"\n", settings(CSV{Delimiter: ','}), `x.csv, line 2: bare " in non-quoted-field`},
		{"id,v\n1,\xff\n", settings(CSV{Delimiter: ','}), `x.csv, line 2: the value of "v" is not UTF-8`},
		{"id\n\"" + strings.Repeat("x", RecordMax+1<<20), settings(CSV{Delimiter: ','}), "x.csv: the record is longer than 6291456 bytes"},
		{"id" + strings.Repeat(",x", 255) + "\n", settings(CSV{Delimiter: ','}), "x.csv, line 1: the header has 256 columns; the limit is 255"},
	} {
		dir := t.TempDir()
		write(t, dir, "x.csv", c.text)
		all, err := open(dir, c.csv)
		got := strings.Join(all, " ")
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%.60q:\n%s, want\n%s", c.text, got, c.want)
		}
	}
	if err := (&CSV{Delimiter: '!'}).Check(); err == nil || err.Error() != `the delimiter '!' is not a comma, tab, colon, semicolon, pipe or space` {
		t.Error(err)
	}
}

// memory is a store of one folder.
type memory map[string]string

type memoryFile struct{ *strings.Reader }

func (memoryFile) Close() error { return nil }

func (m memory) List(_ context.Context, prefix string) (names []string, err error) {
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	return names, nil
}

func (m memory) Open(_ context.Context, name string) (objects.File, error) {
	text, ok := m[name]
	if !ok {
		return nil, os.ErrNotExist
	}
	return memoryFile{strings.NewReader(text)}, nil
}

func (memory) Put(context.Context, string, func(io.Writer) error) error { return nil }
func (memory) Remove(context.Context, string) error                     { return nil }
func (memory) String() string                                           { return "memory" }

// Any bytes are read without a panic. A reader that returns nil has seen as many records as the manifest
// says, good and bad ones together.
func FuzzSource(f *testing.F) {
	seed := func(dir string) {
		for _, name := range []string{"manifest-summary.json", "manifest-files.json"} {
			found, err := filepath.Glob(filepath.Join("testdata", dir, "AWSDynamoDB", "*", name))
			if err != nil || len(found) != 1 {
				f.Fatalf("%s: %v", name, err)
			}
			text, err := os.ReadFile(found[0])
			if err != nil {
				f.Fatal(err)
			}
			f.Add(string(text), `{"itemCount":1,"md5Checksum":"AAAAAAAAAAAAAAAAAAAAAA==","dataFileS3Key":"e/data/a"}`, `{"Item":{"pk":{"S":"1"}}}`)
			f.Add(`{"manifestFilesS3Key":"e/manifest-files.json","itemCount":3,"outputFormat":"DYNAMODB_JSON"}`, string(text), zipped(`{"Item":{}}`))
		}
	}
	seed("full")
	seed("incremental")
	f.Add("", "", "id,v\n1,\"a\nb\"\n")
	f.Add("", "", zstdOf(f, "{\"Item\":{}}\nno\n"))
	f.Add(`{"manifestFilesS3Key":"e/manifest-files.json","itemCount":1,"outputFormat":"DYNAMODB_JSON"}`, `{"itemCount":1,"md5Checksum":"AAAAAAAAAAAAAAAAAAAAAA==","dataFileS3Key":"e/data/a"}`, "{\"Item\":{}}\n")
	f.Fuzz(func(t *testing.T, summary, files, data string) {
		for _, store := range []memory{{"e/manifest-summary.json": summary, "e/manifest-files.json": files, "e/data/a": data}, {"a": data}} {
			n := int64(0)
			s, err := Open(t.Context(), store, "", Format{Bad: func(*Error) error { n++; return nil }})
			if err != nil {
				continue
			}
			for _, file := range s.Files {
				n = 0
				_, err := s.Read(t.Context(), file, func(r Record) error {
					if r.Item == nil && r.Keys == nil {
						t.Error("a record without an item and without a key")
					}
					n++
					return nil
				})
				if err == nil && file.Items >= 0 && n != file.Items {
					t.Errorf("%d records of %d, without an error", n, file.Items)
				}
			}
		}
		csv := &CSV{Delimiter: ',', Types: map[string]string{"id": "N"}}
		if s, err := Open(t.Context(), memory{"a": data}, "", Format{CSV: csv}); err == nil {
			_, _ = readAll(s)
		}
	})
}
