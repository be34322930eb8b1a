package lifecycle

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/retry"
)

// search scans a lifecycle's table for transitions that were due before an instant and whose item
// is gone, and for calls that were never handed over, and arms them again. Run calls it after a
// loss of stream records. If a record was not lost after all, the generation refuses the second
// firing, and a repeated call has the same ID.
func (l *Lifecycles) search(ctx context.Context, lifecycle string, before time.Time) (armed, called int, err error) {
	table, now := EntityTable(lifecycle), l.now()
	err = l.each(ctx, lifecycle, func(e *entity) error {
		if e.end != "" || e.next == nil || !e.paused.IsZero() || !e.next.at.Before(before) {
			return nil
		}
		_, err := l.o.DB.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
			{ConditionCheck: &types.ConditionCheck{
				TableName: &table, Key: key(e.id, partEntity), ConditionExpression: aws.String("#i = :i AND #g = :g"),
				ExpressionAttributeNames:  map[string]string{"#i": attrIncarnation, "#g": attrGeneration},
				ExpressionAttributeValues: Item{":i": attr.S(e.incarnation), ":g": attr.Int(e.generation)},
			}},
			{Put: &types.Put{
				TableName: &table, Item: e.pendingItem(now), ConditionExpression: aws.String("attribute_not_exists(#e)"), ExpressionAttributeNames: map[string]string{"#e": attrEntity},
			}},
		}})
		if err == nil {
			armed++
			return nil
		}
		return unlessCancelled(err)
	})
	if err != nil {
		return armed, called, err
	}
	called, err = l.searchCalls(ctx, lifecycle, now)
	return armed, called, err
}

// callsOld is the age from which a call under way counts as lost.
const callsOld = time.Minute

// searchCalls arms calls again that have neither an outcome nor an item.
func (l *Lifecycles) searchCalls(ctx context.Context, lifecycle string, now time.Time) (called int, err error) {
	table := EntityTable(lifecycle)
	pages := dynamodb.NewScanPaginator(l.o.DB, &dynamodb.ScanInput{
		TableName: &table, ConsistentRead: aws.Bool(true), FilterExpression: aws.String("begins_with(#part, :history) AND attribute_exists(#body) AND #at < :old"),
		ExpressionAttributeNames:  map[string]string{"#part": attrPart, "#body": attrBody, "#at": attrAt},
		ExpressionAttributeValues: Item{":history": attr.S(partHistory), ":old": attr.Millis(now.Add(-callsOld))},
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return called, err
		}
		for _, it := range page.Items {
			id, e := attr.String(it[attrEntity]), readEvent(it)
			if _, err := l.o.DB.PutItem(ctx, &dynamodb.PutItemInput{TableName: &table, Item: callItem(id, &e, now)}); err != nil {
				return called, err
			}
			called++
		}
	}
	return called, nil
}

// unlessCancelled returns nil for a transaction whose conditions failed, and otherwise err.
func unlessCancelled(err error) error {
	if c := cancelledBy(err); c != nil && !retry.Cancelled(c.CancellationReasons) {
		return nil
	}
	return err
}
