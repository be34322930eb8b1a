package guard

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/work/attr"
)

// table is the description of the table. It is set before a strategy runs, and does not change.
type table struct {
	name    string
	arn     string
	id      string    // "" if the endpoint returns none
	created time.Time // zero if the endpoint returns none
	keys    []keyAttribute
	stream  string // ARN of its stream; "" if it has none
	view    types.StreamViewType
	indexes []types.GlobalSecondaryIndexDescription
	// of the attributes that keys of the table and its indexes are made of
	kinds map[string]types.ScalarAttributeType
}

// label returns the table's name for leases and checkpoints: its ARN, or its name if it has none.
func (t *table) label() string {
	if t.arn != "" {
		return t.arn
	}
	return t.name
}

// names are the key attributes' names.
func (t *table) names() []string {
	names := make([]string, len(t.keys))
	for i, a := range t.keys {
		names[i] = a.name
	}
	return names
}

// describe describes the table. It returns a *Problem if that cannot be guarded.
func (g *Guard) describe(ctx context.Context) (*table, error) {
	out, err := g.db.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &g.o.Table})
	if err != nil {
		return nil, err
	}
	d := out.Table
	if d == nil {
		return nil, fmt.Errorf("the endpoint's answer to DescribeTable has no table")
	}
	if d.TableStatus == types.TableStatusDeleting {
		return nil, &Problem{Code: NoTable, Message: fmt.Sprintf("table %s is being deleted", g.o.Table), Next: "guard another one"}
	}
	g.items.Store(aws.ToInt64(d.ItemCount))
	t := &table{
		name: g.o.Table, arn: aws.ToString(d.TableArn), id: aws.ToString(d.TableId), created: aws.ToTime(d.CreationDateTime), stream: aws.ToString(d.LatestStreamArn),
		indexes: d.GlobalSecondaryIndexes, kinds: map[string]types.ScalarAttributeType{},
	}
	if s := d.StreamSpecification; s != nil && aws.ToBool(s.StreamEnabled) {
		t.view = s.StreamViewType
	} else {
		t.stream = ""
	}
	for _, a := range d.AttributeDefinitions {
		t.kinds[aws.ToString(a.AttributeName)] = a.AttributeType
	}
	for _, kind := range []types.KeyType{types.KeyTypeHash, types.KeyTypeRange} {
		for _, e := range d.KeySchema {
			if e.KeyType == kind {
				t.keys = append(t.keys, keyAttribute{aws.ToString(e.AttributeName), t.kinds[aws.ToString(e.AttributeName)]})
			}
		}
	}
	if len(t.keys) == 0 {
		return nil, fmt.Errorf("the endpoint's answer to DescribeTable has no key")
	}
	return t, nil
}

// same reports whether two descriptions are of the same table, not of a later one with its name.
func (t *table) same(u *table) bool {
	if t.id != "" && u.id != "" {
		return t.id == u.id
	}
	return t.created.Equal(u.created)
}

// ttlAttribute returns the attribute of the table's native TTL; "" if that is off.
func (g *Guard) ttlAttribute(ctx context.Context) (string, error) {
	out, err := g.db.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: &g.o.Table})
	if err != nil {
		return "", err
	}
	if d := out.TimeToLiveDescription; d != nil && (d.TimeToLiveStatus == types.TimeToLiveStatusEnabled || d.TimeToLiveStatus == types.TimeToLiveStatusEnabling) {
		return aws.ToString(d.AttributeName), nil
	}
	return "", nil
}

func (t *table) keyOf(item map[string]types.AttributeValue) (key, error) {
	var room [64]byte
	b := room[:0]
	for _, a := range t.keys {
		var err error
		if b, err = a.append(b, item[a.name]); err != nil {
			return "", fmt.Errorf("key attribute %s: %w", a.name, err)
		}
	}
	return key(b), nil
}

// attributes is the reverse of keyOf. It returns nil for a key that the table cannot have, for
// example from another table's checkpoint.
func (t *table) attributes(k key) map[string]types.AttributeValue {
	item := make(map[string]types.AttributeValue, len(t.keys))
	tail := string(k)
	for _, a := range t.keys {
		if len(tail) == 0 || tail[0] != a.kind[0] {
			return nil
		}
		var head [binary.MaxVarintLen64]byte
		size, n := binary.Uvarint(head[:copy(head[:], tail[1:])])
		if n <= 0 || size > uint64(len(tail)-1-n) {
			return nil
		}
		value := tail[1+n : 1+n+int(size)]
		tail = tail[1+n+int(size):]
		switch a.kind {
		case types.ScalarAttributeTypeS:
			item[a.name] = attr.S(value)
		case types.ScalarAttributeTypeN:
			item[a.name] = attr.N(value)
		case types.ScalarAttributeTypeB:
			item[a.name] = attr.B([]byte(value))
		}
	}
	if tail != "" {
		return nil
	}
	return item
}
