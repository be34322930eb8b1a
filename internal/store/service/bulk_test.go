package service

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mayflydb/mayfly/internal/objects"
	"github.com/mayflydb/mayfly/internal/store/bulk"
	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/engine"
)

const (
	musicARN = "arn:aws:dynamodb:eu-west-1:123456789012:table/Music"
	someJob  = "01700000000000-0123abcd"
)

// exportOf returns a request to export Music to a bucket.
func exportOf(change func(*ExportTableInput)) *ExportTableInput {
	in := &ExportTableInput{TableARN: Some(musicARN), Bucket: Some("exports")}
	if change != nil {
		change(in)
	}
	return in
}

// importOf returns a request to import JSON into a new table.
func importOf(change func(*ImportTableInput)) *ImportTableInput {
	table := musicTable("Imported")
	table.Local, table.Attributes = nil, definitions("artist:S", "song:S", "year:N", "genre:S")
	in := &ImportTableInput{Source: &BucketSource{Bucket: Some("exports")}, Format: Some("DYNAMODB_JSON"), Table: &table}
	if change != nil {
		change(in)
	}
	return in
}

// TestExportRequest: what a request leaves out has the defaults of AWS.
func TestExportRequest(t *testing.T) {
	d := open(t)
	now := engine.Instant(epoch.UnixMilli())
	ms := func(at engine.Instant) Opt[int64] { return Some(int64(at)) }
	const minute, hour = 60_000, 3_600_000
	for _, c := range []struct {
		name   string
		change func(*ExportTableInput)
		want   bulk.ExportRequest
	}{
		{"the present", nil, bulk.ExportRequest{At: engine.Never}},
		{"an instant", func(in *ExportTableInput) { in.At, in.Type = ms(now-5), Some("FULL_EXPORT") }, bulk.ExportRequest{At: now - 5}},
		{"every member", func(in *ExportTableInput) {
			in.ClientToken, in.Prefix, in.BucketOwner, in.Format = Some("c"), Some("a/b.c/"), Some("123456789012"), Some("DYNAMODB_JSON")
			in.Algorithm, in.KMSKey = Some("KMS"), Some("k")
		}, bulk.ExportRequest{At: engine.Never, Token: "c", Prefix: "a/b.c/", BucketOwner: "123456789012", Algorithm: "KMS", KMSKey: "k"}},
		{"changes until now", func(in *ExportTableInput) {
			in.Type, in.Increment = Some("INCREMENTAL_EXPORT"), &ExportIncrement{From: ms(now - 15*minute)}
		}, bulk.ExportRequest{At: engine.Never, Incremental: true, From: now - 15*minute, OldImages: true}},
		{"changes of a day", func(in *ExportTableInput) {
			in.Type, in.Increment = Some("INCREMENTAL_EXPORT"), &ExportIncrement{From: ms(now - 25*hour), To: ms(now - hour), View: Some("NEW_IMAGE")}
		}, bulk.ExportRequest{At: now - hour, Incremental: true, From: now - 25*hour}},
	} {
		c.want.Table, c.want.Bucket = "Music", "exports"
		got, err := d.exportRequest(exportOf(c.change))
		if err != nil || got != c.want {
			t.Errorf("%s: got %+v, %v; want %+v", c.name, got, err, c.want)
		}
	}
}

// TestExportRefused: a wrong member is named, with the correction.
func TestExportRefused(t *testing.T) {
	d := open(t)
	now := epoch.UnixMilli()
	increment := func(from, to int64) func(*ExportTableInput) {
		return func(in *ExportTableInput) {
			in.Type, in.Increment = Some("INCREMENTAL_EXPORT"), &ExportIncrement{From: Some(now + from), To: Some(now + to)}
			if to == 0 {
				in.Increment.To.Set = false
			}
		}
	}
	for _, c := range []struct {
		change func(*ExportTableInput)
		want   string
	}{
		{func(in *ExportTableInput) { *in = ExportTableInput{} }, "2 validation errors detected: Value null at 'tableArn'"},
		{func(in *ExportTableInput) { in.Bucket.V = "a" }, `Value 'a' at 's3Bucket' failed to satisfy constraint: Member must satisfy regular expression pattern: ^[a-z0-9A-Z]+[\.\-\w]*[a-z0-9A-Z]+$`},
		{func(in *ExportTableInput) { in.Bucket.V = strings.Repeat("a", 256) }, "Member must have length less than or equal to 255"},
		{func(in *ExportTableInput) { in.BucketOwner = Some("12345678901") }, "Value '12345678901' at 's3BucketOwner' failed to satisfy constraint: Member must satisfy regular expression pattern: [0-9]{12}"},
		{func(in *ExportTableInput) { in.ClientToken = Some("a$b") }, `Value 'a$b' at 'clientToken' failed to satisfy constraint: Member must satisfy regular expression pattern: ^[^\$]+$`},
		{func(in *ExportTableInput) { in.ClientToken = Some(strings.Repeat("a", 1025)) }, "Member must have length less than or equal to 1024"},
		{func(in *ExportTableInput) { in.Format = Some("XML") }, "at 'exportFormat' failed to satisfy constraint: Member must satisfy enum value set: [DYNAMODB_JSON, ION]"},
		{func(in *ExportTableInput) { in.Format = Some("ION") }, "mayfly writes DYNAMODB_JSON only"},
		{func(in *ExportTableInput) { in.Filter = true }, "FilterSpecification is not supported"},
		{func(in *ExportTableInput) { in.TableARN.V = "Music" }, "TableArn is not an ARN: Music"},
		{func(in *ExportTableInput) { in.Increment = &ExportIncrement{} }, "IncrementalExportSpecification needs ExportType INCREMENTAL_EXPORT"},
		{func(in *ExportTableInput) { in.Type = Some("INCREMENTAL_EXPORT") }, "needs IncrementalExportSpecification with ExportFromTime"},
		{func(in *ExportTableInput) { increment(-1, 0)(in); in.At = Some(now) }, "ExportTime is for a FULL_EXPORT"},
		{func(in *ExportTableInput) { increment(-1, 0)(in); in.Increment.View = Some("OLD") }, "at 'incrementalExportSpecification.exportViewType'"},
		{increment(0, 0), "ExportFromTime must be before the present time"},
		{increment(-1, -1), "ExportFromTime must be before ExportToTime"},
		{increment(-899_999, 0), "ExportFromTime must be at least 15 minutes before the present time"},
		{increment(-86_400_002, -1), "ExportFromTime must be at most 24 hours before ExportToTime"},
		{increment(-5, 900_000), "ExportFromTime must be at least 15 minutes before"}, // nothing follows the present
	} {
		_, err := d.ExportTableToPointInTime(ctx, exportOf(c.change))
		if errorCode(err) != dynamo.CodeValidation || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
}

// TestPrefix: a prefix is the path of a directory, and names no hidden file.
func TestPrefix(t *testing.T) {
	for _, ok := range []string{"", "a", "a/", "a/b", "2026-01", "a.b/c..d/", "é/ü", "AWSDynamoDB/01700000000000-0123abcd/data/"} {
		if err := checkPrefix("S3Prefix", Some(ok)); err != nil {
			t.Error(err)
		}
	}
	for bad, want := range map[string]string{
		"/": "begins with a slash", "/a": "begins with a slash", "a//b": "two slashes", "a//": "two slashes", `a\b`: "backslash", "a\x00": "NUL",
		".": "dot", "..": "dot", "../a": "dot", "a/..": "dot", "a/../b": "dot", "a/./b": "dot", ".a": "dot", "a/.b": "dot",
	} {
		for _, err := range []error{
			refusal(open(t).ExportTableToPointInTime(ctx, exportOf(func(in *ExportTableInput) { in.Prefix = Some(bad) }))),
			refusal(open(t).ImportTable(ctx, importOf(func(in *ImportTableInput) { in.Source.Prefix = Some(bad) }))),
		} {
			if errorCode(err) != dynamo.CodeValidation || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: got %v, want %s", bad, err, want)
			}
		}
	}
}

// refusal returns the error of a call.
func refusal[Out any](_ *Out, err error) error { return err }

// TestImportRequest: the new table is what CreateTable would create.
func TestImportRequest(t *testing.T) {
	d := open(t)
	in := importOf(func(in *ImportTableInput) {
		in.ClientToken, in.Source.Prefix, in.Source.Owner = Some("c"), Some("p"), Some("123456789012")
		in.Format, in.Compression, in.CSV = Some("CSV"), Some("ZSTD"), &CSVOptions{Delimiter: Some("\t"), Header: []string{"artist", "song"}}
	})
	if err := checkImport(in); err != nil {
		t.Fatal(err)
	}
	got := d.importRequest(in)
	want := bulk.ImportRequest{
		Table: newTableDesc("Imported", in.Table, d.engine.Now()), Token: "c", Bucket: "exports", Prefix: "p", BucketOwner: "123456789012",
		Format: "CSV", Compression: "ZSTD", Delimiter: "\t", Header: []string{"artist", "song"},
	}
	if !reflect.DeepEqual(got, want) { // not cmp.Diff: a description has unexported members
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := d.importRequest(importOf(nil)); got.Compression != "NONE" || got.Header != nil {
		t.Errorf("got %+v", got)
	}
}

// TestImportRefused: the table is checked as CreateTable's is, below its own path.
func TestImportRefused(t *testing.T) {
	d := open(t)
	d.music()
	for _, c := range []struct {
		change func(*ImportTableInput)
		code   dynamo.Code
		want   string
	}{
		{func(in *ImportTableInput) { *in = ImportTableInput{} }, dynamo.CodeValidation, "3 validation errors detected: Value null at 's3BucketSource'"},
		{func(in *ImportTableInput) { in.Source = &BucketSource{} }, dynamo.CodeValidation, "Value null at 's3BucketSource.s3Bucket'"},
		{func(in *ImportTableInput) { in.Format = Some("ION") }, dynamo.CodeValidation, "mayfly reads DYNAMODB_JSON and CSV"},
		{func(in *ImportTableInput) { in.CSV = &CSVOptions{} }, dynamo.CodeValidation, "InputFormatOptions.Csv is for InputFormat CSV, not DYNAMODB_JSON"},
		{func(in *ImportTableInput) { in.CSV = &CSVOptions{Delimiter: Some("::")} }, dynamo.CodeValidation, "Value '::' at 'inputFormatOptions.csv.delimiter'"},
		{func(in *ImportTableInput) { in.CSV = &CSVOptions{Header: []string{}} }, dynamo.CodeValidation, "at 'inputFormatOptions.csv.headerList'"},
		{func(in *ImportTableInput) { in.CSV = &CSVOptions{Header: []string{"a", `"`}} }, dynamo.CodeValidation, `Value '"' at 'inputFormatOptions.csv.headerList.2.member'`},
		{func(in *ImportTableInput) { in.Compression = Some("LZ4") }, dynamo.CodeValidation, "at 'inputCompressionType'"},
		{func(in *ImportTableInput) { in.Table = &CreateTableInput{} }, dynamo.CodeValidation, "Value null at 'tableCreationParameters.tableName'"},
		{func(in *ImportTableInput) { in.Table.TableName.V = "ab" }, dynamo.CodeValidation, "Value 'ab' at 'tableCreationParameters.tableName'"},
		{func(in *ImportTableInput) { in.Table.Attributes[0].Type = Some("X") }, dynamo.CodeValidation, "Value 'X' at 'tableCreationParameters.attributeDefinitions.1.member.attributeType'"},
		{func(in *ImportTableInput) { in.Table.Global[0].IndexName = Some("i") }, dynamo.CodeValidation, "Value 'i' at 'tableCreationParameters.globalSecondaryIndexes.1.member.indexName'"},
		{func(in *ImportTableInput) { in.Table.BillingMode.Set = false; in.Table.BillingMode.V = "" }, dynamo.CodeValidation, "ReadCapacityUnits and WriteCapacityUnits must both be specified"},
		{func(in *ImportTableInput) { in.Table.TableName.V = "Music" }, dynamo.CodeResourceInUse, "Table already exists: Music"},
	} {
		_, err := d.ImportTable(ctx, importOf(c.change))
		if errorCode(err) != c.code || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
}

// TestExportTimes: an export is of a table with point-in-time recovery, within its history.
func TestExportTimes(t *testing.T) {
	d := open(t)
	export := func(want dynamo.Code, text string, change func(*ExportTableInput)) {
		t.Helper()
		err := refusal(d.ExportTableToPointInTime(ctx, exportOf(change)))
		if errorCode(err) != want || err != nil && !strings.Contains(err.Error(), text) {
			t.Errorf("got %v, want %s %s", err, want, text)
		}
	}
	export(dynamo.CodeTableNotFound, "Table not found: Music", nil)
	d.music()
	export(dynamo.CodePointInTimeRecovery, "Point in time recovery is not enabled for table 'Music'", nil)
	d.keepHistory()
	d.clock.Advance(time.Hour)
	for at, want := range map[time.Time]dynamo.Code{
		epoch.Add(-1): dynamo.CodeInvalidExportTime, epoch.Add(1): "", epoch.Add(time.Hour): "", epoch.Add(2 * time.Hour): dynamo.CodeInvalidExportTime,
	} {
		export(want, "ExportTime must be between", func(in *ExportTableInput) { in.At = Some(at.UnixMilli()) })
	}
	for from, want := range map[time.Time]dynamo.Code{epoch.Add(-time.Minute): dynamo.CodeInvalidExportTime, epoch.Add(time.Minute): ""} {
		export(want, "ExportFromTime and ExportToTime must be between", func(in *ExportTableInput) {
			in.Type, in.Increment = Some("INCREMENTAL_EXPORT"), &ExportIncrement{From: Some(from.UnixMilli())}
		})
	}
}

// keepHistory turns point-in-time recovery of Music on.
func (d *db) keepHistory() {
	d.t.Helper()
	if _, err := d.UpdateContinuousBackups(ctx, &UpdateContinuousBackupsInput{TableName: Some("Music"), Present: true, Enabled: Some(true)}); err != nil {
		d.t.Fatal(err)
	}
}

// TestNoSuchBucket: the jobs of a server without buckets fail, and their descriptions have the reason.
// The table of the import is CREATING before, and gone afterwards.
func TestNoSuchBucket(t *testing.T) {
	d := open(t)
	d.music()
	d.keepHistory()
	export, err := d.ExportTableToPointInTime(ctx, exportOf(nil))
	if err != nil {
		t.Fatal(err)
	}
	load, err := d.ImportTable(ctx, importOf(nil))
	if err != nil {
		t.Fatal(err)
	}
	if table, err := d.DescribeTable(ctx, &TableNameInput{Some("Imported")}); err != nil || table.Status != "CREATING" || table.Restore != nil {
		t.Errorf("got %+v, %v", table, err)
	}
	d.runBulk()
	if e := d.awaitExport(export.ARN); e.Status != "FAILED" || e.FailureCode != "S3NoSuchBucket" || e.FailureMessage == "" {
		t.Errorf("got %+v", e)
	}
	if i := d.awaitImport(load.ARN); i.Status != "FAILED" || i.FailureCode != "S3NoSuchBucket" || i.FailureMessage == "" {
		t.Errorf("got %+v", i)
	}
	if err := refusal(d.DescribeTable(ctx, &TableNameInput{Some("Imported")})); errorCode(err) != dynamo.CodeResourceNotFound {
		t.Errorf("got %v", err)
	}
}

// TestExportAndImport: an import of an export has its items. The same request returns the same job.
func TestExportAndImport(t *testing.T) {
	d := open(t)
	bucket := objects.Dir(t.TempDir())
	d.Service = New(Options{Engine: d.engine, Region: "eu-west-1", Account: "123456789012", Bucket: func(context.Context, string) (objects.Store, error) { return bucket, nil }})
	d.music()
	d.keepHistory()
	d.put("Music", `{"artist":{"S":"a"},"song":{"S":"1"},"year":{"N":"2000"}}`)
	d.put("Music", `{"artist":{"S":"a"},"song":{"S":"2"},"bytes":{"B":"AP8="}}`)
	exported, err := d.ExportTableToPointInTime(ctx, exportOf(func(in *ExportTableInput) { in.ClientToken, in.Prefix = Some("c"), Some("daily/") }))
	if err != nil || exported.Status != "IN_PROGRESS" || !exported.Ended.IsZero() || exported.At.IsZero() || exported.Items.Set {
		t.Fatalf("got %+v, %v", exported, err)
	}
	d.put("Music", `{"artist":{"S":"later"},"song":{"S":"1"}}`)
	again, err := d.ExportTableToPointInTime(ctx, exportOf(func(in *ExportTableInput) { in.ClientToken, in.Prefix = Some("c"), Some("daily/") }))
	if err != nil || again.ARN != exported.ARN {
		t.Errorf("got %+v, %v", again, err)
	}
	if err := refusal(d.ExportTableToPointInTime(ctx, exportOf(func(in *ExportTableInput) { in.ClientToken = Some("c") }))); errorCode(err) != dynamo.CodeExportConflict {
		t.Errorf("got %v", err)
	}
	d.runBulk()
	e := d.awaitExport(exported.ARN)
	if e.Status != "COMPLETED" || e.Items != Some[int64](2) || e.Ended.IsZero() || e.ClientToken != "c" || !strings.HasPrefix(e.Manifest, "daily/AWSDynamoDB/") {
		t.Fatalf("got %+v", e)
	}
	list, err := d.ListExports(ctx, &ListExportsInput{TableARN: Some(musicARN)})
	if err != nil || len(list.Exports) != 1 || list.Exports[0] != e.ExportSummary {
		t.Errorf("got %+v, %v", list, err)
	}

	from := func(prefix string) *ImportTableInput {
		return importOf(func(in *ImportTableInput) {
			in.ClientToken, in.Source.Prefix, in.Compression = Some("c"), Some(prefix), Some("GZIP")
		})
	}
	folder := strings.TrimSuffix(e.Manifest, "manifest-summary.json")
	imported, err := d.ImportTable(ctx, from(folder))
	if err != nil {
		t.Fatal(err)
	}
	d.clock.Advance(time.Second)
	if again, err := d.ImportTable(ctx, from(folder)); err != nil || again.ARN != imported.ARN {
		t.Errorf("got %+v, %v", again, err)
	}
	if err := refusal(d.ImportTable(ctx, from("other"))); errorCode(err) != dynamo.CodeImportConflict {
		t.Errorf("got %v", err)
	}
	i := d.awaitImport(imported.ARN)
	if i.Status != "COMPLETED" || i.Imported != 2 || i.Processed != 2 || i.Errors != 0 || i.Bytes == 0 || i.TableID == "" {
		t.Fatalf("got %+v", i)
	}
	const key = `{"artist":{"S":"a"},"song":{"S":"2"}}`
	if got, want := d.get("Imported", key), d.get("Music", key); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	imports, err := d.ListImports(ctx, &ListImportsInput{})
	if err != nil || len(imports.Imports) != 1 || imports.Imports[0].ARN != i.ARN {
		t.Errorf("got %+v, %v", imports, err)
	}
}

// runBulk runs exports and imports until the test ends.
func (d *db) runBulk() {
	ctx, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { _ = d.RunBulk(ctx) })
	running.Go(func() { _ = d.engine.Run(ctx) })
	d.t.Cleanup(func() {
		stop()
		running.Wait()
	})
}

// await asks for a job until it has ended.
func await[Out any](t *testing.T, ask func() (Out, error), status func(Out) string) Out {
	t.Helper()
	for {
		out, err := ask()
		if err != nil {
			t.Fatal(err)
		}
		if status(out) != "IN_PROGRESS" {
			return out
		}
		time.Sleep(time.Millisecond)
	}
}

func (d *db) awaitExport(arn string) *ExportDescription {
	d.t.Helper()
	return await(d.t, func() (*ExportDescription, error) { return d.DescribeExport(ctx, &DescribeExportInput{Some(arn)}) },
		func(e *ExportDescription) string { return e.Status })
}

func (d *db) awaitImport(arn string) *ImportDescription {
	d.t.Helper()
	return await(d.t, func() (*ImportDescription, error) { return d.DescribeImport(ctx, &DescribeImportInput{Some(arn)}) },
		func(i *ImportDescription) string { return i.Status })
}

// TestDescribeExport: an export shows its request, and its results when it has ended.
func TestDescribeExport(t *testing.T) {
	d := open(t)
	e := &bulk.Export{
		Job: bulk.Job{ID: someJob, Status: bulk.InProgress, Begun: 5, TableName: "Music", TableID: "id"},
		ExportRequest: bulk.ExportRequest{
			Table: "Music", At: 3, Token: "c", Bucket: "exports", Prefix: "p", BucketOwner: "o", Algorithm: "KMS", KMSKey: "k",
		},
	}
	want := ExportDescription{
		ExportSummary: ExportSummary{ARN: musicARN + "/export/" + someJob, Status: "IN_PROGRESS", Type: "FULL_EXPORT"},
		TableARN:      musicARN, TableID: "id", Started: time.UnixMilli(5).UTC(), At: time.UnixMilli(3).UTC(), ClientToken: "c",
		Bucket: "exports", BucketOwner: "o", Prefix: "p", Algorithm: "KMS", KMSKey: "k",
	}
	wantSame(t, want, *d.describeExport(e))
	e.Status, e.Ended, e.Items, e.Bytes, e.Manifest = bulk.Completed, 9, 0, 7, "m"
	want.Status, want.Ended, want.Items, want.Bytes, want.Manifest = "COMPLETED", time.UnixMilli(9).UTC(), Some[int64](0), Some[int64](7), "m"
	wantSame(t, want, *d.describeExport(e))
	e.Status, e.Manifest, e.FailureCode, e.FailureMessage = bulk.Failed, "", "S3NoSuchBucket", "none"
	e.Incremental, e.From = true, 1
	want.Status, want.Manifest, want.Items, want.Bytes, want.FailureCode, want.FailureMessage = "FAILED", "", Opt[int64]{}, Opt[int64]{}, "S3NoSuchBucket", "none"
	want.Type, want.At, want.From, want.To, want.View = "INCREMENTAL_EXPORT", time.Time{}, time.UnixMilli(1).UTC(), time.UnixMilli(3).UTC(), "NEW_IMAGE"
	wantSame(t, want, *d.describeExport(e))
	e.OldImages, want.View = true, "NEW_AND_OLD_IMAGES"
	wantSame(t, want, *d.describeExport(e))
}

// TestDescribeImport: an import shows its request, the new table included, and its counts.
func TestDescribeImport(t *testing.T) {
	d := open(t)
	i := &bulk.Import{
		Job:           bulk.Job{ID: someJob, Status: bulk.Failed, Begun: 5, Ended: 6, TableName: "Imported", TableID: "id", FailureCode: "f", FailureMessage: "m"},
		ImportRequest: d.importRequest(importOf(nil)),
		Errors:        1, ProcessedBytes: 2, Processed: 3, Imported: 4,
	}
	arn := strings.Replace(musicARN, "Music", "Imported", 1)
	i.Token = "c"
	want := ImportDescription{
		ImportSummary: ImportSummary{
			ARN: arn + "/import/" + someJob, Status: "FAILED", TableARN: arn, Format: "DYNAMODB_JSON",
			Source: BucketSource{Bucket: Some("exports")}, Started: time.UnixMilli(5).UTC(), Ended: time.UnixMilli(6).UTC(),
		},
		TableID: "id", ClientToken: "c", Compression: "NONE", Table: *d.describe(&i.Table, engine.TableStats{}),
		FailureCode: "f", FailureMessage: "m", Errors: 1, Bytes: 2, Processed: 3, Imported: 4,
	}
	wantSame(t, want, *d.describeImport(i))
	if g := want.Table.Global; want.Table.TableName != "Imported" || len(g) != 1 || g[0].ProjectionType != "INCLUDE" {
		t.Errorf("the new table is %+v", want.Table)
	}
	i.Prefix, i.BucketOwner, i.Delimiter, i.Header = "p", "o", ";", []string{"a"}
	want.Source.Prefix, want.Source.Owner, want.CSV = Some("p"), Some("o"), &CSVOptions{Delimiter: Some(";"), Header: []string{"a"}}
	wantSame(t, want, *d.describeImport(i))
}

func wantSame[T any](t *testing.T, want, got T) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) })); diff != "" {
		t.Error(diff)
	}
}

// TestJobByARN: any region and account will do, and nothing but the job's own ARN.
func TestJobByARN(t *testing.T) {
	job := &bulk.Export{Job: bulk.Job{ID: someJob, TableName: "Music"}}
	find := func(id string) (*bulk.Export, error) {
		if id != someJob {
			return nil, engine.ErrJobNotFound
		}
		return job, nil
	}
	for arn, want := range map[string]error{
		musicARN + "/export/" + someJob:                                   nil,
		"arn:aws-cn:dynamodb:x:1:table/Music/export/" + someJob:           nil,
		musicARN + "2/export/" + someJob:                                  engine.ErrJobNotFound,
		musicARN + "/import/" + someJob:                                   engine.ErrJobNotFound,
		musicARN + "/export/x/" + someJob:                                 engine.ErrJobNotFound,
		musicARN + "/export/" + someJob + "/":                             engine.ErrJobNotFound,
		musicARN + "/export/0":                                            engine.ErrJobNotFound,
		"arn:aws:dynamodb:eu-west-1:123456789012:" + someJob:              engine.ErrJobNotFound,
		"arn:aws:dynamodb:eu-west-1:123456789012:Music/export/" + someJob: engine.ErrJobNotFound,
	} {
		got, err := jobByARN(arn, exportPath, find, jobOfExport)
		if !errors.Is(err, want) || (got == nil) != (want != nil) {
			t.Errorf("%s: got %v, %v", arn, got, err)
		}
	}
	if _, err := jobByARN("arn:aws:s3:::table/Music/export/"+someJob, exportPath, find, jobOfExport); errorCode(err) != dynamo.CodeValidation {
		t.Errorf("got %v", err)
	}
}

// TestPagesOfJobs: pages have all jobs of a table once, oldest first, and only their own tokens lead
// to further ones.
func TestPagesOfJobs(t *testing.T) {
	var jobs []*bulk.Export
	for i := range 60 {
		jobs = append(jobs, &bulk.Export{Job: bulk.Job{ID: fmt.Sprintf("%014d-%08x", i, i), TableName: []string{"Music", "Other"}[i%2]}})
	}
	for _, c := range []struct {
		table string
		limit Opt[int64]
		pages []int
	}{
		{"", Opt[int64]{}, []int{25, 25, 10}}, {"Music", Opt[int64]{}, []int{25, 5}}, {"Other", Some[int64](10), []int{10, 10, 10}}, {"None", Opt[int64]{}, []int{0}},
	} {
		var token Opt[string]
		var pages []int
		last := ""
		for {
			page, next, err := pageOfJobs(jobs, jobOfExport, c.table, token, c.limit)
			if err != nil {
				t.Fatal(err)
			}
			pages = append(pages, len(page))
			for _, e := range page {
				if e.ID <= last || c.table != "" && e.TableName != c.table {
					t.Errorf("%s of %s follows %s", e.ID, e.TableName, last)
				}
				last = e.ID
			}
			if next == "" {
				break
			}
			if len(next) < 112 || len(next)%16 != 0 {
				t.Errorf("token %q is not AWS's", next)
			}
			token = Some(next)
		}
		if !cmp.Equal(pages, c.pages) {
			t.Errorf("%s: pages of %v, want %v", c.table, pages, c.pages)
		}
	}
	good := pageToken(someJob)
	for _, bad := range []string{"", "x", strings.Repeat("0", 112), good[:110], good + "00", strings.ToUpper(good), good[:111] + "1", pageToken("x")} {
		if _, _, err := pageOfJobs(jobs, jobOfExport, "", Some(bad), Opt[int64]{}); errorCode(err) != dynamo.CodeValidation {
			t.Errorf("%q: got %v", bad, err)
		}
	}
	d := open(t)
	if err := refusal(d.ListExports(ctx, &ListExportsInput{Token: Some("x")})); errorCode(err) != dynamo.CodeValidation {
		t.Error(err)
	}
	if err := refusal(d.ListImports(ctx, &ListImportsInput{Token: Some(good), Limit: Some[int64](26)})); errorCode(err) != dynamo.CodeValidation {
		t.Error(err)
	}
}

// TestJobErrors: the errors of package bulk have the codes that AWS documents.
func TestJobErrors(t *testing.T) {
	full := &bulk.ExportRequest{Table: "Music"}
	fault := errors.New("a fault")
	for _, c := range []struct {
		err  error
		want dynamo.Code
	}{
		{exportError(engine.ErrTableNotFound, full), dynamo.CodeTableNotFound},
		{exportError(engine.ErrTableCreating, full), dynamo.CodePointInTimeRecovery},
		{exportError(engine.ErrNoHistory, full), dynamo.CodePointInTimeRecovery},
		{exportError(engine.ErrRestoreInstant, full), dynamo.CodeInvalidExportTime},
		{exportError(bulk.ErrTokenConflict, full), dynamo.CodeExportConflict},
		{exportError(fmt.Errorf("wrapped: %w", bulk.ErrTooManyJobs), full), dynamo.CodeLimitExceeded},
		{exportError(engine.ErrTooManyJobs, full), dynamo.CodeLimitExceeded},
		{exportError(engine.ErrDiskFull, full), dynamo.CodeLimitExceeded},
		{exportError(fault, full), ""},
		{importError(bulk.ErrTokenConflict, "T"), dynamo.CodeImportConflict},
		{importError(engine.ErrTableExists, "T"), dynamo.CodeResourceInUse},
		{importError(bulk.ErrTooManyJobs, "T"), dynamo.CodeLimitExceeded},
		{importError(context.Canceled, "T"), ""},
	} {
		if errorCode(c.err) != c.want {
			t.Errorf("got %v, want %s", c.err, c.want)
		}
	}
}
