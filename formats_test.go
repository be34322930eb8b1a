package mayfly

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/store/kv"
)

var writeFormat = flag.String("write-format", "", "write a directory of testdata/formats, as VERSION=PROGRAM with a mayfly of that format version")

// formatManifest is the expected content of a directory of testdata/formats.
type formatManifest struct {
	Contents  *contents // the model of the acknowledged steps
	Schedules []string  // their names
	Mappings  int       // event source mappings
	Reminders int       // waiting reminders
}

const formatsDirectory = "testdata/formats"

// Directories that programs of every format version wrote open. All their contents are present,
// expire to the millisecond and leave their records. They can then be closed and opened again.
func TestFormatsOpen(t *testing.T) {
	if version, program, ok := strings.Cut(*writeFormat, "="); ok {
		for _, end := range []string{"clean", "crash"} {
			writeFormatDirectory(t, version, program, end)
		}
	}
	present := presentFormat(t)
	for version := 1; version <= present; version++ {
		for _, end := range []string{"clean", "crash"} {
			t.Run(fmt.Sprintf("%d/%s", version, end), func(t *testing.T) {
				t.Parallel()
				var manifest formatManifest
				stored := filepath.Join(formatsDirectory, fmt.Sprint(version), end)
				text, err := os.ReadFile(stored + ".json")
				if err != nil {
					t.Fatalf("no directory of format %d is stored: %v; see %s/README.md", version, err, formatsDirectory)
				}
				if err := json.Unmarshal(text, &manifest); err != nil {
					t.Fatal(err)
				}
				for _, check := range []func(*testing.T, string, formatManifest){checkFormatTables, checkFormatWork} {
					dir := t.TempDir()
					unpack(t, stored+".tar.gz", dir)
					if got := formatOf(t, dir); got != version {
						t.Fatalf("the directory is of format %d", got)
					}
					wantSound(t, dir) // before the upgrade
					check(t, dir, manifest)
					wantSound(t, dir)
					if got := formatOf(t, dir); got != present {
						t.Errorf("the directory is of format %d afterwards, want %d", got, present)
					}
				}
			})
		}
	}
}

// presentFormat returns the format version of new directories.
func presentFormat(t *testing.T) int {
	t.Helper()
	dir := t.TempDir()
	db, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return formatOf(t, dir)
}

// formatOf returns the format version in a directory, whose key FORMAT.md describes. It changes
// nothing there.
func formatOf(t *testing.T, dir string) (version int) {
	t.Helper()
	stopped, err := kv.OpenStopped(nil, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer stopped.Close()
	store, err := stopped.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	text, closer, err := store.Get([]byte{1, 'v'})
	if err != nil {
		t.Fatal(err)
	}
	defer closer.Close()
	if _, err := fmt.Sscanf(string(text), "mayfly format %d", &version); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return version
}

// wantSound fails if Check finds a fault in a closed directory.
func wantSound(t *testing.T, dir string) {
	t.Helper()
	err := Check(t.Context(), dir, func(int64, int64) {}, func(f Fault) { t.Error(f) })
	if err != nil {
		t.Error(err)
	}
}

// openStored opens a directory with its clock standing at the directory's last instant.
func openStored(t *testing.T, dir string, databaseOnly bool) (*DB, endpoint) {
	t.Helper()
	db, err := Open(dir, Options{Frozen: true, ClockControl: ClockControlOn, DatabaseOnly: databaseOnly, Unmapped: UnmappedAccept})
	if err != nil {
		t.Fatal(err)
	}
	return db, inProcessEndpoint(db)
}

// checkFormatTables checks the tables and their expiry.
func checkFormatTables(t *testing.T, dir string, manifest formatManifest) {
	wantNow := func(db *DB, e endpoint, at int64, want *contents) {
		t.Helper()
		got, err := advanceTo(t.Context(), db, e, at)
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range got.failures {
			t.Error(err)
		}
		for _, line := range differences(want, &got.contents) {
			t.Errorf("at %s: %s", stamp(time.UnixMilli(at)), line)
		}
		if err := db.engine.Verify(t.Context()); err != nil {
			t.Error(err)
		}
	}

	want := manifest.Contents
	db, e := openStored(t, dir, true)
	if now := db.Clock().Now().UnixMilli(); now != want.Now {
		t.Errorf("the clock shows %d, want %d", now, want.Now)
	}
	wantNow(db, e, want.Now, want)
	steps := 0
	for _, at := range removals(want) {
		if at > want.Now+int64(12*time.Hour/time.Millisecond) { // the stream forgets after a day
			break
		}
		look := steps%6 == 0 // the others' leftovers go at the next of these
		steps++
		if look {
			wantNow(db, e, at-1, want)
		}
		want.advance(at)
		want.index()
		if look {
			wantNow(db, e, at, want)
		}
	}
	wantNow(db, e, want.Now, want)
	if steps < 20 || len(removals(want)) < 10 {
		t.Fatal("the directory holds too few deadlines")
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}

	db, e = openStored(t, dir, true)
	wantNow(db, e, want.Now, want)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}

	wantSound(t, dir) // with items and deadlines still in it
	db, e = openStored(t, dir, true)
	defer db.Close()
	all := removals(want)
	at := all[len(all)-1]
	want.advance(at)
	want.index()
	got, err := advanceTo(t.Context(), db, e, at)
	if err != nil {
		t.Fatal(err)
	}
	for name, table := range want.Tables { // the streams have been trimmed
		table.Records, got.Tables[name].Records = nil, nil
	}
	for _, line := range differences(want, &got.contents) {
		t.Error(line)
	}
	if err := db.engine.Verify(t.Context()); err != nil {
		t.Error(err)
	}
}

// checkFormatWork checks schedules, event source mappings and reminders, and lets the first
// schedule fire at its instant.
func checkFormatWork(t *testing.T, dir string, manifest formatManifest) {
	db, e := openStored(t, dir, false)
	defer db.Close()
	get := func(path, member string) (all []object) {
		answer, err := e.client.Get(e.url + path)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		var out map[string]any
		if err := json.NewDecoder(answer.Body).Decode(&out); err != nil {
			t.Fatal(err)
		}
		list, _ := out[member].([]any)
		for _, one := range list {
			all = append(all, one.(object))
		}
		return all
	}
	var names []string
	for _, s := range get("/schedules", "Schedules") {
		names = append(names, s["Name"].(string))
	}
	if !slices.Equal(names, manifest.Schedules) {
		t.Errorf("schedules %q, want %q", names, manifest.Schedules)
	}
	if n := len(get("/2015-03-31/event-source-mappings/", "EventSourceMappings")); n != manifest.Mappings {
		t.Errorf("%d event source mappings, want %d", n, manifest.Mappings)
	}
	if n := countReminders(e); n != manifest.Reminders {
		t.Errorf("%d reminders, want %d", n, manifest.Reminders)
	}
	if len(manifest.Schedules) == 0 {
		return
	}
	fired := func() bool {
		got := e.read(0, nil)
		return strings.Contains(canonical(got.Tables["mayfly.recorded"]), "schedule-0")
	}
	due := storedStart.Add(2 * time.Hour)
	for _, at := range []time.Time{due.Add(-time.Millisecond), due} {
		if moved, err := db.Clock().Set(t.Context(), at); err != nil || moved.Unfinished {
			t.Fatal(moved, err)
		}
		if got := fired(); got != at.Equal(due) {
			t.Errorf("schedule-0 has fired at %s: %t", stamp(at), got)
		}
	}
}

func countReminders(e endpoint) (n int) {
	_ = e.scan(object{"TableName": "mayfly.reminders"}, func(it object) { n++ })
	return n
}

// removals returns the instants of removals, ascending.
func removals(c *contents) []int64 {
	all := map[int64]bool{}
	for _, t := range c.Tables {
		for _, at := range t.Removal {
			all[at] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// program is a mayfly serve in a process of its own.
type program struct {
	command *exec.Cmd
	endpoint
}

// startProgram starts it with its clock standing still.
func startProgram(t *testing.T, path, dir, reminders string) *program {
	t.Helper()
	args := []string{"serve", "--data", dir, "--port", "0", "--start", storedStart.Format(time.RFC3339), "--clock-control"}
	if reminders != "" {
		args = append(args, "--unmapped", "accept", "--reminders", reminders)
	}
	p := &program{command: exec.Command(path, args...)}
	p.command.Stderr = os.Stderr
	out, err := p.command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.command.Process.Kill() })
	lines := bufio.NewScanner(out)
	for p.url == "" && lines.Scan() {
		if url, ok := strings.CutPrefix(lines.Text(), "listening on "); ok {
			p.endpoint = endpoint{url, http.DefaultClient}
		}
	}
	if p.url == "" {
		t.Fatal("the program did not start")
	}
	go io.Copy(io.Discard, out)
	if _, err := p.send("/_mayfly/clock/freeze", "", object{}); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *program) end(t *testing.T, signal os.Signal) {
	t.Helper()
	if err := p.command.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := p.command.Wait(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
}

// writeFormatDirectory writes one of the directories: half of the steps, a clean restart, the
// other half, and then the end, which for a crash is a kill in the midst of further steps.
func writeFormatDirectory(t *testing.T, version, path, end string) {
	dir := filepath.Join(t.TempDir(), "data")
	reminders := filepath.Join(t.TempDir(), "reminders.yaml")
	rule := "reminders:\n  - {name: visit, table: both, attribute: visit, target: 'arn:aws:lambda:us-east-1:000000000000:function:mail', input: {to: you}}\n"
	if err := os.WriteFile(reminders, []byte(rule), 0o600); err != nil {
		t.Fatal(err)
	}
	steps, load := history(2, 160, 40), history(3, 5000, 40)
	first := version == "1" // which had tables only, without aws expiry
	if first {
		reminders = ""
		later := func(s step) bool {
			return s.Schedule != nil || s.Create == "late" || s.Expire != nil && s.Expire.Table == "late" || s.Put != nil && s.Put.Table == "late" ||
				s.Delete != nil && s.Delete.Table == "late"
		}
		steps = slices.DeleteFunc(steps, later)
	}
	for _, s := range steps[len(steps)-20:] { // some have reminders
		if s.Put != nil && s.Put.Table == "both" {
			s.Put.Item["visit"] = object{"S": "2090-06-01T00:00:00Z"}
		}
	}
	p := startProgram(t, path, dir, reminders)
	if _, err := p.send("/_mayfly/clock/set", "", object{"to": "2090-01-01T00:00:10Z"}); err != nil {
		t.Fatal(err)
	}
	perform := func(steps []step, number *int) {
		t.Helper()
		for _, s := range steps {
			if s.Put != nil || s.Delete != nil {
				*number++
			}
			if err := p.perform(s, *number); err != nil {
				t.Fatal(err)
			}
		}
	}
	number, half := 0, len(steps)/2
	perform(steps[1:half], &number) // the first step is the clock's
	if !first {
		answer, err := p.call("DescribeTable", object{"TableName": "both"})
		if err != nil {
			t.Fatal(err)
		}
		_, err = p.send("/2015-03-31/event-source-mappings/", "", object{
			"EventSourceArn": answer["Table"].(object)["LatestStreamArn"], "FunctionName": "release", "StartingPosition": "TRIM_HORIZON",
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	p.end(t, syscall.SIGTERM)
	p = startProgram(t, path, dir, reminders)
	perform(steps[half:], &number)
	for wait := time.Now(); !first && countReminders(p.endpoint) == 0 && time.Since(wait) < 20*time.Second; {
		time.Sleep(100 * time.Millisecond)
	}
	clock, err := p.send("/_mayfly/clock/freeze", "", object{})
	if err != nil {
		t.Fatal(err)
	}
	now := int64(clock["now_ms"].(float64))
	manifest := formatManifest{Mappings: 1, Reminders: countReminders(p.endpoint), Schedules: []string{"schedule-0", "schedule-1", "schedule-2"}}
	if first {
		manifest = formatManifest{}
	}
	if end == "clean" {
		perform([]step{{Put: &writeStep{"plain", object{"pk": object{"S": "last"}}}}}, &number)
		steps = append(steps, step{Put: &writeStep{"plain", object{"pk": object{"S": "last"}}}})
		p.end(t, syscall.SIGTERM)
		manifest.Contents = model(steps, now)
	} else {
		var acknowledged atomic.Int64
		load = slices.DeleteFunc(load, func(s step) bool { return s.Put == nil || s.Put.Table == "moved" || s.Put.Table == "late" })
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			n := number
			for i, s := range load {
				n++
				if p.perform(s, n) != nil {
					return
				}
				acknowledged.Store(int64(i + 1))
			}
		}()
		time.Sleep(150 * time.Millisecond)
		p.end(t, syscall.SIGKILL)
		<-ended
		copied := t.TempDir()
		if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		db, err := Open(copied, Options{Frozen: true, ClockControl: ClockControlOn, DatabaseOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		found := inProcessEndpoint(db).read(0, nil).Writes - number
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		if n := int(acknowledged.Load()); found < n || found > n+1 || n == 0 {
			t.Fatalf("%d writes of the load are there, %d were acknowledged", found, n)
		}
		manifest.Contents = model(append(steps, load[:found]...), now)
	}
	text, err := json.MarshalIndent(manifest, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(formatsDirectory, version), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(formatsDirectory, version, end+".json"), append(text, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
	pack(t, dir, filepath.Join(formatsDirectory, version, end+".tar.gz"))
}

// pack packs a directory without its RESERVE.
func pack(t *testing.T, dir, file string) {
	t.Helper()
	out, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	packed := gzip.NewWriter(out)
	w := tar.NewWriter(packed)
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == "RESERVE" {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if err := w.WriteHeader(&tar.Header{Name: d.Name(), Mode: 0o644, Size: int64(len(b))}); err != nil {
			return err
		}
		_, err = w.Write(b)
		return err
	})
	if err := errors.Join(err, w.Close(), packed.Close(), out.Close()); err != nil {
		t.Fatal(err)
	}
}

func unpack(t *testing.T, file, dir string) {
	t.Helper()
	in, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	packed, err := gzip.NewReader(in)
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(packed); ; {
		header, err := r.Next()
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(header.Name)), b, 0o600); err != nil {
			t.Fatal(fmt.Errorf("unpack %s: %w", header.Name, err))
		}
	}
}
