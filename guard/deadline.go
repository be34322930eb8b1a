package guard

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/guard/internal/armed"
)

// read returns the item and whether it still has the deadline that armed the entry.
func (g *Guard) read(ctx context.Context, e armed.Entry) (item map[string]types.AttributeValue, armed bool, err error) {
	out, err := g.once.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &g.o.Table, Key: g.table.Attributes(e.Key), ConsistentRead: aws.Bool(true), ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
	})
	if err != nil || !g.table.Armed(out.Item, e) {
		return nil, false, err
	}
	return out.Item, true, nil
}

// badValue reports a value, once for a while.
func (g *Guard) badValue(k armed.Key, err error) {
	err = fmt.Errorf("TTL attribute %s: %w", g.o.Attribute, err)
	first, last := g.bad.first(string(k)+"\x00"+err.Error(), g.local.Millis())
	if !first {
		return
	}
	g.log.Warn("an item stays: its TTL value is not epoch seconds", "table", g.o.Table, "key", g.table.KeyJSON(k), "error", err)
	if last {
		g.log.Warn("many items have such values; the next ones are not logged one by one", "table", g.o.Table)
	}
	g.observe(Event{What: BadValue, Key: g.table.KeyJSON(k), Err: err})
}
