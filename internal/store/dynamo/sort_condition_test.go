package dynamo

import (
	"slices"
	"strconv"
	"testing"
)

// Each comparison admits the values that it names; none admits all.
func TestSortCondition(t *testing.T) {
	number := func(n int) Value { return mustValue(t, `{"N":"`+strconv.Itoa(n)+`"}`) }
	for op, want := range map[SortOp][]int{
		SortAny: {1, 2, 3, 4, 5}, SortEQ: {3}, SortLT: {1, 2}, SortLE: {1, 2, 3}, SortGT: {4, 5}, SortGE: {3, 4, 5}, SortBetween: {3, 4},
	} {
		var got []int
		for n := range 6 {
			if n > 0 && (SortCondition{Op: op, Low: number(3), High: number(4)}).Holds(number(n)) {
				got = append(got, n)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("comparison %d of 3 and 4 admits %v, not %v", op, got, want)
		}
	}
	for text, want := range map[string]bool{"ab": true, "abc": true, "a": false, "b": false} {
		c := SortCondition{Op: SortBegins, Low: mustValue(t, `{"S":"ab"}`)}
		if got := c.Holds(mustValue(t, `{"S":"`+text+`"}`)); got != want {
			t.Errorf("%q begins with \"ab\": %t", text, got)
		}
	}
}
