package service

import (
	"fmt"
	"slices"
	"testing"
)

// TestManyAttributes: names are added once each, also beyond the short list.
func TestManyAttributes(t *testing.T) {
	var a Access
	var want []string
	for i := range 100 {
		name := fmt.Sprint("a", i)
		want = append(want, name)
		a.add(name, name, "a0", fmt.Sprint("a", i/2))
	}
	if !slices.Equal(a.Attributes, want) {
		t.Errorf("got %v", a.Attributes)
	}
}

// TestReturnValues: policies see what a write returns on success and after a failed condition. Neither
// hides the other.
func TestReturnValues(t *testing.T) {
	for _, test := range []struct {
		success, failure string
		want             []string
	}{
		{"", "", []string{""}},
		{"ALL_NEW", "", []string{"ALL_NEW"}},
		{"ALL_NEW", "NONE", []string{"ALL_NEW"}},
		{"", "ALL_OLD", []string{"ALL_OLD"}},
		{"NONE", "ALL_OLD", []string{"ALL_OLD"}},
		{"ALL_OLD", "ALL_OLD", []string{"ALL_OLD"}},
		{"ALL_NEW", "ALL_OLD", []string{"ALL_NEW", "ALL_OLD"}},
	} {
		in := &WriteInput{ReturnValues: Opt[string]{V: test.success, Set: true}, ReturnValuesOnConditionFail: Opt[string]{V: test.failure, Set: true}}
		var got []string
		for _, a := range (&Service{}).Accesses("UpdateItem", in, Facts{}) {
			got = append(got, a.ReturnValues)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%q and %q: got %q, want %q", test.success, test.failure, got, test.want)
		}
	}
}

// TestAccessesOfLongLists: a request with more tables, keys or actions than its operation accepts is
// not a list of as many accesses, since policies see it before the operation refuses it.
func TestAccessesOfLongLists(t *testing.T) {
	s := &Service{tables: "arn:"}
	const many = 100_000
	get := &BatchGetItemInput{RequestItems: make([]BatchGetTable, many)}
	get.RequestItems[0].Keys = make([]ItemArg, many)
	write := &BatchWriteItemInput{RequestItems: make([]BatchWriteTable, many)}
	write.RequestItems[0].Requests = make([]WriteRequest, many)
	put := &WriteInput{}
	actions := make([]TransactAction, many)
	for i := range actions {
		actions[i].Put = put
	}
	for _, test := range []struct {
		operation string
		in        any
		want      int
	}{
		{"BatchGetItem", get, batchGetKeysMax + 1},
		{"BatchWriteItem", write, batchWritesMax + 1},
		{"TransactGetItems", &TransactGetItemsInput{Items: make([]TransactGet, many)}, transactItemsMax + 1},
		{"TransactWriteItems", &TransactWriteItemsInput{Items: actions}, transactItemsMax + 1},
	} {
		if got := len(s.Accesses(test.operation, test.in, Facts{})); got != test.want {
			t.Errorf("%s: %d accesses, want %d", test.operation, got, test.want)
		}
	}
	if len(get.RequestItems) != many || len(get.RequestItems[0].Keys) != many {
		t.Error("the request was changed")
	}
}
