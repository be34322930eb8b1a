package guard

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// A mark is set before the removal to the deadline that armed it, and the removal is conditional on both. So the stream's REMOVE record of an expiry has an old image whose mark equals its TTL: what anyone else
// deletes has no mark, or, where it was renewed between guard's two steps, one of another value. See deliver.Expired for the reader's side.

// mark marks the item, and gives it as it is then.
func (g *Guard) mark(ctx context.Context, e entry) (item map[string]types.AttributeValue, units float64, err error) {
	condition, names, values := g.condition(e)
	names["#mark"] = g.o.Mark
	update := "SET #mark = :armed"
	in := &dynamodb.UpdateItemInput{
		TableName: &g.o.Table, Key: g.attributes(e.key), UpdateExpression: &update, ConditionExpression: &condition, ExpressionAttributeNames: names,
		ExpressionAttributeValues: values, ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
	}
	if g.o.Archive != nil {
		in.ReturnValues = types.ReturnValueAllNew
	}
	out, err := g.once.UpdateItem(ctx, in)
	if err != nil {
		return nil, 0, err
	}
	return out.Attributes, capacity(out.ConsumedCapacity), nil
}
