package service

import (
	"fmt"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/points"
)

// level returns a level in the present minute; -1: there is none.
func (d *db) level(metric, table, index string) float64 {
	d.t.Helper()
	k := points.Key{Namespace: points.DynamoDB, Metric: metric, Table: table, Index: index}
	now := d.engine.Points().Now() / 60_000
	list := d.engine.Points().Points(k, now, now+1)
	if len(list) == 0 {
		return -1
	}
	return list[0].Sum
}

// wantLevels compares levels, by "metric table index".
func (d *db) wantLevels(want map[string]float64) {
	d.t.Helper()
	for name, v := range want {
		var metric, table, index string
		fmt.Sscan(name, &metric, &table, &index)
		if got := d.level(metric, table, index); got != v {
			d.t.Errorf("%s is %v, want %v", name, got, v)
		}
	}
}

func provisionedTable(name string, read, write int64) *CreateTableInput {
	return &CreateTableInput{
		TableName: Some(name), Attributes: definitions("id:S"), KeySchema: keys("id"), BillingMode: Some("PROVISIONED"), Throughput: throughput(read, write),
	}
}

// The levels follow each change of a table, and the account's are of all tables.
func TestLevels(t *testing.T) {
	d := open(t)
	ix := index("byGroup", "KEYS_ONLY", "group")
	ix.Throughput = throughput(7, 8)
	first := provisionedTable("first", 100, 200)
	first.Attributes, first.Global = definitions("id:S", "group:S"), []IndexSpec{ix}
	second := provisionedTable("second", 400, 40)
	for _, in := range []*CreateTableInput{first, second} {
		out, err := d.CreateTable(ctx, in)
		if err != nil {
			t.Fatal(err)
		}
		d.Measure("CreateTable", in, out, nil)
	}
	d.wantLevels(map[string]float64{
		"ProvisionedReadCapacityUnits first": 100, "ProvisionedWriteCapacityUnits first byGroup": 8, "ProvisionedReadCapacityUnits second": 400,
		"AccountMaxReads": 80_000, "AccountProvisionedReadCapacityUtilization": 100 * 507.0 / 80_000,
		"MaxProvisionedTableReadCapacityUtilization": 1, "MaxProvisionedTableWriteCapacityUtilization": 0.5,
	})
	update := &UpdateTableInput{TableName: Some(d.tableARN("second")), Throughput: throughput(4, 40)}
	_, err := d.UpdateTable(ctx, update)
	if err != nil {
		t.Fatal(err)
	}
	d.Measure("UpdateTable", update, nil, nil)
	d.wantLevels(map[string]float64{
		"ProvisionedReadCapacityUnits second": 4, "MaxProvisionedTableReadCapacityUtilization": 0.25,
		"AccountProvisionedReadCapacityUtilization": 100 * 111.0 / 80_000,
	})
	for _, table := range []string{"first", "second"} {
		if _, err := d.DeleteTable(ctx, &TableNameInput{TableName: Some(table)}); err != nil {
			t.Fatal(err)
		}
	}
	d.clock.Advance(time.Minute)
	d.wantLevels(map[string]float64{
		"ProvisionedReadCapacityUnits first": -1, "ProvisionedWriteCapacityUnits first byGroup": -1, "ProvisionedReadCapacityUnits second": -1,
		"AccountMaxReads": 80_000, "AccountProvisionedReadCapacityUtilization": 0, "MaxProvisionedTableReadCapacityUtilization": 0,
	})
	if n := len(d.provision.tables) + len(d.provision.reads.counts) + len(d.provision.writes.counts); n != 0 {
		t.Errorf("%d entries are kept of tables that are deleted", n)
	}
}

// A server that starts has the levels of the tables that exist.
func TestLevelsAtStart(t *testing.T) {
	d := open(t)
	if _, err := d.CreateTable(ctx, provisionedTable("first", 5, 6)); err != nil {
		t.Fatal(err)
	}
	d.music()
	d.Service = New(Options{Engine: d.engine})
	d.NoteAllLevels()
	d.wantLevels(map[string]float64{
		"ProvisionedReadCapacityUnits first": 5, "ProvisionedWriteCapacityUnits first": 6, "ProvisionedReadCapacityUnits Music": -1,
		"ProvisionedReadCapacityUnits Music byGenre": -1, "AccountMaxWrites": 80_000,
	})
}

func TestTally(t *testing.T) {
	var a tally
	for _, v := range []int64{5, 9, 9, 2} {
		a.add(v)
	}
	for _, step := range []struct{ remove, most, sum int64 }{{9, 9, 16}, {9, 5, 7}, {2, 5, 5}, {5, 0, 0}} {
		a.remove(step.remove)
		if a.most != step.most || a.sum != step.sum {
			t.Errorf("without %d: at most %d, together %d; want %+v", step.remove, a.most, a.sum, step)
		}
	}
}
