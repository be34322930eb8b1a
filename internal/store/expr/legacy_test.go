package expr

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// values returns the elements of a list in the notation of the tests.
func values(text string) []dynamo.Value {
	list := []dynamo.Value{}
	for v := range mustValue(text).Elements() {
		list = append(list, v)
	}
	return list
}

// TestLegacyConditions checks the meaning of each ComparisonOperator, in a filter and in Expected.
func TestLegacyConditions(t *testing.T) {
	item := mustItem(`{"n":5,"s":"hello","b":{"B":"aGVsbG8="},"l":[1,"x"],"ss":{"SS":["a"]},"a.b":1,"status":"ok"}`)
	tests := []struct {
		attribute, operator, values string
		want                        bool
	}{
		{"n", "EQ", `[5]`, true},
		{"n", "EQ", `["5"]`, false},
		{"l", "EQ", `[[1,"x"]]`, true},
		{"gone", "EQ", `[5]`, false},
		{"n", "NE", `[5]`, false},
		{"gone", "NE", `[5]`, true},
		{"n", "LT", `[6]`, true},
		{"n", "LE", `[5]`, true},
		{"n", "GT", `[5]`, false},
		{"n", "GE", `[5]`, true},
		{"s", "GE", `[5]`, false},
		{"n", "BETWEEN", `[4,6]`, true},
		{"n", "BETWEEN", `[6,7]`, false},
		{"n", "IN", `[1,5]`, true},
		{"n", "IN", `[1]`, false},
		{"s", "BEGINS_WITH", `["he"]`, true},
		{"b", "BEGINS_WITH", `[{"B":"aGU="}]`, true},
		{"s", "CONTAINS", `["ell"]`, true},
		{"l", "CONTAINS", `[1]`, true},
		{"ss", "CONTAINS", `["b"]`, false},
		{"s", "NOT_CONTAINS", `["ell"]`, false},
		{"ss", "NOT_CONTAINS", `["b"]`, true},
		{"gone", "NOT_CONTAINS", `["b"]`, false},
		{"n", "NULL", `[]`, false},
		{"gone", "NULL", `[]`, true},
		{"n", "NOT_NULL", `[]`, true},
		{"gone", "NOT_NULL", `[]`, false},
		{"a.b", "EQ", `[1]`, true},
		{"status", "EQ", `["ok"]`, true},
	}
	for _, tt := range tests {
		t.Run(tt.operator+" "+tt.attribute+" "+tt.values, func(t *testing.T) {
			c, err := LegacyFilter([]LegacyCondition{{tt.attribute, tt.operator, values(tt.values)}}, "")
			if err != nil {
				t.Fatal(err)
			}
			if got := c.Eval(item); got != tt.want {
				t.Errorf("as a filter: %v", got)
			}
			if c, err = Expected([]ExpectedValue{{Attribute: tt.attribute, Operator: tt.operator, List: values(tt.values)}}, ""); err != nil {
				t.Fatal(err)
			}
			if got := c.Eval(item); got != tt.want {
				t.Errorf("as expected: %v", got)
			}
		})
	}
}

// TestConditionalOperator joins two conditions, one of them true, and none.
func TestConditionalOperator(t *testing.T) {
	two := []LegacyCondition{{"a", "EQ", values(`[1]`)}, {"b", "EQ", values(`[1]`)}}
	for operator, want := range map[string]bool{"": false, "AND": false, "OR": true} {
		c, err := LegacyFilter(two, operator)
		if err != nil || c.Eval(mustItem(`{"b":1}`)) != want {
			t.Errorf("%q: not %v: %v", operator, want, err)
		}
		if c.Attributes()[1] != "b" {
			t.Errorf("names %v", c.Attributes())
		}
		if c, err = LegacyFilter(nil, operator); err != nil || !c.Eval(nil) {
			t.Errorf("%q: no conditions refuse an item: %v", operator, err)
		}
	}
}

// TestExistsAndValue checks the oldest form of Expected, and the errors for mixtures
// (docs/spec/errors.md §12).
func TestExistsAndValue(t *testing.T) {
	yes, no := true, false
	one := mustValue(`1`)
	list := values(`[1]`)
	tests := []struct {
		name     string
		expected ExpectedValue
		item     string
		want     bool
		message  string
	}{
		{"equal", ExpectedValue{Value: one}, `{"a":1}`, true, ""},
		{"unequal", ExpectedValue{Value: one}, `{"a":2}`, false, ""},
		{"exists and equal", ExpectedValue{Value: one, Exists: &yes}, `{"a":1}`, true, ""},
		{"exists not", ExpectedValue{Exists: &no}, `{}`, true, ""},
		{"exists after all", ExpectedValue{Exists: &no}, `{"a":null}`, false, ""},
		{"operator with a value", ExpectedValue{Operator: "LT", Value: one}, `{"a":0}`, true, ""},
		{"both forms", ExpectedValue{Operator: "EQ", Value: one, List: list}, "", false, "Value and AttributeValueList cannot be used together for Attribute: a"},
		{"exists with operator", ExpectedValue{Operator: "EQ", Value: one, Exists: &yes}, "", false, "Exists and ComparisonOperator cannot be used together for Attribute: a"},
		{"operator alone", ExpectedValue{Operator: "GE"}, "", false, "Value or AttributeValueList must be used with ComparisonOperator: GE for Attribute: a"},
		{"list alone", ExpectedValue{List: list}, "", false, "AttributeValueList can only be used with a ComparisonOperator for Attribute: a"},
		{"nothing", ExpectedValue{}, "", false, "Value must be provided when Exists is null for Attribute: a"},
		{"exists alone", ExpectedValue{Exists: &yes}, "", false, "Value must be provided when Exists is true for Attribute: a"},
		{"exists not with value", ExpectedValue{Exists: &no, Value: one}, "", false, "Value cannot be used when Exists is false for Attribute: a"},
		{"count", ExpectedValue{Operator: "NULL", Value: one}, "", false, "Invalid number of argument(s) for the NULL ComparisonOperator"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.expected.Attribute = "a"
			c, err := Expected([]ExpectedValue{tt.expected}, "")
			if tt.message != "" {
				checkMessage(t, err, msgInvalid+tt.message)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := c.Eval(mustItem(tt.item)); got != tt.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

// TestArguments checks the errors for arguments of comparisons (docs/spec/errors.md §12).
func TestArguments(t *testing.T) {
	tests := []struct{ operator, values, want string }{
		{"EQ", `[]`, msgInvalid + "Invalid number of argument(s) for the EQ ComparisonOperator"},
		{"BETWEEN", `[1]`, msgInvalid + "Invalid number of argument(s) for the BETWEEN ComparisonOperator"},
		{"IN", `[]`, msgInvalid + "Invalid number of argument(s) for the IN ComparisonOperator"},
		{"NOT_NULL", `[1]`, msgInvalid + "Invalid number of argument(s) for the NOT_NULL ComparisonOperator"},
		{"IN", `[1,"x"]`, msgInvalid + "AttributeValues inside AttributeValueList must be of same type"},
		{"LT", `[[1]]`, msgInvalid + "ComparisonOperator LT is not valid for L AttributeValue type"},
		{"BEGINS_WITH", `[1]`, msgInvalid + "ComparisonOperator BEGINS_WITH is not valid for N AttributeValue type"},
		{"CONTAINS", `[{"SS":["a"]}]`, msgInvalid + "ComparisonOperator CONTAINS is not valid for SS AttributeValue type"},
		{"IN", `[true]`, msgInvalid + "ComparisonOperator IN is not valid for BOOL AttributeValue type"},
		{"BETWEEN", `[2,1]`, "The BETWEEN condition was provided a range where the lower bound is greater than the upper bound"},
	}
	for _, tt := range tests {
		_, err := LegacyFilter([]LegacyCondition{{"a", tt.operator, values(tt.values)}}, "")
		checkMessage(t, err, tt.want)
	}
}

// TestLegacyKeyConditions checks the ranges and errors of KeyConditions.
func TestLegacyKeyConditions(t *testing.T) {
	schema := KeySchema{[]KeyAttr{{"p", dynamo.KindString}}, []KeyAttr{{"s", dynamo.KindNumber}}}
	p := LegacyCondition{"p", "EQ", values(`["x"]`)}
	tests := []struct {
		name       string
		conditions []LegacyCondition
		want       string
	}{
		{"partition", []LegacyCondition{p}, `"x"`},
		{"both", []LegacyCondition{{"s", "BETWEEN", values(`[1,2]`)}, p}, `"x", between 1 and 2`},
		{"none", nil, "error: Conditions can be of length 1 or 2 only"},
		{"three", []LegacyCondition{p, {"s", "EQ", values(`[1]`)}, {"a", "EQ", values(`[1]`)}}, "error: Conditions can be of length 1 or 2 only"},
		{"not indexable", []LegacyCondition{p, {"s", "CONTAINS", values(`[1]`)}}, "error: Attempted conditional constraint is not an indexable operation"},
		{"not indexable", []LegacyCondition{p, {"s", "NE", values(`[1]`)}}, "error: Attempted conditional constraint is not an indexable operation"},
		{"not indexable", []LegacyCondition{p, {"s", "NULL", nil}}, "error: Attempted conditional constraint is not an indexable operation"},
		{"range of the partition", []LegacyCondition{{"p", "LT", values(`["x"]`)}}, "error: Query key condition not supported"},
		{"type", []LegacyCondition{p, {"s", "EQ", values(`["x"]`)}}, "error: One or more parameter values were invalid: Condition parameter type does not match schema type"},
		{"count", []LegacyCondition{p, {"s", "EQ", nil}}, "error: One or more parameter values were invalid: Invalid number of argument(s) for the EQ ComparisonOperator"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var r KeyRange
			k, err := LegacyKeyCondition(tt.conditions)
			if err == nil {
				r, err = k.Range(schema)
			}
			got := showRange(r)
			if err != nil {
				got = message(err)
			}
			if got != tt.want {
				t.Errorf("got:  %s\nwant: %s", got, tt.want)
			}
		})
	}
}

// TestAttributeUpdates checks the legacy form of an update.
func TestAttributeUpdates(t *testing.T) {
	item := `{"pk":"k","n":5,"l":[1],"ss":{"SS":["a","b"]},"s":"x"}`
	v := mustValue
	tests := []struct {
		name    string
		item    string
		updates []AttributeUpdate
		want    string
	}{
		{"put", item, []AttributeUpdate{{"n", "PUT", v(`1`)}, {"status", "", v(`2`)}}, `{"l":[1],"n":1,"pk":"k","s":"x","ss":{"SS":["a","b"]},"status":2}`},
		{"add", item, []AttributeUpdate{{"n", "ADD", v(`1`)}, {"l", "ADD", v(`[2]`)}, {"ss", "ADD", v(`{"SS":["c"]}`)}, {"q", "ADD", v(`1`)}},
			`{"l":[1,2],"n":6,"pk":"k","q":1,"s":"x","ss":{"SS":["a","b","c"]}}`},
		{"delete", item, []AttributeUpdate{{"n", "DELETE", nil}, {"ss", "DELETE", v(`{"SS":["a"]}`)}, {"q", "DELETE", nil}}, `{"l":[1],"pk":"k","s":"x","ss":{"SS":["b"]}}`},
		{"name with a dot", item, []AttributeUpdate{{"a.b", "PUT", v(`1`)}}, `{"a.b":1,"l":[1],"n":5,"pk":"k","s":"x","ss":{"SS":["a","b"]}}`},
		{"nothing", item, nil, `{"l":[1],"n":5,"pk":"k","s":"x","ss":{"SS":["a","b"]}}`},
		{"nothing, no item", "", nil, `{"pk":"k"}`},
		{"put, no item", "", []AttributeUpdate{{"a", "PUT", v(`1`)}}, `{"a":1,"pk":"k"}`},
		{"delete, no item", "", []AttributeUpdate{{"a", "DELETE", nil}}, `(none)`},
		{"add of another type", item, []AttributeUpdate{{"s", "ADD", v(`1`)}}, "error: Type mismatch for attribute to update"},
		{"delete of another type", item, []AttributeUpdate{{"ss", "DELETE", v(`{"NS":[1]}`)}}, "error: Type mismatch for attribute to update"},
		{"put without value", item, []AttributeUpdate{{"s", "PUT", nil}}, "error: " + msgInvalid + "Only DELETE action is allowed when no attribute value is specified"},
		{"default without value", item, []AttributeUpdate{{"s", "", nil}}, "error: " + msgInvalid + "Only DELETE action is allowed when no attribute value is specified"},
		{"delete of a scalar", item, []AttributeUpdate{{"s", "DELETE", v(`"x"`)}}, "error: " + msgInvalid + "DELETE action with value is not supported for the type S"},
		{"add of a string", item, []AttributeUpdate{{"s", "ADD", v(`"x"`)}}, "error: " + msgInvalid + "ADD action is not supported for the type S"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var old dynamo.Item
			if tt.item != "" {
				old = mustItem(tt.item)
			}
			got := ""
			u, err := AttributeUpdates(tt.updates)
			if err == nil {
				var updated dynamo.Item
				updated, err = u.Apply(old, mustItem(`{"pk":"k"}`))
				got = showItem(updated)
			}
			if err != nil {
				got = message(err)
			}
			if got != tt.want {
				t.Errorf("got:  %s\nwant: %s", got, tt.want)
			}
		})
	}
}

// TestAttributesToGet selects whole attributes, including those whose names an expression could not
// write.
func TestAttributesToGet(t *testing.T) {
	p, err := AttributesToGet([]string{"status", "a.b", "gone"})
	if err != nil {
		t.Fatal(err)
	}
	if got := showItem(p.Apply(nil, mustItem(`{"a":{"b":2},"a.b":1,"status":4}`))); got != `{"a.b":1,"status":4}` {
		t.Errorf("got %s", got)
	}
	_, err = AttributesToGet([]string{"a", "b", "a"})
	checkMessage(t, err, msgInvalid+"Duplicate value in attribute name: a")
}

// TestManyNames: the time to list the names of a legacy parameter grows with their number. With the
// square of it, these would take minutes.
func TestManyNames(t *testing.T) {
	const n = 200_000
	names := make([]string, n)
	updates := make([]AttributeUpdate, n)
	expected := make([]ExpectedValue, n)
	for i := range n {
		names[i] = fmt.Sprintf("a%06d", i)
		updates[i] = AttributeUpdate{Attribute: names[i], Action: "DELETE"}
		expected[i] = ExpectedValue{Attribute: names[i], Exists: new(false)}
	}
	start := time.Now()
	projection, err1 := AttributesToGet(names)
	update, err2 := AttributeUpdates(updates)
	condition, err3 := Expected(expected, "")
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	for _, list := range [][]string{projection.Attributes(), update.Attributes(), condition.Attributes()} {
		if !slices.Equal(list, names) {
			t.Errorf("%d names, want %d", len(list), n)
		}
	}
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
}
