package conformance

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

var pointInTimeChecks = []check{
	{"OnAndOff", pointInTimeOnAndOff},
	{"Refused", pointInTimeRefused},
	{"Latest", pointInTimeLatest},
	{"DeletedTable", pointInTimeDeletedTable},
}

var pointInTimeClockChecks = []check{
	{"Restore", pointInTimeRestore},
	{"Window", pointInTimeWindow},
}

// pointInTime turns point-in-time recovery on for a number of days, or off for 0.
func (tb *table) pointInTime(t *testing.T, days int32) *types.PointInTimeRecoveryDescription {
	t.Helper()
	spec := &types.PointInTimeRecoverySpecification{PointInTimeRecoveryEnabled: aws.Bool(days > 0)}
	if days > 0 {
		spec.RecoveryPeriodInDays = &days
	}
	out, err := tb.DB.UpdateContinuousBackups(t.Context(), &dynamodb.UpdateContinuousBackupsInput{TableName: &tb.name, PointInTimeRecoverySpecification: spec})
	if err != nil {
		t.Fatalf("point-in-time recovery of table %s: %v", tb.name, err)
	}
	return wantContinuous(t, out.ContinuousBackupsDescription, days)
}

// describePointInTime returns a table's point-in-time recovery, which is on for a number of days, or
// off for 0.
func (tb *table) describePointInTime(t *testing.T, days int32) *types.PointInTimeRecoveryDescription {
	t.Helper()
	out, err := tb.DB.DescribeContinuousBackups(t.Context(), &dynamodb.DescribeContinuousBackupsInput{TableName: &tb.name})
	if err != nil {
		t.Fatalf("describe the continuous backups of table %s: %v", tb.name, err)
	}
	return wantContinuous(t, out.ContinuousBackupsDescription, days)
}

func wantContinuous(t *testing.T, d *types.ContinuousBackupsDescription, days int32) *types.PointInTimeRecoveryDescription {
	t.Helper()
	p := d.PointInTimeRecoveryDescription
	if d.ContinuousBackupsStatus != types.ContinuousBackupsStatusEnabled || p == nil {
		t.Fatalf("got %+v", d)
	}
	want := types.PointInTimeRecoveryStatusDisabled
	if days > 0 {
		want = types.PointInTimeRecoveryStatusEnabled
	}
	if p.PointInTimeRecoveryStatus != want || aws.ToInt32(p.RecoveryPeriodInDays) != days ||
		(p.EarliestRestorableDateTime != nil) != (days > 0) || (p.LatestRestorableDateTime != nil) != (days > 0) {
		t.Fatalf("for %d days: %+v", days, p)
	}
	return p
}

// restoreTo creates a table with the items of an instant, or of the latest one if at is nil. It waits
// until the table is ACTIVE, and deletes it when the check ends.
func (tb *table) restoreTo(t *testing.T, at *time.Time, change ...func(*dynamodb.RestoreTableToPointInTimeInput)) *table {
	t.Helper()
	in := &dynamodb.RestoreTableToPointInTimeInput{SourceTableName: &tb.name, TargetTableName: aws.String(uniqueName(t)), RestoreDateTime: at}
	if at == nil {
		in.UseLatestRestorableTime = aws.Bool(true)
	}
	for _, f := range change {
		f(in)
	}
	out, err := tb.DB.RestoreTableToPointInTime(t.Context(), in)
	if err != nil {
		t.Fatalf("restore table %s: %v", *in.TargetTableName, err)
	}
	restored := &table{Endpoint: tb.Endpoint, name: *in.TargetTableName, arn: aws.ToString(out.TableDescription.TableArn)}
	t.Cleanup(func() { deleteTable(t, tb.Endpoint, restored.name) })
	s := out.TableDescription.RestoreSummary
	if out.TableDescription.TableStatus != types.TableStatusCreating || s == nil || !aws.ToBool(s.RestoreInProgress) ||
		s.SourceBackupArn != nil || aws.ToString(s.SourceTableArn) != tb.arn || s.RestoreDateTime == nil || at != nil && !s.RestoreDateTime.Equal(*at) {
		t.Errorf("TableDescription: %+v, RestoreSummary %+v", out.TableDescription, s)
	}
	restored.awaitActive(t)
	return restored
}

// Point-in-time recovery is off at first. It can be turned on, changed and turned off, and keeps 35
// days unless the request says otherwise.
func pointInTimeOnAndOff(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	tb.describePointInTime(t, 0)
	if on := tb.pointInTime(t, 7); on.EarliestRestorableDateTime.After(*on.LatestRestorableDateTime) {
		t.Errorf("got %+v", on)
	}
	first := tb.describePointInTime(t, 7)
	tb.ok(t, "UpdateContinuousBackups", `{"TableName":"$T","PointInTimeRecoverySpecification":{"PointInTimeRecoveryEnabled":true}}`)
	if second := tb.describePointInTime(t, 35); !second.EarliestRestorableDateTime.Equal(*first.EarliestRestorableDateTime) {
		t.Errorf("the history began at %v, and begins at %v after another change", first.EarliestRestorableDateTime, second.EarliestRestorableDateTime)
	}
	tb.pointInTime(t, 0)
	tb.describePointInTime(t, 0)
	tb.pointInTime(t, 0)
}

func pointInTimeRefused(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	missing := &table{Endpoint: e, name: uniqueName(t) + "x"}
	missing.refuse(t, "DescribeContinuousBackups", `{}`, tableMissing, "Table not found: $T")
	const spec = `"PointInTimeRecoverySpecification":{"PointInTimeRecoveryEnabled":true`
	missing.refuse(t, "UpdateContinuousBackups", `{`+spec+`}}`, tableMissing, "Table not found: $T")
	const failed = " failed to satisfy constraint: "
	const path = "pointInTimeRecoverySpecification"
	tb.refuse(t, "UpdateContinuousBackups", `{}`, validation, "1 validation error detected: Value null at '"+path+"'"+failed+"Member must not be null")
	tb.refuse(t, "UpdateContinuousBackups", `{"PointInTimeRecoverySpecification":{}}`, validation,
		"1 validation error detected: Value null at '"+path+".pointInTimeRecoveryEnabled'"+failed+"Member must not be null")
	tb.refuse(t, "UpdateContinuousBackups", `{`+spec+`,"RecoveryPeriodInDays":0}}`, validation,
		"1 validation error detected: Value '0' at '"+path+".recoveryPeriodInDays'"+failed+"Member must have value greater than or equal to 1")
	tb.refuse(t, "UpdateContinuousBackups", `{`+spec+`,"RecoveryPeriodInDays":36}}`, validation,
		"1 validation error detected: Value '36' at '"+path+".recoveryPeriodInDays'"+failed+"Member must have value less than or equal to 35")

	const op = "RestoreTableToPointInTime"
	const latest = `"UseLatestRestorableTime":true`
	e.refuse(t, op, `{"SourceTableName":"`+missing.name+`","TargetTableName":"`+tb.name+`x",`+latest+`}`, tableMissing, "Table not found: "+missing.name)
	e.refuse(t, op, `{"SourceTableName":"`+tb.name+`","TargetTableName":"`+tb.name+`x",`+latest+`}`, "PointInTimeRecoveryUnavailableException", "…")
	p := tb.pointInTime(t, 35)
	e.refuse(t, op, `{"SourceTableName":"`+tb.name+`","TargetTableName":"`+tb.name+`",`+latest+`}`, "TableAlreadyExistsException", "Table already exists: "+tb.name)
	source := `{"SourceTableName":"` + tb.name + `","TargetTableName":"` + tb.name + `x"`
	e.refuse(t, op, source+`}`, validation, "…")
	e.refuse(t, op, source+`,"RestoreDateTime":1,`+latest+`}`, validation, "…")
	e.refuse(t, op, `{"TargetTableName":"`+tb.name+`x",`+latest+`}`, validation, "…")
	e.refuse(t, op, source+`,"SourceTableArn":"`+tb.arn+`",`+latest+`}`, validation, "…")
	e.refuse(t, op, `{"SourceTableName":"`+tb.name+`",`+latest+`}`, validation,
		"1 validation error detected: Value null at 'targetTableName'"+failed+"Member must not be null")
	for _, at := range []time.Time{p.EarliestRestorableDateTime.Add(-time.Hour), p.LatestRestorableDateTime.Add(time.Hour)} {
		_, err := e.DB.RestoreTableToPointInTime(t.Context(), &dynamodb.RestoreTableToPointInTimeInput{
			SourceTableName: &tb.name, TargetTableName: aws.String(tb.name + "x"), RestoreDateTime: &at,
		})
		if problem := errorProblem(err, "InvalidRestoreTimeException", ""); problem != "" {
			t.Errorf("a restore to %v:\n%s", at, problem)
		}
	}
}

// The latest restorable time has all items and indexes of the source. Its settings are the source's,
// without stream, TTL and point-in-time recovery.
func pointInTimeLatest(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S sk:N", local("byN", "pk:S n:N", "ALL"), global("byG", "g:S", "KEYS_ONLY"), stream(types.StreamViewTypeKeysOnly))
	tb.setTTL(t, true, "ttl")
	tb.put(t, item("pk", "a", "sk", 1, "n", 5, "g", "x"))
	tb.pointInTime(t, 35)
	tb.put(t, item("pk", "a", "sk", 2, "g", "x", "b", []byte{0, 255}, "bool", true, "ttl", 4102444800))
	tb.put(t, item("pk", "a", "sk", 1, "n", 6, "g", "y"))
	restored := tb.restoreTo(t, nil, func(in *dynamodb.RestoreTableToPointInTimeInput) {
		in.SourceTableName, in.SourceTableArn = nil, &tb.arn
	})
	wantItems(t, "restored", restored.all(t), tb.all(t))
	d := restored.awaitActive(t)
	if s := d.RestoreSummary; s == nil || aws.ToBool(s.RestoreInProgress) || aws.ToString(s.SourceTableArn) != tb.arn {
		t.Errorf("RestoreSummary: %+v", s)
	}
	if d.StreamSpecification != nil || len(d.LocalSecondaryIndexes) != 1 || len(d.GlobalSecondaryIndexes) != 1 || len(d.AttributeDefinitions) != 4 {
		t.Errorf("the restored table is %+v", d)
	}
	if status, _ := restored.describeTTL(t); status != types.TimeToLiveStatusDisabled {
		t.Errorf("TTL is %s", status)
	}
	restored.describePointInTime(t, 0)
	restored.awaitIndex(t, "byG", 2)
	restored.awaitIndex(t, "byN", 1)
	bare := tb.restoreTo(t, nil, func(in *dynamodb.RestoreTableToPointInTimeInput) {
		in.GlobalSecondaryIndexOverride, in.LocalSecondaryIndexOverride = []types.GlobalSecondaryIndex{}, []types.LocalSecondaryIndex{}
	})
	if d := bare.awaitActive(t); len(d.LocalSecondaryIndexes)+len(d.GlobalSecondaryIndexes) != 0 {
		t.Errorf("without indexes: %+v", d)
	}
}

// The deletion of a table with point-in-time recovery leaves a backup of type SYSTEM, which restores
// the table.
func pointInTimeDeletedTable(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	tb.pointInTime(t, 35)
	tb.put(t, item("pk", "a", "v", 1))
	want := tb.all(t)
	deleteTable(t, e, tb.name)
	tb.awaitGone(t)
	list := func(kind types.BackupTypeFilter) []types.BackupSummary {
		t.Helper()
		out, err := e.DB.ListBackups(t.Context(), &dynamodb.ListBackupsInput{TableName: &tb.name, BackupType: kind})
		if err != nil {
			t.Fatal(err)
		}
		return out.BackupSummaries
	}
	if user := list(types.BackupTypeFilterUser); len(user) != 0 {
		t.Errorf("backups of type USER: %+v", user)
	}
	found := list(types.BackupTypeFilterSystem)
	if len(found) != 1 || len(list(types.BackupTypeFilterAll)) != 1 {
		t.Fatalf("backups of type SYSTEM: %+v", found)
	}
	b := found[0]
	if aws.ToString(b.BackupName) != tb.name+"$DeletedTableBackup" || b.BackupType != types.BackupTypeSystem || b.BackupStatus != types.BackupStatusAvailable ||
		b.BackupExpiryDateTime == nil || b.BackupExpiryDateTime.Sub(*b.BackupCreationDateTime) != 35*24*time.Hour {
		t.Errorf("got %+v", b)
	}
	arn := aws.ToString(b.BackupArn)
	t.Cleanup(func() { deleteBackup(t, e, arn) })
	wantItems(t, "restored", tb.restore(t, arn).all(t), want)
}

// A restore has every change up to its time and no later one, also of items that have expired since.
func pointInTimeRestore(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S", global("byG", "g:S", "ALL"))
	tb.setTTL(t, true, "ttl")
	tb.pointInTime(t, 35)
	var times []time.Time
	var want [][]attributes
	for _, change := range []func(){
		func() {
			tb.put(t, item("pk", "a", "g", "x", "v", 1), item("pk", "ttl", "g", "x", "ttl", e.in(time.Hour)))
		},
		func() { tb.put(t, item("pk", "a", "g", "y", "v", 2), item("pk", "b")) },
		func() { tb.delete(t, item("pk", "a")) },
		func() { e.Advance(2 * time.Hour) },
		func() { tb.put(t, item("pk", "ttl", "g", "z")) },
	} {
		change()
		times = append(times, *tb.describePointInTime(t, 35).LatestRestorableDateTime)
		want = append(want, tb.all(t))
		e.Advance(time.Second)
	}
	for i, at := range times {
		restored := tb.restoreTo(t, &at)
		wantItems(t, "restored to "+at.String(), restored.all(t), want[i])
		indexed := 0
		for _, it := range want[i] {
			if it["g"] != nil {
				indexed++
			}
		}
		restored.awaitIndex(t, "byG", indexed)
	}
}

// The earliest restorable time is that of turning on, and then follows the recovery period.
func pointInTimeWindow(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	on := tb.pointInTime(t, 1)
	tb.put(t, item("pk", "a"))
	e.Advance(time.Hour)
	if now := tb.describePointInTime(t, 1); !now.EarliestRestorableDateTime.Equal(*on.EarliestRestorableDateTime) {
		t.Errorf("an hour after %v the window is %+v", on.EarliestRestorableDateTime, now)
	}
	e.Advance(48 * time.Hour)
	now := tb.describePointInTime(t, 1)
	if window := now.LatestRestorableDateTime.Sub(*now.EarliestRestorableDateTime); window > 24*time.Hour || window < 23*time.Hour {
		t.Errorf("two days later the window is %v", window)
	}
	_, err := e.DB.RestoreTableToPointInTime(t.Context(), &dynamodb.RestoreTableToPointInTimeInput{
		SourceTableName: &tb.name, TargetTableName: aws.String(tb.name + "x"), RestoreDateTime: on.LatestRestorableDateTime,
	})
	if problem := errorProblem(err, "InvalidRestoreTimeException", ""); problem != "" {
		t.Errorf("a restore to a time before the window:\n%s", problem)
	}
	wantItems(t, "restored", tb.restoreTo(t, now.LatestRestorableDateTime).all(t), tb.all(t))
}
