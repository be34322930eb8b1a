package service

import (
	"strings"
	"testing"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

func TestUpdateItemReturnValues(t *testing.T) {
	tests := []struct{ values, update, want string }{
		{"NONE", "SET n = n + :one", "(none)"},
		{"ALL_OLD", "SET n = n + :one", `{"id":{"S":"a"},"n":{"N":"1"},"x":{"S":"y"}}`},
		{"ALL_NEW", "SET n = n + :one", `{"id":{"S":"a"},"n":{"N":"2"},"x":{"S":"y"}}`},
		{"UPDATED_OLD", "SET n = n + :one", `{"n":{"N":"1"}}`},
		{"UPDATED_NEW", "SET n = n + :one", `{"n":{"N":"2"}}`},
		{"UPDATED_NEW", "SET x = :one REMOVE n", `{"x":{"N":"1"}}`},
		{"UPDATED_NEW", "REMOVE n", "(none)"},
	}
	for _, tt := range tests {
		t.Run(tt.values+" "+tt.update, func(t *testing.T) {
			d := open(t)
			table := d.counters()
			d.put(table, `{"id":{"S":"a"},"n":{"N":"1"},"x":{"S":"y"}}`)
			in := WriteInput{TableName: Some(table), Item: arg(`{"id":{"S":"a"}}`), Update: Some(tt.update), ReturnValues: Some(tt.values)}
			if strings.Contains(tt.update, ":one") {
				in.Values = vals(`{":one":{"N":"1"}}`)
			}
			out, err := d.UpdateItem(ctx, &in)
			if err != nil {
				t.Fatal(err)
			}
			equal(t, "attributes", out.Attributes.String(), tt.want)
		})
	}
}

func TestUpdateItemCreatesItems(t *testing.T) {
	d := open(t)
	table := d.counters()
	update := func(key string, update Opt[string], values Values) {
		t.Helper()
		in := WriteInput{TableName: Some(table), Item: arg(key), Update: update, Values: values}
		if _, err := d.UpdateItem(ctx, &in); err != nil {
			t.Fatal(err)
		}
	}
	update(`{"id":{"S":"set"}}`, Some("SET n = :n"), vals(`{":n":{"N":"1"}}`))
	equal(t, "SET makes it", d.get(table, `{"id":{"S":"set"}}`), `{"id":{"S":"set"},"n":{"N":"1"}}`)
	update(`{"id":{"S":"remove"}}`, Some("REMOVE n"), Values{})
	equal(t, "REMOVE does not", d.get(table, `{"id":{"S":"remove"}}`), "(none)")
	update(`{"id":{"S":"nothing"}}`, Opt[string]{}, Values{})
	equal(t, "no update makes a bare key", d.get(table, `{"id":{"S":"nothing"}}`), `{"id":{"S":"nothing"}}`)
	update(`{"id":{"S":"set"}}`, Opt[string]{}, Values{})
	equal(t, "and leaves what is there", d.get(table, `{"id":{"S":"set"}}`), `{"id":{"S":"set"},"n":{"N":"1"}}`)
}

func TestUpdateItemValidation(t *testing.T) {
	d := open(t)
	music, counters := d.music(), d.counters()
	d.put(counters, `{"id":{"S":"a"},"n":{"N":"1"},"s":{"S":"text"},"big":{"S":"`+strings.Repeat("x", 300*1024)+`"}}`)
	key, song := arg(`{"id":{"S":"a"}}`), arg(`{"artist":{"S":"a"},"song":{"S":"b"}}`)
	tests := []struct {
		about string
		in    WriteInput
		want  string
	}{
		{"only the first bad enum", WriteInput{TableName: Some("abc"), Item: key, ReturnValues: Some("hi"), ReturnConsumedCapacity: Some("hi")},
			"1 validation error detected: Value 'hi' at 'returnValues' failed to satisfy constraint: Member must satisfy enum value set: [ALL_NEW, UPDATED_OLD, ALL_OLD, NONE, UPDATED_NEW]"},
		{"values without expressions", WriteInput{TableName: Some("abc"), Item: key, Values: vals(`{":a":{"S":"a"}}`)},
			"1 validation error detected: ExpressionAttributeValues can only be specified when using expressions: UpdateExpression and ConditionExpression are null"},
		{"syntax", WriteInput{TableName: Some("abc"), Item: key, Update: Some("SET")},
			`1 validation error detected: Invalid UpdateExpression: Syntax error; token: "<EOF>", near: "SET"`},
		{"update of the key", WriteInput{TableName: Some(counters), Item: key, Update: Some("SET id = :a"), Values: vals(`{":a":{"S":"b"}}`)},
			"One or more parameter values were invalid: Cannot update attribute id. This attribute is part of the key"},
		{"path into the key", WriteInput{TableName: Some(counters), Item: key, Update: Some("SET id.x = :a"), Values: vals(`{":a":{"S":"b"}}`)},
			"One or more parameter values were invalid: Cannot update attribute id. This attribute is part of the key"},
		{"path into an index key", WriteInput{TableName: Some(music), Item: song, Update: Some("SET genre[1] = :a"), Values: vals(`{":a":{"S":"b"}}`)},
			"Key attributes must be scalars; list random access '[]' and map lookup '.' are not allowed: IndexKey: genre"},
		{"key of another schema", WriteInput{TableName: Some(music), Item: key, Update: Some("REMOVE x")},
			"The provided key element does not match the schema"},
		{"index key of wrong type", WriteInput{TableName: Some(music), Item: song, Update: Some("SET genre = :a"), Values: vals(`{":a":{"N":"1"}}`)},
			"One or more parameter values were invalid: Type mismatch for Index Key genre Expected: S Actual: N IndexName: byGenre"},
		{"empty index key", WriteInput{TableName: Some(music), Item: song, Update: Some("SET genre = :a"), Values: vals(`{":a":{"S":""}}`)},
			"One or more parameter values are not valid. The update expression attempted to update a secondary index key to a value that is not supported. " +
				"The AttributeValue for a key attribute cannot contain an empty string value."},
		{"operand of wrong type", WriteInput{TableName: Some(counters), Item: key, Update: Some("SET n = s + :a"), Values: vals(`{":a":{"N":"1"}}`)},
			"An operand in the update expression has an incorrect data type"},
		{"attribute that is not there", WriteInput{TableName: Some(counters), Item: key, Update: Some("SET n = z")},
			"The provided expression refers to an attribute that does not exist in the item"},
		{"result too large", WriteInput{TableName: Some(counters), Item: key, Update: Some("SET copy2 = big")},
			"Item size to update has exceeded the maximum allowed size"},
	}
	for _, tt := range tests {
		t.Run(tt.about, func(t *testing.T) {
			_, err := d.UpdateItem(ctx, &tt.in)
			invalidRequest(t, err, tt.want)
		})
	}
}

// A value of the deepest nesting, set inside another such value, would be too deep.
func TestUpdateItemNesting(t *testing.T) {
	d := open(t)
	table := d.counters()
	deep := `{"S":"x"}`
	for range dynamo.MaxDepth - 1 {
		deep = `{"M":{"m":` + deep + `}}`
	}
	d.put(table, `{"id":{"S":"a"},"m":{"M":{}}}`)
	_, err := d.UpdateItem(ctx, &WriteInput{
		TableName: Some(table), Item: arg(`{"id":{"S":"a"}}`), Update: Some("SET m.m = :deep"), Values: vals(`{":deep":` + deep + `}`),
	})
	invalidRequest(t, err, msgNestedTooDeep)
}

func TestUpdateItemCondition(t *testing.T) {
	d := open(t)
	table := d.counters()
	d.put(table, `{"id":{"S":"a"},"n":{"N":"1"}}`)
	_, err := d.UpdateItem(ctx, &WriteInput{
		TableName: Some(table), Item: arg(`{"id":{"S":"a"}}`), Update: Some("SET n = :two"), Condition: Some("n = :two"),
		Values: vals(`{":two":{"N":"2"}}`), ReturnValuesOnConditionFail: Some("ALL_OLD"),
	})
	refused(t, err, dynamo.CodeConditionalCheckFailed, "The conditional request failed")
	equal(t, "item in error", err.(*dynamo.Error).Item.String(), `{"id":{"S":"a"},"n":{"N":"1"}}`)
}
