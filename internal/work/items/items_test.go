package items_test

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/ensure"
	"github.com/mayflydb/mayfly/internal/work/items"
)

const (
	table   = "things"
	missing = "missing"
)

func open(t *testing.T, stored ...string) *dynamodb.Client {
	db, err := mayfly.Open("", mayfly.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if _, err := ensure.Table(t.Context(), db.DynamoDB(), ensure.Spec{Name: table, Key: "id"}); err != nil {
		t.Fatal(err)
	}
	for _, id := range stored {
		if r, err := items.Transact(t.Context(), db.DynamoDB(), []items.Action{create(id)}); r != nil || err != nil {
			t.Fatal(r, err)
		}
	}
	return db.DynamoDB()
}

func key(id string) attr.Item { return attr.Item{"id": attr.S(id)} }

func create(id string) items.Action { return items.Put(table, key(id), items.Absent("id")) }

// ids returns the ids of the table's items, sorted.
func ids(t *testing.T, db *dynamodb.Client) string {
	var all []string
	for it, err := range items.Scan(t.Context(), db, &dynamodb.ScanInput{TableName: aws.String(table), Limit: aws.Int32(2)}) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, attr.String(it["id"]))
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// A transaction with a failed condition writes nothing, and returns the stored item.
func TestAllOrNone(t *testing.T) {
	db := open(t, "a")
	r, err := items.Transact(t.Context(), db, []items.Action{create("b"), create("a")})
	if err != nil || r.Failed(0) || !r.Failed(1) || attr.String(r.Stored(1)["id"]) != "a" || r.Failed(2) {
		t.Errorf("%v, %v", r, err)
	}
	if got := ids(t, db); got != "a" {
		t.Errorf("the table has %s", got)
	}
	r, err = items.Transact(t.Context(), db, []items.Action{
		items.Check(table, key("b"), items.Absent("id")), items.Delete(table, key("a"), nil),
		items.Update(table, key("c"), "SET #n = :n", &items.Condition{
			Text: "attribute_not_exists(#n)", Names: map[string]string{"#n": "n"}, Values: attr.Item{":n": attr.Int(1)},
		}),
	})
	if got := ids(t, db); r != nil || err != nil || got != "c" {
		t.Errorf("%v, %v; the table has %s", r, err, got)
	}
	if _, err := items.Transact(t.Context(), db, []items.Action{items.Put(missing, key("a"), nil)}); !ensure.Missing(err) {
		t.Errorf("without its table: %v", err)
	}
}

// A refused element leaves the transaction, or stays in it after a change.
func TestTransactEach(t *testing.T) {
	db := open(t, "a", "b")
	written, err := items.TransactEach(t.Context(), db, []string{"a", "x", "b", "y"}, func(id string) []items.Action {
		return []items.Action{create(id), items.Put(table, key(id+"2"), nil)}
	}, nil)
	if got := ids(t, db); err != nil || !slices.Equal(written, []string{"x", "y"}) || got != "a b x x2 y y2" {
		t.Errorf("%v were written, %v; the table has %s", written, err, got)
	}
	again, err := items.TransactEach(t.Context(), db, []*string{aws.String("a"), aws.String("b")}, func(id *string) []items.Action {
		return []items.Action{create(*id)}
	}, func(id *string, stored attr.Item) (bool, error) {
		*id = attr.String(stored["id"]) + "3"
		return *id == "b3", nil
	})
	if got := ids(t, db); err != nil || len(again) != 1 || got != "a b b3 x x2 y y2" {
		t.Errorf("%d were written, %v; the table has %s", len(again), err, got)
	}
	failed := errors.New("failed")
	_, err = items.TransactEach(t.Context(), db, []string{"a"}, func(id string) []items.Action {
		return []items.Action{create(id)}
	}, func(string, attr.Item) (bool, error) { return false, failed })
	if !errors.Is(err, failed) {
		t.Errorf("the error is %v", err)
	}
}

// Scan, Query and BatchGet return the items of all pages. A missing table is empty for Scan.
func TestWhole(t *testing.T) {
	var all []string
	wanted := types.KeysAndAttributes{}
	for i := range 7 {
		all = append(all, strconv.Itoa(i))
		wanted.Keys = append(wanted.Keys, key(all[i]), key("no "+all[i]))
	}
	db := open(t, all...)
	if got := ids(t, db); got != strings.Join(all, " ") {
		t.Errorf("a scan finds %s", got)
	}
	found := 0
	err := items.BatchGet(t.Context(), db, map[string]types.KeysAndAttributes{table: wanted}, func(string, attr.Item) error {
		found++
		return nil
	})
	if err != nil || found != len(all) {
		t.Errorf("%d items, %v", found, err)
	}
	for it, err := range items.Query(t.Context(), db, &dynamodb.QueryInput{
		TableName: aws.String(table), KeyConditionExpression: aws.String("id = :id"), ExpressionAttributeValues: attr.Item{":id": attr.S("3")},
	}) {
		if err != nil || attr.String(it["id"]) != "3" {
			t.Errorf("a query finds %v, %v", it, err)
		}
	}
	for range items.Scan(t.Context(), db, &dynamodb.ScanInput{TableName: aws.String(missing)}) {
		t.Error("a missing table has an item")
	}
	if it, err := items.Get(t.Context(), db, table, key("none")); it != nil || err != nil {
		t.Errorf("%v, %v", it, err)
	}
	if _, err := items.Get(t.Context(), db, missing, key("none")); !ensure.Missing(err) {
		t.Errorf("without its table: %v", err)
	}
}
