package conformance

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

var createTableChecks = []check{
	{"OnDemand", createOnDemand},
	{"Provisioned", createProvisioned},
	{"Indexes", createIndexes},
	{"MostIndexes", createMostIndexes},
	{"Tags", createTags},
	{"NameTaken", createNameTaken},
	{"NameLimits", createNameLimits},
	{"Shape", createShape},
	{"Billing", createBilling},
	{"KeySchema", createKeySchema},
	{"LocalIndexes", createLocalIndexes},
	{"GlobalIndexes", createGlobalIndexes},
}

// A table without options is described by its request, and costs per request.
func createOnDemand(t *testing.T, e *Endpoint) {
	before := e.now().Add(-time.Minute)
	d := newTable(t, e, "pk:S sk:N").awaitActive(t)
	if aws.ToString(d.TableId) == "" {
		t.Error("TableId is empty")
	}
	if arn := aws.ToString(d.TableArn); !matches(arn, "arn:…:dynamodb:…:table/"+*d.TableName) {
		t.Errorf("TableArn: %s", arn)
	}
	if d.CreationDateTime == nil || d.CreationDateTime.Before(before) || d.CreationDateTime.After(e.now().Add(time.Minute)) {
		t.Errorf("CreationDateTime: %v, now %v", d.CreationDateTime, e.now())
	}
	if d.BillingModeSummary == nil || d.BillingModeSummary.BillingMode != types.BillingModePayPerRequest {
		t.Errorf("BillingModeSummary: %+v", d.BillingModeSummary)
	}
	if p := d.ProvisionedThroughput; p == nil || aws.ToInt64(p.ReadCapacityUnits) != 0 || aws.ToInt64(p.WriteCapacityUnits) != 0 {
		t.Errorf("ProvisionedThroughput: %+v, want zeros", p)
	}
	if got := schemaText(d.KeySchema); got != "pk:HASH sk:RANGE" {
		t.Errorf("KeySchema: %s", got)
	}
	if got := len(d.AttributeDefinitions); got != 2 {
		t.Errorf("AttributeDefinitions: got %d of them, want 2", got)
	}
	if aws.ToInt64(d.ItemCount) != 0 || aws.ToInt64(d.TableSizeBytes) != 0 {
		t.Errorf("an empty table has ItemCount %d, TableSizeBytes %d", aws.ToInt64(d.ItemCount), aws.ToInt64(d.TableSizeBytes))
	}
}

func schemaText(schema []types.KeySchemaElement) string {
	var parts []string
	for _, element := range schema {
		parts = append(parts, aws.ToString(element.AttributeName)+":"+string(element.KeyType))
	}
	return strings.Join(parts, " ")
}

// Throughput is shown as it was set, and nothing has been decreased yet.
func createProvisioned(t *testing.T, e *Endpoint) {
	d := newTable(t, e, "pk:B", provisioned(3, 4)).awaitActive(t)
	p := d.ProvisionedThroughput
	if p == nil || aws.ToInt64(p.ReadCapacityUnits) != 3 || aws.ToInt64(p.WriteCapacityUnits) != 4 || aws.ToInt64(p.NumberOfDecreasesToday) != 0 {
		t.Errorf("ProvisionedThroughput: %+v", p)
	}
	if s := d.BillingModeSummary; s != nil && s.BillingMode != types.BillingModeProvisioned {
		t.Errorf("BillingModeSummary: %+v", s)
	}
}

// Each index is described with its key, projection and ARN; global ones have a status.
func createIndexes(t *testing.T, e *Endpoint) {
	d := newTable(t, e, "pk:S sk:S",
		local("byN", "pk:S n:N", "KEYS_ONLY"),
		global("byG", "g:S", "ALL"),
		global("byH", "h:B n:N", "INCLUDE a b"),
	).awaitActive(t)
	if len(d.LocalSecondaryIndexes) != 1 || len(d.GlobalSecondaryIndexes) != 2 {
		t.Fatalf("got %d local and %d global indexes, want 1 and 2", len(d.LocalSecondaryIndexes), len(d.GlobalSecondaryIndexes))
	}
	byN := d.LocalSecondaryIndexes[0]
	if *byN.IndexName != "byN" || schemaText(byN.KeySchema) != "pk:HASH n:RANGE" || byN.Projection.ProjectionType != types.ProjectionTypeKeysOnly {
		t.Errorf("byN: %s %s %+v", *byN.IndexName, schemaText(byN.KeySchema), byN.Projection)
	}
	if arn := aws.ToString(byN.IndexArn); !strings.HasSuffix(arn, "/index/byN") {
		t.Errorf("byN: IndexArn %s", arn)
	}
	for _, index := range d.GlobalSecondaryIndexes {
		if index.IndexStatus != types.IndexStatusActive || !strings.HasSuffix(aws.ToString(index.IndexArn), "/index/"+*index.IndexName) {
			t.Errorf("%s: status %s, ARN %s", *index.IndexName, index.IndexStatus, aws.ToString(index.IndexArn))
		}
		if *index.IndexName == "byH" && (schemaText(index.KeySchema) != "h:HASH n:RANGE" || fmt.Sprint(index.Projection.NonKeyAttributes) != "[a b]") {
			t.Errorf("byH: %s %+v", schemaText(index.KeySchema), index.Projection)
		}
	}
}

// Five local and twenty global indexes are not too many, and an item may be in all of them.
func createMostIndexes(t *testing.T, e *Endpoint) {
	var options []tableOption
	it := item("pk", "p", "sk", "s")
	for i := range 5 {
		name := fmt.Sprintf("local%d", i)
		options = append(options, local(name, "pk:S "+name+":N", "ALL"))
		it[name] = value(i)
	}
	for i := range 20 {
		name := fmt.Sprintf("global%d", i)
		options = append(options, global(name, name+":S", "KEYS_ONLY"))
		it[name] = value(name)
	}
	tb := newTable(t, e, "pk:S sk:S", options...)
	tb.put(t, it)
	for _, index := range []string{"local0", "local4", "global0", "global19"} {
		tb.awaitIndex(t, index, 1)
	}
}

// CreateTable tags the table.
func createTags(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S", func(in *dynamodb.CreateTableInput) {
		in.Tags = []types.Tag{{Key: aws.String("team"), Value: aws.String("time")}, {Key: aws.String("empty"), Value: aws.String("")}}
	})
	tb.wantTags(t, map[string]string{"team": "time", "empty": ""})
}

// CreateTable refuses the name of an existing table.
func createNameTaken(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	tb.refuse(t, "CreateTable", object(attrs("pk:S"), keys("pk:HASH"), onDemand), inUse, "Table already exists: $T")
}

// Control plane operations have their own words for bad names.
func createNameLimits(t *testing.T, e *Endpoint) {
	rest := object(attrs("pk:S"), keys("pk:HASH"), onDemand)[1:]
	for _, row := range []struct{ name, body, message string }{
		{"absent", `{` + rest, "The parameter 'TableName' is required but was not present in the request"},
		{"short", `{"TableName":"ab",` + rest, "TableName must be at least 3 characters long and at most 255 characters long"},
		{"long", `{"TableName":"` + strings.Repeat("a", 256) + `",` + rest, "TableName must be at least 3 characters long and at most 255 characters long"},
		{"odd characters", `{"TableName":"abc;",` + rest,
			"1 validation error detected: Value 'abc;' at 'tableName' failed to satisfy constraint: Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+"},
	} {
		t.Run(row.name, func(t *testing.T) { e.refuse(t, "CreateTable", row.body, validation, row.message) })
	}
}

// Violations of the API's model come in one message, which begins with their number.
func createShape(t *testing.T, e *Endpoint) {
	refuseCreation(t, e, []refusedTable{
		{"nothing but a name", `{}`, "2 validation errors detected: …Member must not be null…Member must not be null"},
		{"bad attribute type", object(attrs("pk:X"), keys("pk:HASH"), onDemand),
			"1 validation error detected: Value 'X' at 'attributeDefinitions.1.member.attributeType' failed to satisfy constraint: Member must satisfy enum value set: [B, N, S]"},
		{"bad key type", object(attrs("pk:S"), keys("pk:FIRST"), onDemand),
			"1 validation error detected: Value 'FIRST' at 'keySchema.1.member.keyType' failed to satisfy constraint: Member must satisfy enum value set: [HASH, RANGE]"},
		{"bad billing mode", object(attrs("pk:S"), keys("pk:HASH"), `"BillingMode":"FREE"`),
			"1 validation error detected: Value 'FREE' at 'billingMode' failed to satisfy constraint: Member must satisfy enum value set: [PROVISIONED, PAY_PER_REQUEST]"},
		{"empty key schema", object(attrs("pk:S"), `"KeySchema":[]`, onDemand),
			"1 validation error detected: Value '[]' at 'keySchema' failed to satisfy constraint: Member must have length greater than or equal to 1"},
		{"three keys", object(attrs("a:S b:S c:S"), keys("a:HASH b:RANGE c:RANGE"), onDemand),
			"1 validation error detected: Value '…' at 'keySchema' failed to satisfy constraint: Member must have length less than or equal to 2"},
		{"no throughput at all", object(attrs("pk:S"), keys("pk:HASH"), throughput(0, 1)),
			"1 validation error detected: Value '0' at 'provisionedThroughput.readCapacityUnits' failed to satisfy constraint: Member must have value greater than or equal to 1"},
		{"bad index name", object(attrs("a:S b:S"), keys("a:HASH b:RANGE"), onDemand, globals(index("x;y", keys("b:HASH"), projectAll))),
			"1 validation error detected: Value 'x;y' at 'globalSecondaryIndexes.1.member.indexName' failed to satisfy constraint: Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+"},
		{"short index name", object(attrs("a:S b:S"), keys("a:HASH b:RANGE"), onDemand, locals(index("xy", keys("a:HASH b:RANGE"), projectAll))),
			"1 validation error detected: Value 'xy' at 'localSecondaryIndexes.1.member.indexName' failed to satisfy constraint: Member must have length greater than or equal to 3"},
		{"bad projection type", object(attrs("a:S b:S"), keys("a:HASH b:RANGE"), onDemand, globals(index("byB", keys("b:HASH"), `"Projection":{"ProjectionType":"SOME"}`))),
			"1 validation error detected: Value 'SOME' at 'globalSecondaryIndexes.1.member.projection.projectionType' failed to satisfy constraint: Member must satisfy enum value set: [ALL, INCLUDE, KEYS_ONLY]"},
	})
}

// The billing mode and the throughput must agree.
func createBilling(t *testing.T, e *Endpoint) {
	const gsi = `"ProvisionedThroughput":{"ReadCapacityUnits":1,"WriteCapacityUnits":1}`
	refuseCreation(t, e, []refusedTable{
		{"on demand with throughput", object(attrs("pk:S"), keys("pk:HASH"), onDemand, throughput(1, 1)),
			invalid + "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is PAY_PER_REQUEST"},
		{"provisioned without throughput", object(attrs("pk:S"), keys("pk:HASH"), `"BillingMode":"PROVISIONED"`),
			invalid + "ReadCapacityUnits and WriteCapacityUnits must both be specified when BillingMode is PROVISIONED"},
		{"no mode and no throughput", object(attrs("pk:S"), keys("pk:HASH")),
			invalid + "ReadCapacityUnits and WriteCapacityUnits must both be specified when BillingMode is PROVISIONED"},
		{"too much to read", object(attrs("pk:S"), keys("pk:HASH"), throughput(1_000_000_000_001, 1)),
			"Given value 1000000000001 for ReadCapacityUnits is out of bounds"},
		{"too much to write", object(attrs("pk:S"), keys("pk:HASH"), throughput(1, 1_000_000_000_001)),
			"Given value 1000000000001 for WriteCapacityUnits is out of bounds"},
		{"index throughput on demand", object(attrs("a:S b:S"), keys("a:HASH"), onDemand, globals(index("byB", keys("b:HASH"), projectAll, gsi))),
			invalid + "ProvisionedThroughput should not be specified for index: byB when BillingMode is PAY_PER_REQUEST"},
		{"index without throughput", object(attrs("a:S b:S"), keys("a:HASH"), throughput(1, 1), globals(index("byB", keys("b:HASH"), projectAll))),
			invalid + "ProvisionedThroughput is not specified for index: byB"},
		{"on-demand maximum out of range", object(attrs("pk:S"), keys("pk:HASH"), onDemand, `"OnDemandThroughput":{"MaxReadRequestUnits":-5}`),
			invalid + "Requested MaxReadRequestUnits for OnDemandThroughput for table is outside of valid range"},
		{"on-demand maximum on provisioned", object(attrs("pk:S"), keys("pk:HASH"), throughput(1, 1), `"OnDemandThroughput":{"MaxReadRequestUnits":5}`),
			invalid + "MaxReadRequestUnits for OnDemandThroughput cannot be specified when table BillingMode is PROVISIONED…"},
	})
}

// Each key has a definition, and each definition a key. The first key is HASH, the second RANGE.
func createKeySchema(t *testing.T, e *Endpoint) {
	refuseCreation(t, e, []refusedTable{
		{"more keys than definitions", object(attrs("a:S"), keys("a:HASH b:RANGE"), onDemand),
			"Invalid KeySchema: Some index key attribute have no definition"},
		{"key not defined", object(attrs("b:S"), keys("a:HASH"), onDemand),
			invalid + "Some index key attributes are not defined in AttributeDefinitions. Keys: [a], AttributeDefinitions: [b]"},
		{"one name twice", object(attrs("a:S b:S"), keys("a:HASH a:RANGE"), onDemand),
			"Both the Hash Key and the Range Key element in the KeySchema have the same name"},
		{"first not HASH", object(attrs("a:S"), keys("a:RANGE"), onDemand),
			"Invalid KeySchema: The first KeySchemaElement is not a HASH key type"},
		{"second not RANGE", object(attrs("a:S b:S"), keys("a:HASH b:HASH"), onDemand),
			"Invalid KeySchema: The second KeySchemaElement is not a RANGE key type"},
		{"unused definition", object(attrs("a:S b:S"), keys("a:HASH"), onDemand),
			invalid + "Number of attributes in KeySchema does not exactly match number of attributes defined in AttributeDefinitions"},
		{"unused definition beside an index", object(attrs("a:S b:S c:S"), keys("a:HASH"), onDemand, globals(index("byB", keys("b:HASH"), projectAll))),
			invalid + "Some AttributeDefinitions are not used. AttributeDefinitions: […], keys used: […]"},
		{"definition twice", object(attrs("a:S a:S"), keys("a:HASH"), onDemand), "Attribute Name is duplicated: a"},
	})
}

// Local indexes share the table's partition key, so the table needs a sort key.
func createLocalIndexes(t *testing.T, e *Endpoint) {
	base := func(list string) string { return object(attrs("a:S b:S"), keys("a:HASH b:RANGE"), onDemand, list) }
	six := make([]string, 6)
	for i := range six {
		six[i] = index(fmt.Sprintf("index%d", i), keys("a:HASH b:RANGE"), projectAll)
	}
	refuseCreation(t, e, []refusedTable{
		{"empty list", base(`"LocalSecondaryIndexes":[]`), invalid + "List of LocalSecondaryIndexes is empty"},
		{"table without sort key", object(attrs("a:S"), keys("a:HASH"), onDemand, locals(index("byA", keys("a:HASH"), projectAll))),
			invalid + "Table KeySchema does not have a range key, which is required when specifying a LocalSecondaryIndex"},
		{"key not defined", base(locals(index("byC", keys("a:HASH c:RANGE"), projectAll))),
			invalid + "Some index key attributes are not defined in AttributeDefinitions. Keys: [a, c], AttributeDefinitions: […]"},
		{"without sort key", base(locals(index("byA", keys("a:HASH"), projectAll))),
			invalid + "Index KeySchema does not have a range key for index: byA"},
		{"other partition key", base(locals(index("byB", keys("b:HASH a:RANGE"), projectAll))),
			invalid + "Index KeySchema does not have the same leading hash key as table KeySchema for index: byB. index hash key: b, table hash key: a"},
		{"no projection type", base(locals(index("byB", keys("a:HASH b:RANGE"), `"Projection":{}`))),
			invalid + "Unknown ProjectionType: null"},
		{"ALL and a list", base(locals(index("byB", keys("a:HASH b:RANGE"), `"Projection":{"ProjectionType":"ALL","NonKeyAttributes":["x"]}`))),
			invalid + "ProjectionType is ALL, but NonKeyAttributes is specified"},
		{"KEYS_ONLY and a list", base(locals(index("byB", keys("a:HASH b:RANGE"), `"Projection":{"ProjectionType":"KEYS_ONLY","NonKeyAttributes":["x"]}`))),
			invalid + "ProjectionType is KEYS_ONLY, but NonKeyAttributes is specified"},
		{"INCLUDE without list", base(locals(index("byB", keys("a:HASH b:RANGE"), `"Projection":{"ProjectionType":"INCLUDE"}`))),
			invalid + "ProjectionType is INCLUDE, but NonKeyAttributes is not specified"},
		{"one name twice", base(locals(index("byB", keys("a:HASH b:RANGE"), projectAll), index("byB", keys("a:HASH b:RANGE"), projectAll))),
			invalid + "Duplicate index name: byB"},
		{"six of them", base(locals(six...)), invalid + "Number of LocalSecondaryIndexes exceeds per-table limit of 5"},
	})
}

// Global indexes have keys of their own. No two indexes of a table share a name, local or global.
func createGlobalIndexes(t *testing.T, e *Endpoint) {
	base := func(list ...string) string {
		return object(append([]string{attrs("a:S b:S"), keys("a:HASH b:RANGE"), onDemand}, list...)...)
	}
	many := make([]string, 21)
	for i := range many {
		many[i] = index(fmt.Sprintf("index%d", i), keys("b:HASH"), projectAll)
	}
	refuseCreation(t, e, []refusedTable{
		{"empty list", base(`"GlobalSecondaryIndexes":[]`), invalid + "List of GlobalSecondaryIndexes is empty"},
		{"key not defined", base(globals(index("byC", keys("c:HASH"), projectAll))),
			invalid + "Some index key attributes are not defined in AttributeDefinitions. Keys: [c], AttributeDefinitions: […]"},
		{"first not HASH", base(globals(index("byB", keys("b:RANGE"), projectAll))),
			"Invalid KeySchema: The first KeySchemaElement is not a HASH key type"},
		{"one key name twice", base(globals(index("byB", keys("b:HASH b:RANGE"), projectAll))),
			"Both the Hash Key and the Range Key element in the KeySchema have the same name"},
		{"no projection type", base(globals(index("byB", keys("b:HASH"), `"Projection":{}`))), invalid + "Unknown ProjectionType: null"},
		{"name of a local index", base(locals(index("byB", keys("a:HASH b:RANGE"), projectAll)), globals(index("byB", keys("b:HASH"), projectAll))),
			invalid + "Duplicate index name: byB"},
		{"twenty-one of them", base(globals(many...)), invalid + "GlobalSecondaryIndex count exceeds the per-table limit of 20"},
	})
}

// refusedTable is a CreateTable request, without its name, that must be refused.
type refusedTable struct{ name, body, message string }

// refuseCreation checks that each request is refused with its message, and creates no table.
func refuseCreation(t *testing.T, e *Endpoint, rows []refusedTable) {
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			tb := &table{Endpoint: e, name: uniqueName(t)}
			t.Cleanup(func() { deleteTable(t, e, tb.name) }) // in case that it is accepted
			tb.refuse(t, "CreateTable", row.body, validation, row.message)
			tb.refuse(t, "DescribeTable", `{}`, notFound, "Requested resource not found: Table: $T not found")
		})
	}
}

// The parts of CreateTable requests, written as JSON.

const (
	onDemand   = `"BillingMode":"PAY_PER_REQUEST"`
	projectAll = `"Projection":{"ProjectionType":"ALL"}`
)

// object returns an object of members.
func object(members ...string) string { return "{" + strings.Join(members, ",") + "}" }

// attrs returns AttributeDefinitions: attrs("a:S b:N").
func attrs(text string) string {
	return `"AttributeDefinitions":[` + pairs(text, `{"AttributeName":"%s","AttributeType":"%s"}`) + `]`
}

// keys returns a KeySchema: keys("a:HASH b:RANGE").
func keys(text string) string {
	return `"KeySchema":[` + pairs(text, `{"AttributeName":"%s","KeyType":"%s"}`) + `]`
}

func pairs(text, format string) string {
	var written []string
	for pair := range strings.FieldsSeq(text) {
		name, kind, _ := strings.Cut(pair, ":")
		written = append(written, fmt.Sprintf(format, name, kind))
	}
	return strings.Join(written, ",")
}

func throughput(read, write int64) string {
	return fmt.Sprintf(`"ProvisionedThroughput":{"ReadCapacityUnits":%d,"WriteCapacityUnits":%d}`, read, write)
}

// index returns a secondary index.
func index(name string, members ...string) string {
	return object(append([]string{`"IndexName":"` + name + `"`}, members...)...)
}

func locals(indexes ...string) string {
	return `"LocalSecondaryIndexes":[` + strings.Join(indexes, ",") + `]`
}
func globals(indexes ...string) string {
	return `"GlobalSecondaryIndexes":[` + strings.Join(indexes, ",") + `]`
}
