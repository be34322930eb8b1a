package reminder

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/ensure"
)

// Reminder is one that is to fire.
type Reminder struct {
	Rule  string    // name
	Key   string    // of the item, as JSON with types
	Due   time.Time // to the millisecond
	Input []byte    // what the target gets
}

// Each calls f for every reminder that is to fire, of one rule or, where the name is empty, of all, until f fails. They come in no order. Those of versions of a
// rule that there are no longer are among them until they expire.
func Each(ctx context.Context, db *dynamodb.Client, rule string, f func(Reminder) error) error {
	in := &dynamodb.ScanInput{
		TableName: aws.String(TableName), ConsistentRead: aws.Bool(true), FilterExpression: aws.String("#kind = :kind"),
		ExpressionAttributeNames: map[string]string{"#kind": attrKind}, ExpressionAttributeValues: item{":kind": attr.S(kindReminder)},
	}
	if rule != "" {
		in.FilterExpression = aws.String("#kind = :kind AND #rule = :rule")
		in.ExpressionAttributeNames["#rule"], in.ExpressionAttributeValues[":rule"] = attrRule, attr.S(rule)
	}
	for pages := dynamodb.NewScanPaginator(db, in); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if ensure.Missing(err) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, it := range page.Items {
			err := f(Reminder{Rule: attr.String(it[attrRule]), Key: attr.String(it[attrKey]), Due: dueOf(it), Input: []byte(attr.String(it[attrInput]))})
			if err != nil {
				return err
			}
		}
	}
	return nil
}
