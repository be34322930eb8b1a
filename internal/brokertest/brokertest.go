// Package brokertest is shared by the tests of the brokers' readers: readings as messages, a series
// behind a connection that can be cut, and checks of the final samples.
package brokertest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/timeseries"
)

// Start is the instant of the first reading.
var Start = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// Devices is the number of devices: reading i is of device i modulo Devices.
const Devices = 3

// Reading returns the message of a reading, as JSON.
func Reading(i int) []byte {
	return fmt.Appendf(nil, `{"device":%q,"time":%q,"n":%d}`, name(i%Devices), Start.Add(time.Duration(i)*time.Second).Format(time.RFC3339), i)
}

// Limit is the time limit for Await.
const Limit = time.Minute

// World is a series in a database with a frozen clock, two days after Start. Its retention is 30
// days.
type World struct {
	t      testing.TB
	Cut    *Cut
	Client *dynamodb.Client // connected through Cut
	Series *timeseries.Series
	mu     struct {
		sync.Mutex
		aside []timeseries.Rejected
	}
}

// New returns a new world.
func New(t testing.TB) *World {
	t.Helper()
	db, err := mayfly.Open("", mayfly.Options{Start: Start.Add(48 * time.Hour), Frozen: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	w := &World{t: t, Cut: &Cut{Over: db.Transport()}}
	w.Cut.Mend()
	w.Client = dynamodb.New(dynamodb.Options{
		Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("k", "s", ""), HTTPClient: &http.Client{Transport: w.Cut},
		BaseEndpoint: aws.String("http://127.0.0.1:1"), Retryer: aws.NopRetryer{}, DisableValidateResponseChecksum: true,
	})
	w.Series, err = timeseries.Create(t.Context(), w.Client, timeseries.Spec{Table: "weather", Retention: 30 * 24 * time.Hour, Now: db.Clock().Now})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// Receiver returns a receiver of readings with a writer of its own, like another process. The
// writer retries for a short time only.
func (w *World) Receiver() *timeseries.Receiver {
	w.t.Helper()
	writer, err := w.Series.Writer(context.Background(), timeseries.WriterOptions{RetryFor: 10 * time.Millisecond})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(writer.Close)
	r, err := timeseries.NewReceiver(writer, timeseries.NDJSON, timeseries.Mapping{}, func(all []timeseries.Rejected) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.mu.aside = append(w.mu.aside, all...)
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

// Aside returns the rejected lines so far.
func (w *World) Aside() []timeseries.Rejected {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clip(w.mu.aside)
}

// Count returns the number of samples.
func (w *World) Count() int {
	w.t.Helper()
	return Count(w.t, w.Series)
}

// Want fails the test unless the series has exactly the first n readings, each once and in order,
// and the latest of each device.
func (w *World) Want(n int) {
	w.t.Helper()
	Want(w.t, w.Series, n)
}

// Count returns the number of samples in a series.
func Count(t testing.TB, series *timeseries.Series) (n int) {
	t.Helper()
	for d := range Devices {
		for _, err := range read(t, series, d) {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
	}
	return n
}

func read(t testing.TB, series *timeseries.Series, device int) func(func(timeseries.Sample, error) bool) {
	return series.Reader(timeseries.ReaderOptions{Strong: true}).Range(t.Context(), timeseries.Query{Device: name(device)})
}

func name(device int) string { return fmt.Sprintf("device-%d", device) }

// Want is World.Want for any series.
func Want(t testing.TB, series *timeseries.Series, n int) {
	t.Helper()
	for d := range Devices {
		next := d
		for s, err := range read(t, series, d) {
			if err != nil {
				t.Fatal(err)
			}
			if int(s.Values["n"]) != next || !s.Time.Equal(Start.Add(time.Duration(next)*time.Second)) {
				t.Fatalf("there is %v, want reading %d", s, next)
			}
			next += Devices
		}
		if next < n || next-Devices >= n {
			t.Fatalf("behind the readings of device %d comes %d, and there are %d", d, next, n)
		}
		if next == d {
			continue
		}
		latest, err := series.Reader(timeseries.ReaderOptions{Strong: true}).Latest(t.Context(), name(d))
		if err != nil {
			t.Fatal(err)
		}
		if int(latest[name(d)].Values["n"]) != next-Devices {
			t.Errorf("the latest of device %d is %v, want reading %d", d, latest[name(d)], next-Devices)
		}
	}
}

// Await waits until a condition is true.
func Await(t testing.TB, what string, so func() bool) {
	t.Helper()
	for limit := time.Now().Add(Limit); !so(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("%s does not come", what)
		}
	}
}

// Run is a reader of a broker that runs in a goroutine.
type Run struct {
	t     testing.TB
	end   context.CancelFunc
	ended chan error
}

// Go runs a reader in a goroutine. Its context ends with Run.End, or with the test.
func Go(t testing.TB, run func(ctx context.Context) error) *Run {
	ctx, cancel := context.WithCancel(context.Background())
	r := &Run{t, cancel, make(chan error, 1)}
	t.Cleanup(cancel)
	go func() { r.ended <- run(ctx) }()
	return r
}

// End stops the reader like a signal, and fails the test if it returns an error.
func (r *Run) End() {
	r.t.Helper()
	r.end()
	if err := r.Ended(); err != nil {
		r.t.Fatal(err)
	}
}

// Ended waits until the reader ends by itself, and returns its error. It fails the test after Limit.
func (r *Run) Ended() error {
	r.t.Helper()
	select {
	case err := <-r.ended:
		return err
	case <-time.After(Limit):
		r.t.Fatal("it does not end")
		return nil
	}
}

// Cut is a connection to the database that can be cut before or after some call, as if the process
// had been killed. It refuses all later calls, without retries.
type Cut struct {
	Over http.RoundTripper // to the database
	mu   struct {
		sync.Mutex
		cut    bool
		left   int // calls before the cut; negative: no cut
		behind bool
		then   func()
	}
}

// After schedules a cut at the nth call from now, counted from 0: before the call is executed, or
// behind it, so that only the answer is lost. It calls then at that moment, unless nil.
func (c *Cut) After(n int, behind bool, then func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.cut, c.mu.left, c.mu.behind, c.mu.then = false, n, behind, then
}

// Mend restores the connection, and reports whether it was cut.
func (c *Cut) Mend() (was bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	was = c.mu.cut
	c.mu.cut, c.mu.left = false, -1
	return was
}

// RoundTrip implements http.RoundTripper.
func (c *Cut) RoundTrip(r *http.Request) (*http.Response, error) {
	c.mu.Lock()
	now := !c.mu.cut && c.mu.left == 0
	if c.mu.left >= 0 {
		c.mu.left--
	}
	was, behind, then := c.mu.cut, c.mu.behind, c.mu.then
	c.mu.cut = c.mu.cut || now
	c.mu.Unlock()
	if was {
		return refusal(r), nil
	}
	if !now {
		return c.Over.RoundTrip(r)
	}
	if behind {
		if answer, err := c.Over.RoundTrip(r); err == nil {
			answer.Body.Close()
		}
	}
	if then != nil {
		then()
	}
	return refusal(r), nil
}

func refusal(r *http.Request) *http.Response {
	const body = `{"__type":"com.amazonaws.dynamodb.v20120810#AccessDeniedException","message":"the connection is cut"}`
	return &http.Response{
		StatusCode: http.StatusBadRequest, Request: r, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, ContentLength: int64(len(body)),
		Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}}, Body: io.NopCloser(strings.NewReader(body)),
	}
}

// Messages collects sentences for an operator. It is safe for concurrent use.
type Messages struct {
	mu  sync.Mutex
	all []string
}

// Add adds a sentence.
func (m *Messages) Add(text string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all = append(m.all, text)
}

// String returns the sentences, one per line.
func (m *Messages) String() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return strings.Join(m.all, "\n")
}
