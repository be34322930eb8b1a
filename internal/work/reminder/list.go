package reminder

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/items"
)

// Reminder is a pending reminder.
type Reminder struct {
	Rule  string    // name
	Key   string    // of the item, as JSON with types
	Due   time.Time // to the millisecond
	Input []byte    // the target's input
}

// Each calls f for every pending reminder of a rule, or of all rules if the name is empty, until f
// fails. The order is undefined. Reminders of earlier versions of a rule are among them until they
// expire.
func Each(ctx context.Context, db *dynamodb.Client, rule string, f func(Reminder) error) error {
	in := &dynamodb.ScanInput{
		TableName: aws.String(TableName), FilterExpression: aws.String("#kind = :kind"),
		ExpressionAttributeNames: map[string]string{"#kind": attrKind}, ExpressionAttributeValues: item{":kind": attr.S(kindReminder)},
	}
	if rule != "" {
		in.FilterExpression = aws.String("#kind = :kind AND #rule = :rule")
		in.ExpressionAttributeNames["#rule"], in.ExpressionAttributeValues[":rule"] = attrRule, attr.S(rule)
	}
	for it, err := range items.Scan(ctx, db, in) {
		if err != nil {
			return err
		}
		err := f(Reminder{Rule: attr.String(it[attrRule]), Key: attr.String(it[attrKey]), Due: dueOf(it), Input: []byte(attr.String(it[attrInput]))})
		if err != nil {
			return err
		}
	}
	return nil
}
