package wire

import (
	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/service"
)

func decodePutItem(d *decoder, in *service.PutItemInput) {
	var name []byte
	for d.NextMember(&name) {
		switch string(name) {
		case "TableName":
			in.TableName = d.text()
		case "Item":
			in.Item = d.item()
		case "ConditionExpression":
			in.Condition = d.text()
		case "ExpressionAttributeNames":
			in.Names = d.names()
		case "ExpressionAttributeValues":
			in.Values = d.values()
		case "ReturnValues":
			in.ReturnValues = d.text()
		case "ReturnValuesOnConditionCheckFailure":
			in.ReturnValuesOnConditionFail = d.text()
		case "ReturnConsumedCapacity":
			in.ReturnConsumedCapacity = d.text()
		case "ReturnItemCollectionMetrics":
			in.ReturnItemCollectionMetrics = d.text()
		case "Expected":
			d.expected(&in.Legacy)
		case "ConditionalOperator":
			in.Legacy.ConditionalOperator = d.text()
		default:
			d.Skip()
		}
	}
}

func decodeDeleteItem(d *decoder, in *service.DeleteItemInput) {
	var name []byte
	for d.NextMember(&name) {
		switch string(name) {
		case "TableName":
			in.TableName = d.text()
		case "Key":
			in.Key = d.item()
		case "ConditionExpression":
			in.Condition = d.text()
		case "ExpressionAttributeNames":
			in.Names = d.names()
		case "ExpressionAttributeValues":
			in.Values = d.values()
		case "ReturnValues":
			in.ReturnValues = d.text()
		case "ReturnValuesOnConditionCheckFailure":
			in.ReturnValuesOnConditionFail = d.text()
		case "ReturnConsumedCapacity":
			in.ReturnConsumedCapacity = d.text()
		case "ReturnItemCollectionMetrics":
			in.ReturnItemCollectionMetrics = d.text()
		case "Expected":
			d.expected(&in.Legacy)
		case "ConditionalOperator":
			in.Legacy.ConditionalOperator = d.text()
		default:
			d.Skip()
		}
	}
}

func decodeUpdateItem(d *decoder, in *service.UpdateItemInput) {
	var name []byte
	for d.NextMember(&name) {
		switch string(name) {
		case "TableName":
			in.TableName = d.text()
		case "Key":
			in.Key = d.item()
		case "UpdateExpression":
			in.Update = d.text()
		case "ConditionExpression":
			in.Condition = d.text()
		case "ExpressionAttributeNames":
			in.Names = d.names()
		case "ExpressionAttributeValues":
			in.Values = d.values()
		case "ReturnValues":
			in.ReturnValues = d.text()
		case "ReturnValuesOnConditionCheckFailure":
			in.ReturnValuesOnConditionFail = d.text()
		case "ReturnConsumedCapacity":
			in.ReturnConsumedCapacity = d.text()
		case "ReturnItemCollectionMetrics":
			in.ReturnItemCollectionMetrics = d.text()
		case "AttributeUpdates":
			d.attributeUpdates(&in.Legacy)
		case "Expected":
			d.expected(&in.Legacy)
		case "ConditionalOperator":
			in.Legacy.ConditionalOperator = d.text()
		default:
			d.Skip()
		}
	}
}

func decodeGetItem(d *decoder, in *service.GetItemInput) {
	var name []byte
	for d.NextMember(&name) {
		switch string(name) {
		case "TableName":
			in.TableName = d.text()
		case "Key":
			in.Key = d.item()
		case "ProjectionExpression":
			in.Projection = d.text()
		case "ExpressionAttributeNames":
			in.Names = d.names()
		case "ConsistentRead":
			in.ConsistentRead = d.boolean()
		case "ReturnConsumedCapacity":
			in.ReturnConsumedCapacity = d.text()
		case "AttributesToGet":
			in.Legacy.AttributesToGet = d.texts()
		default:
			d.Skip()
		}
	}
	in.Expired = d.expired()
}

func decodeQuery(d *decoder, in *service.QueryInput) {
	var name []byte
	for d.NextMember(&name) {
		switch string(name) {
		case "TableName":
			in.TableName = d.text()
		case "IndexName":
			in.IndexName = d.text()
		case "KeyConditionExpression":
			in.KeyCondition = d.text()
		case "FilterExpression":
			in.Filter = d.text()
		case "ProjectionExpression":
			in.Projection = d.text()
		case "ExpressionAttributeNames":
			in.Names = d.names()
		case "ExpressionAttributeValues":
			in.Values = d.values()
		case "Select":
			in.Select = d.text()
		case "Limit":
			in.Limit = d.integer()
		case "ConsistentRead":
			in.ConsistentRead = d.boolean()
		case "ScanIndexForward":
			in.ScanIndexForward = d.boolean()
		case "ExclusiveStartKey":
			in.ExclusiveStartKey = d.item()
		case "ReturnConsumedCapacity":
			in.ReturnConsumedCapacity = d.text()
		case "KeyConditions":
			in.Legacy.KeyConditions = d.conditions(&in.Legacy)
		case "QueryFilter":
			in.Legacy.QueryFilter = d.conditions(&in.Legacy)
		case "ConditionalOperator":
			in.Legacy.ConditionalOperator = d.text()
		case "AttributesToGet":
			in.Legacy.AttributesToGet = d.texts()
		default:
			d.Skip()
		}
	}
	in.Expired = d.expired()
}

func decodeScan(d *decoder, in *service.ScanInput) {
	var name []byte
	for d.NextMember(&name) {
		switch string(name) {
		case "TableName":
			in.TableName = d.text()
		case "IndexName":
			in.IndexName = d.text()
		case "FilterExpression":
			in.Filter = d.text()
		case "ProjectionExpression":
			in.Projection = d.text()
		case "ExpressionAttributeNames":
			in.Names = d.names()
		case "ExpressionAttributeValues":
			in.Values = d.values()
		case "Select":
			in.Select = d.text()
		case "Limit":
			in.Limit = d.integer()
		case "Segment":
			in.Segment = d.integer()
		case "TotalSegments":
			in.TotalSegments = d.integer()
		case "ConsistentRead":
			in.ConsistentRead = d.boolean()
		case "ExclusiveStartKey":
			in.ExclusiveStartKey = d.item()
		case "ReturnConsumedCapacity":
			in.ReturnConsumedCapacity = d.text()
		case "ScanFilter":
			in.Legacy.ScanFilter = d.conditions(&in.Legacy)
		case "ConditionalOperator":
			in.Legacy.ConditionalOperator = d.text()
		case "AttributesToGet":
			in.Legacy.AttributesToGet = d.texts()
		default:
			d.Skip()
		}
	}
	in.Expired = d.expired()
}

// headerExpired limits a read to items that have expired and are not removed yet ("only"), or to
// the others ("hide"). The answer repeats it, so that a client knows that the endpoint supports it.
const headerExpired = "X-Mayfly-Expired"

// expired reads the header and copies it to the answer.
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
