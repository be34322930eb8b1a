package conformance

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

var transactWriteItemsChecks = []check{
	{"AllFourActions", transactAllFourActions},
	{"NoneOnFailedCondition", transactNoneOnFailedCondition},
	{"ReasonsCarryItems", transactReasonsCarryItems},
	{"ReasonsOfValidation", transactReasonsOfValidation},
	{"ConditionsSeeTheStateBefore", transactConditionsSeeTheStateBefore},
	{"ClientToken", transactClientToken},
	{"Refused", transactRefused},
	{"TooLarge", transactTooLarge},
	{"AfterFirstInvalid", transactWriteAfterFirstInvalid},
}

// clientTokenChecks move the clock.
var clientTokenChecks = []check{
	{"ForgottenAfterTenMinutes", transactTokenForgotten},
}

// transact runs a transaction and returns its error.
func (e *Endpoint) transact(t *testing.T, actions ...types.TransactWriteItem) error {
	t.Helper()
	_, err := e.DB.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: actions})
	return err
}

// wantCanceled checks the cancellation reasons, each written "Code" or "Code: message", and that
// the error's message lists their codes.
func wantCanceled(t *testing.T, err error, reasons ...string) *types.TransactionCanceledException {
	t.Helper()
	var canceled *types.TransactionCanceledException
	if !errors.As(err, &canceled) {
		t.Fatalf("got %v, want a TransactionCanceledException", err)
	}
	var got, codes []string
	for _, reason := range canceled.CancellationReasons {
		text := aws.ToString(reason.Code)
		codes = append(codes, text)
		if reason.Message != nil {
			text += ": " + *reason.Message
		}
		got = append(got, text)
	}
	if strings.Join(got, "\n") != strings.Join(reasons, "\n") {
		t.Errorf("reasons:\n got %q\nwant %q", got, reasons)
	}
	want := "Transaction cancelled, please refer cancellation reasons for specific reasons [" + strings.Join(codes, ", ") + "]"
	if canceled.ErrorMessage() != want {
		t.Errorf("message:\n got %s\nwant %s", canceled.ErrorMessage(), want)
	}
	return canceled
}

// isConflict reports whether a transaction gave way to another one.
func isConflict(err error) bool {
	var canceled *types.TransactionCanceledException
	if !errors.As(err, &canceled) {
		return false
	}
	for _, reason := range canceled.CancellationReasons {
		if aws.ToString(reason.Code) == "TransactionConflict" {
			return true
		}
	}
	return false
}

// A transaction may put, update, delete and check, over several tables.
func transactAllFourActions(t *testing.T, e *Endpoint) {
	one, two := newTable(t, e, "pk:S"), newTable(t, e, "pk:S sk:N")
	one.put(t, item("pk", "u", "n", 1), item("pk", "d"), item("pk", "c", "ok", true))
	err := e.transact(t,
		types.TransactWriteItem{Put: &types.Put{TableName: &two.name, Item: item("pk", "p", "sk", 1), ConditionExpression: aws.String("attribute_not_exists(pk)")}},
		types.TransactWriteItem{Update: &types.Update{TableName: &one.name, Key: item("pk", "u"), UpdateExpression: aws.String("ADD n :one"), ExpressionAttributeValues: item(":one", 1)}},
		types.TransactWriteItem{Delete: &types.Delete{TableName: &one.name, Key: item("pk", "d")}},
		types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{TableName: &one.name, Key: item("pk", "c"), ConditionExpression: aws.String("ok = :t"), ExpressionAttributeValues: item(":t", true)}},
	)
	if err != nil {
		t.Fatal(err)
	}
	two.wantStored(t, item("pk", "p", "sk", 1), item("pk", "p", "sk", 1))
	one.wantStored(t, item("pk", "u"), item("pk", "u", "n", 2))
	one.wantStored(t, item("pk", "d"), nil)
	one.wantStored(t, item("pk", "c"), item("pk", "c", "ok", true))
}

// One false condition cancels the whole transaction. The error has a reason for each action.
func transactNoneOnFailedCondition(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S", global("byG", "g:S", "ALL"))
	tb.put(t, item("pk", "d"), item("pk", "u", "n", 1))
	err := e.transact(t,
		types.TransactWriteItem{Put: &types.Put{TableName: &tb.name, Item: item("pk", "p", "g", "x")}},
		types.TransactWriteItem{Update: &types.Update{TableName: &tb.name, Key: item("pk", "u"), UpdateExpression: aws.String("SET n = :n"), ExpressionAttributeValues: item(":n", 2)}},
		types.TransactWriteItem{Delete: &types.Delete{TableName: &tb.name, Key: item("pk", "d"), ConditionExpression: aws.String("attribute_exists(nope)")}},
		types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{TableName: &tb.name, Key: item("pk", "c"), ConditionExpression: aws.String("attribute_exists(pk)")}},
	)
	const failed = "ConditionalCheckFailed: The conditional request failed"
	wantCanceled(t, err, "None", "None", failed, failed)
	tb.wantStored(t, item("pk", "p"), nil)
	tb.wantStored(t, item("pk", "d"), item("pk", "d"))
	tb.wantStored(t, item("pk", "u"), item("pk", "u", "n", 1))
	wantItems(t, "the index", tb.scanAll(t, "byG"), nil)
}

// On request a reason carries the item that failed the condition.
func transactReasonsCarryItems(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	tb.put(t, item("pk", "a", "n", 1), item("pk", "b", "n", 1))
	all := types.ReturnValuesOnConditionCheckFailureAllOld
	never := aws.String("attribute_exists(nope)")
	err := e.transact(t,
		types.TransactWriteItem{Put: &types.Put{TableName: &tb.name, Item: item("pk", "a"), ConditionExpression: never, ReturnValuesOnConditionCheckFailure: all}},
		types.TransactWriteItem{Delete: &types.Delete{TableName: &tb.name, Key: item("pk", "b"), ConditionExpression: never}},
		types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{TableName: &tb.name, Key: item("pk", "none"), ConditionExpression: never, ReturnValuesOnConditionCheckFailure: all}},
	)
	const failed = "ConditionalCheckFailed: The conditional request failed"
	reasons := wantCanceled(t, err, failed, failed, failed).CancellationReasons
	wantItem(t, "asked for", reasons[0].Item, item("pk", "a", "n", 1))
	wantItem(t, "not asked for", reasons[1].Item, nil)
	wantItem(t, "none stored", reasons[2].Item, nil)
}

// A fault that only the stored data or the schema reveals is a cancellation reason, not an error of
// its own.
func transactReasonsOfValidation(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	tb.put(t, item("pk", "a", "s", "text"), item("pk", "big", "v", bigString(399<<10)))
	put := types.TransactWriteItem{Put: &types.Put{TableName: &tb.name, Item: item("pk", "p")}}
	err := e.transact(t, put,
		types.TransactWriteItem{Update: &types.Update{TableName: &tb.name, Key: item("pk", "a"), UpdateExpression: aws.String("SET s = s + :n"), ExpressionAttributeValues: item(":n", 1)}})
	wantCanceled(t, err, "None", "ValidationError: An operand in the update expression has an incorrect data type")
	err = e.transact(t, put,
		types.TransactWriteItem{Update: &types.Update{TableName: &tb.name, Key: item("pk", "big"), UpdateExpression: aws.String("SET w = :w"), ExpressionAttributeValues: item(":w", bigString(2<<10))}})
	wantCanceled(t, err, "None", "ValidationError: Item size to update has exceeded the maximum allowed size")
	err = e.transact(t, put,
		types.TransactWriteItem{Delete: &types.Delete{TableName: &tb.name, Key: item("pk", 1)}})
	wantCanceled(t, err, "None", "ValidationError: The provided key element does not match the schema")
	tb.wantStored(t, item("pk", "p"), nil)
}

// No action sees the effects of another in its transaction.
func transactConditionsSeeTheStateBefore(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	tb.put(t, item("pk", "a", "n", 1))
	err := e.transact(t,
		types.TransactWriteItem{Delete: &types.Delete{TableName: &tb.name, Key: item("pk", "a"), ConditionExpression: aws.String("n = :n"), ExpressionAttributeValues: item(":n", 1)}},
		types.TransactWriteItem{Put: &types.Put{TableName: &tb.name, Item: item("pk", "b"), ConditionExpression: aws.String("attribute_not_exists(pk)")}},
	)
	if err != nil {
		t.Fatal(err)
	}
	tb.wantStored(t, item("pk", "a"), nil)
	tb.wantStored(t, item("pk", "b"), item("pk", "b"))
}

// tokened returns a transaction that adds to a counter, with a client token.
func tokened(tb *table, token string, by int) *dynamodb.TransactWriteItemsInput {
	return &dynamodb.TransactWriteItemsInput{ClientRequestToken: &token, TransactItems: []types.TransactWriteItem{
		{Update: &types.Update{TableName: &tb.name, Key: item("pk", "a"), UpdateExpression: aws.String("ADD n :by"), ExpressionAttributeValues: item(":by", by)}},
	}}
}

// A transaction that is sent again with its token is applied once; the token does not fit another
// transaction.
func transactClientToken(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	token := uniqueName(t)[3:]
	token = token[max(0, len(token)-36):]
	for range 3 {
		if _, err := e.DB.TransactWriteItems(t.Context(), tokened(tb, token, 1)); err != nil {
			t.Fatal(err)
		}
	}
	tb.wantStored(t, item("pk", "a"), item("pk", "a", "n", 1))
	_, err := e.DB.TransactWriteItems(t.Context(), tokened(tb, token, 2))
	wantError(t, err, "IdempotentParameterMismatchException", "")
	tb.wantStored(t, item("pk", "a"), item("pk", "a", "n", 1))

	// A transaction that was cancelled leaves its token free.
	other := token[1:] + "x"
	failing := tokened(tb, other, 10)
	failing.TransactItems[0].Update.ConditionExpression = aws.String("attribute_exists(nope)")
	if _, err := e.DB.TransactWriteItems(t.Context(), failing); err == nil {
		t.Fatal("the condition should have failed")
	}
	if _, err := e.DB.TransactWriteItems(t.Context(), tokened(tb, other, 10)); err != nil {
		t.Fatalf("after a cancelled transaction: %v", err)
	}
	tb.wantStored(t, item("pk", "a"), item("pk", "a", "n", 11))
}

// A token is remembered for ten minutes.
func transactTokenForgotten(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	token := uniqueName(t)
	token = token[max(0, len(token)-36):]
	apply := func() {
		t.Helper()
		if _, err := e.DB.TransactWriteItems(t.Context(), tokened(tb, token, 1)); err != nil {
			t.Fatal(err)
		}
	}
	apply()
	e.Advance(9 * time.Minute)
	apply()
	tb.wantStored(t, item("pk", "a"), item("pk", "a", "n", 1))
	e.Advance(11 * time.Minute)
	apply()
	tb.wantStored(t, item("pk", "a"), item("pk", "a", "n", 2))
}

func transactRefused(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	put := func(pk string) string { return `{"Put":{"TableName":"$T","Item":{"pk":{"S":"` + pk + `"}}}}` }
	var many []string
	for i := range 101 {
		many = append(many, put(fmt.Sprint(i)))
	}
	const several = "TransactItems can only contain one of Check, Put, Update or Delete"
	for _, row := range []struct{ name, list, code, message string }{
		{"empty", `[]`, validation, "1 validation error detected: Value '[]' at 'transactItems' failed to satisfy constraint: Member must have length greater than or equal to 1"},
		{"101", `[` + strings.Join(many, ",") + `]`, validation,
			"1 validation error detected: Value '…' at 'transactItems' failed to satisfy constraint: Member must have length less than or equal to 100"},
		{"one item twice", `[` + put("a") + `,{"Delete":{"TableName":"$T","Key":{"pk":{"S":"a"}}}}]`, validation,
			"Transaction request cannot include multiple operations on one item"},
		{"no action", `[{}]`, validation, several},
		{"two actions", `[{"Put":{"TableName":"$T","Item":{"pk":{"S":"a"}}},"Delete":{"TableName":"$T","Key":{"pk":{"S":"b"}}}}]`, validation, several},
		{"bad expression", `[` + put("a") + `,{"Delete":{"TableName":"$T","Key":{"pk":{"S":"b"}},"ConditionExpression":"a ="}}]`, validation,
			`…Invalid ConditionExpression: Syntax error; token: "<EOF>", near: "…"`},
		{"unused value", `[{"Put":{"TableName":"$T","Item":{"pk":{"S":"a"}},"ConditionExpression":"attribute_exists(pk)","ExpressionAttributeValues":{":x":{"S":"x"}}}}]`, validation,
			"…Value provided in ExpressionAttributeValues unused in expressions: keys: {:x}"},
		{"empty key", `[` + put("") + `]`, validation,
			"One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty string value. Key: pk"},
		{"check without condition", `[{"ConditionCheck":{"TableName":"$T","Key":{"pk":{"S":"a"}}}}]`, validation,
			"1 validation error detected: Value null at 'transactItems.1.member.conditionCheck.conditionExpression' failed to satisfy constraint: Member must not be null"},
		{"unknown table", `[` + put("a") + `,{"Delete":{"TableName":"no-such-table","Key":{"pk":{"S":"a"}}}}]`, notFound, "Requested resource not found"},
	} {
		t.Run(row.name, func(t *testing.T) {
			tb.refuse(t, "TransactWriteItems", `{"TransactItems":`+row.list+`}`, row.code, row.message)
		})
	}
	tb.refuse(t, "TransactWriteItems", `{"TransactItems":[`+put("a")+`],"ClientRequestToken":"`+strings.Repeat("t", 37)+`"}`, validation,
		"1 validation error detected: Value '"+strings.Repeat("t", 37)+"' at 'clientRequestToken' failed to satisfy constraint: Member must have length less than or equal to 36")
	tb.wantStored(t, item("pk", "a"), nil)
}

// One item has at most 400 KB, all of them together 4 MB.
func transactTooLarge(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:N")
	err := e.transact(t, types.TransactWriteItem{Put: &types.Put{TableName: &tb.name, Item: item("pk", 1, "v", bigString(400<<10))}})
	wantError(t, err, validation, "Item size has exceeded the maximum allowed size")
	var actions []types.TransactWriteItem
	for n := range 11 {
		actions = append(actions, types.TransactWriteItem{Put: &types.Put{TableName: &tb.name, Item: item("pk", n, "v", bigString(390<<10))}})
	}
	wantError(t, e.transact(t, actions...), validation, "…size cannot exceed…")
	tb.wantStored(t, item("pk", 0), nil)
	if err := e.transact(t, actions[:10]...); err != nil {
		t.Errorf("3.9 MB: %v", err)
	}
}

// After the first action with a validation error, the following ones are not examined.
func transactWriteAfterFirstInvalid(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	tb.put(t, item("pk", "a", "s", "text"))
	const (
		put       = `{"Put":{"TableName":"$T","Item":{"pk":{"S":"new"}}}}`
		wrongKey  = `{"Put":{"TableName":"$T","Item":{"pk":{"N":"1"}}}}`
		wrongType = `{"Update":{"TableName":"$T","Key":{"pk":{"S":"a"}},"UpdateExpression":"ADD s :n","ExpressionAttributeValues":{":n":{"N":"1"}}}}`
		fails     = `{"ConditionCheck":{"TableName":"$T","Key":{"pk":{"S":"b"}},"ConditionExpression":"attribute_exists(pk)"}}`
	)
	for _, row := range []struct{ actions, reasons string }{
		{wrongKey + "," + `{"Put":{"TableName":"$T","Item":{"pk":{"N":"2"}}}}`, "ValidationError, None"},
		{put + "," + wrongKey + "," + fails, "None, ValidationError, None"},
		{wrongType + "," + fails, "ValidationError, None"},
		{fails + "," + wrongType, "ConditionalCheckFailed, ValidationError"},
		{put + "," + fails, "None, ConditionalCheckFailed"},
	} {
		tb.refuse(t, "TransactWriteItems", `{"TransactItems":[`+row.actions+`]}`, transactCanceled,
			"Transaction cancelled, please refer cancellation reasons for specific reasons ["+row.reasons+"]")
	}
	tb.wantStored(t, item("pk", "new"), nil)
	// errors of the whole request are still found
	tb.refuse(t, "TransactWriteItems", `{"TransactItems":[`+wrongKey+`,{"Put":{"TableName":"no-such-table","Item":{"pk":{"S":"a"}}}}]}`, notFound, "Requested resource not found")
}
