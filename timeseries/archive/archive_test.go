package archive

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/target"
	"github.com/mayflydb/mayfly/timeseries"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

var start = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

// world is a series in a database with a frozen clock.
type world struct {
	t      testing.TB
	db     *mayfly.DB
	series *timeseries.Series
	w      *timeseries.Writer
}

func newWorld(t testing.TB, dir string, o mayfly.Options, retention time.Duration) *world {
	t.Helper()
	db, err := mayfly.Open(dir, o)
	must(t, err)
	t.Cleanup(func() { must(t, db.Close()) })
	x := &world{t: t, db: db}
	x.series, err = timeseries.Create(t.Context(), db.DynamoDB(), timeseries.Spec{Table: "weather", Retention: retention, Now: db.Clock().Now, Ahead: 24 * time.Hour})
	must(t, err)
	x.w, err = x.series.Writer(context.Background(), timeseries.WriterOptions{})
	must(t, err)
	t.Cleanup(x.w.Close)
	return x
}

func frozen(t testing.TB, retention time.Duration) *world {
	t.Helper()
	return newWorld(t, "", mayfly.Options{Start: start, Frozen: true}, retention)
}

func all(t testing.TB, seq iter.Seq2[timeseries.Sample, error]) (list []timeseries.Sample) {
	t.Helper()
	for s, err := range seq {
		must(t, err)
		list = append(list, s)
	}
	return list
}

func keys(samples []timeseries.Sample) (list []string) {
	for _, s := range samples {
		list = append(list, s.Device+" "+s.Key)
	}
	return list
}

// readings returns hourly readings of each device until the start, some with a second metric, tags,
// nanoseconds or a common instant.
func readings(devices, each int) (samples []timeseries.Sample) {
	for d := range devices {
		for i := range each {
			s := timeseries.Sample{
				Device: fmt.Sprintf("device-%d", d), Time: start.Add(-time.Duration(i)*time.Hour + time.Duration(d)), Values: map[string]float64{"temperature": float64(i) + 0.5},
			}
			if i%3 == 0 {
				s.Values["pressure"] = 1000 + float64(d)
			}
			if i%4 == 0 {
				s.Tags = map[string]string{"place": "roof", "n": fmt.Sprint(i)}
			}
			samples = append(samples, s)
			if i%10 == 0 {
				s.Sequence = 7
				samples = append(samples, s)
			}
		}
	}
	return samples
}

func contents(t *testing.T, path string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	must(t, filepath.WalkDir(path, func(p string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		b, err := os.ReadFile(p)
		name, _ := filepath.Rel(path, p)
		files[filepath.ToSlash(name)] = b
		return err
	}))
	return files
}

// An export preserves samples exactly, repeating it makes the same files even with temporary ones,
// and samples that expired since stay.
func TestExport(t *testing.T) {
	t.Parallel()
	x := frozen(t, 10*timeseries.Day)
	written := readings(3, 100)
	must(t, x.w.Write(t.Context(), written...))
	path := filepath.Join(t.TempDir(), "deep", "weather")
	a := New(Dir(path))
	report, err := a.Export(t.Context(), x.series, ExportOptions{})
	must(t, err)
	if n := int64(len(written)); report.Read != n || report.Written != n || report.Kept != 0 || report.Files != 5 {
		t.Errorf("reports %+v of %d", report, n)
	}
	first := contents(t, path)
	if len(first) != 5 || first["dt=2029-12-28/samples.parquet"] == nil {
		t.Errorf("the files are %v", slices.Collect(func(yield func(string) bool) {
			for name := range first {
				if !yield(name) {
					return
				}
			}
		}))
	}
	for _, rows := range []int{0, 1, 17} {
		report, err = a.Export(t.Context(), x.series, ExportOptions{Rows: rows, TempDir: t.TempDir(), Segments: 2})
		must(t, err)
		if report.Kept != 0 || report.Written != int64(len(written)) {
			t.Errorf("again it reports %+v", report)
		}
		for name, b := range contents(t, path) {
			if !bytes.Equal(b, first[name]) {
				t.Errorf("%s differs after an export with %d rows in memory", name, rows)
			}
		}
	}
	r := x.series.Reader(timeseries.ReaderOptions{Strong: true})
	for _, q := range []timeseries.Query{
		{Device: "device-1"}, {Device: "device-2", Newest: true}, {Device: "device-0", Limit: 5}, {Device: "device-0", Newest: true, Limit: 30},
		{Device: "device-1", From: start.Add(-50 * time.Hour), To: start.Add(-10 * time.Hour)}, {Device: "device-1", Metrics: []string{"pressure"}}, {Device: "nobody"},
	} {
		compare(t, fmt.Sprintf("archive %+v", q), all(t, a.Range(t.Context(), q)), all(t, r.Range(t.Context(), q)))
		compare(t, fmt.Sprintf("union %+v", q), all(t, a.Union(t.Context(), r, q)), all(t, r.Range(t.Context(), q)))
	}
	for _, newest := range []bool{false, true} { // places of a range work in the archive
		q := timeseries.Query{Device: "device-1", Newest: newest}
		samples := all(t, r.Range(t.Context(), q))
		for _, i := range []int{0, 9, 50, len(samples) - 1} {
			q.After = timeseries.PlaceAfter(q, samples[i])
			compare(t, fmt.Sprintf("behind %d", i), all(t, a.Range(t.Context(), q)), samples[i+1:])
			compare(t, fmt.Sprintf("union behind %d", i), all(t, a.Union(t.Context(), r, q)), samples[i+1:])
		}
	}
	// the same errors as the live table's
	for _, q := range []timeseries.Query{{}, {Device: "device-1", Limit: -1}, {Device: "device-1", From: start, To: start.Add(-1)}} {
		for _, samples := range []iter.Seq2[timeseries.Sample, error]{a.Range(t.Context(), q), a.Union(t.Context(), r, q), r.Range(t.Context(), q)} {
			for _, err := range samples {
				if err == nil {
					t.Errorf("%+v is not refused", q)
				}
			}
		}
	}
	before := all(t, a.Range(t.Context(), timeseries.Query{Device: "device-1"}))

	// four of the five days expire, or parts of them
	_, err = x.db.Clock().Advance(t.Context(), 8*timeseries.Day)
	must(t, err)
	late := timeseries.Sample{Device: "device-1", Time: start.Add(-12 * time.Hour), Values: map[string]float64{"rain": 3}}
	must(t, x.w.Write(t.Context(), late))
	live := all(t, r.Range(t.Context(), timeseries.Query{Device: "device-1"}))
	if len(live) >= len(before) {
		t.Fatalf("%d samples are there of %d", len(live), len(before))
	}
	compare(t, "union", all(t, a.Union(t.Context(), r, timeseries.Query{Device: "device-1", To: start.Add(-13 * time.Hour)})),
		slices.DeleteFunc(slices.Clone(before), func(s timeseries.Sample) bool { return !s.Time.Before(start.Add(-13 * time.Hour)) }))
	report, err = a.Export(t.Context(), x.series, ExportOptions{})
	must(t, err)
	after := all(t, a.Range(t.Context(), timeseries.Query{Device: "device-1"}))
	if len(after) != len(before)+1 || report.Kept == 0 {
		t.Errorf("%d samples are archived, want %d; report %+v", len(after), len(before)+1, report)
	}
	if !slices.ContainsFunc(after, func(s timeseries.Sample) bool { return s.Values["rain"] == 3 }) {
		t.Error("the new metric is not archived")
	}
}

func compare(t *testing.T, what string, got, want []timeseries.Sample) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %d samples, want %d: %v, want %v", what, len(got), len(want), keys(got), keys(want))
		return
	}
	for i := range got {
		g, w := fmt.Sprintf("%+v", got[i]), fmt.Sprintf("%+v", want[i])
		if g != w {
			t.Errorf("%s: sample %d is %s, want %s", what, i, g, w)
			return
		}
	}
}

// A failing write leaves the file unchanged, and no other one.
func TestPutIsWhole(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	d := Dir(path)
	put := func(text string, err error) error {
		return d.Put(t.Context(), "dt=2030-01-01/x.parquet", func(w io.Writer) error {
			_, _ = io.WriteString(w, text)
			return err
		})
	}
	must(t, put("one", nil))
	if put("two", io.ErrShortWrite) == nil {
		t.Error("the failure is not told")
	}
	if files := contents(t, path); len(files) != 1 || string(files["dt=2030-01-01/x.parquet"]) != "one" {
		t.Errorf("there are %q", files)
	}
	must(t, put("three", nil))
	if files := contents(t, path); string(files["dt=2030-01-01/x.parquet"]) != "three" {
		t.Errorf("there are %q", files)
	}
}

const readFiles = `
import { asyncBufferFromFile, parquetReadObjects, parquetMetadataAsync } from "hyparquet";
const rows = [];
for (const path of process.argv.slice(1)) {
  const file = await asyncBufferFromFile(path);
  const metadata = await parquetMetadataAsync(file);
  const time = metadata.schema.find((c) => c.name === "timestamp");
  if (time.logical_type?.type !== "TIMESTAMP" || !time.logical_type.isAdjustedToUTC) throw new Error("timestamp is " + JSON.stringify(time, (k, v) => typeof v === "bigint" ? String(v) : v));
  rows.push(...await parquetReadObjects({ file }));
}
console.log(JSON.stringify(rows));`

// runNode runs a program that uses a package of .ci/clients, and returns its output.
func runNode(t *testing.T, needs, program string, args ...string) []byte {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("there is no node to read files with:", err)
	}
	const clients = "../../.ci/clients"
	check := exec.Command(node, "--input-type=module", "-e", fmt.Sprintf("await import(%q)", needs))
	check.Dir = clients
	if check.Run() != nil {
		t.Skip(needs + " is not installed: npm install --prefix .ci/clients")
	}
	command := exec.Command(node, append([]string{"--input-type=module", "-e", program}, args...)...)
	command.Dir = clients
	var complaints bytes.Buffer
	command.Stderr = &complaints
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, complaints.String())
	}
	return out
}

// Another implementation reads the same samples from the files.
func TestHyparquet(t *testing.T) {
	t.Parallel()
	x := frozen(t, 0)
	written := readings(2, 60)
	must(t, x.w.Write(t.Context(), written...))
	path := t.TempDir()
	_, err := New(Dir(path)).Export(t.Context(), x.series, ExportOptions{})
	must(t, err)
	files, err := filepath.Glob(filepath.Join(path, "dt=*", "*.parquet"))
	must(t, err)
	out := runNode(t, "hyparquet", readFiles, files...)
	type line struct {
		Device      string    `json:"deviceId"`
		Time        time.Time `json:"timestamp"`
		Key         string    `json:"sample_key"`
		Metadata    *string   `json:"metadata"`
		Temperature *float64  `json:"temperature"`
		Pressure    *float64  `json:"pressure"`
	}
	var rows []line
	must(t, json.Unmarshal(out, &rows))
	if len(rows) != len(written) {
		t.Fatalf("%d rows, want %d", len(rows), len(written))
	}
	byKey := map[string]line{}
	for _, r := range rows {
		byKey[r.Device+r.Key] = r
	}
	r := x.series.Reader(timeseries.ReaderOptions{Strong: true})
	for d := range 2 {
		for _, s := range all(t, r.Range(t.Context(), timeseries.Query{Device: fmt.Sprintf("device-%d", d)})) {
			got, ok := byKey[s.Device+s.Key]
			pressure, has := s.Values["pressure"]
			switch {
			case !ok:
				t.Fatalf("%s %s is missing", s.Device, s.Key)
			// the precision of JavaScript's Date
			case !got.Time.Equal(s.Time.Truncate(time.Millisecond)):
				t.Errorf("%s is at %s", s.Key, got.Time)
			case got.Temperature == nil || *got.Temperature != s.Values["temperature"], (got.Pressure != nil) != has, has && *got.Pressure != pressure:
				t.Errorf("%s is %+v, want %v", s.Key, got, s.Values)
			case (got.Metadata != nil) != (s.Tags != nil):
				t.Errorf("%s has metadata %v, want %v", s.Key, got.Metadata, s.Tags)
			}
		}
	}
}

const query = `
import { DuckDBInstance } from "@duckdb/node-api";
const connection = await (await DuckDBInstance.create(":memory:")).connect();
const answers = [];
for (const sql of process.argv.slice(1)) answers.push((await connection.runAndReadAll(sql)).getRowObjectsJson());
console.log(JSON.stringify(answers));`

// DuckDB reads an archive as one table, partitioned by day, with the documented types: files of
// Export, Follow and guard.
func TestDuckDB(t *testing.T) {
	t.Parallel()
	x := frozen(t, 10*timeseries.Day)
	written := readings(3, 60)
	must(t, x.w.Write(t.Context(), written...))
	r := x.series.Reader(timeseries.ReaderOptions{Strong: true})
	want := map[string]timeseries.Sample{}
	for d := range 3 {
		for _, s := range all(t, r.Range(t.Context(), timeseries.Query{Device: fmt.Sprintf("device-%d", d)})) {
			want[s.Device+s.Key] = s
		}
	}
	exported, removed := t.TempDir(), t.TempDir()
	_, err := New(Dir(exported)).Export(t.Context(), x.series, ExportOptions{})
	must(t, err)
	to := newTarget(t, Dir(removed), TargetOptions{Wait: 100 * time.Millisecond})
	var deliveries []target.Delivery
	for _, s := range want {
		d := delivery(t, s.Device, s.Time, s.Values)
		d.Body = bytes.ReplaceAll(d.Body, []byte(s.Time.UTC().Format("2006-01-02T15:04:05.000000000Z")+"#0123456789ab"), []byte(s.Key))
		deliveries = append(deliveries, d)
	}
	handOver(t, to, deliveries...)
	for kind, path := range map[string]string{"exported": exported, "removed": removed} {
		table := fmt.Sprintf("read_parquet('%s/dt=*/*.parquet', hive_partitioning=true, union_by_name=true)", path)
		out := runNode(t, "@duckdb/node-api", query,
			"SELECT column_name, column_type FROM (DESCRIBE SELECT * FROM "+table+") ORDER BY column_name",
			`SELECT "deviceId", sample_key, epoch_us(timestamp)::DOUBLE AS us, strftime(dt, '%Y-%m-%d') AS day, metadata, temperature, pressure FROM `+table,
			"SELECT count(*)::INTEGER AS n, sum(temperature) AS sum FROM "+table+" WHERE dt = '2029-12-31' AND \"deviceId\" = 'device-1'",
		)
		var answers [3]json.RawMessage
		must(t, json.Unmarshal(out, &answers))
		var columns []struct {
			Name string `json:"column_name"`
			Type string `json:"column_type"`
		}
		must(t, json.Unmarshal(answers[0], &columns))
		if got, want := fmt.Sprint(columns), "[{deviceId VARCHAR} {dt DATE} {metadata VARCHAR} {pressure DOUBLE} {sample_key VARCHAR} {temperature DOUBLE} {timestamp TIMESTAMP WITH TIME ZONE}]"; got != want {
			t.Errorf("%s: the columns are %s, want %s", kind, got, want)
		}
		var rows []struct {
			Device      string   `json:"deviceId"`
			Key         string   `json:"sample_key"`
			Micros      float64  `json:"us"`
			Day         string   `json:"day"`
			Metadata    *string  `json:"metadata"`
			Temperature *float64 `json:"temperature"`
			Pressure    *float64 `json:"pressure"`
		}
		must(t, json.Unmarshal(answers[1], &rows))
		if len(rows) != len(want) {
			t.Errorf("%s: %d rows, want %d", kind, len(rows), len(want))
		}
		sum, n := 0.0, 0
		for _, row := range rows {
			s, ok := want[row.Device+row.Key]
			pressure, has := s.Values["pressure"]
			switch {
			case !ok:
				t.Fatalf("%s: %s %s is nobody's", kind, row.Device, row.Key)
			case row.Micros != float64(s.Time.UnixMicro()), row.Day != s.Time.Format(time.DateOnly):
				t.Errorf("%s: %s is at %f, of the day %s", kind, s.Key, row.Micros, row.Day)
			case row.Temperature == nil || *row.Temperature != s.Values["temperature"], (row.Pressure != nil) != has, has && *row.Pressure != pressure:
				t.Errorf("%s: %s is %+v, want %v", kind, s.Key, row, s.Values)
			case kind == "exported" && (row.Metadata != nil) != (s.Tags != nil):
				t.Errorf("%s: %s has metadata %v, want %v", kind, s.Key, row.Metadata, s.Tags)
			}
			if s.Device == "device-1" && row.Day == "2029-12-31" {
				n, sum = n+1, sum+s.Values["temperature"]
			}
		}
		var sums []struct {
			N   int     `json:"n"`
			Sum float64 `json:"sum"`
		}
		must(t, json.Unmarshal(answers[2], &sums))
		if len(sums) != 1 || n == 0 || sums[0].N != n || sums[0].Sum != sum {
			t.Errorf("%s: device-1 has %+v on that day, want %d and %v", kind, sums, n, sum)
		}
	}
}
