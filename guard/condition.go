package guard

import (
	"context"
	"reflect"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/guard/internal/armed"
	"github.com/mayflydb/mayfly/internal/invariant"
	"github.com/mayflydb/mayfly/internal/work/attr"
)

// condition is that the item still has the deadline that armed the entry.
func (g *Guard) condition(e armed.Entry) (condition string, names map[string]string, values map[string]types.AttributeValue) {
	names = map[string]string{"#ttl": g.o.Attribute}
	values = map[string]types.AttributeValue{":armed": attr.N(e.Text())}
	condition = "#ttl = :armed"
	if invariant.Injected(invariant.Unconditional) {
		condition = "(#ttl = :armed OR attribute_exists(#ttl))"
	}
	if g.o.Version == "" {
		return condition, names, values
	}
	names["#version"] = g.o.Version
	version, err := attributevalue.UnmarshalJSON([]byte(e.Version))
	if e.Version == "" || err != nil {
		return condition + " AND attribute_not_exists(#version)", names, values
	}
	values[":version"] = version
	return condition + " AND #version = :version", names, values
}

// read returns the item and whether it still has the deadline that armed the entry.
func (g *Guard) read(ctx context.Context, e armed.Entry) (item map[string]types.AttributeValue, armed bool, err error) {
	out, err := g.once.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &g.o.Table, Key: g.attributes(e.Key), ConsistentRead: aws.Bool(true), ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
	})
	if err != nil {
		return nil, false, err
	}
	value, _, err := deadline(out.Item[g.o.Attribute])
	if err != nil || !sameNumber(value, e.Text()) {
		return nil, false, nil
	}
	if g.o.Version != "" {
		version, err := versionOf(out.Item[g.o.Version])
		if err != nil || !sameVersion(version, e.Version) {
			return nil, false, nil
		}
	}
	return out.Item, true, nil
}

func sameNumber(a, b string) bool {
	x, errX := canonical(a)
	y, errY := canonical(b)
	return errX == nil && errY == nil && string(x) == string(y)
}

func sameVersion(a, b string) bool {
	if a == b || a == "" || b == "" {
		return a == b
	}
	x, errX := attributevalue.UnmarshalJSON([]byte(a))
	y, errY := attributevalue.UnmarshalJSON([]byte(b))
	return errX == nil && errY == nil && reflect.DeepEqual(x, y)
}
