package demo

import (
	"context"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"

	"github.com/mayflydb/mayfly/internal/clock"
)

const (
	batchItems = 25 // limit of BatchWriteItem
	writers    = 8
	retryPause = 5 * time.Millisecond
)

// createTable creates the table with its stream, and turns TTL on.
func (d *Demo) createTable(ctx context.Context) error {
	_, err := d.DB.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName: aws.String(tableName),
		AttributeDefinitions: []types.AttributeDefinition{
			{AttributeName: aws.String(attrDevice), AttributeType: types.ScalarAttributeTypeS},
			{AttributeName: aws.String(attrTime), AttributeType: types.ScalarAttributeTypeS},
		},
		KeySchema: []types.KeySchemaElement{
			{AttributeName: aws.String(attrDevice), KeyType: types.KeyTypeHash},
			{AttributeName: aws.String(attrTime), KeyType: types.KeyTypeRange},
		},
		BillingMode: types.BillingModePayPerRequest,
		StreamSpecification: &types.StreamSpecification{
			StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewAndOldImages,
		},
	})
	if err != nil {
		return err
	}
	_, err = d.DB.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
		TableName:               aws.String(tableName),
		TimeToLiveSpecification: &types.TimeToLiveSpecification{Enabled: aws.Bool(true), AttributeName: aws.String(attrExpires)},
	})
	return err
}

// write stores the whole plan, in the order of the deadlines.
func (d *Demo) write(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for batch := range slices.Chunk(d.plan, batchItems) {
		group.Go(func() error { return d.writeBatch(ctx, batch) })
	}
	return group.Wait()
}

func (d *Demo) writeBatch(ctx context.Context, batch []*entry) error {
	requests := make([]types.WriteRequest, len(batch))
	for i, e := range batch {
		requests[i] = types.WriteRequest{PutRequest: &types.PutRequest{Item: e.item()}}
	}
	pending := map[string][]types.WriteRequest{tableName: requests}
	for len(pending) > 0 {
		out, err := d.DB.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{RequestItems: pending})
		if err != nil {
			return err
		}
		if pending = out.UnprocessedItems; len(pending) > 0 {
			clock.Pause(retryPause, ctx.Done())
		}
	}
	d.tally.acknowledged(batch)
	return nil
}

// countRemaining returns the number of items that a scan still finds.
func (d *Demo) countRemaining(ctx context.Context) error {
	pages := dynamodb.NewScanPaginator(d.DB, &dynamodb.ScanInput{
		TableName: aws.String(tableName), Select: types.SelectCount, ConsistentRead: aws.Bool(true),
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		d.tally.scanned(int(page.Count))
	}
	return nil
}
