package conformance

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

var backupChecks = []check{
	{"Describe", backupDescribe},
	{"Features", backupFeatures},
	{"List", backupList},
	{"Delete", backupDelete},
	{"Refused", backupRefused},
	{"Restore", backupRestore},
	{"OutlivesItsTable", backupOutlivesItsTable},
	{"Overrides", backupOverrides},
	{"OverridesRefused", backupOverridesRefused},
	{"RestoreRefused", backupRestoreRefused},
}

const (
	tableMissing  = "TableNotFoundException"
	backupMissing = "BackupNotFoundException"
)

// backupID is the end of a backup's ARN, behind the table's.
var backupID = regexp.MustCompile(`^/backup/[0-9]{14}-[0-9a-f]{8}$`)

// backup makes a backup of the table, waits until it is AVAILABLE, and deletes it when the check
// ends. It returns the ARN.
func (tb *table) backup(t *testing.T, name string) string {
	t.Helper()
	out, err := tb.DB.CreateBackup(t.Context(), &dynamodb.CreateBackupInput{TableName: &tb.name, BackupName: &name})
	if err != nil {
		t.Fatalf("back up table %s: %v", tb.name, err)
	}
	d := out.BackupDetails
	if aws.ToString(d.BackupName) != name || d.BackupType != types.BackupTypeUser || d.BackupStatus != types.BackupStatusCreating ||
		!backupID.MatchString(strings.TrimPrefix(aws.ToString(d.BackupArn), tb.arn)) || d.BackupCreationDateTime == nil {
		t.Errorf("BackupDetails: %+v", d)
	}
	arn := aws.ToString(d.BackupArn)
	t.Cleanup(func() { deleteBackup(t, tb.Endpoint, arn) })
	tb.await(t, "backup AVAILABLE", func() bool {
		return tb.describeBackup(t, arn).BackupDetails.BackupStatus == types.BackupStatusAvailable
	})
	return arn
}

// deleteBackup deletes a backup if it exists. It tries again while a table is restored from it.
func deleteBackup(t *testing.T, e *Endpoint, arn string) {
	deadline := time.Now().Add(activeTimeout)
	for {
		_, err := e.DB.DeleteBackup(context.Background(), &dynamodb.DeleteBackupInput{BackupArn: &arn})
		var missing *types.BackupNotFoundException
		var busy *types.BackupInUseException
		switch {
		case err == nil || errors.As(err, &missing):
			return
		case errors.As(err, &busy) && time.Now().Before(deadline):
			time.Sleep(pollEvery)
		default:
			t.Errorf("delete backup %s: %v", arn, err)
			return
		}
	}
}

func (tb *table) describeBackup(t *testing.T, arn string) *types.BackupDescription {
	t.Helper()
	out, err := tb.DB.DescribeBackup(t.Context(), &dynamodb.DescribeBackupInput{BackupArn: &arn})
	if err != nil {
		t.Fatalf("describe backup %s: %v", arn, err)
	}
	return out.BackupDescription
}

// restore creates a table from a backup, waits until it is ACTIVE, and deletes it when the check
// ends.
func (tb *table) restore(t *testing.T, arn string, change ...func(*dynamodb.RestoreTableFromBackupInput)) *table {
	t.Helper()
	in := &dynamodb.RestoreTableFromBackupInput{BackupArn: &arn, TargetTableName: aws.String(uniqueName(t))}
	for _, f := range change {
		f(in)
	}
	out, err := tb.DB.RestoreTableFromBackup(t.Context(), in)
	if err != nil {
		t.Fatalf("restore table %s: %v", *in.TargetTableName, err)
	}
	restored := &table{Endpoint: tb.Endpoint, name: *in.TargetTableName, arn: aws.ToString(out.TableDescription.TableArn)}
	t.Cleanup(func() { deleteTable(t, tb.Endpoint, restored.name) })
	s := out.TableDescription.RestoreSummary
	if out.TableDescription.TableStatus != types.TableStatusCreating || s == nil || !aws.ToBool(s.RestoreInProgress) ||
		aws.ToString(s.SourceBackupArn) != arn || aws.ToString(s.SourceTableArn) != tb.arn || s.RestoreDateTime == nil {
		t.Errorf("TableDescription: %+v, RestoreSummary %+v", out.TableDescription, s)
	}
	restored.awaitActive(t)
	return restored
}

// all returns the items of a table.
func (tb *table) all(t *testing.T) []attributes {
	t.Helper()
	out, err := tb.DB.Scan(t.Context(), &dynamodb.ScanInput{TableName: &tb.name, ConsistentRead: aws.Bool(true)})
	if err != nil {
		t.Fatal(err)
	}
	items := out.Items
	slices.SortFunc(items, func(a, b attributes) int { return strings.Compare(itemText(a), itemText(b)) })
	return items
}

// A backup of a plain table shows the table, and no features.
func backupDescribe(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S sk:N", provisioned(3, 2))
	described := tb.awaitActive(t)
	arn := tb.backup(t, "daily.1_a-B")
	a := e.ok(t, "DescribeBackup", `{"BackupArn":"`+arn+`"}`)
	a.want(t, "BackupDescription.BackupDetails.BackupArn", `"`+arn+`"`)
	a.want(t, "BackupDescription.BackupDetails.BackupName", `"daily.1_a-B"`)
	a.want(t, "BackupDescription.BackupDetails.BackupStatus", `"AVAILABLE"`)
	a.want(t, "BackupDescription.BackupDetails.BackupType", `"USER"`)
	source := "BackupDescription.SourceTableDetails."
	a.want(t, source+"TableName", `"`+tb.name+`"`)
	a.want(t, source+"TableArn", `"`+tb.arn+`"`)
	a.want(t, source+"TableId", `"`+aws.ToString(described.TableId)+`"`)
	a.want(t, source+"KeySchema", `[{"AttributeName":"pk","KeyType":"HASH"},{"AttributeName":"sk","KeyType":"RANGE"}]`)
	a.want(t, source+"ProvisionedThroughput", `{"ReadCapacityUnits":3,"WriteCapacityUnits":2}`)
	a.want(t, source+"BillingMode", `"PROVISIONED"`)
	a.want(t, "BackupDescription.SourceTableFeatureDetails", `{}`)
	d := tb.describeBackup(t, arn).SourceTableDetails
	if !aws.ToTime(d.TableCreationDateTime).Equal(aws.ToTime(described.CreationDateTime)) {
		t.Errorf("the table was created at %v, not at %v", d.TableCreationDateTime, described.CreationDateTime)
	}
}

// A backup shows the indexes, the stream and the TTL that its table had.
func backupFeatures(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S sk:S", local("byN", "pk:S n:N", "KEYS_ONLY"), global("byG", "g:S", "INCLUDE a b"), stream(types.StreamViewTypeNewImage))
	tb.setTTL(t, true, "ttl")
	arn := tb.backup(t, "features")
	a := e.ok(t, "DescribeBackup", `{"BackupArn":"`+arn+`"}`)
	a.want(t, "BackupDescription.SourceTableDetails.BillingMode", `"PAY_PER_REQUEST"`)
	features := "BackupDescription.SourceTableFeatureDetails."
	a.want(t, features+"LocalSecondaryIndexes", `[{"IndexName":"byN","KeySchema":[{"AttributeName":"pk","KeyType":"HASH"},
		{"AttributeName":"n","KeyType":"RANGE"}],"Projection":{"ProjectionType":"KEYS_ONLY"}}]`)
	a.want(t, features+"GlobalSecondaryIndexes", `[{"IndexName":"byG","KeySchema":[{"AttributeName":"g","KeyType":"HASH"}],
		"Projection":{"ProjectionType":"INCLUDE","NonKeyAttributes":["a","b"]},"ProvisionedThroughput":{"ReadCapacityUnits":0,"WriteCapacityUnits":0}}]`)
	a.want(t, features+"StreamDescription", `{"StreamEnabled":true,"StreamViewType":"NEW_IMAGE"}`)
	a.want(t, features+"TimeToLiveDescription", `{"TimeToLiveStatus":"ENABLED","AttributeName":"ttl"}`)
}

// Backups are listed by table, type and time, a page at a time.
func backupList(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	arns := []string{tb.backup(t, "same"), tb.backup(t, "same"), tb.backup(t, "third")}
	list := func(change func(*dynamodb.ListBackupsInput)) (found []string, last string) {
		t.Helper()
		in := &dynamodb.ListBackupsInput{TableName: &tb.name}
		change(in)
		out, err := e.DB.ListBackups(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range out.BackupSummaries {
			if aws.ToString(b.TableName) != tb.name || aws.ToString(b.TableArn) != tb.arn || b.BackupStatus != types.BackupStatusAvailable ||
				b.BackupType != types.BackupTypeUser || aws.ToString(b.TableId) == "" || b.BackupSizeBytes == nil {
				t.Errorf("got %+v", b)
			}
			found = append(found, aws.ToString(b.BackupArn))
		}
		return found, aws.ToString(out.LastEvaluatedBackupArn)
	}
	want := func(what string, got, want []string) {
		t.Helper()
		got, want = slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", what, got, want)
		}
	}
	all, _ := list(func(*dynamodb.ListBackupsInput) {})
	want("all", all, arns)
	byARN, _ := list(func(in *dynamodb.ListBackupsInput) { in.TableName = &tb.arn })
	want("by the table's ARN", byARN, arns)
	for filter, with := range map[types.BackupTypeFilter][]string{
		types.BackupTypeFilterUser: arns, types.BackupTypeFilterAll: arns, types.BackupTypeFilterSystem: nil, types.BackupTypeFilterAwsBackup: nil,
	} {
		got, _ := list(func(in *dynamodb.ListBackupsInput) { in.BackupType = filter })
		want(string(filter), got, with)
	}
	var paged []string
	for start := (*string)(nil); ; {
		page, last := list(func(in *dynamodb.ListBackupsInput) { in.Limit, in.ExclusiveStartBackupArn = aws.Int32(2), start })
		if len(page) > 2 {
			t.Errorf("a page has %d backups", len(page))
		}
		if paged = append(paged, page...); last == "" || len(paged) > len(arns) {
			break
		}
		start = &last
	}
	want("in pages", paged, arns)
	created := aws.ToTime(tb.describeBackup(t, arns[0]).BackupDetails.BackupCreationDateTime)
	since, _ := list(func(in *dynamodb.ListBackupsInput) { in.TimeRangeLowerBound = &created })
	want("from the first one's time on", since, arns)
	before, _ := list(func(in *dynamodb.ListBackupsInput) { in.TimeRangeUpperBound = &created })
	want("before the first one's time", before, nil)
	none, _ := list(func(in *dynamodb.ListBackupsInput) { in.TableName = aws.String(uniqueName(t) + "x") })
	want("of a missing table", none, nil)
}

// A deleted backup is described for the last time, as DELETED.
func backupDelete(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	arn := tb.backup(t, "short-lived")
	out, err := e.DB.DeleteBackup(t.Context(), &dynamodb.DeleteBackupInput{BackupArn: &arn})
	if err != nil {
		t.Fatal(err)
	}
	if d := out.BackupDescription; d.BackupDetails.BackupStatus != types.BackupStatusDeleted || aws.ToString(d.SourceTableDetails.TableName) != tb.name {
		t.Errorf("got %+v", d.BackupDetails)
	}
	tb.await(t, "no backup", func() bool {
		_, err := e.DB.DescribeBackup(t.Context(), &dynamodb.DescribeBackupInput{BackupArn: &arn})
		return errorProblem(err, backupMissing, "Backup not found: "+arn) == ""
	})
	e.refuse(t, "DeleteBackup", `{"BackupArn":"`+arn+`"}`, backupMissing, "Backup not found: "+arn)
}

func backupRefused(t *testing.T, e *Endpoint) {
	tb := &table{Endpoint: e, name: uniqueName(t)}
	tb.refuse(t, "CreateBackup", `{"BackupName":"abc"}`, tableMissing, "Table not found: $T")
	const failed = " failed to satisfy constraint: "
	tb.refuse(t, "CreateBackup", `{}`, validation, "1 validation error detected: Value null at 'backupName'"+failed+"Member must not be null")
	tb.refuse(t, "CreateBackup", `{"BackupName":"ab"}`, validation,
		"1 validation error detected: Value 'ab' at 'backupName'"+failed+"Member must have length greater than or equal to 3")
	tb.refuse(t, "CreateBackup", `{"BackupName":"a b c"}`, validation,
		"1 validation error detected: Value 'a b c' at 'backupName'"+failed+"Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+")
	long := strings.Repeat("a", 256)
	tb.refuse(t, "CreateBackup", `{"BackupName":"`+long+`"}`, validation,
		"1 validation error detected: Value '"+long+"' at 'backupName'"+failed+"Member must have length less than or equal to 255")
	for _, op := range []string{"DescribeBackup", "DeleteBackup"} {
		e.refuse(t, op, `{}`, validation, "1 validation error detected: Value null at 'backupArn'"+failed+"Member must not be null")
		e.refuse(t, op, `{"BackupArn":"arn:aws:dynamodb"}`, validation,
			"1 validation error detected: Value 'arn:aws:dynamodb' at 'backupArn'"+failed+"Member must have length greater than or equal to 37")
	}
	e.refuse(t, "ListBackups", `{"Limit":0}`, validation,
		"1 validation error detected: Value '0' at 'limit'"+failed+"Member must have value greater than or equal to 1")
	e.refuse(t, "ListBackups", `{"Limit":101}`, validation,
		"1 validation error detected: Value '101' at 'limit'"+failed+"Member must have value less than or equal to 100")
	e.refuse(t, "ListBackups", `{"BackupType":"SOME"}`, validation,
		"1 validation error detected: Value 'SOME' at 'backupType'"+failed+"Member must satisfy enum value set: […]")
}

// A restored table has the items and indexes of the backup and no later write. It has no stream, no
// TTL and no tags.
func backupRestore(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S sk:N", local("byN", "pk:S n:N", "ALL"), global("byG", "g:S", "KEYS_ONLY"), stream(types.StreamViewTypeKeysOnly),
		func(in *dynamodb.CreateTableInput) {
			in.Tags = []types.Tag{{Key: aws.String("a"), Value: aws.String("b")}}
		})
	tb.setTTL(t, true, "ttl")
	tb.put(t, item("pk", "a", "sk", 1, "n", 5, "g", "x", "ttl", 4102444800, "b", []byte{0, 255}, "bool", true),
		item("pk", "a", "sk", 2, "g", "x"), item("pk", "b", "sk", 1, "n", -1))
	want := tb.all(t)
	arn := tb.backup(t, "rich")
	tb.put(t, item("pk", "c", "sk", 1))
	tb.delete(t, item("pk", "a", "sk", 2))

	restored := tb.restore(t, arn)
	wantItems(t, "restored", restored.all(t), want)
	d := restored.awaitActive(t)
	if s := d.RestoreSummary; s == nil || aws.ToBool(s.RestoreInProgress) || aws.ToString(s.SourceBackupArn) != arn {
		t.Errorf("RestoreSummary: %+v", s)
	}
	if d.StreamSpecification != nil || d.LatestStreamArn != nil || len(d.LocalSecondaryIndexes) != 1 || len(d.GlobalSecondaryIndexes) != 1 ||
		len(d.AttributeDefinitions) != 4 || d.BillingModeSummary == nil || d.BillingModeSummary.BillingMode != types.BillingModePayPerRequest {
		t.Errorf("the restored table is %+v", d)
	}
	if status, _ := restored.describeTTL(t); status != types.TimeToLiveStatusDisabled {
		t.Errorf("TTL is %s", status)
	}
	tags, err := e.DB.ListTagsOfResource(t.Context(), &dynamodb.ListTagsOfResourceInput{ResourceArn: &restored.arn})
	if err != nil || len(tags.Tags) != 0 {
		t.Errorf("tags: %+v, %v", tags, err)
	}
	for index, query := range map[string]string{"byG": `"g = :v","ExpressionAttributeValues":{":v":{"S":"x"}}`, "byN": `"pk = :v","ExpressionAttributeValues":{":v":{"S":"a"}}`} {
		count := map[string]string{"byG": "2", "byN": "1"}[index]
		restored.await(t, "index "+index, func() bool {
			return canonicalJSON(restored.ok(t, "Query", `{"IndexName":"`+index+`","KeyConditionExpression":`+query+`}`).at("Count")) == count
		})
	}
	restored.put(t, item("pk", "d", "sk", 1))
	wantItems(t, "source", tb.all(t), []attributes{want[0], want[2], item("pk", "c", "sk", 1)})
}

// A backup can be described, listed and restored when its table is gone, also under its own name.
func backupOutlivesItsTable(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	tb.put(t, item("pk", "a", "v", 1))
	want := tb.all(t)
	arn := tb.backup(t, "last")
	deleteTable(t, e, tb.name)
	tb.awaitGone(t)
	if d := tb.describeBackup(t, arn); d.BackupDetails.BackupStatus != types.BackupStatusAvailable {
		t.Errorf("got %+v", d.BackupDetails)
	}
	again := tb.restore(t, arn, func(in *dynamodb.RestoreTableFromBackupInput) { in.TargetTableName = &tb.name })
	wantItems(t, "restored", again.all(t), want)
}

// A restore can change the billing mode and the throughput, and leave out indexes.
func backupOverrides(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S sk:S", local("byN", "pk:S n:N", "ALL"), global("byG", "g:S", "ALL"), global("byH", "h:S", "ALL"))
	tb.put(t, item("pk", "a", "sk", "b", "n", 1, "g", "x", "h", "y"))
	arn := tb.backup(t, "overrides")
	units := func(read, write int64) *types.ProvisionedThroughput {
		return &types.ProvisionedThroughput{ReadCapacityUnits: &read, WriteCapacityUnits: &write}
	}
	restored := tb.restore(t, arn, func(in *dynamodb.RestoreTableFromBackupInput) {
		in.BillingModeOverride = types.BillingModeProvisioned
		in.ProvisionedThroughputOverride = units(4, 3)
		in.GlobalSecondaryIndexOverride = []types.GlobalSecondaryIndex{{
			IndexName: aws.String("byH"), Projection: projection("ALL"), ProvisionedThroughput: units(2, 1),
			KeySchema: []types.KeySchemaElement{{AttributeName: aws.String("h"), KeyType: types.KeyTypeHash}},
		}}
		in.LocalSecondaryIndexOverride = []types.LocalSecondaryIndex{}
	})
	d := restored.awaitActive(t)
	if p := d.ProvisionedThroughput; aws.ToInt64(p.ReadCapacityUnits) != 4 || aws.ToInt64(p.WriteCapacityUnits) != 3 || d.BillingModeSummary != nil && d.BillingModeSummary.BillingMode != types.BillingModeProvisioned {
		t.Errorf("billing: %+v, %+v", p, d.BillingModeSummary)
	}
	if len(d.LocalSecondaryIndexes) != 0 || len(d.GlobalSecondaryIndexes) != 1 || aws.ToString(d.GlobalSecondaryIndexes[0].IndexName) != "byH" ||
		aws.ToInt64(d.GlobalSecondaryIndexes[0].ProvisionedThroughput.ReadCapacityUnits) != 2 || len(d.AttributeDefinitions) != 3 {
		t.Errorf("indexes: %+v, %+v, attributes %+v", d.LocalSecondaryIndexes, d.GlobalSecondaryIndexes, d.AttributeDefinitions)
	}
	wantItems(t, "restored", restored.all(t), tb.all(t))

	most := tb.restore(t, arn, func(in *dynamodb.RestoreTableFromBackupInput) {
		in.OnDemandThroughputOverride = &types.OnDemandThroughput{MaxReadRequestUnits: aws.Int64(7), MaxWriteRequestUnits: aws.Int64(8)}
	}).awaitActive(t)
	if o := most.OnDemandThroughput; o == nil || aws.ToInt64(o.MaxReadRequestUnits) != 7 || aws.ToInt64(o.MaxWriteRequestUnits) != 8 || len(most.GlobalSecondaryIndexes) != 2 {
		t.Errorf("got %+v with %d global indexes", o, len(most.GlobalSecondaryIndexes))
	}
}

func backupOverridesRefused(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S", global("byG", "g:S", "ALL"))
	arn := tb.backup(t, "refused")
	target := uniqueName(t) + "r"
	refuse := func(override, message string) {
		t.Helper()
		e.refuse(t, "RestoreTableFromBackup", `{"BackupArn":"`+arn+`","TargetTableName":"`+target+`",`+override+`}`, validation, message)
	}
	index := func(name, key, projection string) string {
		return `"GlobalSecondaryIndexOverride":[{"IndexName":"` + name + `","KeySchema":[{"AttributeName":"` + key + `","KeyType":"HASH"}],"Projection":{"ProjectionType":"` + projection + `"}}]`
	}
	for _, override := range []string{index("other", "g", "ALL"), index("byG", "x", "ALL"), index("byG", "g", "KEYS_ONLY")} {
		refuse(override, "")
	}
	refuse(`"BillingModeOverride":"PROVISIONED"`, "")
	refuse(`"BillingModeOverride":"PROVISIONED","ProvisionedThroughputOverride":{"ReadCapacityUnits":1,"WriteCapacityUnits":1}`, "") // none for the index
	refuse(`"BillingModeOverride":"SOMETIMES"`, "1 validation error detected: Value 'SOMETIMES' at 'billingModeOverride' failed to satisfy constraint: Member must satisfy enum value set: […]")
	refuse(`"ProvisionedThroughputOverride":{"ReadCapacityUnits":1,"WriteCapacityUnits":1}`, "")
	refuse(`"OnDemandThroughputOverride":{"MaxReadRequestUnits":-2}`, "")
	tb.refuse(t, "DescribeTable", `{"TableName":"`+target+`","x":"$T"}`, notFound, "Requested resource not found: Table: "+target+" not found")
}

func backupRestoreRefused(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	arn := tb.backup(t, "refused")
	tb.refuse(t, "RestoreTableFromBackup", `{"BackupArn":"`+arn+`","TargetTableName":"$T"}`, "TableAlreadyExistsException", "Table already exists: $T")
	missing := arn[:len(arn)-8] + "00000000"
	tb.refuse(t, "RestoreTableFromBackup", `{"BackupArn":"`+missing+`","TargetTableName":"$Tx"}`, backupMissing, "Backup not found: "+missing)
	const failed = " failed to satisfy constraint: "
	tb.refuse(t, "RestoreTableFromBackup", `{"BackupArn":"`+arn+`","TargetTableName":"ab","x":"$T"}`, validation,
		"1 validation error detected: Value 'ab' at 'targetTableName'"+failed+"Member must have length greater than or equal to 3")
	tb.refuse(t, "RestoreTableFromBackup", `{"BackupArn":"`+arn+`","x":"$T"}`, validation,
		"1 validation error detected: Value null at 'targetTableName'"+failed+"Member must not be null")
	tb.refuse(t, "RestoreTableFromBackup", `{"TargetTableName":"$Tx"}`, validation,
		"1 validation error detected: Value null at 'backupArn'"+failed+"Member must not be null")
}

// An item that has expired since its backup is alive in the restored table, which has no TTL. Once
// TTL is enabled there it expires. What was hidden at the time of the backup is not restored.
func expiryOfRestoredItems(t *testing.T, e *Endpoint) {
	tb := ttlTable(t, e, "pk:S")
	tb.put(t, item("pk", "before", "ttl", e.in(time.Minute)), item("pk", "after", "ttl", e.in(time.Hour)), item("pk", "never"))
	e.Advance(2 * time.Minute)
	want := tb.all(t)
	arn := tb.backup(t, "expiry")
	e.Advance(2 * time.Hour)
	wantItems(t, "source", tb.all(t), []attributes{item("pk", "never")})
	restored := tb.restore(t, arn)
	if len(want) != 2 {
		t.Errorf("the source had %v", want)
	}
	wantItems(t, "restored", restored.all(t), want)
	restored.setTTL(t, true, "ttl")
	wantItems(t, "restored, with TTL", restored.all(t), []attributes{item("pk", "never")})
}
