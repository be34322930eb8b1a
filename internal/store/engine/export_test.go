package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/kv"
	"github.com/mayflydb/mayfly/internal/testkit"
)

func noDetails(Begun) json.RawMessage { return json.RawMessage("{}") }

// export begins an export and opens it; bytes bounds its memory.
func (d *db) export(table string, since, at Instant, bytes int) (*Job, *Exporter) {
	d.t.Helper()
	var begun Begun
	job, err := d.BeginExport(context.Background(), "default", table, since, at, func(b Begun) json.RawMessage {
		begun = b
		return noDetails(b)
	})
	if err != nil {
		d.t.Fatalf("export from %d to %d: %v", since, at, err)
	}
	x, err := d.OpenExport(job, begun.At)
	if err != nil {
		d.t.Fatal(err)
	}
	x.bytes = bytes
	return job, x
}

func (d *db) endExport(job *Job, x *Exporter) {
	d.t.Helper()
	if err := x.Close(); err != nil {
		d.t.Fatal(err)
	}
	if err := d.EndExport(context.Background(), job, func(Instant) json.RawMessage { return json.RawMessage(`{"Status":"FAILED"}`) }); err != nil {
		d.t.Fatal(err)
	}
}

// exported returns the items of a full export, as sorted text.
func (d *db) exported(table string, at Instant, bytes int) (items []string) {
	d.t.Helper()
	job, x := d.export(table, Never, at, bytes)
	for part := range 3 {
		err := x.Items(context.Background(), part, 3, func(it dynamo.Item, size int) error {
			if size != it.Size() {
				d.t.Errorf("size %d, not %d", size, it.Size())
			}
			items = append(items, string(dynamo.AppendItemJSON(nil, it)))
			return nil
		})
		if err != nil {
			d.t.Fatal(err)
		}
	}
	d.endExport(job, x)
	slices.Sort(items)
	return items
}

// changesSince applies an incremental export to a state, which is a map from keys to items as text.
func (d *db) changesSince(table string, since, at Instant, memory int, state map[string]string) {
	d.t.Helper()
	job, x := d.export(table, since, at, memory)
	seen := map[string]bool{}
	err := x.Changes(context.Background(), since, func(c Change) error {
		key := string(dynamo.AppendItemJSON(nil, c.Key))
		if seen[key] || c.At < since || c.At > x.at || bytes.Equal(c.Old, c.New) {
			d.t.Errorf("a change of %s from %s to %s at %d, of %d to %d; seen before: %v", key, c.Old, c.New, c.At, since, x.at, seen[key])
		}
		seen[key] = true
		old := ""
		if c.Old != nil {
			old = string(dynamo.AppendItemJSON(nil, c.Old))
		}
		if state[key] != old {
			d.t.Errorf("the old image of %s is %q, and it was %q", key, old, state[key])
		}
		delete(state, key)
		if c.New != nil {
			state[key] = string(dynamo.AppendItemJSON(nil, c.New))
		}
		return nil
	})
	if err != nil {
		d.t.Fatal(err)
	}
	d.endExport(job, x)
}

// byKey returns items as a map from their keys.
func (m *historyModel) byKey(at Instant) map[string]string {
	state := map[string]string{}
	for _, text := range m.held[at] {
		it, invalid, err := dynamo.NewJSON([]byte(text)).AppendItem(nil)
		if invalid != nil || err != nil {
			m.d.t.Fatal(invalid, err)
		}
		state[string(dynamo.AppendItemJSON(nil, m.tab.Desc().Key.pick(dynamo.Item(it))))] = text
	}
	return state
}

// checkExports compares exports of the instants, also with little memory, and incremental ones
// between them.
func (m *historyModel) checkExports(n int) {
	t := m.d.t
	all := slices.Sorted(maps.Keys(m.held))
	for i := range n {
		memory := []int{exportBytes, 300}[i%2]
		a, b := all[m.random.IntN(len(all))], all[m.random.IntN(len(all))]
		want := slices.Sorted(slices.Values(m.held[a]))
		if diff := cmp.Diff(want, m.d.exported("events", a, memory)); diff != "" {
			t.Errorf("exported at %d (-want +got):\n%s", a, diff)
		}
		if a, b = min(a, b), max(a, b); a == b || b == m.d.Now() {
			continue // the present instant may have further changes
		}
		state := m.byKey(a)
		m.d.changesSince("events", a+1, b, memory, state)
		if diff := cmp.Diff(m.byKey(b), state); diff != "" {
			t.Errorf("changes from %d to %d (-want +got):\n%s", a, b, diff)
		}
	}
}

// The plain case: a table without TTL, indexes and stream.
func TestExportPlain(t *testing.T) {
	dir := newDirectory()
	d := dir.open(t)
	tab := d.table("plain", bareTable)
	ctx := context.Background()
	if _, err := d.BeginExport(ctx, "default", "plain", Never, Never, noDetails); err != ErrNoHistory {
		t.Errorf("an export without a history: %v", err)
	}
	if _, err := d.BeginExport(ctx, "default", "none", Never, Never, noDetails); err != ErrTableNotFound {
		t.Errorf("an export of no table: %v", err)
	}
	d.keepHistory("plain", 1)
	begin := d.Now()
	d.advance(time.Second)
	a, b := item("pk", "a", "sk", 1), item("pk", "b", "sk", 1)
	d.put(tab, a)
	first := d.Now()
	d.advance(time.Second)
	d.put(tab, b)
	d.delete(tab, a)
	d.advance(time.Second)
	for at, want := range map[Instant][]dynamo.Item{begin: nil, first: {a}, Never: {b}} {
		if diff := cmp.Diff(texts(want), d.exported("plain", at, exportBytes)); diff != "" {
			t.Errorf("at %d (-want +got):\n%s", at, diff)
		}
	}
	for _, at := range []Instant{begin - 1, d.Now() + 1} {
		if _, err := d.BeginExport(ctx, "default", "plain", Never, at, noDetails); err != ErrRestoreInstant {
			t.Errorf("an export of %d: %v", at, err)
		}
	}
	if _, err := d.BeginExport(ctx, "default", "plain", begin, d.Now(), noDetails); err != ErrRestoreInstant {
		t.Errorf("an incremental export of the present instant, which may have further changes: %v", err)
	}
	if _, err := d.BeginExport(ctx, "default", "plain", begin-1, Never, noDetails); err != ErrRestoreInstant {
		t.Errorf("an incremental export from before the history: %v", err)
	}
	// An export outlives its table and a restart, and its checkpoint goes at its end.
	job, x := d.export("plain", Never, first, exportBytes)
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := d.DropTable(ctx, "default", "plain", nil); err != nil {
		t.Fatal(err)
	}
	d.close()
	d = dir.open(t)
	jobs, err := d.Jobs(JobExport)
	if err != nil || !slices.ContainsFunc(jobs, func(j *Job) bool { return j.ID == job.ID && j.Running }) {
		t.Fatalf("after a restart: %v, %v", jobs, err)
	}
	if x, err = d.OpenExport(job, first); err != nil {
		t.Fatal(err)
	}
	var got []string
	if err := x.Items(ctx, 0, 1, func(it dynamo.Item, _ int) error { got = append(got, it.String()); return nil }); err != nil || len(got) != 1 || got[0] != a.String() {
		t.Errorf("after a restart: %v, %v", got, err)
	}
	d.endExport(job, x)
	if jobs, err = d.Jobs(JobExport); err != nil || slices.ContainsFunc(jobs, func(j *Job) bool { return j.Running }) {
		t.Errorf("at the end: %v, %v", jobs, err)
	}
	names, err := d.kv.ListBelow(backupsDir)
	if err != nil || len(names) != 1 { // of the deleted table
		t.Errorf("exports left %v, %v", names, err)
	}
	if err := d.ForgetJobs(ctx, jobs); err != nil {
		t.Fatal(err)
	}
	if jobs, err = d.Jobs(JobExport); err != nil || len(jobs) != 0 {
		t.Errorf("forgotten: %v, %v", jobs, err)
	}
	d.verify()
}

// Beyond the bound the upper half of the keys waits, and no key is lost or repeated.
func TestLowest(t *testing.T) {
	for most := range 2000 {
		var got []string
		var from []byte
		for {
			l := lowest[int]{values: map[string]int{}, size: func(int) int { return 100 }, most: most}
			for i := range 20 {
				key := []byte(fmt.Sprintf("%02d", i*7%20))
				if string(key) >= string(from) && l.within(key) {
					l.set(key, i)
				}
			}
			got = append(got, slices.Sorted(maps.Keys(l.values))...)
			if l.end == nil {
				break
			}
			from = l.end
		}
		if len(got) != 20 || !slices.IsSorted(got) {
			t.Fatalf("with %d bytes: %v", most, got)
		}
	}
}

// The power is cut at a random file operation. Afterwards each row fits what is there: an export in
// progress has its checkpoint, an import in progress its table, and nothing else is left.
func TestJobsPowerCut(t *testing.T) {
	ctx := context.Background()
	done := func(Instant) json.RawMessage { return json.RawMessage(`{"done":true}`) }
	began, ended := 0, 0
	for seed := range uint64(testkit.Size(40, 300)) {
		random := rand.New(rand.NewPCG(seed, 2))
		disk := kv.NewCrashFS()
		options := func(fs kv.FS) Options {
			return Options{Dir: "data", FS: fs, Clock: frozenClock(), ClockControl: true, ReserveBytes: -1}
		}
		d := open(t, options(disk))
		tab := d.table("plain", bareTable)
		d.keepHistory("plain", 1)
		for i := range 10 {
			d.put(tab, item("pk", fmt.Sprint(i), "sk", 1))
		}
		disk.CutAfter(disk.Ops() + int64(1+random.IntN(500)))
		known := map[string]bool{} // jobs that were answered, and whether their end was
		for i := 0; i < 10 && !disk.WasCut(); i++ {
			job, err := d.BeginExport(ctx, "default", "plain", Never, Never, noDetails)
			if err != nil {
				break
			}
			known[job.ID] = false
			if i%3 < 2 {
				if d.EndExport(ctx, job, done) != nil {
					break
				}
				known[job.ID] = true
			}
			if job, err = d.BeginImport(ctx, TableDesc{Namespace: "default", Name: fmt.Sprint("new", i), Key: tab.Desc().Key}, noDetails); err != nil {
				break
			}
			known[job.ID] = false
			into, err := d.TableOf(job)
			if err != nil {
				t.Fatal(err)
			}
			if l, err := into.Desc().LoadedOf(item("pk", "a", "sk", 1)); err != nil || into.Load([]Loaded{l}) != nil {
				break
			}
			if i%3 > 0 {
				if d.EndImport(ctx, job, into, i%3 == 1, done) != nil {
					break
				}
				known[job.ID] = true
			}
		}
		_ = d.stop()
		_ = d.Engine.Close()
		d = open(t, options(disk.AfterCrash()))
		checkpoints, err := d.kv.ListBelow(backupsDir)
		if err != nil {
			t.Fatal(err)
		}
		for _, kind := range []JobKind{JobExport, JobImport} {
			list, err := d.Jobs(kind)
			if err != nil {
				t.Fatal(err)
			}
			for _, job := range list {
				if end, answered := known[job.ID]; answered && end && job.Running {
					t.Errorf("seed %d: the end of job %s is lost", seed, job.ID)
				}
				delete(known, job.ID)
				switch began++; {
				case !job.Running:
					ended++
				case kind == JobExport:
					checkpoints = slices.DeleteFunc(checkpoints, func(name string) bool { return name == job.ID })
					x, err := d.OpenExport(job, d.Now())
					if err != nil {
						t.Fatalf("seed %d: %v", seed, err)
					}
					n := 0
					if err := x.Items(ctx, 0, 1, func(dynamo.Item, int) error { n++; return nil }); err != nil || n != 10 {
						t.Errorf("seed %d: an export in progress has %d items, %v", seed, n, err)
					}
					d.endExport(job, x)
				default:
					into, err := d.TableOf(job)
					if err == nil {
						err = into.Clear()
					}
					if err != nil {
						t.Fatalf("seed %d: %v", seed, err)
					}
					d.endImport(job, into, true)
				}
			}
		}
		if len(known) > 0 || len(checkpoints) > 0 {
			t.Errorf("seed %d: lost jobs %v, leftover checkpoints %v", seed, known, checkpoints)
		}
		for _, tab := range d.Tables() {
			if tab.Desc().Restore.Running {
				t.Errorf("seed %d: the table %s is without its import", seed, tab.Desc().Name)
			}
		}
		d.verify()
		d.close()
	}
	if began == ended || ended == 0 {
		t.Errorf("%d jobs after crashes, of which %d had ended: the cuts hit nothing", began, ended)
	}
}

// The oldest rows of jobs that have ended make room for new ones, whether the rows are many or long.
// Jobs in progress stay.
func TestRoomForJobs(t *testing.T) {
	for name, c := range map[string]struct{ rows, bytes int }{"many": {jobsMax, 2}, "long": {jobsBytesMax/JobBytesMax + 10, JobBytesMax}} {
		d := openMemory(t)
		id := func(i int) string { return fmt.Sprintf("%014d-00000000", i) }
		fill := func(running bool) {
			d.jobs.mu.Lock()
			defer d.jobs.mu.Unlock()
			for i := range c.rows {
				d.jobs.set(&Job{ID: id(i), Kind: JobExport, Running: running || i == 0, Details: make(json.RawMessage, c.bytes)})
			}
		}
		fill(true)
		begin := func(table string) error {
			_, err := d.BeginImport(context.Background(), TableDesc{Namespace: "default", Name: table, Key: KeySchema{Partition: []KeyAttr{{"pk", dynamo.KindString}}}}, noDetails)
			return err
		}
		if err := begin("first"); err != ErrTooManyJobs {
			t.Errorf("%s, all in progress: %v", name, err)
		}
		fill(false)
		if err := begin("first"); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		d.jobs.mu.Lock()
		if d.jobs.byID[id(0)] == nil || d.jobs.byID[id(1)] != nil || d.jobs.byID[id(c.rows-1)] == nil || d.jobs.bytes > jobsBytesMax || len(d.jobs.byID) > jobsMax {
			t.Errorf("%s: %d rows with %d bytes are left", name, len(d.jobs.byID), d.jobs.bytes)
		}
		d.jobs.mu.Unlock()
	}
}
