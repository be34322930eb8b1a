package timeseries

import (
	"context"
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/mayflydb/mayfly"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// start is the initial time of the databases' frozen clocks.
var start = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

// world is a series in a database with a frozen clock.
type world struct {
	t  testing.TB
	db *mayfly.DB
	*Series
	w *Writer
	r *Reader
}

func newWorld(t testing.TB, spec Spec) *world {
	t.Helper()
	return newWorldIn(t, "", mayfly.Options{Start: start, Frozen: true}, spec)
}

func newWorldIn(t testing.TB, dir string, o mayfly.Options, spec Spec) *world {
	t.Helper()
	db, err := mayfly.Open(dir, o)
	must(t, err)
	t.Cleanup(func() { must(t, db.Close()) })
	x := &world{t: t, db: db}
	spec.Now = db.Clock().Now
	if spec.Table == "" {
		spec.Table = "weather"
	}
	x.open(db.DynamoDB(), spec)
	return x
}

func (x *world) open(db *dynamodb.Client, spec Spec) {
	x.t.Helper()
	var err error
	x.Series, err = Create(x.t.Context(), db, spec)
	must(x.t, err)
	x.w = x.writer(WriterOptions{})
	x.r = x.Reader(ReaderOptions{Strong: true})
}

func (x *world) writer(o WriterOptions) *Writer {
	x.t.Helper()
	w, err := x.Writer(context.Background(), o)
	must(x.t, err)
	x.t.Cleanup(w.Close)
	return w
}

// advance moves the clock.
func (x *world) advance(by time.Duration) {
	x.t.Helper()
	_, err := x.db.Clock().Advance(x.t.Context(), by)
	must(x.t, err)
}

func (x *world) write(samples ...Sample) {
	x.t.Helper()
	must(x.t, x.w.Write(x.t.Context(), samples...))
}

func all[T any](t testing.TB, seq iter.Seq2[T, error]) (list []T) {
	t.Helper()
	for s, err := range seq {
		must(t, err)
		list = append(list, s)
	}
	return list
}

// temperature returns a sample at a time after the start.
func temperature(device string, after time.Duration, v float64) Sample {
	return Sample{Device: device, Time: start.Add(after), Values: map[string]float64{"temperature": v}}
}

// says returns the samples in short form.
func says(samples []Sample) (texts []string) {
	for _, s := range samples {
		texts = append(texts, fmt.Sprintf("%s %s %g", s.Device, s.Time.Sub(start), s.Values["temperature"]))
	}
	return texts
}
