package lifecycle

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/items"
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
		refusal, err := items.Transact(ctx, l.o.DB, []items.Action{
			items.Check(table, key(e.id, partEntity), e.unchanged()),
			items.Put(table, e.pendingItem(now), items.Absent(attrEntity)),
		})
		switch {
		case err == nil && refusal == nil:
			armed++
		case impossible(err): // the other entities must not wait for this one
			l.o.Logger.Error("a lost transition cannot be armed", "lifecycle", lifecycle, "entity", e.id, "error", err)
			return nil
		}
		return err
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
	found := items.Scan(ctx, l.o.DB, &dynamodb.ScanInput{
		TableName: &table, FilterExpression: aws.String("begins_with(#part, :history) AND attribute_exists(#body) AND #at < :old"),
		ExpressionAttributeNames:  map[string]string{"#part": attrPart, "#body": attrBody, "#at": attrAt},
		ExpressionAttributeValues: Item{":history": attr.S(partHistory), ":old": attr.Millis(now.Add(-callsOld))},
	})
	for it, err := range found {
		if err != nil {
			return called, err
		}
		id, e := attr.String(it[attrEntity]), readEvent(it)
		if _, err := l.o.DB.PutItem(ctx, &dynamodb.PutItemInput{TableName: &table, Item: callItem(id, &e, now)}); err != nil {
			return called, err
		}
		called++
	}
	return called, nil
}
