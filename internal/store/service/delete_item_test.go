package service

import (
	"testing"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

func TestDeleteItem(t *testing.T) {
	d := open(t)
	table := d.counters()
	d.put(table, `{"id":{"S":"a"},"n":{"N":"1"}}`)
	in := WriteInput{TableName: Some(table), Item: arg(`{"id":{"S":"a"}}`), ReturnValues: Some("ALL_OLD")}
	out, err := d.DeleteItem(ctx, &in)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "old", out.Attributes.String(), `{"id":{"S":"a"},"n":{"N":"1"}}`)
	equal(t, "afterwards", d.get(table, `{"id":{"S":"a"}}`), "(none)")
	if out, err = d.DeleteItem(ctx, &in); err != nil {
		t.Fatal(err)
	}
	equal(t, "nothing to delete is no error", out.Attributes.String(), "(none)")
}

func TestDeleteItemCondition(t *testing.T) {
	d := open(t)
	table := d.counters()
	d.put(table, `{"id":{"S":"a"},"n":{"N":"1"}}`)
	_, err := d.DeleteItem(ctx, &WriteInput{
		TableName: Some(table), Item: arg(`{"id":{"S":"a"}}`), Condition: Some("n > :n"), Values: vals(`{":n":{"N":"1"}}`),
	})
	refused(t, err, dynamo.CodeConditionalCheckFailed, "The conditional request failed")
	equal(t, "still there", d.get(table, `{"id":{"S":"a"}}`), `{"id":{"S":"a"},"n":{"N":"1"}}`)
}

// The errors of DeleteItem lack the envelope that PutItem and UpdateItem add.
func TestDeleteItemValidation(t *testing.T) {
	d := open(t)
	table := d.counters()
	tests := []struct {
		about string
		in    WriteInput
		want  string
	}{
		{"ReturnValues", WriteInput{TableName: Some(table), Item: arg(`{"id":{"S":"a"}}`), ReturnValues: Some("UPDATED_NEW")},
			"ReturnValues can only be ALL_OLD or NONE"},
		{"expression", WriteInput{TableName: Some(table), Item: arg(`{"id":{"S":"a"}}`), Condition: Some("((a = b))")},
			"Invalid ConditionExpression: The expression has redundant parentheses;"},
		{"too many key attributes", WriteInput{TableName: Some(table), Item: arg(`{"id":{"S":"a"},"n":{"N":"1"}}`)},
			"The provided key element does not match the schema"},
		{"key of wrong type", WriteInput{TableName: Some(table), Item: arg(`{"id":{"N":"1"}}`)},
			"The provided key element does not match the schema"},
		{"empty key", WriteInput{TableName: Some(table), Item: arg(`{"id":{"S":""}}`)},
			"One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty string value. Key: id"},
	}
	for _, tt := range tests {
		t.Run(tt.about, func(t *testing.T) {
			_, err := d.DeleteItem(ctx, &tt.in)
			invalidRequest(t, err, tt.want)
		})
	}
}
