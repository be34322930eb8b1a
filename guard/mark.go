package guard

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/guard/internal/armed"
)

// A mark is set, before the removal, to the deadline that armed it; the removal is conditional on
// both. So in the stream's REMOVE record of an expiry the old image has a mark that equals its TTL.
// An item deleted by another client has no mark, or another value if it was renewed between guard's
// two steps. See consume.Expired for the reader's side.

// mark sets the item's mark. It returns the item after that if it is needed.
func (g *Guard) mark(ctx context.Context, e armed.Entry) (item map[string]types.AttributeValue, units float64, err error) {
	condition, names, values := g.table.Condition(e)
	names["#mark"] = g.o.Mark
	update := "SET #mark = :armed"
	in := &dynamodb.UpdateItemInput{
		TableName: &g.o.Table, Key: g.table.Attributes(e.Key), UpdateExpression: &update, ConditionExpression: &condition, ExpressionAttributeNames: names,
		ExpressionAttributeValues: values, ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
	}
	if g.needsImage() {
		in.ReturnValues = types.ReturnValueAllNew
	}
	out, err := g.once.UpdateItem(ctx, in)
	if err != nil {
		return nil, 0, err
	}
	return out.Attributes, capacity(out.ConsumedCapacity), nil
}
