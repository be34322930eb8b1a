package autoscale

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/ensure"
	"github.com/mayflydb/mayfly/internal/work/items"
)

// The attributes of items in the table. The id begins with the kind of the item.
const (
	attrID       = "id"
	attrDue      = "due"      // of activities and minutes: the item's deadline
	attrJSON     = "json"     // of all but minutes
	attrKind     = "kind"     // of all but minutes
	attrRank     = "rank"     // orders the items of a kind, or the activities of a resource
	attrResource = "resource" // of activities

	kindTarget   = "target"
	kindPolicy   = "policy"
	kindActivity = "activity"
	kindMinute   = "minute"
)

// place is a dimension of a resource: what one scalable target scales.
type place struct{ Resource, Dimension string }

// id returns the key of an item about the place. Neither part has the separator, but more may.
func (p place) id(kind, more string) string {
	return strings.Join([]string{kind, p.Dimension, p.Resource, more}, "|")
}

// use returns the use of units that the place scales.
func (p place) use() Use {
	u := Use{Write: strings.HasSuffix(p.Dimension, ":WriteCapacityUnits")}
	name := strings.TrimPrefix(p.Resource, "table/")
	u.Table, u.Index, _ = strings.Cut(name, "/index/")
	return u
}

// place returns the place of a use.
func (u Use) place() place {
	p := place{"table/" + u.Table, "dynamodb:table:"}
	if u.Index != "" {
		p = place{p.Resource + "/index/" + u.Index, "dynamodb:index:"}
	}
	if u.Write {
		p.Dimension += "WriteCapacityUnits"
	} else {
		p.Dimension += "ReadCapacityUnits"
	}
	return p
}

// storedTarget is a scalable target in the table.
type storedTarget struct {
	place
	Min, Max int64
	Role     string
	ARN      string
	Created  int64 // ms since 1970
	Suspend  SuspendedState
	Tags     map[string]string
}

// storedPolicy is a policy in the table.
type storedPolicy struct {
	place
	Name, ARN string
	Created   int64
	Config    TargetTrackingConfiguration
}

// storedActivity is an activity in the table.
type storedActivity struct {
	place
	ID                                 string
	Description, Cause, Status, Reason string
	At                                 int64 // ms since 1970
}

// The indexes of the table, which lists read.
var (
	byKind     = ensure.Index{Name: "byKind", Key: attrKind, Sort: attrRank}
	byResource = ensure.Index{Name: "byResource", Key: attrResource, Sort: attrRank} // activities only
)

// put writes a target or a policy.
func (s *Scaler) put(ctx context.Context, kind string, p place, v any) error {
	id := p.id(kind, "")
	return s.write(ctx, attr.Item{attrID: attr.S(id), attrKind: attr.S(kind), attrRank: attr.S(id)}, v)
}

// write writes an item with a value.
func (s *Scaler) write(ctx context.Context, it attr.Item, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("autoscaling: write %s: %w", attr.String(it[attrID]), err)
	}
	it[attrJSON] = attr.S(string(text))
	_, err = s.o.DB.PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String(TableName), Item: it})
	return err
}

// get reads an item into v, and reports whether it exists.
func (s *Scaler) get(ctx context.Context, id string, v any) (found bool, err error) {
	if !s.needed.Load() {
		return false, nil
	}
	it, err := s.item(ctx, id)
	if err != nil || it == nil {
		return false, err
	}
	return true, decode(it, v)
}

func (s *Scaler) item(ctx context.Context, id string) (attr.Item, error) {
	return items.Get(ctx, s.o.DB, TableName, attr.Item{attrID: attr.S(id)})
}

func decode(it attr.Item, v any) error {
	if err := json.Unmarshal([]byte(attr.String(it[attrJSON])), v); err != nil {
		return fmt.Errorf("autoscaling: the item %q is damaged: %w", attr.String(it[attrID]), err)
	}
	return nil
}

func (s *Scaler) remove(ctx context.Context, id string) error {
	_, err := s.o.DB.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: aws.String(TableName), Key: attr.Item{attrID: attr.S(id)}})
	return err
}

// all returns the stored values of a kind.
func all[T any](ctx context.Context, s *Scaler, kind string) (values []T, err error) {
	for it, err := range s.list(ctx, byKind, kind, "") {
		if err != nil {
			return nil, err
		}
		var v T
		if err := decode(it, &v); err != nil {
			return nil, err
		}
		values = append(values, v)
	}
	return values, nil
}

// list returns the items of one key of an index whose rank is above after, in the order of ranks. An
// error is the last element.
func (s *Scaler) list(ctx context.Context, index ensure.Index, key, after string) iter.Seq2[attr.Item, error] {
	if !s.needed.Load() {
		return func(func(attr.Item, error) bool) {}
	}
	in := &dynamodb.QueryInput{
		TableName: aws.String(TableName), IndexName: &index.Name, Limit: aws.Int32(pageMost + 1), KeyConditionExpression: aws.String("#key = :key"),
		ExpressionAttributeNames: map[string]string{"#key": index.Key}, ExpressionAttributeValues: attr.Item{":key": attr.S(key)},
	}
	if after != "" {
		in.KeyConditionExpression = aws.String("#key = :key AND #rank > :after")
		in.ExpressionAttributeNames["#rank"], in.ExpressionAttributeValues[":after"] = index.Sort, attr.S(after)
	}
	return items.Query(ctx, s.o.DB, in)
}
