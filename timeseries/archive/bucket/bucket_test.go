package bucket

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
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

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/sigv4"
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

// objects stands for S3: it verifies signatures, and keeps one bucket, of which it lists three objects a page.
type objects struct {
	t        *testing.T
	verifier *sigv4.Verifier
	mu       sync.Mutex
	all      map[string][]byte // by path
}

func (o *objects) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	// The verifier escapes the path once more than it is given, which for S3 is once.
	signed := &sigv4.Request{Service: "s3", Method: r.Method, Path: r.URL.Path, Query: r.URL.RawQuery, Host: r.Host, Headers: r.Header, Body: body}
	if err := o.verifier.Verify(signed, time.Now(), time.Now()); err != nil {
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, "<Error><Code>SignatureDoesNotMatch</Code><Message>It does not match.</Message></Error>")
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case r.Method == http.MethodPut:
		o.all[r.URL.Path] = body
	case r.URL.Query().Get("list-type") == "2":
		o.list(w, r)
	default:
		b, ok := o.all[r.URL.Path]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, "<Error><Code>NoSuchKey</Code><Message>The specified key does not exist.</Message></Error>")
			return
		}
		_, _ = w.Write(b)
	}
}

func (o *objects) list(w http.ResponseWriter, r *http.Request) {
	type object struct{ Key string }
	var answer struct {
		XMLName               xml.Name `xml:"ListBucketResult"`
		Contents              []object
		IsTruncated           bool
		NextContinuationToken string
	}
	bucket := strings.TrimSuffix(r.URL.Path, "/") + "/"
	for _, path := range slices.Sorted(maps.Keys(o.all)) {
		key, ok := strings.CutPrefix(path, bucket)
		if !ok || !strings.HasPrefix(key, r.URL.Query().Get("prefix")) || key <= r.URL.Query().Get("continuation-token") {
			continue
		}
		if answer.IsTruncated = len(answer.Contents) == 3; answer.IsTruncated {
			answer.NextContinuationToken = answer.Contents[2].Key
			break
		}
		answer.Contents = append(answer.Contents, object{key})
	}
	if err := xml.NewEncoder(w).Encode(answer); err != nil {
		o.t.Error(err)
	}
}

func start(t *testing.T) (*objects, *s3.Client) {
	o := &objects{t: t, verifier: sigv4.NewVerifier(sigv4.Credential{AccessKey: "AKIAEXAMPLE", SecretKey: secret}), all: map[string][]byte{}}
	server := httptest.NewServer(o)
	t.Cleanup(server.Close)
	return o, s3.NewFromConfig(aws.Config{
		Region: "eu-west-1", BaseEndpoint: &server.URL, Credentials: credentials.NewStaticCredentialsProvider("AKIAEXAMPLE", secret, ""), RetryMaxAttempts: 1,
	}, Options)
}

// A series is exported to a bucket, twice, comes back, and what a directory would have is there.
func TestExport(t *testing.T) {
	t.Parallel()
	o, client := start(t)
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
	if len(o.all) != 6 || o.all["/archive/a b/wéather/dt=2030-01-03/samples.parquet"] == nil {
		t.Errorf("there are %v", slices.Sorted(maps.Keys(o.all)))
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

// A wrong secret is an error that says so, and a put that fails leaves nothing.
func TestFails(t *testing.T) {
	t.Parallel()
	o, client := start(t)
	store, err := New(client, "s3://archive")
	must(t, err)
	if err := store.Put(t.Context(), "dt=2030-01-01/x", func(io.Writer) error { return io.ErrShortWrite }); !errors.Is(err, io.ErrShortWrite) || len(o.all) > 0 {
		t.Errorf("a failing write gives %v, and %d objects", err, len(o.all))
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
