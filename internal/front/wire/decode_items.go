package wire

import (
	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/service"
)

func decodePutItem(d *decoder, in *service.WriteInput) { d.write(in, "Item") }

func decodeDeleteItem(d *decoder, in *service.WriteInput) { d.write(in, "Key") }

func decodeUpdateItem(d *decoder, in *service.WriteInput) {
	d.write(in, "Key",
		member{"UpdateExpression", &in.Update},
		member{"AttributeUpdates", func() { d.attributeUpdates(&in.Legacy) }},
	)
}

// write reads the members that all writes have, and others. item is the name of the item or key.
func (d *decoder) write(in *service.WriteInput, item string, others ...member) {
	d.read(members{
		{"TableName", &in.TableName},
		{item, &in.Item},
		{"ConditionExpression", &in.Condition},
		{"ExpressionAttributeNames", &in.Names},
		{"ExpressionAttributeValues", &in.Values},
		{"ReturnValues", &in.ReturnValues},
		{"ReturnValuesOnConditionCheckFailure", &in.ReturnValuesOnConditionFail},
		{"ReturnConsumedCapacity", &in.ReturnConsumedCapacity},
		{"ReturnItemCollectionMetrics", &in.ReturnItemCollectionMetrics},
		{"Expected", func() { d.expected(&in.Legacy) }},
		{"ConditionalOperator", &in.Legacy.ConditionalOperator},
	}, others...)
}

func decodeGetItem(d *decoder, in *service.GetItemInput) {
	d.read(members{
		{"TableName", &in.TableName},
		{"Key", &in.Key},
		{"ProjectionExpression", &in.Projection},
		{"ExpressionAttributeNames", &in.Names},
		{"ConsistentRead", &in.ConsistentRead},
		{"ReturnConsumedCapacity", &in.ReturnConsumedCapacity},
		{"AttributesToGet", &in.Legacy.AttributesToGet},
	})
	in.Expired = d.expired()
}

func decodeQuery(d *decoder, in *service.QueryInput) {
	d.read(members{
		{"TableName", &in.TableName},
		{"IndexName", &in.IndexName},
		{"KeyConditionExpression", &in.KeyCondition},
		{"FilterExpression", &in.Filter},
		{"ProjectionExpression", &in.Projection},
		{"ExpressionAttributeNames", &in.Names},
		{"ExpressionAttributeValues", &in.Values},
		{"Select", &in.Select},
		{"Limit", &in.Limit},
		{"ConsistentRead", &in.ConsistentRead},
		{"ScanIndexForward", &in.ScanIndexForward},
		{"ExclusiveStartKey", &in.ExclusiveStartKey},
		{"ReturnConsumedCapacity", &in.ReturnConsumedCapacity},
		{"KeyConditions", func() { in.Legacy.KeyConditions = d.conditions(&in.Legacy) }},
		{"QueryFilter", func() { in.Legacy.QueryFilter = d.conditions(&in.Legacy) }},
		{"ConditionalOperator", &in.Legacy.ConditionalOperator},
		{"AttributesToGet", &in.Legacy.AttributesToGet},
	})
	in.Expired = d.expired()
}

func decodeScan(d *decoder, in *service.ScanInput) {
	d.read(members{
		{"TableName", &in.TableName},
		{"IndexName", &in.IndexName},
		{"FilterExpression", &in.Filter},
		{"ProjectionExpression", &in.Projection},
		{"ExpressionAttributeNames", &in.Names},
		{"ExpressionAttributeValues", &in.Values},
		{"Select", &in.Select},
		{"Limit", &in.Limit},
		{"Segment", &in.Segment},
		{"TotalSegments", &in.TotalSegments},
		{"ConsistentRead", &in.ConsistentRead},
		{"ExclusiveStartKey", &in.ExclusiveStartKey},
		{"ReturnConsumedCapacity", &in.ReturnConsumedCapacity},
		{"ScanFilter", func() { in.Legacy.ScanFilter = d.conditions(&in.Legacy) }},
		{"ConditionalOperator", &in.Legacy.ConditionalOperator},
		{"AttributesToGet", &in.Legacy.AttributesToGet},
	})
	in.Expired = d.expired()
}

// headerExpired limits a read to items that have expired and are not removed yet ("only"), or to
// the others ("hide"). The answer repeats it, so that a client knows that the endpoint supports it.
const headerExpired = "X-Mayfly-Expired"

// expired returns the value of headerExpired and copies the header to the answer. Without the
// header it returns zero. The error for an unknown value waits in d.invalid.
func (d *decoder) expired() (e service.Expired) {
	value := d.request.Header.Get(headerExpired)
	switch value {
	case "":
		return e
	case "only":
		e = service.ExpiredOnly
	case "hide":
		e = service.ExpiredHidden
	default:
		d.invalid = dynamo.Invalid(headerExpired + " must be only or hide: " + value)
		return e
	}
	d.response.set(headerExpired, value)
	return e
}
