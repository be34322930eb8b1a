package bucket

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/front/sigv4"
	"github.com/mayflydb/mayfly/target"
	"github.com/mayflydb/mayfly/timeseries"
	"github.com/mayflydb/mayfly/timeseries/archive"
)

const secret = "a secret of 40 characters, or nearly so"

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

const testBucket = "archive"

// cloud is a server with S3's API, behind a handler that verifies signatures like S3.
type cloud struct {
	t        *testing.T
	verifier *sigv4.Verifier
	server   http.Handler
	backend  *s3mem.Backend
	mu       sync.Mutex
	calls    map[string]int // by operation
	// decides on the nth call of an operation; may be nil
	refuse func(call string, n int) (status int, code string)
}

// callOf returns the operation of a request.
func callOf(r *http.Request) string {
	q := r.URL.Query()
	switch {
	case r.Method == http.MethodPost && q.Has("uploads"):
		return "create upload"
	case r.Method == http.MethodPost:
		return "complete upload"
	case q.Has("uploadId"):
		return map[string]string{http.MethodPut: "put part", http.MethodDelete: "abort upload"}[r.Method]
	}
	return r.Method
}

func (c *cloud) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	fail := func(status int, code string) {
		w.WriteHeader(status)
		fmt.Fprintf(w, "<Error><Code>%s</Code><Message>by the test</Message></Error>", code)
	}
	// The verifier escapes the path again; S3 escapes it once.
	signed := &sigv4.Request{Service: "s3", Method: r.Method, Path: r.URL.Path, Query: r.URL.RawQuery, Host: r.Host, Headers: r.Header, Body: body}
	if err := c.verifier.Verify(signed, time.Now(), time.Now()); err != nil {
		fail(http.StatusForbidden, "SignatureDoesNotMatch")
		return
	}
	call := callOf(r)
	c.mu.Lock()
	c.calls[call]++
	n, refuse := c.calls[call], c.refuse
	c.mu.Unlock()
	if refuse != nil {
		if status, code := refuse(call, n); status != 0 {
			fail(status, code)
			return
		}
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	c.server.ServeHTTP(w, r)
}

// keys returns the keys of all objects.
func (c *cloud) keys() (all []string) {
	c.t.Helper()
	list, err := c.backend.ListBucket(testBucket, nil, gofakes3.ListBucketPage{})
	must(c.t, err)
	for _, o := range list.Contents {
		all = append(all, o.Key)
	}
	return all
}

func start(t *testing.T) (*cloud, *s3.Client) {
	backend := s3mem.New()
	must(t, backend.CreateBucket(testBucket))
	c := &cloud{
		t: t, verifier: sigv4.NewVerifier(sigv4.Credential{AccessKey: "AKIAEXAMPLE", SecretKey: secret}), backend: backend,
		server: gofakes3.New(backend, gofakes3.WithLogger(gofakes3.DiscardLog())).Server(), calls: map[string]int{},
	}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	return c, s3.NewFromConfig(aws.Config{
		Region: "eu-west-1", BaseEndpoint: &server.URL, Credentials: credentials.NewStaticCredentialsProvider("AKIAEXAMPLE", secret, ""), RetryMaxAttempts: 1,
	}, Options)
}

// Exports of a series to a bucket, twice, return the same samples as one to a directory.
func TestExport(t *testing.T) {
	t.Parallel()
	c, client := start(t)
	at := time.Date(2030, 1, 5, 0, 30, 0, 0, time.UTC)
	db, err := mayfly.Open("", mayfly.Options{Start: at, Frozen: true})
	must(t, err)
	t.Cleanup(func() { must(t, db.Close()) })
	series, err := timeseries.Create(t.Context(), db.DynamoDB(), timeseries.Spec{Table: "weather", Now: db.Clock().Now})
	must(t, err)
	w, err := series.Writer(t.Context(), timeseries.WriterOptions{})
	must(t, err)
	t.Cleanup(w.Close)
	for i := range 100 {
		must(t, w.Write(t.Context(), timeseries.Sample{Device: "roof", Time: at.Add(-time.Duration(i) * time.Hour), Values: map[string]float64{"temperature": float64(i)}}))
	}
	store, err := New(client, "s3://archive/a b/wéather")
	must(t, err)
	a := archive.New(store)
	for range 2 {
		report, err := a.Export(t.Context(), series, archive.ExportOptions{})
		must(t, err)
		if report.Written != 100 || report.Kept != 0 || report.Files != 6 {
			t.Errorf("reports %+v", report)
		}
	}
	if keys := c.keys(); len(keys) != 6 || !slices.Contains(keys, "a b/wéather/dt=2030-01-03/samples.parquet") {
		t.Errorf("there are %q", keys)
	}
	n := 0
	for s, err := range a.Range(t.Context(), timeseries.Query{Device: "roof", Newest: true}) {
		must(t, err)
		if s.Values["temperature"] != float64(n) {
			t.Errorf("sample %d is %+v", n, s)
		}
		n++
	}
	if n != 100 {
		t.Errorf("%d samples come back", n)
	}
	if _, err := store.Open(t.Context(), "dt=2030-01-01/none.parquet"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what is not there gives %v", err)
	}
}

// The error for a wrong secret says so, and a failed put leaves no object.
func TestFails(t *testing.T) {
	t.Parallel()
	c, client := start(t)
	store, err := New(client, "s3://archive")
	must(t, err)
	if err := store.Put(t.Context(), "dt=2030-01-01/x", func(io.Writer) error { return io.ErrShortWrite }); !errors.Is(err, io.ErrShortWrite) || len(c.keys()) > 0 {
		t.Errorf("a failing write gives %v, and %q", err, c.keys())
	}
	stranger := s3.New(client.Options(), func(o *s3.Options) {
		o.Credentials = credentials.NewStaticCredentialsProvider("AKIAEXAMPLE", "wrong", "")
	})
	if store, err = New(stranger, "s3://archive"); err != nil {
		t.Fatal(err)
	}
	if _, err := store.List(t.Context(), ""); err == nil || !strings.Contains(err.Error(), "SignatureDoesNotMatch") {
		t.Errorf("a wrong secret gives %v", err)
	}
	if err := store.Put(t.Context(), "x", func(io.Writer) error { return nil }); err == nil {
		t.Error("a wrong secret may write")
	}
}

// A long object is put in parts, a short one at once; both can be read, replace an earlier object,
// and can be removed.
func TestParts(t *testing.T) {
	t.Parallel()
	c, client := start(t)
	store, err := New(client, "s3://archive/a")
	must(t, err)
	for _, length := range []int{0, 1, partBytes, partBytes + 1, 2 * partBytes, 2*partBytes + 12345} {
		content := make([]byte, length)
		_, _ = rand.NewChaCha8([32]byte{byte(length)}).Read(content)
		c.calls = map[string]int{}
		must(t, store.Put(t.Context(), "x", func(w io.Writer) error {
			for some := range slices.Chunk(content, 100_001) {
				if n, err := w.Write(some); n != len(some) || err != nil {
					return fmt.Errorf("%d of %d bytes: %w", n, len(some), err)
				}
			}
			return nil
		}))
		want := map[string]int{"PUT": 1}
		if parts := (length + partBytes - 1) / partBytes; parts > 1 {
			want = map[string]int{"create upload": 1, "put part": parts, "complete upload": 1}
		}
		if !maps.Equal(c.calls, want) {
			t.Errorf("%d bytes take %v, want %v", length, c.calls, want)
		}
		file, err := store.Open(t.Context(), "x")
		must(t, err)
		got, err := io.ReadAll(io.NewSectionReader(file, 0, file.Size()))
		must(t, errors.Join(err, file.Close()))
		if !bytes.Equal(got, content) {
			t.Errorf("of %d bytes come %d back, or others", length, len(got))
		}
	}
	for range 2 {
		must(t, store.Remove(t.Context(), "x"))
	}
	if keys := c.keys(); len(keys) != 0 {
		t.Errorf("there are %q", keys)
	}
}

// If a part, the completion or the writer fails, or the context ends, the object is unchanged and
// no part is left.
func TestPartsFail(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]struct {
		call  string
		n     int
		write error
		abort bool // aborting fails too
	}{
		"first part": {call: "put part", n: 1}, "second part": {call: "put part", n: 2}, "last part": {call: "put part", n: 3}, "end": {call: "complete upload", n: 1},
		"begin": {call: "create upload", n: 1}, "writer": {write: io.ErrShortWrite}, "context": {write: context.Canceled}, "abort": {call: "put part", n: 2, abort: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, client := start(t)
			store, err := New(client, "s3://archive/a")
			must(t, err)
			must(t, store.Put(t.Context(), "x", func(w io.Writer) error {
				_, err := io.WriteString(w, "as it was")
				return err
			}))
			c.refuse = func(call string, n int) (int, string) {
				if call == fault.call && n == fault.n || fault.abort && call == "abort upload" {
					return http.StatusInternalServerError, "InternalError"
				}
				return 0, ""
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			err = store.Put(ctx, "x", func(w io.Writer) error {
				_, err := w.Write(make([]byte, 3*partBytes))
				if errors.Is(fault.write, context.Canceled) {
					cancel()
				}
				return errors.Join(err, fault.write)
			})
			if err == nil || fault.write != nil && !errors.Is(err, fault.write) || strings.Contains(err.Error(), "its uploaded parts stay in the bucket") != fault.abort {
				t.Errorf("it gives %v", err)
			}
			file, err := store.Open(t.Context(), "x")
			must(t, err)
			if got, err := io.ReadAll(io.NewSectionReader(file, 0, file.Size())); string(got) != "as it was" || err != nil {
				t.Errorf("the object is %d bytes, %v", len(got), err)
			}
			must(t, file.Close())
			uploads, err := client.ListMultipartUploads(t.Context(), &s3.ListMultipartUploadsInput{Bucket: aws.String(testBucket)})
			if gone := (smithy.APIError)(nil); errors.As(err, &gone) && gone.ErrorCode() == "NoSuchUpload" {
				return // the server has never had any
			}
			must(t, err)
			if left := len(uploads.Uploads) > 0; left != fault.abort {
				t.Errorf("uploads are left: %+v", uploads.Uploads)
			}
		})
	}
}

// List returns more objects than a page has, in order.
func TestList(t *testing.T) {
	t.Parallel()
	c, client := start(t)
	var want []string
	for i := range 2500 {
		name := fmt.Sprintf("dt=2030-01-%02d/expired-%05d.parquet", i%30+1, i)
		want = append(want, name)
		_, err := c.backend.PutObject(testBucket, "a/"+name, nil, strings.NewReader("x"), 1, nil)
		must(t, err)
	}
	slices.Sort(want)
	store, err := New(client, "s3://archive/a")
	must(t, err)
	got, err := store.List(t.Context(), "dt=")
	must(t, err)
	if !slices.Equal(got, want) || c.calls["GET"] < 3 {
		t.Errorf("%d names of %d in %d pages", len(got), len(want), c.calls["GET"])
	}
}

// A reader sees each sample once if files are combined right before any of its requests: the one
// for the second page of the list, whose first page ends after two of the five files, or one for a
// file.
func TestRangeWhilePutTogether(t *testing.T) {
	t.Parallel()
	const samples = 5
	for moment := 1; moment <= 2+samples; moment++ {
		c, client := start(t)
		store, err := New(client, "s3://archive/a")
		must(t, err)
		for i := range 998 { // others' files
			_, err := c.backend.PutObject(testBucket, fmt.Sprintf("a/dt=2030-01-01/note-%03d", i), nil, strings.NewReader("x"), 1, nil)
			must(t, err)
		}
		to, err := archive.New(store).Target(t.Context(), archive.TargetOptions{Wait: time.Millisecond})
		must(t, err)
		for i := range samples {
			body := fmt.Sprintf(`{"attribute":"ttl","item":{"deviceId":{"S":"roof"},"timestamp":{"S":"2030-01-01T00:00:0%d.000000000Z#0123456789ab"},"ttl":{"N":"1893456000"},"n":{"N":"%d"}}}`, i, i)
			must(t, to.Deliver(t.Context(), []target.Delivery{{ID: "x", Attempt: 1, Body: []byte(body)}})[0])
		}
		before := c.calls["GET"]
		c.refuse = func(call string, n int) (int, string) {
			if call == "GET" && n == before+moment {
				to.Close()
			}
			return 0, ""
		}
		next := 0.0
		for s, err := range archive.New(store).Range(t.Context(), timeseries.Query{Device: "roof"}) {
			must(t, err)
			if s.Values["n"] != next {
				t.Errorf("put together before request %d: sample %v is %+v", moment, next, s)
			}
			next++
		}
		if next != samples || c.calls["DELETE"] != samples {
			t.Errorf("put together before request %d: %v samples come, and %d files were removed", moment, next, c.calls["DELETE"])
		}
	}
}

func TestAddress(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"s3://archive": "s3://archive/", "s3://archive/": "s3://archive/", "s3://archive/a/b": "s3://archive/a/b/", "s3://archive/a/": "s3://archive/a/",
		"": "", "s3://": "", "s3:///a": "", "/tmp": "", "s3://Archive": "", "s3://a": "", "http://archive/a": "", "s3://archive/" + strings.Repeat("a", 1000): "",
	} {
		s, err := New(nil, address)
		if (err == nil) != (want != "") || err == nil && s.String() != want {
			t.Errorf("%q gives %v, %v", address, s, err)
		}
	}
}

// Only Parquet files have Parquet's content type.
func TestContentType(t *testing.T) {
	t.Parallel()
	c, client := start(t)
	store, err := New(client, "s3://"+testBucket)
	must(t, err)
	for name, want := range map[string]string{"a.parquet": parquetType, "a.undo1": otherType} {
		must(t, store.Put(t.Context(), name, func(w io.Writer) error {
			_, err := io.WriteString(w, "x")
			return err
		}))
		object, err := c.backend.HeadObject(testBucket, name)
		must(t, err)
		if got := object.Metadata["Content-Type"]; got != want {
			t.Errorf("%s has the content type %q; want %q", name, got, want)
		}
	}
}
