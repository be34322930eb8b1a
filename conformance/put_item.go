package conformance

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

var putItemChecks = []check{
	{"ReplacesWhole", putReplacesWhole},
	{"ReturnValues", putReturnValues},
	{"Condition", putCondition},
	{"OneOfManyWins", putOneOfManyWins},
	{"ConditionFailureReturnsItem", putConditionFailureReturnsItem},
	{"CollectionMetrics", putCollectionMetrics},
	{"Refused", putRefused},
	{"Enums", putEnums},
	{"TableName", putTableName},
}

// A put leaves nothing of the item that it replaces.
func putReplacesWhole(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S sk:N")
	tb.put(t, item("pk", "a", "sk", 1, "old", true, "both", 1))
	tb.put(t, item("pk", "a", "sk", 1, "both", 2))
	tb.put(t, item("pk", "a", "sk", 2))
	tb.wantStored(t, item("pk", "a", "sk", 1), item("pk", "a", "sk", 1, "both", 2))
	tb.wantStored(t, item("pk", "a", "sk", 2), item("pk", "a", "sk", 2))
	tb.wantStored(t, item("pk", "a", "sk", 3), nil)
}

// ALL_OLD returns the replaced item, or no attributes if there was none.
func putReturnValues(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	in := &dynamodb.PutItemInput{TableName: &tb.name, Item: item("pk", "a", "n", 1), ReturnValues: types.ReturnValueAllOld}
	out, err := e.DB.PutItem(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	wantItem(t, "old of a new item", out.Attributes, nil)
	in.Item = item("pk", "a", "n", 2)
	if out, err = e.DB.PutItem(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	wantItem(t, "old of a replaced item", out.Attributes, item("pk", "a", "n", 1))
	in.ReturnValues = types.ReturnValueNone
	if out, err = e.DB.PutItem(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	wantItem(t, "NONE", out.Attributes, nil)
}

// A put whose condition is false changes nothing.
func putCondition(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	const ifNew = `{"Item":{"pk":{"S":"a"},"n":{"N":"%"}},"ConditionExpression":"attribute_not_exists(pk)"}`
	tb.ok(t, "PutItem", strings.ReplaceAll(ifNew, "%", "1"))
	tb.refuse(t, "PutItem", strings.ReplaceAll(ifNew, "%", "2"), conditionFailed, "The conditional request failed")
	tb.wantStored(t, item("pk", "a"), item("pk", "a", "n", 1))
	tb.ok(t, "PutItem", `{"Item":{"pk":{"S":"a"},"n":{"N":"3"}},"ConditionExpression":"n = :one","ExpressionAttributeValues":{":one":{"N":"1"}}}`)
	tb.wantStored(t, item("pk", "a"), item("pk", "a", "n", 3))
}

// Of many puts that each require that there is no item, one succeeds.
func putOneOfManyWins(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	for round := range 10 {
		var won atomic.Int32
		var all sync.WaitGroup
		for n := range 8 {
			all.Go(func() {
				_, err := e.call("PutItem", tb.fill(fmt.Sprintf(`{"Item":{"pk":{"S":"%d"},"n":{"N":"%d"}},"ConditionExpression":"attribute_not_exists(pk)"}`, round, n)))
				if err == nil {
					won.Add(1)
				} else if problem := errorProblem(err, conditionFailed, ""); problem != "" {
					t.Error(problem)
				}
			})
		}
		all.Wait()
		if won.Load() != 1 {
			t.Errorf("%d of 8 puts succeeded", won.Load())
		}
	}
}

// On request the error carries the item that failed the condition, if there is one.
func putConditionFailureReturnsItem(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	tb.put(t, item("pk", "a", "n", 1))
	never := "n > :n"
	in := &dynamodb.PutItemInput{
		TableName: &tb.name, Item: item("pk", "a"), ConditionExpression: &never, ExpressionAttributeValues: item(":n", 5),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	_, err := e.DB.PutItem(t.Context(), in)
	wantItem(t, "item in the error", failedItem(t, err), item("pk", "a", "n", 1))

	in.ReturnValuesOnConditionCheckFailure = types.ReturnValuesOnConditionCheckFailureNone
	_, err = e.DB.PutItem(t.Context(), in)
	wantItem(t, "item in the error, not asked for", failedItem(t, err), nil)

	in.Item = item("pk", "none")
	in.ReturnValuesOnConditionCheckFailure = types.ReturnValuesOnConditionCheckFailureAllOld
	_, err = e.DB.PutItem(t.Context(), in)
	wantItem(t, "item in the error, none stored", failedItem(t, err), nil)
}

// Metrics of item collections exist only for tables with local indexes.
func putCollectionMetrics(t *testing.T, e *Endpoint) {
	with := newTable(t, e, "pk:S sk:S", local("byN", "pk:S n:N", "ALL"))
	a := with.ok(t, "PutItem", `{"Item":{"pk":{"S":"a"},"sk":{"S":"b"}},"ReturnItemCollectionMetrics":"SIZE"}`)
	a.want(t, "ItemCollectionMetrics", `{"ItemCollectionKey":{"pk":{"S":"a"}},"SizeEstimateRangeGB":[0,1]}`)
	without := newTable(t, e, "pk:S")
	without.ok(t, "PutItem", `{"Item":{"pk":{"S":"a"}},"ReturnItemCollectionMetrics":"SIZE"}`).wantAbsent(t, "ItemCollectionMetrics")
}

func putRefused(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	for _, kind := range []string{"ALL_NEW", "UPDATED_OLD", "UPDATED_NEW"} {
		tb.refuse(t, "PutItem", `{"Item":{"pk":{"S":"a"}},"ReturnValues":"`+kind+`"}`, validation,
			"1 validation error detected: ReturnValues can only be ALL_OLD or NONE")
	}
	tb.refuse(t, "PutItem", `{}`, validation, "1 validation error detected: Value null at 'item' failed to satisfy constraint: Member must not be null")
	e.refuse(t, "PutItem", `{"TableName":"no-such-table","Item":{"pk":{"S":"a"}}}`, notFound, "Requested resource not found")
	tb.wantStored(t, item("pk", "a"), nil)
}

// All bad enumerations are listed.
func putEnums(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	tb.refuse(t, "PutItem", `{"Item":{"pk":{"S":"a"}},"ReturnValues":"SOME"}`, validation,
		"1 validation error detected: Value 'SOME' at 'returnValues' failed to satisfy constraint: Member must satisfy enum value set: [ALL_NEW, UPDATED_OLD, ALL_OLD, NONE, UPDATED_NEW]")
	tb.refuse(t, "PutItem", `{"Item":{"pk":{"S":"a"}},"ReturnConsumedCapacity":"SOME"}`, validation,
		"1 validation error detected: Value 'SOME' at 'returnConsumedCapacity' failed to satisfy constraint: Member must satisfy enum value set: [INDEXES, TOTAL, NONE]")
	tb.refuse(t, "PutItem", `{"Item":{"pk":{"S":"a"}},"ReturnItemCollectionMetrics":"SOME"}`, validation,
		"1 validation error detected: Value 'SOME' at 'returnItemCollectionMetrics' failed to satisfy constraint: Member must satisfy enum value set: [SIZE, NONE]")
	tb.refuse(t, "PutItem", `{"Item":{"pk":{"S":"a"}},"ReturnValues":"X","ReturnConsumedCapacity":"Y"}`, validation,
		"2 validation errors detected: …; …")
}

// The data plane's words for bad table names differ from the control plane's.
func putTableName(t *testing.T, e *Endpoint) {
	rest := `"Item":{"pk":{"S":"a"}}}`
	e.refuse(t, "PutItem", `{`+rest, validation, "1 validation error detected: Value null at 'tableName' failed to satisfy constraint: Member must not be null")
	e.refuse(t, "PutItem", `{"TableName":"",`+rest, validation,
		"1 validation error detected: Value '' at 'tableName' failed to satisfy constraint: Member must have length greater than or equal to 1")
	e.refuse(t, "PutItem", `{"TableName":"abc;",`+rest, validation,
		"1 validation error detected: Value 'abc;' at 'tableName' failed to satisfy constraint: Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+")
}
