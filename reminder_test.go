package mayfly

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/target"
)

// A declared reminder follows its items to the millisecond, the clock waits for it, and it
// continues after the directory is opened again.
func TestReminders(t *testing.T) {
	in := new(inbox)
	dir := t.TempDir()
	options := Options{
		Start: midnight, Frozen: true, Targets: []target.Mapping{in.mapping(testFunction)}, ClockControl: ClockControlOn,
		Reminders: []Reminder{{Name: "visit", Table: "visits", Attribute: "when", Offset: -time.Hour, Target: testFunction}},
	}
	db, err := Open(dir, options)
	if err != nil {
		t.Fatal(err)
	}
	makeTableWithView(t, db.DynamoDB(), "visits", types.StreamViewTypeNewAndOldImages)
	begin := db.Clock().Now().Add(time.Second).Truncate(time.Second)
	visit := func(db *DB, k string, after time.Duration) {
		_, err := db.DynamoDB().PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("visits"), Item: map[string]types.AttributeValue{
			"pk": &types.AttributeValueMemberS{Value: k}, "when": &types.AttributeValueMemberS{Value: begin.Add(after).Format(time.RFC3339Nano)},
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	visit(db, "a", 2*time.Hour+250*time.Millisecond)
	visit(db, "b", 3*time.Hour)
	within(t, "the table to be found", func() bool { return db.hasTable("mayfly.reminders") && db.countReminders(t) == 2 })
	advance(t, db, begin.Add(time.Hour+249*time.Millisecond).Sub(db.Clock().Now()))
	in.want(t)
	advance(t, db, time.Millisecond)
	in.want(t, "visit "+begin.Add(time.Hour+250*time.Millisecond).Format("15:04:05.000")+" 1")
	visit(db, "b", 26*time.Hour)
	visit(db, "c", 30*time.Hour)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	in.got = nil
	if db, err = Open(dir, options); err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	advance(t, db, 48*time.Hour)
	in.want(t, "visit "+begin.Add(25*time.Hour).Format("15:04:05.000")+" 1", "visit "+begin.Add(29*time.Hour).Format("15:04:05.000")+" 1")
}

// countReminders returns the number of items in the table of reminders, without the rule's.
func (db *DB) countReminders(t *testing.T) int {
	out, err := db.DynamoDB().Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String("mayfly.reminders"), ConsistentRead: aws.Bool(true)})
	if err != nil {
		t.Fatal(err)
	}
	return len(out.Items) - 1
}
