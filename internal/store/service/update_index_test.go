package service

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// adding returns a request for a new global index, with the definitions that it needs.
func adding(ix IndexSpec, defs ...string) UpdateTableInput {
	return UpdateTableInput{Attributes: definitions(defs...), GlobalUpdates: []IndexUpdate{{Create: &ix, Actions: 1}}}
}

// dropIndex returns a request to remove a global index.
func dropIndex(name string) UpdateTableInput {
	return UpdateTableInput{GlobalUpdates: []IndexUpdate{deletion(name)}}
}

func deletion(name string) IndexUpdate { return IndexUpdate{Delete: new(Some(name)), Actions: 1} }

// reprovision returns a change of a global index's throughput.
func reprovision(name string, t *Throughput) IndexUpdate {
	return IndexUpdate{Update: &IndexThroughput{IndexName: Some(name), Throughput: t}, Actions: 1}
}

// build runs the engine's background work, which does not run by itself in these tests.
func (d *db) build() {
	d.t.Helper()
	d.advance(0)
}

// advance moves the clock, and runs the work that falls due.
func (d *db) advance(step time.Duration) {
	d.t.Helper()
	running, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- d.engine.Run(running) }()
	_, err := d.engine.Advance(ctx, step, time.Minute)
	stop()
	if ran := <-done; err != nil || ran != nil {
		d.t.Fatal(err, ran)
	}
}

// shown returns the description of the table Music as text: its status, its global indexes and its
// definitions.
func (d *db) shown() string {
	d.t.Helper()
	out, err := d.DescribeTable(ctx, &TableNameInput{TableName: Some("Music")})
	if err != nil {
		d.t.Fatal(err)
	}
	return described(out)
}

func described(out *TableDescription) string {
	var b strings.Builder
	b.WriteString(out.Status)
	for _, ix := range out.Global {
		fmt.Fprintf(&b, " %s:%s", ix.Name, ix.Status)
		if ix.Backfilling.Set {
			fmt.Fprintf(&b, ":%v", ix.Backfilling.V)
		}
		fmt.Fprintf(&b, ":%d", ix.ItemCount)
	}
	for _, def := range out.Attributes {
		fmt.Fprintf(&b, " %s=%s", def[0], def[1])
	}
	return b.String()
}

// readAll returns a Query and a Scan of an index of the table Music.
func (d *db) readAll(index, attribute, value string) (query, scan *PageOutput, err error) {
	query, err = d.Query(ctx, &QueryInput{
		TableName: Some("Music"), IndexName: Some(index), KeyCondition: Some(attribute + " = :v"), Values: vals(`{":v":` + value + `}`),
	})
	if err != nil {
		return nil, nil, err
	}
	scan, err = d.Scan(ctx, &ScanInput{TableName: Some("Music"), IndexName: Some(index)})
	return query, scan, err
}

// An index is CREATING, and not readable, until every item has its entry; then it is ACTIVE. A
// removed index is shown once more.
func TestUpdateTableIndex(t *testing.T) {
	d := open(t)
	table := d.music()
	for i := range 3 {
		d.put(table, fmt.Sprintf(`{"artist":{"S":"a%d"},"song":{"S":"s"},"label":{"S":"x"}}`, i))
	}
	d.put(table, `{"artist":{"S":"other"},"song":{"S":"s"},"label":{"N":"1"}}`)
	const before = "artist=S song=S year=N genre=S"
	out := d.updateMusic(adding(index("byLabel", "ALL", "label", "artist"), "label:S", "artist:S", "unused:N"))
	equal(t, "answer", described(out), "UPDATING byGenre:ACTIVE:0 byLabel:CREATING:false:0 "+before+" label=S")
	equal(t, "while it is built", d.shown(), "ACTIVE byGenre:ACTIVE:0 byLabel:CREATING:true:0 "+before+" label=S")
	_, _, err := d.readAll("byLabel", "label", `{"S":"x"}`)
	invalidRequest(t, err, "Cannot read from backfilling global secondary index: byLabel")
	_, err = d.Scan(ctx, &ScanInput{TableName: Some(table), IndexName: Some("byLabel")})
	invalidRequest(t, err, "Cannot read from backfilling global secondary index: byLabel")
	d.put(table, `{"artist":{"S":"new"},"song":{"S":"s"},"label":{"S":"x"}}`)

	d.build()
	equal(t, "built", d.shown(), "ACTIVE byGenre:ACTIVE:0 byLabel:ACTIVE:4 "+before+" label=S")
	query, scan, err := d.readAll("byLabel", "label", `{"S":"x"}`)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "query and scan", fmt.Sprint(query.Count, scan.Count), "4 4")

	out = d.updateMusic(dropIndex("byLabel"))
	equal(t, "answer", described(out), "UPDATING byGenre:ACTIVE:0 byLabel:DELETING:0 "+before)
	equal(t, "gone", d.shown(), "ACTIVE byGenre:ACTIVE:0 "+before)
	_, _, err = d.readAll("byLabel", "label", `{"S":"x"}`)
	invalidRequest(t, err, "The table does not have the specified index: byLabel")

	// The attribute is free for another type, and the name for another index.
	d.updateMusic(adding(index("byLabel", "KEYS_ONLY", "label"), "label:N"))
	d.build()
	query, scan, err = d.readAll("byLabel", "label", `{"N":"1"}`)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "query", lines(query.Items), `{"artist":{"S":"other"},"label":{"N":"1"},"song":{"S":"s"}}`+"\n")
	equal(t, "scan", scan.Count, 1)
}

// Once it is added, an index refuses items that do not fit it. Older items stay, even when other
// attributes are updated.
func TestWritesAfterIndexIsAdded(t *testing.T) {
	d := open(t)
	table := d.music()
	d.put(table, `{"artist":{"S":"a"},"song":{"S":"s"},"label":{"N":"1"},"mood":{"N":"1"}}`)
	d.updateMusic(adding(index("byLabel", "ALL", "label", "mood"), "label:S", "mood:S"))
	for _, when := range []string{"while it is built", "when it is built"} {
		t.Run(when, func(t *testing.T) {
			_, err := d.PutItem(ctx, &WriteInput{TableName: Some(table), Item: arg(`{"artist":{"S":"b"},"song":{"S":"s"},"label":{"N":"1"}}`)})
			invalidRequest(t, err, "One or more parameter values were invalid: Type mismatch for Index Key label Expected: S Actual: N IndexName: byLabel")
			update := func(expression string) error {
				_, err := d.UpdateItem(ctx, &WriteInput{
					TableName: Some(table), Item: arg(`{"artist":{"S":"a"},"song":{"S":"s"}}`), Update: Some(expression), Values: vals(`{":v":{"S":"x"}}`),
				})
				return err
			}
			if err := update("SET elsewhere = :v"); err != nil {
				t.Errorf("an update of another attribute: %v", err)
			}
			if err := update("SET mood = :v"); err != nil {
				t.Errorf("an update of one of two attributes that did not fit: %v", err)
			}
			refusedUpdate := WriteInput{
				TableName: Some(table), Item: arg(`{"artist":{"S":"a"},"song":{"S":"s"}}`), Update: Some("SET mood = :v"), Values: vals(`{":v":{"N":"2"}}`),
			}
			_, err = d.UpdateItem(ctx, &refusedUpdate)
			invalidRequest(t, err, "One or more parameter values were invalid: Type mismatch for Index Key mood Expected: S Actual: N IndexName: byLabel")
		})
		d.build()
	}
	if err := d.engine.Verify(ctx); err != nil {
		t.Error(err)
	}
}

// Requests about indexes that are refused for themselves, and those that the table's state refuses.
func TestUpdateTableIndexRefused(t *testing.T) {
	const p = "One or more parameter values were invalid: "
	withThroughput := func(ix IndexSpec) IndexSpec { ix.Throughput = units(1, 1); return ix }
	change := func(in UpdateTableInput, f func(*UpdateTableInput)) UpdateTableInput { f(&in); return in }
	byLabel := index("byLabel", "ALL", "label")
	tests := []struct {
		about string
		in    UpdateTableInput
		code  dynamo.Code
		want  string
	}{
		{"no entries", UpdateTableInput{GlobalUpdates: []IndexUpdate{}, BillingMode: Some("PAY_PER_REQUEST")}, "",
			p + "List of GlobalSecondaryIndexUpdates is empty"},
		{"no entries alone", UpdateTableInput{GlobalUpdates: []IndexUpdate{}}, "", msgNothingToUpdate},
		{"one index twice", UpdateTableInput{GlobalUpdates: []IndexUpdate{deletion("byGenre"), reprovision("byGenre", units(1, 1))}}, "",
			p + "Only one global secondary index update per index is allowed simultaneously. Index: byGenre"},
		{"removed and added", change(adding(index("byGenre", "ALL", "genre"), "genre:S"), func(in *UpdateTableInput) {
			in.GlobalUpdates = append(in.GlobalUpdates, deletion("byGenre"))
		}), "", p + "Only one global secondary index update per index is allowed simultaneously. Index: byGenre"},
		{"with throughput of the table", change(adding(byLabel, "label:S"), func(in *UpdateTableInput) { in.Throughput = units(1, 1) }), "",
			p + "You cannot create or delete index while updating table IOPS"},
		{"removed with a stream", change(dropIndex("byGenre"), func(in *UpdateTableInput) { in.Stream = &StreamSpec{Enabled: Some(false)} }), "",
			p + "You cannot create or delete index while changing stream status"},
		{"with deletion protection", change(dropIndex("byGenre"), func(in *UpdateTableInput) { in.DeletionProtection = Some(true) }), "",
			p + "DeletionProtection modification must be the only operation in the request"},
		{"a name that is taken, before anything else of it", adding(index("byGenre", "INCLUDE", "nothing")), "",
			"Attempting to create an index which already exists"},
		{"the name of a local index", adding(index("byYear", "ALL", "label"), "label:S"), "", "Attempting to create an index which already exists"},
		{"no definitions", adding(byLabel), "", p + "AttributeDefinitions is not specified for index: byLabel"},
		{"not its definitions", adding(index("byLabel", "ALL", "label", "genre"), "label:S", "song:S"), "",
			p + "Some index key attributes are not defined in AttributeDefinitions. Keys: [label, genre], AttributeDefinitions: [label, song]"},
		{"a definition twice", adding(byLabel, "label:S", "label:N"), "", "Attribute Name is duplicated: label"},
		{"one attribute twice", adding(index("byLabel", "ALL", "label", "label"), "label:S"), "",
			"Both the Hash Key and the Range Key element in the KeySchema have the same name"},
		{"projection", adding(include(byLabel, "x"), "label:S"), "", p + "ProjectionType is ALL, but NonKeyAttributes is specified"},
		{"throughput on demand", adding(withThroughput(byLabel), "label:S"), "",
			p + "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified for index: byLabel when BillingMode is PAY_PER_REQUEST"},
		{"new throughput on demand", UpdateTableInput{GlobalUpdates: []IndexUpdate{reprovision("byGenre", units(1, 1))}}, "",
			p + "The only Updates for index: byGenre when TableThroughputMode is PAY_PER_REQUEST can be to OnDemandThroughput, WarmThroughput"},
		{"two added", change(adding(byLabel, "label:S"), func(in *UpdateTableInput) {
			in.GlobalUpdates = append(in.GlobalUpdates, IndexUpdate{Create: new(index("more", "ALL", "label")), Actions: 1})
		}), dynamo.CodeLimitExceeded, msgOneIndex},
		{"one added, one removed", change(adding(byLabel, "label:S"), func(in *UpdateTableInput) {
			in.GlobalUpdates = append(in.GlobalUpdates, deletion("byGenre"))
		}), dynamo.CodeLimitExceeded, msgOneIndex},
		{"unknown", dropIndex("none"), dynamo.CodeResourceNotFound, "Requested resource not found: Index none for table Music"},
		{"local index removed", dropIndex("byYear"), "", "Cannot delete an index that is not a GlobalSecondaryIndex: byYear"},
		{"local index updated", UpdateTableInput{GlobalUpdates: []IndexUpdate{reprovision("byYear", units(1, 1))}}, "",
			"Cannot update an index that is not a GlobalSecondaryIndex: byYear"},
	}
	for _, tt := range tests {
		t.Run(tt.about, func(t *testing.T) {
			d := open(t)
			tt.in.TableName = Some(d.music())
			before := d.shown()
			_, err := d.UpdateTable(ctx, &tt.in)
			if tt.code == "" {
				tt.code = dynamo.CodeValidation
			}
			refused(t, err, tt.code, tt.want)
			equal(t, "the table", d.shown(), before)
		})
	}
}

// Only one index is built or removed at a time, and meanwhile the table cannot be deleted.
// Everything else can change, and the index under construction can be removed.
func TestUpdateTableWhileIndexIsBuilt(t *testing.T) {
	d := open(t)
	table := d.music()
	byLabel := index("byLabel", "ALL", "label")
	d.updateMusic(adding(byLabel, "label:S"))
	for about, in := range map[string]UpdateTableInput{"another": adding(index("more", "ALL", "mood"), "mood:S"), "a removal": dropIndex("byGenre")} {
		in.TableName = Some(table)
		_, err := d.UpdateTable(ctx, &in)
		t.Run(about, func(t *testing.T) { refused(t, err, dynamo.CodeLimitExceeded, msgOneIndex) })
	}
	_, err := d.DeleteTable(ctx, &TableNameInput{TableName: Some(table)})
	refused(t, err, dynamo.CodeResourceInUse,
		"Attempt to change a resource which is still in use: Cannot delete table while indexes are being created, updated, or deleted.")
	d.updateMusic(UpdateTableInput{Stream: &StreamSpec{Enabled: Some(true), ViewType: Some("KEYS_ONLY")}}, UpdateTableInput{TableClass: Some("STANDARD")})
	ttl := UpdateTimeToLiveInput{TableName: Some(table), Present: true, Enabled: Some(true), Attribute: Some("expires")}
	if _, err := d.UpdateTimeToLive(ctx, &ttl); err != nil {
		t.Error(err)
	}
	d.updateMusic(dropIndex("byLabel"), adding(byLabel, "label:S"))
	d.build()
	d.updateMusic(dropIndex("byGenre"))
	if _, err := d.DeleteTable(ctx, &TableNameInput{TableName: Some(table)}); err != nil {
		t.Error(err)
	}
}

// An index of a provisioned table has its own throughput. The same request may change another
// index's throughput, and the billing mode to on-demand.
func TestUpdateTableIndexThroughput(t *testing.T) {
	d := open(t)
	d.music()
	d.updateMusic(toProvisionedInput())
	byLabel := index("byLabel", "ALL", "label")
	in := adding(byLabel, "label:S")
	in.TableName = Some("Music")
	_, err := d.UpdateTable(ctx, &in)
	invalidRequest(t, err, "One or more parameter values were invalid: Both ReadCapacityUnits and WriteCapacityUnits must be specified for index: byLabel")
	byLabel.Throughput = units(throughputMax+1, 1)
	in = adding(byLabel, "label:S")
	in.TableName = Some("Music")
	_, err = d.UpdateTable(ctx, &in)
	invalidRequest(t, err, "Given value 1000000000001 for ReadCapacityUnits is out of bounds")
	byLabel.Throughput = units(3, 4)
	in = adding(byLabel, "label:S")
	in.GlobalUpdates = append(in.GlobalUpdates, reprovision("byGenre", units(8, 9)))
	out := d.updateMusic(in)
	equal(t, "throughput", fmt.Sprint(out.Global[0].Read, out.Global[0].Write, out.Global[1].Read, out.Global[1].Write), "8 9 3 4")
	d.build()
	in = adding(index("byMood", "ALL", "mood"), "mood:S")
	in.BillingMode = Some("PAY_PER_REQUEST")
	out = d.updateMusic(in)
	equal(t, "on demand", fmt.Sprintln(len(out.Global), out.Global[1].Read, out.BillingMode), "3 0 PAY_PER_REQUEST\n")
}

// A table has at most 20 global indexes and 100 projected attributes, whether they were created
// with it or added.
func TestUpdateTableIndexLimits(t *testing.T) {
	d := open(t)
	d.music()
	many := make([]string, nonKeyAttributesMax)
	for i := range many {
		many[i] = fmt.Sprint("n", i)
	}
	for i := range 19 {
		ix := index(fmt.Sprint("byLabel", i), "ALL", "label")
		if i < 4 {
			ix = include(index(fmt.Sprint("byLabel", i), "INCLUDE", "label"), many...)
		}
		d.updateMusic(adding(ix, "label:S"))
		d.build()
	}
	in := adding(index("oneMore", "ALL", "label"), "label:S")
	in.TableName = Some("Music")
	_, err := d.UpdateTable(ctx, &in)
	refused(t, err, dynamo.CodeLimitExceeded, "Subscriber limit exceeded: Number of global secondary indexes exceeds per-table limit of 20")
	d.updateMusic(dropIndex("byLabel18"))
	in = adding(include(index("projects", "INCLUDE", "label"), many...), "label:S")
	in.TableName = Some("Music")
	_, err = d.UpdateTable(ctx, &in)
	invalidRequest(t, err, msgProjectedCount) // 4 × 20, one of byGenre, and 20 more
	d.updateMusic(adding(include(index("projects", "INCLUDE", "label"), many[1:]...), "label:S"))
}

// Definitions in a request add to the table's. They may not contradict them, and unused definitions
// are dropped.
func TestUpdateTableDefinitions(t *testing.T) {
	d := open(t)
	table := d.music()
	in := adding(index("byYearAlone", "ALL", "year"), "year:S")
	in.TableName = Some(table)
	_, err := d.UpdateTable(ctx, &in)
	invalidRequest(t, err, "One or more parameter values were invalid: AttributeDefinitions has the type S for the key attribute year, which has the type N")
	d.updateMusic(adding(index("byYearAlone", "ALL", "year"), "year:N", "artist:S", "unused:S"))
	equal(t, "table", d.shown(), "ACTIVE byGenre:ACTIVE:0 byYearAlone:CREATING:true:0 artist=S song=S year=N genre=S")
	d.put(table, `{"artist":{"S":"a"},"song":{"S":"s"},"year":{"N":"1999"}}`)
	d.build()
	scan, err := d.Scan(ctx, &ScanInput{TableName: Some(table), IndexName: Some("byYearAlone")})
	if err != nil || scan.Count != 1 {
		t.Errorf("%+v %v", scan, err)
	}
	d.updateMusic(dropIndex("byGenre"))
	equal(t, "after a removal", d.shown(), "ACTIVE byYearAlone:ACTIVE:1 artist=S song=S year=N")
}
