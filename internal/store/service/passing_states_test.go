package service

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/store/engine"
)

// states returns how a table and its indexes are shown.
func (d *db) states(table string) string {
	d.t.Helper()
	out, err := d.DescribeTable(ctx, &TableNameInput{TableName: Some(table)})
	if err != nil {
		return err.Error()
	}
	text := out.Status
	for _, ix := range out.Global {
		text += " " + ix.Name + ":" + ix.Status
	}
	return text
}

func TestTransientStates(t *testing.T) {
	const wait = 500 * time.Millisecond
	d := open(t)
	now := time.Duration(0)
	d.Service = New(Options{Engine: d.engine, TransientStates: wait, Elapsed: func() time.Duration { return now }})
	check := func(what, got, want string) {
		t.Helper()
		if !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	update := func(in UpdateTableInput) string {
		in.TableName = Some("Music")
		out, err := d.UpdateTable(ctx, &in)
		if err != nil {
			return err.Error()
		}
		return out.Status
	}
	remove := func() string {
		out, err := d.DeleteTable(ctx, &TableNameInput{TableName: Some("Music")})
		if err != nil {
			return err.Error()
		}
		return out.Status
	}
	put := func() string {
		_, err := d.PutItem(ctx, &WriteInput{TableName: Some("Music"), Item: arg(`{"artist":{"S":"a"},"song":{"S":"b"}}`)})
		return fmt.Sprint(err)
	}
	list := func() string {
		out, err := d.ListTables(ctx, &ListTablesInput{})
		return fmt.Sprint(out, err)
	}
	protect := UpdateTableInput{DeletionProtection: Some(false)}

	d.music()
	check("a new table", d.states("Music"), "CREATING byGenre:CREATING")
	check("a write to it", put(), "ResourceNotFoundException: Requested resource not found")
	check("a change of it", update(protect), "ResourceInUseException: Attempt to change a resource which is still in use: Table is being created: Music")
	check("its deletion", remove(), "ResourceInUseException: Attempt to change a resource which is still in use: Table is being created: Music")
	now += wait - 1
	check("just before the end", d.states("Music"), "CREATING")
	now++
	check("at the end", d.states("Music"), "ACTIVE byGenre:ACTIVE")
	check("a write then", put(), "<nil>")

	check("a change", update(adding(index("byLabel", "ALL", "label"), "label:S")), "UPDATING")
	d.build()
	check("while it shows", d.states("Music"), "UPDATING byGenre:ACTIVE byLabel:CREATING")
	check("a write meanwhile", put(), "<nil>")
	check("a second change", update(protect), "ResourceInUseException: Attempt to change a resource which is still in use: Table is being updated: Music")
	now += wait
	check("afterwards", d.states("Music"), "ACTIVE byGenre:ACTIVE byLabel:ACTIVE")
	check("an index is removed", update(dropIndex("byLabel")), "UPDATING")
	check("while it is", d.states("Music"), "UPDATING byGenre:ACTIVE byLabel:DELETING")
	now += wait
	check("when it is", d.states("Music"), "ACTIVE byGenre:ACTIVE")

	check("a deletion", remove(), "DELETING")
	check("while it is deleted", d.states("Music"), "DELETING")
	check("once more", remove(), "DELETING")
	check("a write to it", put(), "ResourceNotFoundException")
	check("the list has it", list(), "Music")
	in := musicTable("Music")
	_, err := d.CreateTable(ctx, &in)
	check("its name is in use", fmt.Sprint(err), "ResourceInUseException: Table already exists: Music")
	_, err = d.restoredTable(&engine.TableDesc{}, &RestoreTableInput{Target: Some("Music")})
	check("a restore to it", fmt.Sprint(err), "TableAlreadyExistsException")
	_, err = d.ImportTable(ctx, &ImportTableInput{Source: &BucketSource{Bucket: Some("exports")}, Format: Some("CSV"), Table: &in})
	check("an import to it", fmt.Sprint(err), "already exists: Music")
	now += wait
	check("when it is gone", d.states("Music"), "ResourceNotFoundException")
	check("the list lacks it", list(), "[]")
	d.music()
	check("the name can be used again", d.states("Music"), "CREATING")
}

// The list of tables has those that are DELETING in their place, page by page.
func TestTransientStatesInLists(t *testing.T) {
	d := open(t)
	d.Service = New(Options{Engine: d.engine, TransientStates: time.Hour, Elapsed: func() time.Duration { return 0 }})
	var want []string
	for i := range 7 {
		name := fmt.Sprintf("table%d", i)
		in := musicTable(name)
		want = append(want, name)
		if i%2 == 0 {
			d.passing.removed(&TableDescription{TableName: name})
			continue
		}
		if _, err := d.CreateTable(ctx, &in); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for in := (ListTablesInput{Limit: Some[int64](2)}); ; {
		out, err := d.ListTables(ctx, &in)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, out.Names...)
		if out.Last == "" {
			break
		}
		in.Start = Some(out.Last)
	}
	if !slices.Equal(got, want) {
		t.Errorf("pages have %q, not %q", got, want)
	}
}

// Memory for states is bounded by the changes of one period, and mayfly's own tables have none.
func TestTransientStatesEnd(t *testing.T) {
	now := time.Duration(0)
	p := &passingStates{length: time.Second, elapsed: func() time.Duration { return now }, tables: map[string]passingState{}}
	for i := range 1000 {
		p.begin(fmt.Sprint("table", i), passingState{status: statusDeleting})
		now += 100 * time.Millisecond
	}
	p.begin("mayfly.leases", passingState{status: statusCreating})
	if len(p.tables) > 10 || p.of("mayfly.leases").status != "" {
		t.Errorf("%d states are kept, and of a table of mayfly's %q", len(p.tables), p.of("mayfly.leases").status)
	}
	var none *passingStates
	none.begin("table", passingState{status: statusCreating})
	if none.of("table").status != "" || none.deleted("") != nil || none.checkSettled("table") != nil {
		t.Error("states without transient states")
	}
}
