package lease

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/ensure"
)

// Each calls f for the rows of all consumers in the table of leases, in no order, until f returns an
// error. Without the table there are no rows. It takes part in no lease.
func Each(ctx context.Context, db *dynamodb.Client, o Options, f func(consumer string, r Row) error) error {
	in := &dynamodb.ScanInput{TableName: aws.String(o.TableName()), ConsistentRead: aws.Bool(true)}
	for {
		out, err := db.Scan(ctx, in)
		if ensure.Missing(err) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, item := range out.Items {
			if err := f(attr.String(item[attrConsumer]), rowOf(item)); err != nil {
				return err
			}
		}
		if in.ExclusiveStartKey = out.LastEvaluatedKey; in.ExclusiveStartKey == nil {
			return nil
		}
	}
}
