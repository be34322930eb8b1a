package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// imported begins an import of a table without TTL and stream.
func (d *db) imported(name string) (*Job, *Table) {
	d.t.Helper()
	like := d.table("like-"+name, func(td *TableDesc) { td.TTL, td.Stream = TTLDesc{}, StreamSpec{} }).Desc()
	job, err := d.BeginImport(context.Background(), TableDesc{Namespace: "default", Name: name, Key: like.Key, Indexes: like.Indexes}, noDetails)
	if err != nil {
		d.t.Fatal(err)
	}
	tab, err := d.TableOf(job)
	if err != nil {
		d.t.Fatal(err)
	}
	return job, tab
}

func (d *db) load(tab *Table, items ...dynamo.Item) {
	d.t.Helper()
	var list []Loaded
	for _, it := range items {
		l, err := tab.Desc().LoadedOf(it)
		if err != nil {
			d.t.Fatal(err)
		}
		list = append(list, l)
	}
	if err := tab.Load(list); err != nil {
		d.t.Fatal(err)
	}
}

func (d *db) endImport(job *Job, tab *Table, keep bool) {
	d.t.Helper()
	if err := d.EndImport(context.Background(), job, tab, keep, func(Instant) json.RawMessage { return json.RawMessage("{}") }); err != nil {
		d.t.Fatal(err)
	}
}

// A table under import is hidden until its end, also after a restart, and then has each key once, with
// its index entries.
func TestImport(t *testing.T) {
	dir := newDirectory()
	d := dir.open(t)
	job, tab := d.imported("events")
	if _, err := d.Table("default", "events"); err != ErrTableCreating {
		t.Errorf("a table under import: %v", err)
	}
	if _, err := d.BeginImport(context.Background(), TableDesc{Namespace: "default", Name: "events", Key: tab.Desc().Key}, noDetails); err != ErrTableExists {
		t.Errorf("a second import: %v", err)
	}
	one, two := item("pk", "a", "sk", 1, "g", "x"), item("pk", "a", "sk", 1, "g", "y")
	d.load(tab, one, two, item("pk", "b", "sk", 1, "g", "z"))
	d.load(tab, one)
	d.close()
	d = dir.open(t)
	jobs, err := d.Jobs(JobImport)
	if err != nil || len(jobs) != 1 || !jobs[0].Running || jobs[0].ID != job.ID {
		t.Fatalf("after a restart: %v, %v", jobs, err)
	}
	if err := d.RemoveOrphans(context.Background()); err != nil {
		t.Fatal(err)
	}
	if tab, err = d.TableOf(job); err != nil {
		t.Fatal(err)
	}
	if err := tab.Clear(); err != nil {
		t.Fatal(err)
	}
	d.load(tab, one, two) // the source has lost b meanwhile
	d.endImport(job, tab, true)
	want := []string{two.String()}
	var got []string
	for _, it := range d.items(d.reopened("events"), Range{}) {
		got = append(got, it.String())
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := tab.Load(nil); err != ErrTableNotFound {
		t.Errorf("after the end: %v", err)
	}
	d.put(d.reopened("events"), item("pk", "c", "sk", 1))
	d.verify()
	d.close()
}

// An import that fails leaves no table; so does one whose row is lost.
func TestImportFails(t *testing.T) {
	dir := newDirectory()
	d := dir.open(t)
	job, tab := d.imported("events")
	d.load(tab, item("pk", "a", "sk", 1))
	d.endImport(job, tab, false)
	if _, err := d.TableToDescribe("default", "events"); err != ErrTableNotFound {
		t.Errorf("after a failed import: %v", err)
	}
	job, _ = d.imported("orphan")
	if err := d.ForgetJobs(context.Background(), []*Job{job}); err != nil {
		t.Fatal(err)
	}
	d.close()
	d = dir.open(t)
	if err := d.RemoveOrphans(context.Background()); err != nil {
		t.Fatal(err)
	}
	if _, err := d.TableToDescribe("default", "orphan"); err != ErrTableNotFound {
		t.Errorf("a table without an import: %v", err)
	}
	d.verify()
	d.close()
}

// Items that the table cannot hold are refused.
func TestLoadedOf(t *testing.T) {
	d := openMemory(t)
	_, tab := d.imported("events")
	for i, it := range []dynamo.Item{item("pk", "a"), item("pk", 1, "sk", 1), item("pk", "a", "sk", 1, "g", 5)} {
		_, err := tab.Desc().LoadedOf(it)
		if _, ok := errors.AsType[*KeyError](err); !ok {
			t.Errorf("item %d: %v", i, err)
		}
	}
}

// Imports of many items beside each other keep each key's index entries right.
func TestLoadConcurrent(t *testing.T) {
	d := openMemory(t)
	job, tab := d.imported("events")
	done := make(chan struct{})
	for w := range 4 {
		go func() {
			defer func() { done <- struct{}{} }()
			for i := range 50 {
				d.load(tab, item("pk", fmt.Sprint(i%7), "sk", 1, "g", fmt.Sprint("g", w, i)))
			}
		}()
	}
	for range 4 {
		<-done
	}
	d.endImport(job, tab, true)
	if n := len(d.items(d.reopened("events"), Range{})); n != 7 {
		t.Errorf("%d items", n)
	}
	d.verify()
}
