package bulk

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mayflydb/mayfly/internal/exportfile"
	"github.com/mayflydb/mayfly/internal/objects"
	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/engine"
)

const namespace = "default"

// server is an engine with a runner, over directories that outlive them.
type server struct {
	*Runner
	t      *testing.T
	engine *engine.Engine
	dir    string // of the database
	bucket string // of the bucket named exports
	end    func()
	// called before a file of the bucket is written or read; an error is the file's
	touch func(ctx context.Context, name string) error
}

// touched is a store that calls touch first.
type touched struct {
	objects.Store
	touch func(ctx context.Context, name string) error
}

func (s touched) Open(ctx context.Context, name string) (objects.File, error) {
	if err := s.touch(ctx, name); err != nil {
		return nil, err
	}
	return s.Store.Open(ctx, name)
}

func (s touched) Put(ctx context.Context, name string, write func(io.Writer) error) error {
	if err := s.touch(ctx, name); err != nil {
		return err
	}
	return s.Store.Put(ctx, name, write)
}

func start(t *testing.T, dir, bucket string) *server {
	e, err := engine.Open(engine.Options{Dir: dir, ReserveBytes: -1, ClockControl: true, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	s := &server{t: t, engine: e, dir: dir, bucket: bucket, touch: func(context.Context, string) error { return nil }}
	s.Runner = New(Options{
		Engine: e, Namespace: namespace, Logger: slog.New(slog.DiscardHandler),
		TableARN: func(name string) string { return "arn:aws:dynamodb:us-east-1:000000000000:table/" + name },
		Bucket: func(_ context.Context, name string) (objects.Store, error) {
			if name != "exports" {
				return nil, fmt.Errorf("%w: %s", ErrNoBucket, name)
			}
			return touched{objects.Dir(bucket), func(ctx context.Context, name string) error { return s.touch(ctx, name) }}, nil
		},
	})
	return s
}

// run starts the background work.
func (s *server) run() {
	ctx, stop := context.WithCancel(context.Background())
	ran := make(chan error, 2)
	go func() { ran <- s.engine.Run(ctx) }()
	go func() { ran <- s.Runner.Run(ctx) }()
	s.end = func() {
		stop()
		<-ran
		<-ran
	}
}

func (s *server) close() {
	if s.end != nil {
		s.end()
	}
	if err := s.engine.Close(); err != nil {
		s.t.Error(err)
	}
}

func item(pairs ...any) dynamo.Item {
	var b dynamo.Builder
	for i := 0; i < len(pairs); i += 2 {
		switch v := pairs[i+1].(type) {
		case string:
			b.Set(pairs[i].(string), dynamo.AppendString(nil, v))
		case int:
			n, err := dynamo.AppendNumber(nil, fmt.Append(nil, v))
			if err != nil {
				panic(err)
			}
			b.Set(pairs[i].(string), dynamo.AppendN(nil, n))
		}
	}
	return slices.Clone(b.Item())
}

func desc(name string) engine.TableDesc {
	return engine.TableDesc{
		Namespace: namespace, Name: name,
		Key: engine.KeySchema{Partition: []engine.KeyAttr{{Name: "pk", Kind: dynamo.KindString}}},
		API: engine.APIDesc{OnDemand: true, Definitions: []engine.KeyAttr{{Name: "pk", Kind: dynamo.KindString}, {Name: "g", Kind: dynamo.KindString}}},
		Indexes: []engine.IndexDesc{{
			Name: "byG", Global: true, Projection: engine.Projection{Type: "ALL"}, Key: engine.KeySchema{Partition: []engine.KeyAttr{{Name: "g", Kind: dynamo.KindString}}},
		}},
	}
}

// table creates a table with a history.
func (s *server) table(name string) *engine.Table {
	s.t.Helper()
	d := desc(name)
	t, err := s.engine.CreateTable(context.Background(), d)
	if err == nil {
		_, err = s.engine.Alter(context.Background(), namespace, name, func(d *engine.TableDesc, _ engine.Instant) error {
			d.History.Days = 1
			return nil
		})
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return t
}

func (s *server) put(t *engine.Table, it dynamo.Item) { s.write(t, it, it) }

func (s *server) write(t *engine.Table, key, it dynamo.Item) {
	s.t.Helper()
	k, err := t.Desc().KeyOf(key)
	if err == nil {
		err = s.engine.Write(context.Background(), &engine.Write{Table: t, Key: k, ReadOld: true, Decide: func(dynamo.Item, engine.Instant) (dynamo.Item, error) { return it, nil }})
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// items returns the items of a table as sorted JSON.
func (s *server) items(name string) (texts []string) {
	s.t.Helper()
	t, err := s.engine.Table(namespace, name)
	if err != nil {
		s.t.Fatalf("table %s: %v", name, err)
	}
	err = s.engine.Read(context.Background(), func(v *engine.View) error {
		texts = nil
		return v.Range(t, engine.Range{}, func(it dynamo.Item) (bool, error) {
			texts = append(texts, string(dynamo.AppendItemJSON(nil, it)))
			return true, nil
		})
	})
	if err != nil {
		s.t.Fatal(err)
	}
	slices.Sort(texts)
	return texts
}

// wait waits until a job has ended, and returns it.
func wait[T any, P jobOf[T]](t *testing.T, find func(string) (P, error), id string) P {
	t.Helper()
	for range 3000 {
		j, err := find(id)
		if err != nil {
			t.Fatal(err)
		}
		if j.job().Status != InProgress {
			return j
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("job %s does not end", id)
	return nil
}

// export exports a table and waits for the end.
func (s *server) export(req ExportRequest) *Export {
	s.t.Helper()
	e, err := s.Export(context.Background(), req)
	if err != nil {
		s.t.Fatal(err)
	}
	return wait(s.t, s.FindExport, e.ID)
}

func (s *server) importTable(req ImportRequest) *Import {
	s.t.Helper()
	i, err := s.Import(context.Background(), req)
	if err != nil {
		s.t.Fatal(err)
	}
	return wait(s.t, s.FindImport, i.ID)
}

// An export has the items of its instant, and its import has the same ones.
func TestInstant(t *testing.T) {
	s := start(t, "", t.TempDir())
	s.run()
	defer s.close()
	tab := s.table("events")
	for i := range 3000 {
		s.put(tab, item("pk", fmt.Sprint("k", i), "g", fmt.Sprint("g", i%10), "n", i, "text", "\"\\\n\u00e9"))
	}
	want := s.items("events")
	at := s.engine.Now()
	time.Sleep(2 * time.Millisecond)
	s.put(tab, item("pk", "later"))
	s.write(tab, item("pk", "k0"), nil)
	e := s.export(ExportRequest{Table: "events", At: at, Bucket: "exports", Prefix: "daily/one", Algorithm: "AES256"})
	if e.Status != Completed || e.Items != 3000 || e.Bytes < 3000*20 || e.Ended < e.Begun || e.At != at {
		t.Fatalf("%+v", e)
	}
	if _, err := os.Stat(filepath.Join(s.bucket, e.Manifest)); err != nil {
		t.Errorf("the manifest: %v", err)
	}
	for name, prefix := range map[string]string{"whole": "daily/one", "data": "daily/one/AWSDynamoDB/" + e.ID + "/data/"} {
		i := s.importTable(ImportRequest{Table: desc(name), Bucket: "exports", Prefix: prefix, Format: "DYNAMODB_JSON", Compression: "GZIP"})
		if i.Status != Completed || i.Errors != 0 || i.Imported != 3000 || i.Processed != 3000 || i.ProcessedBytes < 3000*20 || i.FailureCode != "" {
			t.Errorf("%+v", i)
		}
		if diff := cmp.Diff(want, s.items(name)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	list, err := s.Exports()
	if err != nil || len(list) != 1 || list[0].ID != e.ID {
		t.Errorf("exports: %v, %v", list, err)
	}
	imports, err := s.Imports()
	if err != nil || len(imports) != 2 {
		t.Errorf("imports: %v, %v", imports, err)
	}
}

// An incremental export has the changes of its time, with the old images if asked for.
func TestDifference(t *testing.T) {
	s := start(t, "", t.TempDir())
	s.run()
	defer s.close()
	tab := s.table("events")
	s.put(tab, item("pk", "changed", "n", 1))
	s.put(tab, item("pk", "deleted", "n", 1))
	s.put(tab, item("pk", "same", "n", 1))
	time.Sleep(2 * time.Millisecond)
	from := s.engine.Now()
	s.put(tab, item("pk", "changed", "n", 2))
	s.write(tab, item("pk", "deleted"), nil)
	s.put(tab, item("pk", "new", "n", 2))
	time.Sleep(2 * time.Millisecond)
	to := s.engine.Now()
	s.put(tab, item("pk", "changed", "n", 3))
	for _, old := range []bool{true, false} {
		prefix := fmt.Sprint("old-", old)
		e := s.export(ExportRequest{Table: "events", Incremental: true, From: from, At: to, OldImages: old, Bucket: "exports", Prefix: prefix})
		if e.Status != Completed || e.Items != 3 || e.At != to {
			t.Fatalf("%+v", e)
		}
		files, err := filepath.Glob(filepath.Join(s.bucket, prefix, "AWSDynamoDB/data", e.ID+"-*.json.gz"))
		if err != nil || len(files) != 1 {
			t.Fatalf("%v, %v", files, err)
		}
		got := map[string]bool{}
		for _, line := range lines(t, files[0]) {
			_, line, _ = strings.Cut(line, `"Keys":`)
			got[line] = true
		}
		image := func(name, text string) string { return fmt.Sprintf(`,"%s":%s`, name, text) }
		one := func(pk string, n int) string { return fmt.Sprintf(`{"n":{"N":"%d"},"pk":{"S":"%s"}}`, n, pk) }
		oldOf := func(pk string) string {
			if !old {
				return ""
			}
			return image("OldImage", one(pk, 1))
		}
		want := map[string]bool{
			`{"pk":{"S":"changed"}}` + oldOf("changed") + image("NewImage", one("changed", 2)) + "}": true,
			`{"pk":{"S":"deleted"}}` + oldOf("deleted") + "}":                                        true,
			`{"pk":{"S":"new"}}` + image("NewImage", one("new", 2)) + "}":                            true,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		i := s.importTable(ImportRequest{Table: desc("events" + prefix), Bucket: "exports", Prefix: prefix, Format: "DYNAMODB_JSON", Compression: "GZIP"})
		if i.Status != Failed || !strings.Contains(i.FailureMessage, "incremental") {
			t.Errorf("an import of changes: %+v", i)
		}
	}
}

func lines(t *testing.T, name string) []string {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	buf := make([]byte, 1<<16)
	for n, err := z.Read(buf); n > 0 || err == nil; n, err = z.Read(buf) {
		b.Write(buf[:n])
	}
	return strings.Split(strings.TrimSpace(b.String()), "\n")
}

// A request with the token of an earlier one begins nothing.
func TestTokens(t *testing.T) {
	s := start(t, "", t.TempDir())
	s.run()
	defer s.close()
	s.table("events")
	ctx := context.Background()
	req := ExportRequest{Table: "events", At: engine.Never, Bucket: "exports", Token: "t1"}
	one := s.export(req)
	if two, err := s.Export(ctx, req); err != nil || two.ID != one.ID {
		t.Errorf("%v, %v", two, err)
	}
	other := req
	other.Prefix = "x"
	if _, err := s.Export(ctx, other); err != ErrTokenConflict {
		t.Errorf("another request: %v", err)
	}
	if err := s.engine.Clock().Advance(8 * time.Hour); err != nil {
		t.Fatal(err)
	}
	if three := s.export(other); three.ID == one.ID {
		t.Errorf("8 hours later: %+v", three)
	}
	in := ImportRequest{Table: desc("again"), Bucket: "exports", Prefix: "x", Format: "CSV", Compression: "NONE", Token: "t1"}
	first := s.importTable(in)
	if second, err := s.Import(ctx, in); err != nil || second.ID != first.ID {
		t.Errorf("%v, %v", second, err)
	}
	in.Compression = "GZIP"
	if _, err := s.Import(ctx, in); err != ErrTokenConflict {
		t.Errorf("another request: %v", err)
	}
	if err := s.engine.Clock().Advance(90 * 24 * time.Hour); err != nil {
		t.Fatal(err)
	}
	if list, err := s.Exports(); err != nil || len(list) != 0 {
		t.Errorf("90 days later: %v, %v", list, err)
	}
	if _, err := s.FindExport(one.ID); err != engine.ErrJobNotFound {
		t.Errorf("90 days later: %v", err)
	}
	s.export(ExportRequest{Table: "events", At: engine.Never, Bucket: "exports"})
	if rows, err := s.engine.Jobs(engine.JobExport); err != nil || len(rows) != 1 {
		t.Errorf("%d rows, %v", len(rows), err)
	}
}

// A source that is damaged, lies or is missing leaves no table, and says why.
func TestWhole(t *testing.T) {
	s := start(t, "", t.TempDir())
	s.run()
	defer s.close()
	tab := s.table("events")
	for i := range 2000 {
		s.put(tab, item("pk", fmt.Sprint("k", i)))
	}
	whole := func(prefix string) (data, folder string) {
		e := s.export(ExportRequest{Table: "events", At: engine.Never, Bucket: "exports", Prefix: prefix})
		folder = filepath.Join(s.bucket, prefix, "AWSDynamoDB", e.ID)
		files, err := filepath.Glob(filepath.Join(folder, "data", "*.gz"))
		if err != nil || len(files) == 0 {
			t.Fatal(err)
		}
		return files[0], folder
	}
	edit := func(name string, f func([]byte) []byte) {
		text, err := os.ReadFile(name)
		if err == nil {
			err = os.WriteFile(name, f(text), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	cut := func(b []byte) []byte { return b[:len(b)/2] }
	for name, c := range map[string]struct {
		code, message string
		damage        func(data, folder string)
		prefix        string
	}{
		"truncated": {"SourceDamaged", "truncated", func(data, _ string) { edit(data, cut) }, "truncated"},
		"replaced": {"SourceDamaged", "MD5", func(data, _ string) {
			var z strings.Builder
			w := gzip.NewWriter(&z)
			fmt.Fprintln(w, `{"Item":{"pk":{"S":"other"}}}`)
			w.Close()
			edit(data, func([]byte) []byte { return []byte(z.String()) })
		}, "replaced"},
		"file gone":     {"SourceDamaged", "missing", func(data, _ string) { os.Remove(data) }, "gone"},
		"manifest lies": {"SourceDamaged", "MD5", func(_, folder string) { edit(filepath.Join(folder, "manifest-files.json"), cut) }, "lies"},
		"no summary":    {"SourceInvalid", "has not ended", func(_, folder string) { os.Remove(filepath.Join(folder, "manifest-summary.json")) }, "unended"},
		"nothing":       {"S3NoSuchKey", "nothing-here", func(string, string) {}, "nothing-here"},
	} {
		prefix := c.prefix
		if name != "nothing" {
			c.damage(whole(prefix))
		}
		table := "from-" + prefix
		i := s.importTable(ImportRequest{Table: desc(table), Bucket: "exports", Prefix: prefix, Format: "DYNAMODB_JSON", Compression: "GZIP"})
		if i.Status != Failed || i.FailureCode != c.code || !strings.Contains(i.FailureMessage, c.message) {
			t.Errorf("%s: %s %s: %s", name, i.Status, i.FailureCode, i.FailureMessage)
		}
		if _, err := s.engine.TableToDescribe(namespace, table); err != engine.ErrTableNotFound {
			t.Errorf("%s left a table: %v", name, err)
		}
	}
	if i := s.importTable(ImportRequest{Table: desc("none"), Bucket: "other", Format: "CSV"}); i.FailureCode != "S3NoSuchBucket" {
		t.Errorf("%+v", i)
	}
	e := s.export(ExportRequest{Table: "events", At: engine.Never, Bucket: "other"})
	if e.Status != Failed || e.FailureCode != "S3NoSuchBucket" || e.Manifest != "" {
		t.Errorf("%+v", e)
	}
	if err := os.WriteFile(filepath.Join(s.bucket, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if e = s.export(ExportRequest{Table: "events", At: engine.Never, Bucket: "exports", Prefix: "file"}); e.Status != Failed || e.FailureCode != "S3Error" {
		t.Errorf("an export into a file: %+v", e)
	}
	if n := len(s.items("events")); n != 2000 {
		t.Errorf("the source has %d items", n)
	}
}

// A fault of an item is counted, and the others are imported.
func TestFaults(t *testing.T) {
	s := start(t, "", t.TempDir())
	s.run()
	defer s.close()
	for name, text := range map[string]string{
		"json/a.json": strings.Join([]string{
			`{"Item":{"pk":{"S":"a"},"g":{"S":"x"}}}`,
			`{"Item":{"pk":{"N":"1"}}}`,
			`{"Item":{"pk":{"S":""}}}`,
			`{"Item":{"g":{"S":"no key"}}}`,
			`{"Item":{"pk":{"S":"b"},"g":{"N":"5"}}}`,
			`{"Item":{"pk":{"S":"c"},"x":{"Q":"1"}}}`,
			`{"Item":{"pk":{"S":"d"},"big":{"S":"` + strings.Repeat("x", itemMax) + `"}}}`,
			`not JSON`,
			`{"Other":1}`,
			`{"Item":{"pk":{"S":"a"},"g":{"S":"y"}}}`,
		}, "\n"),
		"csv/a.csv": "pk;g;n\na;x;1\n;x;2\nb;y\nc;;3\n",
	} {
		path := filepath.Join(s.bucket, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	i := s.importTable(ImportRequest{Table: desc("json"), Bucket: "exports", Prefix: "json/", Format: "DYNAMODB_JSON", Compression: "NONE"})
	if i.Status != Completed || i.Errors != 8 || i.Processed != 10 || i.Imported != 2 || i.FailureCode != "ItemValidationError" {
		t.Errorf("%+v", i)
	}
	if diff := cmp.Diff([]string{`{"g":{"S":"y"},"pk":{"S":"a"}}`}, s.items("json")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	i = s.importTable(ImportRequest{Table: desc("csv"), Bucket: "exports", Prefix: "csv", Format: "CSV", Delimiter: ";", Compression: "NONE"})
	if i.Status != Completed || i.Errors != 2 || i.Imported != 2 {
		t.Errorf("%+v", i)
	}
	if diff := cmp.Diff([]string{`{"g":{"S":"x"},"n":{"S":"1"},"pk":{"S":"a"}}`, `{"n":{"S":"3"},"pk":{"S":"c"}}`}, s.items("csv")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A job that a stop interrupts ends after the next start as if nothing had happened.
func TestAgain(t *testing.T) {
	dir, bucket := t.TempDir(), t.TempDir()
	s := start(t, dir, bucket)
	tab := s.table("events")
	for i := range 100 {
		s.put(tab, item("pk", fmt.Sprint("k", i)))
	}
	want := s.items("events")
	ctx := context.Background()
	e, err := s.Export(ctx, ExportRequest{Table: "events", At: engine.Never, Bucket: "exports", Prefix: "again"})
	if err != nil {
		t.Fatal(err)
	}
	s.put(tab, item("pk", "later"))
	s.close() // before anything was written
	s = start(t, dir, bucket)
	s.run()
	if e = wait(t, s.FindExport, e.ID); e.Status != Completed || e.Items != 100 {
		t.Fatalf("%+v", e)
	}
	s.close()
	s = start(t, dir, bucket)
	i, err := s.Import(ctx, ImportRequest{Table: desc("copy"), Bucket: "exports", Prefix: "again", Format: "DYNAMODB_JSON", Compression: "GZIP"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.engine.Table(namespace, "copy"); err != engine.ErrTableCreating {
		t.Errorf("a table under import: %v", err)
	}
	s.close()
	s = start(t, dir, bucket)
	s.run()
	defer s.close()
	if i = wait(t, s.FindImport, i.ID); i.Status != Completed || i.Imported != 100 {
		t.Fatalf("%+v", i)
	}
	if diff := cmp.Diff(want, s.items("copy")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	names, err := os.ReadDir(filepath.Join(dir, "backups"))
	if err != nil && !os.IsNotExist(err) || len(names) != 0 {
		t.Errorf("checkpoints are left: %v, %v", names, err)
	}
}

// A job that a stop interrupts half-way ends after the next start as if nothing had happened.
func TestAgainHalfWay(t *testing.T) {
	dir, bucket := t.TempDir(), t.TempDir()
	// stopAt blocks the server's work at the last data file, and stops the server when it gets there.
	stopAt := func(s *server, begin func()) {
		t.Helper()
		reached := make(chan struct{})
		var once sync.Once
		s.touch = func(ctx context.Context, name string) error {
			if strings.Contains(name, "data/0003") {
				once.Do(func() { close(reached) })
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}
		s.run()
		begin()
		<-reached
		time.Sleep(20 * time.Millisecond) // for the other files
		s.close()
	}
	s := start(t, dir, bucket)
	tab := s.table("events")
	for i := range 2000 {
		s.put(tab, item("pk", fmt.Sprint("k", i), "g", "x"))
	}
	want := s.items("events")
	var e *Export
	var i *Import
	var err error
	stopAt(s, func() {
		if e, err = s.Export(context.Background(), ExportRequest{Table: "events", At: engine.Never, Bucket: "exports", Prefix: "again"}); err != nil {
			t.Fatal(err)
		}
	})
	s = start(t, dir, bucket)
	s.run()
	if e = wait(t, s.FindExport, e.ID); e.Status != Completed || e.Items != 2000 {
		t.Fatalf("%+v", e)
	}
	s.close()
	s = start(t, dir, bucket)
	stopAt(s, func() {
		if i, err = s.Import(context.Background(), ImportRequest{Table: desc("copy"), Bucket: "exports", Prefix: "again", Format: "DYNAMODB_JSON", Compression: "GZIP"}); err != nil {
			t.Fatal(err)
		}
	})
	s = start(t, dir, bucket)
	s.run()
	defer s.close()
	if i = wait(t, s.FindImport, i.ID); i.Status != Completed || i.Imported != 2000 || i.Processed != 2000 {
		t.Fatalf("%+v", i)
	}
	if diff := cmp.Diff(want, s.items("copy")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// An export that fails leaves no file that an import would take for a whole, and its message names
// the bucket, not the server's directory.
func TestFailedExport(t *testing.T) {
	s := start(t, "", t.TempDir())
	s.run()
	defer s.close()
	tab := s.table("events")
	for i := range 2000 {
		s.put(tab, item("pk", fmt.Sprint("k", i)))
	}
	s.touch = func(_ context.Context, name string) error {
		if strings.Contains(name, "0003") {
			return fmt.Errorf("write %s/%s: no space", s.bucket, name)
		}
		return nil
	}
	e := s.export(ExportRequest{Table: "events", At: engine.Never, Bucket: "exports", Prefix: "p"})
	if e.Status != Failed || !strings.Contains(e.FailureMessage, "no space") || strings.Contains(e.FailureMessage, s.bucket) {
		t.Errorf("%+v", e)
	}
	i := s.importTable(ImportRequest{Table: desc("copy"), Bucket: "exports", Prefix: "p", Format: "DYNAMODB_JSON", Compression: "GZIP"})
	if i.Status != Failed || i.FailureCode != "S3NoSuchKey" {
		t.Errorf("an import of it: %+v", i)
	}
}

// A job whose row is damaged ends, and disturbs no other.
func TestDamagedRow(t *testing.T) {
	s := start(t, "", t.TempDir())
	s.table("events")
	ctx := context.Background()
	bad := func(engine.Begun) json.RawMessage { return json.RawMessage(`{"Status":5}`) }
	export, err := s.engine.BeginExport(ctx, namespace, "events", engine.Never, engine.Never, bad)
	if err != nil {
		t.Fatal(err)
	}
	imported, err := s.engine.BeginImport(ctx, desc("new"), bad)
	if err != nil {
		t.Fatal(err)
	}
	s.run()
	defer s.close()
	if e := wait(t, s.FindExport, export.ID); e.Status != Failed || e.FailureCode != "RowDamaged" {
		t.Errorf("%+v", e)
	}
	if i := wait(t, s.FindImport, imported.ID); i.Status != Failed || i.FailureCode != "RowDamaged" {
		t.Errorf("%+v", i)
	}
	if _, err := s.engine.TableToDescribe(namespace, "new"); err != engine.ErrTableNotFound {
		t.Errorf("its table: %v", err)
	}
	if e := s.export(ExportRequest{Table: "events", At: engine.Never, Bucket: "exports"}); e.Status != Completed {
		t.Errorf("another one: %+v", e)
	}
}

// Requests that can never succeed, or that are too large to be remembered, are refused.
func TestRefused(t *testing.T) {
	s := start(t, "", t.TempDir())
	defer s.close()
	s.table("events")
	in := ImportRequest{Table: desc("new"), Bucket: "exports", Format: "CSV", Header: []string{"g", "n"}}
	_, err := s.Import(context.Background(), in)
	if _, ok := errors.AsType[*RequestError](err); !ok || !strings.Contains(err.Error(), "pk") {
		t.Errorf("a header without the key: %v", err)
	}
	in.Header = []string{"pk", strings.Repeat("x", 70_000)}
	_, err = s.Import(context.Background(), in)
	if _, ok := errors.AsType[*RequestError](err); !ok || !strings.Contains(err.Error(), "limit") {
		t.Errorf("a large header: %v", err)
	}
	if rows, err := s.engine.Jobs(engine.JobImport); err != nil || len(rows) != 0 {
		t.Errorf("%d rows, %v", len(rows), err)
	}
}

// An import reads no file whose name does not begin with the prefix, whatever its manifest says.
func TestPrefixIsBound(t *testing.T) {
	s := start(t, "", t.TempDir())
	s.run()
	defer s.close()
	s.put(s.table("events"), item("pk", "mine"))
	e := s.export(ExportRequest{Table: "events", At: engine.Never, Bucket: "exports", Prefix: "tenant"})
	folder := filepath.Join(s.bucket, "tenant/AWSDynamoDB", e.ID)
	files, err := filepath.Glob(filepath.Join(folder, "data/*"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	secret := filepath.Join(s.bucket, "tenant/AWSDynamoDB/data/secret.json.gz")
	manifest := filepath.Join(folder, "manifest-files.json")
	text, err := os.ReadFile(manifest)
	if err == nil {
		err = errors.Join(os.MkdirAll(filepath.Dir(secret), 0o700), os.Rename(files[0], secret), os.Remove(filepath.Join(folder, "manifest-files.checksum")))
	}
	if err == nil {
		moved := strings.Replace(string(text), e.ID+"/data/"+filepath.Base(files[0]), "data/secret.json.gz", 1)
		err = os.WriteFile(manifest, []byte(moved), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	for prefix, want := range map[string]Status{"tenant/AWSDynamoDB/" + e.ID: Failed, "tenant": Completed} {
		i := s.importTable(ImportRequest{Table: desc("copy" + string(want)), Bucket: "exports", Prefix: prefix, Format: "DYNAMODB_JSON", Compression: "GZIP"})
		if i.Status != want || want == Failed && !strings.Contains(i.FailureMessage, "secret") {
			t.Errorf("%s: %+v", prefix, i)
		}
	}
}

// mayfly import reads the table's definition in an export.
func TestDefinition(t *testing.T) {
	d := desc("events")
	d.TTL.Attribute = "expires"
	d.Indexes[0].Key.Partition = append(d.Indexes[0].Key.Partition, engine.KeyAttr{Name: "h", Kind: dynamo.KindString})
	d.Indexes[0].Key.Sort = []engine.KeyAttr{{Name: "s", Kind: dynamo.KindString}, {Name: "pk", Kind: dynamo.KindString}}
	text := string(definition(&d))
	for _, want := range []string{`"AttributeName": "pk"`, `"KeyType": "HASH"`, `"PAY_PER_REQUEST"`, `"IndexName": "byG"`, `"AttributeName": "h",
          "KeyType": "HASH"`, `"AttributeName": "pk",
          "KeyType": "RANGE"`, `"TimeToLiveAttribute": "expires"`} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is missing in\n%s", want, text)
		}
	}
	if _, err := exportfile.Open(context.Background(), objects.Dir(t.TempDir()), "", exportfile.Format{}); err != exportfile.ErrNoFiles {
		t.Error(err)
	}
}

// Jobs that end while Run looks for new ones are not begun again.
func TestTakenOnce(t *testing.T) {
	s := start(t, "", t.TempDir())
	s.table("events")
	e, err := s.Export(context.Background(), ExportRequest{Table: "events", At: engine.Never, Bucket: "exports"})
	if err != nil {
		t.Fatal(err)
	}
	before, err := s.engine.Job(engine.JobExport, e.ID)
	if err != nil {
		t.Fatal(err)
	}
	s.run()
	defer s.close()
	wait(t, s.FindExport, e.ID)
	for range 1000 {
		s.mu.Lock()
		taken := s.taken[e.ID] != nil
		s.mu.Unlock()
		if !taken {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if s.take(before) != nil {
		t.Error("an export that has ended is taken by its earlier row")
	}
}

// An import that begins again has nothing of the source as it was before.
func TestAgainAnew(t *testing.T) {
	dir, bucket := t.TempDir(), t.TempDir()
	write := func(name, pk string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(bucket, name), []byte(`{"Item":{"pk":{"S":"`+pk+`"},"g":{"S":"x"}}}`), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("a", "before")
	write("b", "b")
	s := start(t, dir, bucket)
	s.touch = func(ctx context.Context, name string) error {
		if name == "b" {
			<-ctx.Done()
			return ctx.Err()
		}
		return nil
	}
	s.run()
	i, err := s.Import(context.Background(), ImportRequest{Table: desc("new"), Bucket: "exports", Format: "DYNAMODB_JSON", Compression: "NONE"})
	if err != nil {
		t.Fatal(err)
	}
	for loaded := int64(0); loaded == 0; time.Sleep(time.Millisecond) {
		now, err := s.FindImport(i.ID)
		if err != nil {
			t.Fatal(err)
		}
		loaded = now.Imported
	}
	s.close()
	write("a", "after")
	s = start(t, dir, bucket)
	s.run()
	defer s.close()
	if i = wait(t, s.FindImport, i.ID); i.Status != Completed || i.Imported != 2 {
		t.Fatalf("%+v", i)
	}
	want := []string{`{"g":{"S":"x"},"pk":{"S":"after"}}`, `{"g":{"S":"x"},"pk":{"S":"b"}}`}
	if diff := cmp.Diff(want, s.items("new")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
