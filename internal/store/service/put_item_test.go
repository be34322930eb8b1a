package service

import (
	"strings"
	"testing"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

func TestPutItemReplacesWhole(t *testing.T) {
	d := open(t)
	table := d.counters()
	d.put(table, `{"id":{"S":"a"},"n":{"N":"1"},"x":{"S":"old"}}`)
	d.put(table, `{"id":{"S":"a"},"n":{"N":"2.0"}}`)
	equal(t, "item", d.get(table, `{"id":{"S":"a"}}`), `{"id":{"S":"a"},"n":{"N":"2"}}`)
}

func TestPutItemReturnsOld(t *testing.T) {
	d := open(t)
	in := WriteInput{TableName: Some(d.counters()), Item: arg(`{"id":{"S":"a"},"n":{"N":"1"}}`), ReturnValues: Some("ALL_OLD")}
	out, err := d.PutItem(ctx, &in)
	if err != nil || out.Attributes != nil {
		t.Fatalf("first put: %v, %v", out, err)
	}
	in.Item = arg(`{"id":{"S":"a"},"n":{"N":"2"}}`)
	if out, err = d.PutItem(ctx, &in); err != nil {
		t.Fatal(err)
	}
	equal(t, "old", out.Attributes.String(), `{"id":{"S":"a"},"n":{"N":"1"}}`)
}

func TestPutItemCondition(t *testing.T) {
	d := open(t)
	in := WriteInput{
		TableName: Some(d.counters()), Item: arg(`{"id":{"S":"a"}}`), Condition: Some("attribute_not_exists(id)"),
		ReturnValuesOnConditionFail: Some("ALL_OLD"),
	}
	if _, err := d.PutItem(ctx, &in); err != nil {
		t.Fatal(err)
	}
	_, err := d.PutItem(ctx, &in)
	refused(t, err, dynamo.CodeConditionalCheckFailed, "The conditional request failed")
	equal(t, "item in error", err.(*dynamo.Error).Item.String(), `{"id":{"S":"a"}}`)

	in.ReturnValuesOnConditionFail = Opt[string]{}
	_, err = d.PutItem(ctx, &in)
	equal(t, "item that nobody asked for", err.(*dynamo.Error).Item == nil, true)
}

func TestPutItemValidation(t *testing.T) {
	d := open(t)
	music, counters := d.music(), d.counters()
	big := `{"id":{"S":"a"},"x":{"S":"` + strings.Repeat("x", 400*1024) + `"}}`
	tests := []struct {
		about string
		in    WriteInput
		want  string
	}{
		{"no table name", WriteInput{},
			"1 validation error detected: Value null at 'tableName' failed to satisfy constraint: Member must not be null"},
		{"bad table name, reported before the enums", WriteInput{TableName: Some("a;b"), ReturnValues: Some("hi")},
			"1 validation error detected: Value 'a;b' at 'tableName' failed to satisfy constraint: Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+"},
		{"all shape errors at once", WriteInput{TableName: Some("abc"), ReturnConsumedCapacity: Some("hi"), ReturnValues: Some("hi"), ReturnItemCollectionMetrics: Some("hi")},
			"4 validation errors detected: " +
				"Value 'hi' at 'returnConsumedCapacity' failed to satisfy constraint: Member must satisfy enum value set: [INDEXES, TOTAL, NONE]; " +
				"Value null at 'item' failed to satisfy constraint: Member must not be null; " +
				"Value 'hi' at 'returnValues' failed to satisfy constraint: Member must satisfy enum value set: [ALL_NEW, UPDATED_OLD, ALL_OLD, NONE, UPDATED_NEW]; " +
				"Value 'hi' at 'returnItemCollectionMetrics' failed to satisfy constraint: Member must satisfy enum value set: [SIZE, NONE]"},
		{"ARN of something else", WriteInput{TableName: Some("arn:aws:dynamodb:eu-west-1:123456789012:index/x"), Item: arg(`{}`)},
			"1 validation error detected: Invalid resource type in 'arn:aws:dynamodb:eu-west-1:123456789012:index/x'"},
		{"empty set in the envelope", WriteInput{TableName: Some(counters), Item: arg(`{"id":{"S":"a"},"x":{"SS":[]}}`)},
			"1 validation error detected: One or more parameter values were invalid: An string set  may not be empty"},
		{"empty value without it", WriteInput{TableName: Some(counters), Item: arg(`{"id":{"S":"a"},"x":{}}`)},
			"Supplied AttributeValue is empty, must contain exactly one of the supported datatypes"},
		{"too large", WriteInput{TableName: Some("none"), Item: arg(big)}, "Item size has exceeded the maximum allowed size"},
		{"ReturnValues", WriteInput{TableName: Some(counters), Item: arg(`{"id":{"S":"a"}}`), ReturnValues: Some("ALL_NEW")},
			"1 validation error detected: ReturnValues can only be ALL_OLD or NONE"},
		{"values without expression", WriteInput{TableName: Some(counters), Item: arg(`{"id":{"S":"a"}}`), Values: vals(`{":a":{"S":"a"}}`)},
			"1 validation error detected: ExpressionAttributeValues can only be specified when using expressions: ConditionExpression is null"},
		{"names without expression", WriteInput{TableName: Some(counters), Item: arg(`{"id":{"S":"a"}}`), Names: Names{"#a": "a"}},
			"1 validation error detected: ExpressionAttributeNames can only be specified when using expressions"},
		{"old and new", WriteInput{TableName: Some(counters), Item: arg(`{"id":{"S":"a"}}`), Condition: Some("a = :a"), Legacy: Legacy{Expected: map[string]ExpectedValue{}}},
			"1 validation error detected: Can not use both expression and non-expression parameters in the same request: " +
				"Non-expression parameters: {Expected} Expression parameters: {ConditionExpression}"},
		{"empty expression", WriteInput{TableName: Some(counters), Item: arg(`{"id":{"S":"a"}}`), Condition: Some("")},
			"1 validation error detected: Invalid ConditionExpression: The expression can not be empty;"},
		{"unused value", WriteInput{TableName: Some(counters), Item: arg(`{"id":{"S":"a"}}`), Condition: Some("attribute_exists(id)"), Values: vals(`{":a":{"S":"a"}}`)},
			"1 validation error detected: Value provided in ExpressionAttributeValues unused in expressions: keys: {:a}"},
		{"missing key", WriteInput{TableName: Some(counters), Item: arg(`{"x":{"S":"a"}}`)},
			"One or more parameter values were invalid: Missing the key id in the item"},
		{"key of wrong type", WriteInput{TableName: Some(counters), Item: arg(`{"id":{"N":"1"}}`)},
			"One or more parameter values were invalid: Type mismatch for key id expected: S actual: N"},
		{"empty key", WriteInput{TableName: Some(counters), Item: arg(`{"id":{"S":""}}`)},
			"One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty string value. Key: id"},
		{"key too long", WriteInput{TableName: Some(counters), Item: arg(`{"id":{"S":"` + strings.Repeat("x", 2049) + `"}}`)},
			"One or more parameter values were invalid: Size of hashkey has exceeded the maximum size limit of2048 bytes"},
		{"sort key too long", WriteInput{TableName: Some(music), Item: arg(`{"artist":{"S":"a"},"song":{"S":"` + strings.Repeat("x", 1025) + `"}}`)},
			"One or more parameter values were invalid: Aggregated size of all range keys has exceeded the size limit of 1024 bytes"},
		{"index key of wrong type", WriteInput{TableName: Some(music), Item: arg(`{"artist":{"S":"a"},"song":{"S":"b"},"year":{"S":"c"}}`)},
			"One or more parameter values were invalid: Type mismatch for Index Key year Expected: N Actual: S IndexName: byGenre"},
		{"empty index key", WriteInput{TableName: Some(music), Item: arg(`{"artist":{"S":"a"},"song":{"S":"b"},"genre":{"S":""}}`)},
			"One or more parameter values are not valid. A value specified for a secondary index key is not supported. " +
				"The AttributeValue for a key attribute cannot contain an empty string value. IndexName: byGenre, IndexKey: genre"},
	}
	for _, tt := range tests {
		t.Run(tt.about, func(t *testing.T) {
			_, err := d.PutItem(ctx, &tt.in)
			invalidRequest(t, err, tt.want)
		})
	}
	_, err := d.PutItem(ctx, &WriteInput{TableName: Some("none"), Item: arg(`{}`)})
	refused(t, err, dynamo.CodeResourceNotFound, "Requested resource not found")
}

func TestPutItemByARN(t *testing.T) {
	d := open(t)
	arn := "arn:aws:dynamodb:us-west-2:999999999999:table/" + d.counters()
	out, err := d.PutItem(ctx, &WriteInput{TableName: Some(arn), Item: arg(`{"id":{"S":"a"}}`), ReturnConsumedCapacity: Some("TOTAL")})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "capacity names the table as the request did", out.Capacity.TableName, arn)
}

func TestItemCollectionMetrics(t *testing.T) {
	d := open(t)
	put := func(table, text string) *CollectionMetrics {
		out, err := d.PutItem(ctx, &WriteInput{TableName: Some(table), Item: arg(text), ReturnItemCollectionMetrics: Some("SIZE")})
		if err != nil {
			t.Fatal(err)
		}
		return out.Collection
	}
	m := put(d.music(), `{"artist":{"S":"a"},"song":{"S":"b"}}`)
	equal(t, "key", m.Key.String(), `{"artist":{"S":"a"}}`)
	equal(t, "range", [2]float64{m.Lo, m.Hi}, [2]float64{0, 1})
	equal(t, "without local indexes", put(d.counters(), `{"id":{"S":"b"}}`) == nil, true)
}
