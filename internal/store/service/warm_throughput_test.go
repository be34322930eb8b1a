package service

import (
	"fmt"
	"testing"
	"time"
)

// warm returns a WarmThroughput; a negative number means that the member is missing.
func warm(read, write int64) *WarmThroughput {
	w := &WarmThroughput{}
	if read >= 0 {
		w.Read = Some(read)
	}
	if write >= 0 {
		w.Write = Some(write)
	}
	return w
}

// warmShown returns the warm throughput of a table and its first global index as text.
func warmShown(out *TableDescription) string { return fmt.Sprint(out.Warm, out.Global[0].Warm) }

func (d *db) musicWarm() string {
	d.t.Helper()
	out, err := d.DescribeTable(ctx, &TableNameInput{TableName: Some("Music")})
	if err != nil {
		d.t.Fatal(err)
	}
	equal(d.t, "local", fmt.Sprint(out.Local[0].Warm), "{0 0 }")
	return warmShown(out)
}

// TestWarmThroughput: it begins with what the billing mode implies, and only grows: it stays when
// the throughput falls or the billing mode changes.
func TestWarmThroughput(t *testing.T) {
	d := open(t)
	in := musicTable("Music")
	in.BillingMode, in.Throughput, in.Global[0].Throughput = Some("PROVISIONED"), units(1, 2), units(3, 4)
	if _, err := d.CreateTable(ctx, &in); err != nil {
		t.Fatal(err)
	}
	equal(t, "provisioned", d.musicWarm(), "{1 2 ACTIVE} {3 4 ACTIVE}")
	d.updateMusic(UpdateTableInput{Throughput: units(5, 1)})
	d.updateMusic(UpdateTableInput{Throughput: units(1, 1)})
	equal(t, "lowered", d.musicWarm(), "{5 2 ACTIVE} {3 4 ACTIVE}")
	d.updateMusic(UpdateTableInput{GlobalUpdates: []IndexUpdate{reprovision("byGenre", units(9, 1))}})
	equal(t, "an index", d.musicWarm(), "{5 2 ACTIVE} {9 4 ACTIVE}")

	out, err := d.UpdateTable(ctx, &UpdateTableInput{TableName: Some("Music"), Warm: warm(50, -1)})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "the answer", out.Status+warmShown(out), "ACTIVE{5 2 UPDATING} {9 4 ACTIVE}")
	equal(t, "raised", d.musicWarm(), "{50 2 ACTIVE} {9 4 ACTIVE}")
	d.updateMusic(UpdateTableInput{Warm: warm(50, 2)}) // the same again

	d.updateMusic(UpdateTableInput{BillingMode: Some("PAY_PER_REQUEST")})
	equal(t, "on demand", d.musicWarm(), "{12000 4000 ACTIVE} {12000 4000 ACTIVE}")
	byGenre := IndexUpdate{Actions: 1, Update: &IndexThroughput{IndexName: Some("byGenre"), Warm: warm(-1, 4001)}}
	d.updateMusic(UpdateTableInput{Warm: warm(20000, 5000), GlobalUpdates: []IndexUpdate{byGenre}})
	equal(t, "both", d.musicWarm(), "{20000 5000 ACTIVE} {12000 4001 ACTIVE}")
	d.updateMusic(UpdateTableInput{BillingMode: Some("PROVISIONED"), Throughput: units(1, 1), GlobalUpdates: []IndexUpdate{reprovision("byGenre", units(1, 1))}})
	equal(t, "back", d.musicWarm(), "{20000 5000 ACTIVE} {12000 4001 ACTIVE}")
}

func TestWarmThroughputRefused(t *testing.T) {
	const p = "One or more parameter values were invalid: "
	const lower = " is lower than current WarmThroughput, decreasing WarmThroughput is not supported"
	update := func(w *WarmThroughput) IndexUpdate {
		return IndexUpdate{Actions: 1, Update: &IndexThroughput{IndexName: Some("byGenre"), Warm: w}}
	}
	for _, test := range []struct {
		about string
		in    UpdateTableInput
		want  string
	}{
		{"lower", UpdateTableInput{Warm: warm(11999, 4000)}, p + "Requested ReadUnitsPerSecond for WarmThroughput for table" + lower},
		{"negative", UpdateTableInput{Warm: &WarmThroughput{Write: Some[int64](-1)}}, p + "Requested WriteUnitsPerSecond for WarmThroughput for table" + lower},
		{"an index", UpdateTableInput{GlobalUpdates: []IndexUpdate{update(warm(100, 100))}}, p + "Requested ReadUnitsPerSecond for WarmThroughput for index byGenre" + lower},
		{"nothing", UpdateTableInput{Warm: warm(-1, -1)}, p + "WarmThroughput must have at least one of ReadUnitsPerSecond or WriteUnitsPerSecond specified for table"},
		{"nothing for an index", UpdateTableInput{GlobalUpdates: []IndexUpdate{update(warm(-1, -1))}},
			p + "WarmThroughput must have at least one of ReadUnitsPerSecond or WriteUnitsPerSecond specified for index: byGenre"},
		{"too much", UpdateTableInput{Warm: warm(throughputMax+1, -1)}, "Given value 1000000000001 for ReadUnitsPerSecond is out of bounds"},
		{"not alone", UpdateTableInput{Warm: warm(20000, 20000), Stream: &StreamSpec{Enabled: Some(true), ViewType: Some("KEYS_ONLY")}}, p + "WarmThroughput must be the only operation in the request"},
		{"with a removed index", UpdateTableInput{Warm: warm(20000, 20000), GlobalUpdates: []IndexUpdate{deletion("byGenre")}}, p + "WarmThroughput must be the only operation in the request"},
		{"with a new index", UpdateTableInput{Warm: warm(20000, 20000), GlobalUpdates: []IndexUpdate{{Actions: 1, Create: &IndexSpec{IndexName: Some("byYear2"), KeySchema: keys("year"),
			Projection: ProjectionSpec{Present: true, Type: Some("ALL")}}}}}, p + "Create global secondary index cannot be specified when updating WarmThroughput"},
	} {
		t.Run(test.about, func(t *testing.T) {
			d := open(t)
			test.in.TableName = Some(d.music())
			_, err := d.UpdateTable(ctx, &test.in)
			invalidRequest(t, err, test.want)
			equal(t, "unchanged", d.musicWarm(), "{12000 4000 ACTIVE} {12000 4000 ACTIVE}")
		})
	}
	_, err := open(t).UpdateTable(ctx, &UpdateTableInput{TableName: Some("none"), Warm: warm(-1, -1)})
	refused(t, err, "ResourceNotFoundException", "Requested resource not found: Table: none not found")
}

func TestCreateTableWarm(t *testing.T) {
	const p = "One or more parameter values were invalid: "
	const initial = " is lower than initial throughput for OnDemand. See: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/on-demand-capacity-mode.html#on-demand-capacity-mode-initial"
	for _, test := range []struct {
		about       string
		provisioned bool
		table, byX  *WarmThroughput
		want        string // an error, or what is shown
	}{
		{"both", false, warm(12000, 4001), warm(12001, -1), "{12000 4001 ACTIVE} {12001 4000 ACTIVE}"},
		{"provisioned", true, warm(5, 6), warm(-1, 9), "{5 6 ACTIVE} {7 9 ACTIVE}"},
		{"below", false, warm(11999, 4000), nil, p + "Requested ReadUnitsPerSecond for WarmThroughput for table" + initial},
		{"an index below", false, nil, warm(-1, 1), p + "Requested WriteUnitsPerSecond for WarmThroughput for index byGenre" + initial},
		{"below provisioned", true, warm(4, 6), nil, p + "Requested ReadUnitsPerSecond for WarmThroughput for table is lower than ReadCapacityUnits of ProvisionedThroughput"},
		{"an index below provisioned", true, nil, warm(7, 7), p + "Requested WriteUnitsPerSecond for WarmThroughput for index byGenre is lower than WriteCapacityUnits of ProvisionedThroughput"},
		{"nothing", false, warm(-1, -1), nil, p + "WarmThroughput must have at least one of ReadUnitsPerSecond or WriteUnitsPerSecond specified for table"},
		{"too much", false, nil, warm(12000, throughputMax+1), "Given value 1000000000001 for WriteUnitsPerSecond is out of bounds"},
	} {
		t.Run(test.about, func(t *testing.T) {
			d := open(t)
			in := musicTable("Music")
			if test.provisioned {
				in.BillingMode, in.Throughput, in.Global[0].Throughput = Some("PROVISIONED"), units(5, 6), units(7, 8)
			}
			in.Warm, in.Global[0].Warm = test.table, test.byX
			out, err := d.CreateTable(ctx, &in)
			if err != nil {
				invalidRequest(t, err, test.want)
				return
			}
			equal(t, "answered", warmShown(out), test.want)
			equal(t, "shown", d.musicWarm(), test.want)
		})
	}
}

// TestIndexMaxima: a global index has maxima of its own.
func TestIndexMaxima(t *testing.T) {
	const p = "One or more parameter values were invalid: "
	d := open(t)
	in := musicTable("Music")
	in.Global[0].OnDemand = &OnDemandThroughput{MaxRead: Some[int64](5)}
	if _, err := d.CreateTable(ctx, &in); err != nil {
		t.Fatal(err)
	}
	maxima := func() string {
		out, err := d.DescribeTable(ctx, &TableNameInput{TableName: Some("Music")})
		if err != nil {
			t.Fatal(err)
		}
		if out.Global[0].OnDemand == nil {
			return "none"
		}
		return fmt.Sprint(out.Global[0].OnDemand.MaxRead.V, out.Global[0].OnDemand.MaxWrite.V)
	}
	change := func(o *OnDemandThroughput) UpdateTableInput {
		return UpdateTableInput{TableName: Some("Music"), GlobalUpdates: []IndexUpdate{{Actions: 1, Update: &IndexThroughput{IndexName: Some("byGenre"), OnDemand: o}}}}
	}
	equal(t, "created", maxima(), "5 -1")
	d.updateMusic(change(&OnDemandThroughput{MaxWrite: Some[int64](7)}))
	equal(t, "changed", maxima(), "5 7")
	d.updateMusic(change(&OnDemandThroughput{MaxRead: Some[int64](-1)}))
	equal(t, "one removed", maxima(), "-1 7")
	for _, o := range []*OnDemandThroughput{nil, {}} {
		empty := change(o)
		_, err := d.UpdateTable(ctx, &empty)
		invalidRequest(t, err, p+"The only Updates for index: byGenre when TableThroughputMode is PAY_PER_REQUEST can be to OnDemandThroughput, WarmThroughput")
	}
	zero := change(&OnDemandThroughput{MaxRead: Some[int64](0)})
	_, err := d.UpdateTable(ctx, &zero)
	invalidRequest(t, err, p+"Requested MaxReadRequestUnits for OnDemandThroughput for index : byGenre is outside of valid range")
	d.updateMusic(UpdateTableInput{BillingMode: Some("PROVISIONED"), Throughput: units(1, 1), GlobalUpdates: []IndexUpdate{reprovision("byGenre", units(1, 1))}})
	equal(t, "provisioned", maxima(), "none")
	seven := change(&OnDemandThroughput{MaxRead: Some[int64](7)})
	_, err = d.UpdateTable(ctx, &seven)
	invalidRequest(t, err, p+"MaxReadRequestUnits for OnDemandThroughput for index : byGenre cannot be specified when table BillingMode is PROVISIONED.")
	nothing := change(nil)
	_, err = d.UpdateTable(ctx, &nothing)
	invalidRequest(t, err, p+"Both ReadCapacityUnits and WriteCapacityUnits must be specified for index: byGenre")
}

// TestWarmingShows: with transient states, the old warm throughput shows for a while.
func TestWarmingShows(t *testing.T) {
	d := open(t)
	d.passing = &passingStates{length: time.Minute, elapsed: d.elapsed, tables: map[string]passingState{}}
	d.music()
	d.clock.Set(epoch.Add(time.Hour))
	d.updateMusic(UpdateTableInput{Warm: warm(13000, -1)})
	equal(t, "while it grows", d.musicWarm(), "{12000 4000 UPDATING} {12000 4000 ACTIVE}")
	d.updateMusic(UpdateTableInput{Warm: warm(14000, -1)}) // not refused
	d.clock.Set(epoch.Add(2 * time.Hour))
	equal(t, "later", d.musicWarm(), "{14000 4000 ACTIVE} {12000 4000 ACTIVE}")
}
