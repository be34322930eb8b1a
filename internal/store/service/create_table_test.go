package service

import (
	"fmt"
	"testing"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

func TestCreateTableDescribes(t *testing.T) {
	d := open(t)
	in := musicTable("Music")
	in.Stream = &StreamSpec{Enabled: Some(true), ViewType: Some("NEW_IMAGE")}
	in.Tags = []Tag{{Some("team"), Some("sound")}}
	in.OnDemand = &OnDemandThroughput{MaxRead: Some[int64](5), MaxWrite: Some[int64](-1)}
	out, err := d.CreateTable(ctx, &in)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "ARN", out.ARN, "arn:aws:dynamodb:eu-west-1:123456789012:table/Music")
	equal(t, "status", out.Status, "ACTIVE")
	equal(t, "created", out.Created, epoch)
	equal(t, "key", fmt.Sprint(out.KeySchema), "[[artist HASH] [song RANGE]]")
	equal(t, "attributes", fmt.Sprint(out.Attributes), "[[artist S] [song S] [year N] [genre S]]")
	equal(t, "billing", fmt.Sprintln(out.BillingMode, out.OnDemandSince == epoch, *out.OnDemand), "PAY_PER_REQUEST true {{5 true} {-1 true}}\n")
	equal(t, "stream", fmt.Sprint(out.StreamViewType, " ", out.StreamARN),
		"NEW_IMAGE arn:aws:dynamodb:eu-west-1:123456789012:table/Music/stream/2026-01-01T00:00:00.000")
	equal(t, "local index", fmt.Sprint(out.Local[0].Name, out.Local[0].KeySchema, out.Local[0].ProjectionType, out.Local[0].Status), "byYear[[artist HASH] [year RANGE]]KEYS_ONLY")
	equal(t, "global index", fmt.Sprint(out.Global[0].Name, out.Global[0].NonKey, out.Global[0].Status), "byGenre[label]ACTIVE")

	d.put("Music", `{"artist":{"S":"a"},"song":{"S":"b"},"year":{"N":"1"}}`)
	if out, err = d.DescribeTable(ctx, &TableNameInput{TableName: Some(out.ARN)}); err != nil {
		t.Fatal(err)
	}
	equal(t, "items, of the table and the indexes", fmt.Sprint(out.ItemCount, out.Local[0].ItemCount, out.Global[0].ItemCount), "1 1 0")

	_, err = d.CreateTable(ctx, &in)
	refused(t, err, dynamo.CodeResourceInUse, "Table already exists: Music")
}

func TestCreateTableValidation(t *testing.T) {
	d := open(t)
	const p = "One or more parameter values were invalid: "
	tests := []struct {
		about  string
		change func(in *CreateTableInput)
		want   string
	}{
		{"no name", func(in *CreateTableInput) { in.TableName = Opt[string]{} },
			"The parameter 'TableName' is required but was not present in the request"},
		{"short name", func(in *CreateTableInput) { in.TableName = Some("ab") },
			"TableName must be at least 3 characters long and at most 255 characters long"},
		{"bad name, alone", func(in *CreateTableInput) { *in = CreateTableInput{TableName: Some("a;b")} },
			"1 validation error detected: Value 'a;b' at 'tableName' failed to satisfy constraint: Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+"},
		{"nothing else", func(in *CreateTableInput) { *in = CreateTableInput{TableName: Some("abc")} },
			"2 validation errors detected: Value null at 'attributeDefinitions' failed to satisfy constraint: Member must not be null; " +
				"Value null at 'keySchema' failed to satisfy constraint: Member must not be null"},
		{"shape of an index", func(in *CreateTableInput) { in.Global[0].IndexName = Some("a;") },
			"2 validation errors detected: Value 'a;' at 'globalSecondaryIndexes.1.member.indexName' failed to satisfy constraint: Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+; " +
				"Value 'a;' at 'globalSecondaryIndexes.1.member.indexName' failed to satisfy constraint: Member must have length greater than or equal to 3"},
		{"table class", func(in *CreateTableInput) { in.TableClass = Some("hi") },
			"Invalid table-class parameter provided. Please try again with a valid table-class value: [STANDARD, STANDARD_INFREQUENT_ACCESS]."},
		{"throughput on demand", func(in *CreateTableInput) { in.Throughput = &Throughput{Some[int64](1), Some[int64](1)} },
			p + "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is PAY_PER_REQUEST"},
		{"no throughput", func(in *CreateTableInput) { in.BillingMode = Opt[string]{} },
			p + "ReadCapacityUnits and WriteCapacityUnits must both be specified when BillingMode is PROVISIONED"},
		{"zero throughput", func(in *CreateTableInput) { in.Throughput = &Throughput{Some[int64](0), Some[int64](1)} },
			"1 validation error detected: Value '0' at 'provisionedThroughput.readCapacityUnits' failed to satisfy constraint: Member must have value greater than or equal to 1"},
		{"too few definitions", func(in *CreateTableInput) { in.Attributes = definitions("artist:S") },
			"Invalid KeySchema: Some index key attribute have no definition"},
		{"definition twice", func(in *CreateTableInput) { in.Attributes = definitions("artist:S", "artist:N") },
			"Attribute Name is duplicated: artist"},
		{"key not defined", func(in *CreateTableInput) { in.Attributes = definitions("artist:S", "x:S") },
			p + "Some index key attributes are not defined in AttributeDefinitions. Keys: [artist, song], AttributeDefinitions: [artist, x]"},
		{"same name twice", func(in *CreateTableInput) { in.KeySchema = keys("artist", "artist") },
			"Both the Hash Key and the Range Key element in the KeySchema have the same name"},
		{"range first", func(in *CreateTableInput) { in.KeySchema[0].Type = Some("RANGE") },
			"Invalid KeySchema: The first KeySchemaElement is not a HASH key type"},
		{"hash second", func(in *CreateTableInput) { in.KeySchema[1].Type = Some("HASH") },
			"Invalid KeySchema: The second KeySchemaElement is not a RANGE key type"},
		{"unused definition", func(in *CreateTableInput) { in.Local, in.Global = nil, nil },
			p + "Number of attributes in KeySchema does not exactly match number of attributes defined in AttributeDefinitions"},
		{"unused definition with indexes", func(in *CreateTableInput) { in.Global = nil },
			p + "Some AttributeDefinitions are not used. AttributeDefinitions: [artist, song, year, genre], keys used: [artist, song, year]"},
		{"empty local list", func(in *CreateTableInput) { in.Local = []IndexSpec{} }, p + "List of LocalSecondaryIndexes is empty"},
		{"empty global list", func(in *CreateTableInput) { in.Global = []IndexSpec{} }, p + "List of GlobalSecondaryIndexes is empty"},
		{"local index without sort key in the table", func(in *CreateTableInput) { in.KeySchema = keys("artist") },
			p + "Table KeySchema does not have a range key, which is required when specifying a LocalSecondaryIndex"},
		{"local index without sort key", func(in *CreateTableInput) { in.Local[0].KeySchema = keys("artist") },
			p + "Index KeySchema does not have a range key for index: byYear"},
		{"local index with another partition key", func(in *CreateTableInput) { in.Local[0].KeySchema = keys("genre", "year") },
			p + "Index KeySchema does not have the same leading hash key as table KeySchema for index: byYear. index hash key: genre, table hash key: artist"},
		{"no projection type", func(in *CreateTableInput) { in.Local[0].Projection.Type = Opt[string]{} }, p + "Unknown ProjectionType: null"},
		{"list with ALL", func(in *CreateTableInput) { in.Global[0].Projection.Type = Some("ALL") },
			p + "ProjectionType is ALL, but NonKeyAttributes is specified"},
		{"INCLUDE without list", func(in *CreateTableInput) { in.Global[0].Projection.NonKey = nil },
			p + "ProjectionType is INCLUDE, but NonKeyAttributes is not specified"},
		{"index name twice", func(in *CreateTableInput) { in.Global[0].IndexName = Some("byYear") }, p + "Duplicate index name: byYear"},
		{"throughput of an index on demand", func(in *CreateTableInput) { in.Global[0].Throughput = &Throughput{Some[int64](1), Some[int64](1)} },
			p + "ProvisionedThroughput should not be specified for index: byGenre when BillingMode is PAY_PER_REQUEST"},
		{"index without throughput", func(in *CreateTableInput) {
			in.BillingMode, in.Throughput = Some("PROVISIONED"), &Throughput{Some[int64](1), Some[int64](1)}
		}, p + "ProvisionedThroughput is not specified for index: byGenre"},
		{"too many local indexes", func(in *CreateTableInput) {
			for i := range 5 {
				in.Local = append(in.Local, index(fmt.Sprint("index", i), "ALL", "artist", "year"))
			}
		}, p + "Number of LocalSecondaryIndexes exceeds per-table limit of 5"},
		{"too many global indexes", func(in *CreateTableInput) {
			for i := range 20 {
				in.Global = append(in.Global, index(fmt.Sprint("index", i), "ALL", "genre"))
			}
		}, p + "GlobalSecondaryIndex count exceeds the per-table limit of 20"},
		{"stream without view", func(in *CreateTableInput) { in.Stream = &StreamSpec{Enabled: Some(true)} },
			p + "Table is being created with a stream enabled, UpdateViewType is required"},
		{"view without stream", func(in *CreateTableInput) { in.Stream = &StreamSpec{Enabled: Some(false), ViewType: Some("KEYS_ONLY")} },
			p + "Table is being created with a stream disabled, UpdateViewType should not be specified"},
		{"maximum when provisioned", func(in *CreateTableInput) {
			in.BillingMode, in.Throughput = Some("PROVISIONED"), &Throughput{Some[int64](1), Some[int64](1)}
			in.OnDemand = &OnDemandThroughput{MaxRead: Some[int64](1)}
		}, p + "MaxReadRequestUnits for OnDemandThroughput cannot be specified when table BillingMode is PROVISIONED."},
		{"reserved tag", func(in *CreateTableInput) { in.Tags = []Tag{{Some("aws:x"), Some("")}} },
			"Tag Key cannot be prefixed with aws:, Key: aws:x"},
	}
	for _, tt := range tests {
		t.Run(tt.about, func(t *testing.T) {
			in := musicTable("Music")
			tt.change(&in)
			_, err := d.CreateTable(ctx, &in)
			invalidRequest(t, err, tt.want)
		})
	}
}
