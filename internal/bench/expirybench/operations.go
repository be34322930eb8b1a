package expirybench

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/work/attr"
)

// operation is one kind of read or write, and how it shows whether an item exists.
type operation struct {
	name string
	// sees reports whether the operation finds the item of a partition. It may change or delete the item.
	sees func(ctx context.Context, t *table, partition string) (bool, error)
}

// Values of the items that operations look for.
const (
	sortValue   = "only"
	countBefore = 41 // of the attribute that an update adds to
)

// operations are the measured kinds: reads, reads of indexes, conditions, old values and PartiQL.
var operations = []operation{
	{"GetItem", func(ctx context.Context, t *table, p string) (bool, error) {
		out, err := t.db.GetItem(ctx, &dynamodb.GetItemInput{TableName: &t.name, Key: wholeKey(p), ConsistentRead: aws.Bool(true)})
		return err == nil && len(out.Item) > 0, err
	}},
	{"BatchGetItem", func(ctx context.Context, t *table, p string) (bool, error) {
		out, err := t.db.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{
			t.name: {Keys: []attr.Item{wholeKey(p)}, ConsistentRead: aws.Bool(true)},
		}})
		return err == nil && len(out.Responses[t.name]) > 0, err
	}},
	{"Query", func(ctx context.Context, t *table, p string) (bool, error) {
		return t.queries(ctx, keyName, p, func(in *dynamodb.QueryInput) { in.ConsistentRead = aws.Bool(true) })
	}},
	{"Query, only the count", func(ctx context.Context, t *table, p string) (bool, error) {
		return t.queries(ctx, keyName, p, func(in *dynamodb.QueryInput) { in.Select = types.SelectCount })
	}},
	{"Query of a global index", func(ctx context.Context, t *table, p string) (bool, error) {
		return t.queries(ctx, groupName, p, func(in *dynamodb.QueryInput) { in.IndexName = aws.String(globalIndex) })
	}},
	{"Query of a local index", func(ctx context.Context, t *table, p string) (bool, error) {
		return t.queries(ctx, keyName, p, func(in *dynamodb.QueryInput) { in.IndexName = aws.String(localIndex) })
	}},
	{"Scan", func(ctx context.Context, t *table, p string) (bool, error) {
		return t.scans(ctx, p, func(*dynamodb.ScanInput) {})
	}},
	{"Scan in two segments", func(ctx context.Context, t *table, p string) (bool, error) {
		first, err := t.scans(ctx, p, func(in *dynamodb.ScanInput) { in.Segment, in.TotalSegments = aws.Int32(0), aws.Int32(2) })
		if first || err != nil {
			return first, err
		}
		return t.scans(ctx, p, func(in *dynamodb.ScanInput) { in.Segment, in.TotalSegments = aws.Int32(1), aws.Int32(2) })
	}},
	{"TransactGetItems", func(ctx context.Context, t *table, p string) (bool, error) {
		out, err := t.db.TransactGetItems(ctx, &dynamodb.TransactGetItemsInput{TransactItems: []types.TransactGetItem{
			{Get: &types.Get{TableName: &t.name, Key: wholeKey(p)}},
		}})
		return err == nil && len(out.Responses) == 1 && len(out.Responses[0].Item) > 0, err
	}},
	{"ExecuteStatement with SELECT", func(ctx context.Context, t *table, p string) (bool, error) {
		out, err := t.db.ExecuteStatement(ctx, &dynamodb.ExecuteStatementInput{
			Statement: aws.String(t.statement("SELECT * FROM %q")), Parameters: parameters(p), ConsistentRead: aws.Bool(true),
		})
		return err == nil && len(out.Items) > 0, err
	}},
	{"BatchExecuteStatement with SELECT", func(ctx context.Context, t *table, p string) (bool, error) {
		out, err := t.db.BatchExecuteStatement(ctx, &dynamodb.BatchExecuteStatementInput{Statements: []types.BatchStatementRequest{
			{Statement: aws.String(t.statement("SELECT * FROM %q")), Parameters: parameters(p), ConsistentRead: aws.Bool(true)},
		}})
		if err != nil || len(out.Responses) == 0 {
			return false, err
		}
		if failed := out.Responses[0].Error; failed != nil {
			return false, fmt.Errorf("%s: %s", failed.Code, aws.ToString(failed.Message))
		}
		return len(out.Responses[0].Item) > 0, nil
	}},
	{"ExecuteStatement with DELETE, old values", func(ctx context.Context, t *table, p string) (bool, error) {
		out, err := t.db.ExecuteStatement(ctx, &dynamodb.ExecuteStatementInput{
			Statement: aws.String(t.statement("DELETE FROM %q") + " RETURNING ALL OLD *"), Parameters: parameters(p),
		})
		if refused(err) {
			return false, nil
		}
		return err == nil && len(out.Items) > 0, err
	}},
	{"ConditionCheck of TransactWriteItems", func(ctx context.Context, t *table, p string) (bool, error) {
		_, err := t.db.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
			{ConditionCheck: &types.ConditionCheck{TableName: &t.name, Key: wholeKey(p), ConditionExpression: aws.String(exists)}},
		}})
		return accepted(err)
	}},
	{"PutItem if the item is missing", func(ctx context.Context, t *table, p string) (bool, error) {
		_, err := t.db.PutItem(ctx, &dynamodb.PutItemInput{TableName: &t.name, Item: wholeKey(p), ConditionExpression: aws.String(missing)})
		done, err := accepted(err)
		return err == nil && !done, err
	}},
	{"PutItem, old values", func(ctx context.Context, t *table, p string) (bool, error) {
		out, err := t.db.PutItem(ctx, &dynamodb.PutItemInput{TableName: &t.name, Item: wholeKey(p), ReturnValues: types.ReturnValueAllOld})
		return err == nil && len(out.Attributes) > 0, err
	}},
	{"UpdateItem that adds to the old value", func(ctx context.Context, t *table, p string) (bool, error) {
		out, err := t.db.UpdateItem(ctx, &dynamodb.UpdateItemInput{
			TableName: &t.name, Key: wholeKey(p), UpdateExpression: aws.String("ADD " + numberName + " :one"),
			ExpressionAttributeValues: attr.Item{":one": attr.Int(1)}, ReturnValues: types.ReturnValueUpdatedNew,
		})
		return err == nil && attr.Integer(out.Attributes[numberName]) == countBefore+1, err
	}},
	{"UpdateItem, old values", func(ctx context.Context, t *table, p string) (bool, error) {
		out, err := t.db.UpdateItem(ctx, &dynamodb.UpdateItemInput{
			TableName: &t.name, Key: wholeKey(p), UpdateExpression: aws.String("SET " + textName + " = :new"),
			ExpressionAttributeValues: attr.Item{":new": attr.S("new")}, ReturnValues: types.ReturnValueAllOld,
		})
		return err == nil && len(out.Attributes) > 0, err
	}},
	{"UpdateItem if the item exists", func(ctx context.Context, t *table, p string) (bool, error) {
		_, err := t.db.UpdateItem(ctx, &dynamodb.UpdateItemInput{
			TableName: &t.name, Key: wholeKey(p), UpdateExpression: aws.String("SET " + textName + " = :new"),
			ExpressionAttributeValues: attr.Item{":new": attr.S("new")}, ConditionExpression: aws.String(exists),
		})
		return accepted(err)
	}},
	{"DeleteItem, old values", func(ctx context.Context, t *table, p string) (bool, error) {
		out, err := t.db.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: &t.name, Key: wholeKey(p), ReturnValues: types.ReturnValueAllOld})
		return err == nil && len(out.Attributes) > 0, err
	}},
	{"DeleteItem if the item exists", func(ctx context.Context, t *table, p string) (bool, error) {
		_, err := t.db.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: &t.name, Key: wholeKey(p), ConditionExpression: aws.String(exists)})
		return accepted(err)
	}},
}

const (
	exists  = "attribute_exists(" + keyName + ")"
	missing = "attribute_not_exists(" + keyName + ")"
)

func wholeKey(partition string) attr.Item {
	return attr.Item{keyName: attr.S(partition), sortName: attr.S(sortValue)}
}

// statement adds the key's condition to a PartiQL statement about the table.
func (t *table) statement(format string) string {
	return fmt.Sprintf(format+" WHERE "+keyName+" = ? AND "+sortName+" = ?", t.name)
}

func parameters(partition string) []types.AttributeValue {
	return []types.AttributeValue{attr.S(partition), attr.S(sortValue)}
}

// refused reports whether a condition was false.
func refused(err error) bool {
	if _, failed := errors.AsType[*types.ConditionalCheckFailedException](err); failed {
		return true
	}
	cancelled, ok := errors.AsType[*types.TransactionCanceledException](err)
	return ok && len(cancelled.CancellationReasons) > 0 && aws.ToString(cancelled.CancellationReasons[0].Code) == "ConditionalCheckFailed"
}

// accepted reports whether a condition was true. Other errors are errors.
func accepted(err error) (bool, error) {
	if refused(err) {
		return false, nil
	}
	return err == nil, err
}

// queries reports whether a Query for one value of a key finds an item. Only the count decides.
func (t *table) queries(ctx context.Context, key, value string, option func(*dynamodb.QueryInput)) (bool, error) {
	in := &dynamodb.QueryInput{
		TableName: &t.name, KeyConditionExpression: aws.String(key + " = :v"), ExpressionAttributeValues: attr.Item{":v": attr.S(value)},
	}
	option(in)
	out, err := t.db.Query(ctx, in)
	return err == nil && out.Count > 0, err
}

// scans reports whether a Scan finds an item with the partition key.
func (t *table) scans(ctx context.Context, partition string, option func(*dynamodb.ScanInput)) (bool, error) {
	in := &dynamodb.ScanInput{TableName: &t.name, ConsistentRead: aws.Bool(true), ProjectionExpression: aws.String(keyName)}
	option(in)
	for {
		out, err := t.db.Scan(ctx, in)
		if err != nil {
			return false, err
		}
		for _, i := range out.Items {
			if attr.String(i[keyName]) == partition {
				return true, nil
			}
		}
		if in.ExclusiveStartKey = out.LastEvaluatedKey; len(out.LastEvaluatedKey) == 0 {
			return false, nil
		}
	}
}
