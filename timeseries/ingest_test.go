package timeseries

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mayflydb/mayfly"
)

// seattle returns the file with a year of hourly readings.
func seattle(t testing.TB) string {
	t.Helper()
	f, err := os.Open("../internal/demo/seattle-weather-hourly-normals.csv.gz")
	must(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	must(t, err)
	text, err := io.ReadAll(z)
	must(t, err)
	return string(text)
}

// plain is a reading, read from the file without this package.
type plain struct {
	at                          time.Time
	pressure, temperature, wind float64
}

func plainly(t testing.TB, text string) (all []plain) {
	t.Helper()
	lines := bufio.NewScanner(strings.NewReader(text))
	lines.Scan()
	for lines.Scan() {
		cells := strings.Split(lines.Text(), ",")
		at, err := time.Parse("2006-01-02T15:04:05", cells[0])
		must(t, err)
		var v [3]float64
		for i := range v {
			v[i], err = strconv.ParseFloat(cells[i+1], 64)
			must(t, err)
		}
		all = append(all, plain{at, v[0], v[1], v[2]})
	}
	return all
}

// afterSeattle returns a database whose clock shows the end of the readings' year.
func afterSeattle(t testing.TB, spec Spec) *world {
	return newWorldIn(t, "", mayfly.Options{Start: time.Date(2011, 1, 1, 0, 0, 0, 0, time.UTC), Frozen: true}, spec)
}

// A year of hourly readings comes back exactly, its rollups equal those of plain loops, and each
// reading expires at its instant.
func TestSeattle(t *testing.T) {
	const retention = 366 * 24 * time.Hour
	x := afterSeattle(t, Spec{Retention: retention})
	text := seattle(t)
	report, err := Ingest(t.Context(), x.w, strings.NewReader(text), IngestOptions{Format: CSV, Mapping: Mapping{As: "seattle"}})
	must(t, err)
	if report.Written != 8759 || report.Rejected != 0 || report.OutOfOrder != 0 || report.Bytes != int64(len(text)) || report.Lines != 8760 {
		t.Errorf("reports %+v", report)
	}
	want := plainly(t, text)
	got := all(t, x.r.Range(t.Context(), Query{Device: "seattle"}))
	if len(got) != len(want) {
		t.Fatalf("%d samples, want %d", len(got), len(want))
	}
	for i, s := range got {
		w := want[i]
		if !s.Time.Equal(w.at) || len(s.Values) != 3 || s.Values["pressure"] != w.pressure || s.Values["temperature"] != w.temperature || s.Values["wind"] != w.wind {
			t.Fatalf("sample %d is %v, want %v", i, s, w)
		}
	}
	compareRollups(t, got, want)

	latest, err := x.r.Latest(t.Context(), "seattle")
	must(t, err)
	if s := latest["seattle"]; !s.Time.Equal(want[len(want)-1].at) || s.Values["wind"] != want[len(want)-1].wind {
		t.Errorf("the latest is %v", s)
	}
	expiresOneByOne(t, x, want, retention)
}

// expiresOneByOne checks a few deadlines just before and just after.
func expiresOneByOne(t *testing.T, x *world, want []plain, retention time.Duration) {
	for _, i := range []int{0, 1, 100, 5000, 8758} {
		deadline := want[i].at.Add(retention)
		x.advance(deadline.Add(-time.Millisecond).Sub(x.db.Clock().Now()))
		if n := len(all(t, x.r.Range(t.Context(), Query{Device: "seattle"}))); n != len(want)-i {
			t.Errorf("just before reading %d expires there are %d, want %d", i, n, len(want)-i)
		}
		x.advance(time.Millisecond)
		if n := len(all(t, x.r.Range(t.Context(), Query{Device: "seattle"}))); n != len(want)-i-1 {
			t.Errorf("when reading %d expires there are %d, want %d", i, n, len(want)-i-1)
		}
	}
}

// compareRollups compares rollups with loops over the file.
func compareRollups(t *testing.T, got []Sample, want []plain) {
	t.Helper()
	samples := func(yield func(Sample, error) bool) {
		for _, s := range got {
			if !yield(s, nil) {
				return
			}
		}
	}
	for _, c := range []struct {
		every  time.Duration
		layout string
	}{{Minute, "2006-01-02T15:04"}, {Hour, "2006-01-02T15"}, {Day, "2006-01-02"}} {
		type figures struct {
			n              int64
			low, high, sum float64
		}
		by := map[string]*figures{}
		for _, w := range want {
			f := by[w.at.Format(c.layout)]
			if f == nil {
				f = &figures{0, math.Inf(1), math.Inf(-1), 0}
				by[w.at.Format(c.layout)] = f
			}
			f.n++
			f.low, f.high, f.sum = math.Min(f.low, w.temperature), math.Max(f.high, w.temperature), f.sum+w.temperature
		}
		buckets := all(t, Rollup(samples, c.every, nil))
		if len(buckets) != len(by) {
			t.Errorf("%s: %d buckets, want %d", c.every, len(buckets), len(by))
		}
		for _, b := range buckets {
			f := by[b.Start.Format(c.layout)]
			if s := b.Stats["temperature"]; f == nil || s != (Stat{f.n, f.low, f.high, f.sum / float64(f.n)}) {
				t.Fatalf("%s at %s: %+v, want %+v", c.every, b.Start, s, f)
			}
		}
	}
}

// An unusable line is counted, and rejected with its number and the reason; all others are stored.
func TestIngestPutsBadLinesAside(t *testing.T) {
	x := newWorld(t, Spec{Retention: 24 * time.Hour, Ahead: time.Hour})
	text := strings.Join([]string{
		"\xef\xbb\xbfstation,time,temperature,humidity,note", // 1
		"a,2030-01-01T11:00:00Z,1,2,fine\r",
		"a,2030-01-01T10:00:00Z,3,,",                    // out of order; no humidity
		"a,2030-01-01T11:00:00Z,1,2,fine",               // 4: duplicate
		"a,2029-12-31T12:00:00Z,1,2,",                   // 5: just beyond retention
		"a,2031-01-01T00:00:00Z,1,2,",                   // 6: future
		"a,2030-01-01T11:01:00Z,NaN,2,",                 // 7
		"a,2030-01-01T11:01:00Z,+Inf,2,",                // 8
		"a,2030-01-01T11:01:00Z,1",                      // 9: too few
		`a,2030-01-01T11:01:00Z,1,2,"open`,              // 10
		"a,yesterday,1,2,",                              // 11
		",2030-01-01T11:01:00Z,1,2,",                    // 12: no device
		"a,2030-01-01T11:01:00Z,,,",                     // 13: no values
		"a,2030-01-01T11:01:00Z,1,2,\xff",               // 14
		"",                                              // 15: empty
		strings.Repeat("x", lineMax+7),                  // 16
		`"b, the ""second""",1893495600,4,5,"said, so"`, // 17
		"a,2030-01-01 11:02:00,1e999,2,",                // 18: infinite
		"a,2030-01-01 11:03,6,2,",                       // no seconds, no newline at the end
	}, "\n")
	rejects, err := os.Create(filepath.Join(t.TempDir(), "rejects"))
	must(t, err)
	defer rejects.Close()
	report, err := Ingest(t.Context(), x.w, strings.NewReader(text), IngestOptions{Format: CSV, Rejects: rejects})
	must(t, err)
	want := map[Reason]int64{
		ReasonDuplicate: 1, ReasonExpired: 1, ReasonFuture: 1, ReasonNumber: 3, ReasonSyntax: 3, ReasonTime: 1, ReasonDevice: 1, ReasonNoValues: 1, ReasonLong: 1,
	}
	if diff := cmp.Diff(want, report.Reasons); diff != "" || report.Written != 4 || report.OutOfOrder != 1 || report.Rejected != 13 || report.Lines != 19 {
		t.Errorf("reports %+v\n%s", report, diff)
	}
	put, err := os.ReadFile(rejects.Name())
	must(t, err)
	for i, line := range []int{4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 16, 18} {
		if got := strings.Split(string(put), "\n")[i]; !strings.HasPrefix(got, fmt.Sprintf(`{"line":%d,`, line)) {
			t.Errorf("put aside: %.200s, want line %d", got, line)
		}
	}
	if !strings.Contains(string(put), `"text":"a,yesterday,1,2,"`) {
		t.Error("the line's text is not put aside")
	}
	got := all(t, x.r.Range(t.Context(), Query{Device: `b, the "second"`}))
	if len(got) != 1 || got[0].Tags["note"] != "said, so" || got[0].Values["humidity"] != 5 || got[0].Time != start.Add(-time.Hour) {
		t.Errorf("got %+v", got)
	}
	if got := says(all(t, x.r.Range(t.Context(), Query{Device: "a"}))); !slices.Equal(got, []string{"a -2h0m0s 3", "a -1h0m0s 1", "a -57m0s 6"}) {
		t.Errorf("got %v", got)
	}
}

// One broken line in a million: here in 50,000.
func TestIngestOneBrokenLine(t *testing.T) {
	x := newWorld(t, Spec{})
	var b strings.Builder
	b.WriteString("device,time,v\n")
	for i := range 50_000 {
		if i == 31_415 {
			b.WriteString("\"a,2030-01-01T00:00:00Z,1\n")
		}
		fmt.Fprintf(&b, "device-%d,%d,%d\n", i%50, start.Unix()-int64(i), i)
	}
	report, err := Ingest(t.Context(), x.w, strings.NewReader(b.String()), IngestOptions{Format: CSV})
	must(t, err)
	if report.Written != 50_000 || report.Rejected != 1 || report.First[0].Line != 31_417 {
		t.Errorf("reports %+v", report)
	}
	n := 0
	for i := range 50 {
		n += len(all(t, x.r.Range(t.Context(), Query{Device: fmt.Sprint("device-", i)})))
	}
	if n != 50_000 {
		t.Errorf("%d are there", n)
	}
}

// stops is a file that ends with an error.
type stops struct{ io.Reader }

func (s stops) Read(b []byte) (int, error) {
	n, err := s.Reader.Read(b)
	if err == io.EOF {
		return n, errors.New("the disk is gone")
	}
	return n, err
}

// An interrupted ingest continues after the written samples; another file of the same name starts
// from its beginning.
func TestIngestGoesOn(t *testing.T) {
	x := afterSeattle(t, Spec{})
	text := seattle(t)
	rejects, err := os.Create(filepath.Join(t.TempDir(), "rejects"))
	must(t, err)
	defer rejects.Close()
	o := IngestOptions{Format: CSV, Mapping: Mapping{As: "seattle"}, Checkpoint: "file.csv", Rejects: rejects}
	// an early rejected line
	text = strings.Replace(text, "2010-01-02T03:00:00,", "never,", 1)
	text = strings.Replace(text, "2010-12-02T03:00:00,", "never,", 1) // and a late one
	// at any place within a line
	for _, end := range []int{len(text) / 3, len(text) / 2, 7 * len(text) / 8} {
		report, err := Ingest(t.Context(), x.w, stops{strings.NewReader(text[:end])}, o)
		if err == nil || report.Lines != int64(strings.Count(text[:end], "\n")) || report.Written < report.Lines-3 {
			t.Fatalf("reports %+v, %v", report, err)
		}
	}
	for range 2 { // the second run has nothing to do
		report, err := Ingest(t.Context(), x.w, strings.NewReader(text), o)
		must(t, err)
		if report.Written != 8757 || report.Rejected != 2 || report.Lines != 8760 {
			t.Errorf("reports %+v", report)
		}
		if report.Resumed == 0 {
			t.Error("it began anew")
		}
	}
	if n := len(all(t, x.r.Range(t.Context(), Query{Device: "seattle"}))); n != 8757 {
		t.Errorf("%d are there", n)
	}
	put, err := os.ReadFile(rejects.Name())
	must(t, err)
	if n := bytes.Count(put, []byte("\n")); n != 2 {
		t.Errorf("%d lines were put aside:\n%s", n, put)
	}
	other, err := Ingest(t.Context(), x.w, strings.NewReader("date,v\n2010-01-01,1\n"), o)
	must(t, err)
	if other.Resumed != 0 || other.Written != 1 {
		t.Errorf("of another file it reports %+v", other)
	}
}
