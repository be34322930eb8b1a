package service

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/engine"
)

// The actions of the tests, all on the table Counters.
func putAction(text string) TransactAction {
	return TransactAction{Put: &WriteInput{TableName: Some("Counters"), Item: arg(text)}}
}

func checkAction(key, condition string) TransactAction {
	return TransactAction{Check: &WriteInput{TableName: Some("Counters"), Item: arg(key), Condition: Some(condition)}}
}

func addAction(key string) TransactAction {
	return TransactAction{Update: &WriteInput{
		TableName: Some("Counters"), Item: arg(key), Update: Some("ADD n :one"), Values: vals(`{":one":{"N":"1"}}`),
	}}
}

func deleteAction(key string) TransactAction {
	return TransactAction{Delete: &WriteInput{TableName: Some("Counters"), Item: arg(key)}}
}

func (d *db) transact(token string, actions ...TransactAction) error {
	in := TransactWriteItemsInput{Items: actions}
	if token != "" {
		in.ClientRequestToken = Some(token)
	}
	_, err := d.TransactWriteItems(ctx, &in)
	return err
}

func TestTransactWriteItemsAllOrNone(t *testing.T) {
	d := open(t)
	table := d.counters()
	d.put(table, `{"id":{"S":"gone"}}`)
	err := d.transact("", checkAction(`{"id":{"S":"c"}}`, "attribute_not_exists(id)"), putAction(`{"id":{"S":"p"}}`),
		addAction(`{"id":{"S":"u"}}`), deleteAction(`{"id":{"S":"gone"}}`))
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "checked", d.get(table, `{"id":{"S":"c"}}`), "(none)")
	equal(t, "put", d.get(table, `{"id":{"S":"p"}}`), `{"id":{"S":"p"}}`)
	equal(t, "updated", d.get(table, `{"id":{"S":"u"}}`), `{"id":{"S":"u"},"n":{"N":"1"}}`)
	equal(t, "deleted", d.get(table, `{"id":{"S":"gone"}}`), "(none)")

	failing := checkAction(`{"id":{"S":"p"}}`, "attribute_not_exists(id)")
	failing.Check.ReturnValuesOnConditionFail = Some("ALL_OLD")
	err = d.transact("", addAction(`{"id":{"S":"u"}}`), failing)
	refused(t, err, dynamo.CodeTransactionCanceled,
		"Transaction cancelled, please refer cancellation reasons for specific reasons [None, ConditionalCheckFailed]")
	reason := err.(*dynamo.Error).Reasons[1]
	equal(t, "reason", reason.Message+" "+reason.Item.String(), `The conditional request failed {"id":{"S":"p"}}`)
	equal(t, "nothing updated", d.get(table, `{"id":{"S":"u"}}`), `{"id":{"S":"u"},"n":{"N":"1"}}`)
}

func TestTransactWriteItemsCancelledByValidation(t *testing.T) {
	d := open(t)
	table := d.counters()
	d.put(table, `{"id":{"S":"s"},"n":{"S":"text"}}`)
	tests := []struct {
		about  string
		action TransactAction
		want   string
	}{
		{"run time", addAction(`{"id":{"S":"s"}}`), "An operand in the update expression has an incorrect data type"},
		{"key of wrong type", deleteAction(`{"id":{"N":"1"}}`), "The provided key element does not match the schema"},
		{"item key of wrong type", putAction(`{"id":{"N":"1"}}`), "One or more parameter values were invalid: Type mismatch for key id expected: S actual: N"},
	}
	for _, tt := range tests {
		t.Run(tt.about, func(t *testing.T) {
			err := d.transact("", putAction(`{"id":{"S":"p"}}`), tt.action)
			refused(t, err, dynamo.CodeTransactionCanceled,
				"Transaction cancelled, please refer cancellation reasons for specific reasons [None, ValidationError]")
			equal(t, "reason", err.(*dynamo.Error).Reasons[1].Message, tt.want)
			equal(t, "nothing put", d.get(table, `{"id":{"S":"p"}}`), "(none)")
		})
	}
}

func TestTransactWriteItemsValidation(t *testing.T) {
	d := open(t)
	d.counters()
	a := `{"id":{"S":"a"}}`
	both := putAction(a)
	both.Delete = deleteAction(a).Delete
	noCondition := checkAction(a, "")
	noCondition.Check.Condition = Opt[string]{}
	unused := putAction(a)
	unused.Put.Names = Names{"#x": "x"}
	big := putAction(`{"id":{"S":"a"},"x":{"S":"` + strings.Repeat("x", 400*1024) + `"}}`)
	large := make([]TransactAction, 12)
	for i := range large {
		large[i] = putAction(fmt.Sprintf(`{"id":{"S":"k%d"},"x":{"S":"%s"}}`, i, strings.Repeat("x", 390*1024)))
	}
	tests := []struct {
		about   string
		actions []TransactAction
		want    string
	}{
		{"absent", nil, "1 validation error detected: Value null at 'transactItems' failed to satisfy constraint: Member must not be null"},
		{"too many", make([]TransactAction, 101), "1 validation error detected: Value '[…]' at 'transactItems' failed to satisfy constraint: Member must have length less than or equal to 100"},
		{"nothing in an entry", []TransactAction{{}}, "TransactItems can only contain one of Check, Put, Update or Delete"},
		{"two in an entry", []TransactAction{both}, "TransactItems can only contain one of Check, Put, Update or Delete"},
		{"no condition", []TransactAction{noCondition},
			"1 validation error detected: Value null at 'transactItems.1.member.conditionCheck.conditionExpression' failed to satisfy constraint: Member must not be null"},
		{"one item twice", []TransactAction{putAction(a), deleteAction(a)}, "Transaction request cannot include multiple operations on one item"},
		{"bare, unlike PutItem", []TransactAction{unused}, "ExpressionAttributeNames can only be specified when using expressions"},
		{"empty key", []TransactAction{putAction(`{"id":{"S":""}}`)},
			"One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty string value. Key: id"},
		{"item too large", []TransactAction{big}, "Item size has exceeded the maximum allowed size"},
		{"all too large", large, "Transaction size cannot exceed 4194304 bytes"},
	}
	for _, tt := range tests {
		t.Run(tt.about, func(t *testing.T) { invalidRequest(t, d.transact("", tt.actions...), tt.want) })
	}
	missing := putAction(a)
	missing.Put.TableName = Some("none")
	refused(t, d.transact("", missing), dynamo.CodeResourceNotFound, "Requested resource not found")
	invalidRequest(t, d.transact(strings.Repeat("t", 37), putAction(a)), "1 validation error detected: Value '"+strings.Repeat("t", 37)+
		"' at 'clientRequestToken' failed to satisfy constraint: Member must have length less than or equal to 36")
}

// A token makes a transaction happen only once within ten minutes, if it succeeded.
func TestClientRequestToken(t *testing.T) {
	d := open(t)
	table := d.counters()
	key := `{"id":{"S":"a"}}`
	for range 3 {
		if err := d.transact("t1", addAction(key)); err != nil {
			t.Fatal(err)
		}
	}
	equal(t, "done once", d.get(table, key), `{"id":{"S":"a"},"n":{"N":"1"}}`)

	_, err := d.TransactWriteItems(ctx, &TransactWriteItemsInput{Items: []TransactAction{addAction(key)}, ClientRequestToken: Some("t1"), Digest: [32]byte{1}})
	refused(t, err, dynamo.CodeIdempotentMismatch, "…")

	never := checkAction(key, "attribute_not_exists(id)")
	if err := d.transact("t2", never); err == nil {
		t.Fatal("condition held")
	}
	if err := d.transact("t2", addAction(`{"id":{"S":"b"}}`)); err != nil {
		t.Fatalf("a cancelled transaction kept its token: %v", err)
	}

	if err := d.clock.Advance(10 * time.Minute); err != nil {
		t.Fatal(err)
	}
	if err := d.transact("t1", addAction(key)); err != nil {
		t.Fatal(err)
	}
	equal(t, "again after ten minutes", d.get(table, key), `{"id":{"S":"a"},"n":{"N":"2"}}`)
	out, err := d.ListTables(ctx, &ListTablesInput{})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "tables that clients see", fmt.Sprint(out.Names), "[Counters]")
}

// A token is part of its transaction's batch, so a crash keeps both or neither.
func TestClientRequestTokenSurvivesRestart(t *testing.T) {
	dir := t.TempDir()
	var table string
	for restart := range 2 {
		e, err := engine.Open(engine.Options{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		d := &db{Service: New(Options{Engine: e}), t: t}
		if restart == 0 {
			table = d.counters()
		}
		if err := d.transact("token", addAction(`{"id":{"S":"a"}}`)); err != nil {
			t.Fatal(err)
		}
		equal(t, fmt.Sprint("restart ", restart), d.get(table, `{"id":{"S":"a"}}`), `{"id":{"S":"a"},"n":{"N":"1"}}`)
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// Of many concurrent requests with one token, one is executed.
func TestClientRequestTokenAtOnce(t *testing.T) {
	d := open(t)
	table := d.counters()
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() {
			if err := d.transact("token", addAction(`{"id":{"S":"a"}}`)); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	equal(t, "counted", d.get(table, `{"id":{"S":"a"}}`), `{"id":{"S":"a"},"n":{"N":"1"}}`)
}

func TestTransactWriteItemsCapacity(t *testing.T) {
	d := open(t)
	d.counters()
	in := TransactWriteItemsInput{
		Items:                  []TransactAction{putAction(`{"id":{"S":"a"}}`), checkAction(`{"id":{"S":"b"}}`, "attribute_not_exists(id)")},
		ReturnConsumedCapacity: Some("INDEXES"), ClientRequestToken: Some("t"),
	}
	// the second time, the items are only read
	for _, want := range []string{"4 {0 false} {4 true}", "4 {4 true} {0 false}"} {
		out, err := d.TransactWriteItems(ctx, &in)
		if err != nil {
			t.Fatal(err)
		}
		c := out.Capacity[0]
		equal(t, "units", fmt.Sprint(c.Units, c.Read, c.Write), want)
	}
}
