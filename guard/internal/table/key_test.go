package table

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/guard/internal/armed"
)

func s(v string) types.AttributeValue { return &types.AttributeValueMemberS{Value: v} }
func n(v string) types.AttributeValue { return &types.AttributeValueMemberN{Value: v} }
func b(v string) types.AttributeValue { return &types.AttributeValueMemberB{Value: []byte(v)} }

// tableOfKeys returns a table with a partition key p and a sort key s of these types; "" for none.
func tableOfKeys(partition, sort types.ScalarAttributeType) *Table {
	t := &Table{keys: []keyAttribute{{"p", partition}}}
	if sort != "" {
		t.keys = append(t.keys, keyAttribute{"s", sort})
	}
	return t
}

// Equal keys are equal bytes, however a number is written; and the attributes can be had back.
func TestKeyRoundTrip(t *testing.T) {
	for _, c := range []struct {
		table *Table
		item  map[string]types.AttributeValue
		want  map[string]types.AttributeValue // nil: as they were
	}{
		{tableOfKeys("S", ""), map[string]types.AttributeValue{"p": s("a")}, nil},
		{tableOfKeys("S", "S"), map[string]types.AttributeValue{"p": s(""), "s": s("S\x01a")}, nil},
		{tableOfKeys("B", "N"), map[string]types.AttributeValue{"p": b("\x00\xff"), "s": n("1.50E2")}, map[string]types.AttributeValue{"p": b("\x00\xff"), "s": n("150")}},
		{tableOfKeys("N", "B"), map[string]types.AttributeValue{"p": n("-0.0"), "s": b("")}, map[string]types.AttributeValue{"p": n("0"), "s": b("")}},
		{tableOfKeys("S", ""), map[string]types.AttributeValue{"p": s(fmt.Sprintf("%2000d", 1)), "other": n("1")}, map[string]types.AttributeValue{"p": s(fmt.Sprintf("%2000d", 1))}},
	} {
		k, err := c.table.KeyOf(c.item)
		if err != nil {
			t.Fatal(err)
		}
		if c.want == nil {
			c.want = c.item
		}
		if got := c.table.Attributes(k); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%v came back as %v", c.item, got)
		}
	}
	table := tableOfKeys("S", "S")
	one, _ := table.KeyOf(map[string]types.AttributeValue{"p": s("a"), "s": s("bc")})
	other, _ := table.KeyOf(map[string]types.AttributeValue{"p": s("ab"), "s": s("c")})
	if one == other {
		t.Error("two keys are one")
	}
}

func TestKeyErrors(t *testing.T) {
	table := tableOfKeys("S", "N")
	for want, item := range map[string]map[string]types.AttributeValue{
		"key attribute p: it is missing":     {"s": n("1")},
		"key attribute p: its type is not S": {"p": n("1"), "s": n("1")},
		"key attribute s: its type is not N": {"p": s("a"), "s": &types.AttributeValueMemberBOOL{Value: true}},
	} {
		if _, err := table.KeyOf(item); err == nil || err.Error() != want {
			t.Errorf("%v: %v, want %s", item, err, want)
		}
	}
}

// Keys come back from checkpoints and tables, and so from anywhere.
func FuzzKey(f *testing.F) {
	table := tableOfKeys("S", "N")
	for _, k := range []string{"", "S", "S\x01a", "S\x01aN\x011", "S\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01a", "N\x011S\x01a", "S\x01aN\x011x"} {
		f.Add(k)
	}
	f.Fuzz(func(t *testing.T, k string) {
		item := table.Attributes(armed.Key(k))
		if item == nil {
			return
		}
		again, err := table.KeyOf(item)
		if err != nil {
			return // a number that is none
		}
		if back := table.Attributes(again); len(back) != 2 || back["p"].(*types.AttributeValueMemberS).Value != item["p"].(*types.AttributeValueMemberS).Value {
			t.Errorf("%q: %v, then %v", k, item, back)
		}
	})
}

// A deadline is read to the millisecond, and a fraction is rounded up.
func TestDeadline(t *testing.T) {
	for text, want := range map[string]int64{
		"1893456000": 1893456000_000, "1893456000.5": 1893456000_500, "1893456000.0001": 1893456000_001, "1.893456E9": 1893456000_000,
		"100000000000": 100000000000_000, "0.001": 1,
	} {
		value, at, err := Deadline(n(text))
		if err != nil || at != want || value != text {
			t.Errorf("%s: %q %d %v, want %d", text, value, at, err, want)
		}
	}
}
