// Package table describes a guarded table: its key, the deadlines of its items, and the problems
// that make guarding it impossible.
package table

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Table is the description of a guarded table at one moment. It does not change.
type Table struct {
	Name    string
	ARN     string
	ID      string    // "" if the endpoint returns none
	Created time.Time // zero if the endpoint returns none
	Items   int64     // as the endpoint has last counted
	Stream  string    // ARN of its stream; "" if it has none
	View    types.StreamViewType
	Indexes []types.GlobalSecondaryIndexDescription
	// of the attributes that keys of the table and its indexes are made of
	Kinds map[string]types.ScalarAttributeType

	// the attributes of a deadline, which Describe does not know: the TTL attribute, and the
	// version attribute or ""
	Attribute, Version string

	keys []keyAttribute
}

// keyAttribute is a part of the table's key.
type keyAttribute struct {
	name string
	kind types.ScalarAttributeType
}

// Label returns the table's name for leases and checkpoints: its ARN, or its name if it has none.
func (t *Table) Label() string {
	if t.ARN != "" {
		return t.ARN
	}
	return t.Name
}

// StreamLabel returns the part of a stream's ARN in which the streams of a table differ.
func StreamLabel(arn string) string { return arn[strings.LastIndexByte(arn, '/')+1:] }

// Names returns the names of the key attributes.
func (t *Table) Names() []string {
	names := make([]string, len(t.keys))
	for i, a := range t.keys {
		names[i] = a.name
	}
	return names
}

// Description returns the endpoint's description of a table.
func Description(ctx context.Context, db *dynamodb.Client, name string) (*types.TableDescription, error) {
	out, err := db.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &name})
	if err != nil {
		return nil, err
	}
	if out.Table == nil {
		return nil, errors.New("the endpoint's answer to DescribeTable has no table")
	}
	return out.Table, nil
}

// Describe asks the endpoint for a table. It returns a *Problem if the table cannot be guarded.
func Describe(ctx context.Context, db *dynamodb.Client, name string) (*Table, error) {
	d, err := Description(ctx, db, name)
	if err != nil {
		return nil, err
	}
	if d.TableStatus == types.TableStatusDeleting {
		return nil, &Problem{Code: NoTable, Message: fmt.Sprintf("table %s is being deleted", name), Next: "guard another one"}
	}
	t := &Table{
		Name: name, ARN: aws.ToString(d.TableArn), ID: aws.ToString(d.TableId), Created: aws.ToTime(d.CreationDateTime), Items: aws.ToInt64(d.ItemCount),
		Indexes: d.GlobalSecondaryIndexes, Kinds: map[string]types.ScalarAttributeType{},
	}
	if s := d.StreamSpecification; s != nil && aws.ToBool(s.StreamEnabled) {
		t.Stream, t.View = aws.ToString(d.LatestStreamArn), s.StreamViewType
	}
	for _, a := range d.AttributeDefinitions {
		t.Kinds[aws.ToString(a.AttributeName)] = a.AttributeType
	}
	for _, kind := range []types.KeyType{types.KeyTypeHash, types.KeyTypeRange} {
		for _, e := range d.KeySchema {
			if e.KeyType == kind {
				t.keys = append(t.keys, keyAttribute{aws.ToString(e.AttributeName), t.Kinds[aws.ToString(e.AttributeName)]})
			}
		}
	}
	if len(t.keys) == 0 {
		return nil, errors.New("the endpoint's answer to DescribeTable has no key")
	}
	return t, nil
}

// Same reports whether two descriptions are of the same table, not of a later one with its name.
func (t *Table) Same(u *Table) bool {
	if t.ID != "" && u.ID != "" {
		return t.ID == u.ID
	}
	return t.Created.Equal(u.Created)
}

// TTLAttribute returns the attribute of a table's native TTL; "" if that is off.
func TTLAttribute(ctx context.Context, db *dynamodb.Client, name string) (string, error) {
	out, err := db.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: &name})
	if err != nil {
		return "", err
	}
	if d := out.TimeToLiveDescription; d != nil && (d.TimeToLiveStatus == types.TimeToLiveStatusEnabled || d.TimeToLiveStatus == types.TimeToLiveStatusEnabling) {
		return aws.ToString(d.AttributeName), nil
	}
	return "", nil
}

// Fields returns the names of the attributes that a deadline is made of.
func (t *Table) Fields() []string {
	fields := append(t.Names(), t.Attribute)
	if t.Version != "" {
		fields = append(fields, t.Version)
	}
	return fields
}

// Pick returns the attributes of an image that a deadline is made of.
func Pick[V any](t *Table, image map[string]V) map[string]V {
	fields := map[string]V{}
	for _, name := range t.Fields() {
		if v, has := image[name]; has {
			fields[name] = v
		}
	}
	return fields
}

// Project sets a request's projection expression to the attributes of a deadline and besides. It
// uses the placeholders in names, the request's attribute names, and adds the missing ones.
func (t *Table) Project(expression **string, names map[string]string, besides ...string) {
	var parts []string
	for _, attribute := range slices.Concat(t.Fields(), besides) {
		name := fmt.Sprintf("#a%d", len(parts))
		for n, has := range names {
			if has == attribute {
				name = n
			}
		}
		if names[name] = attribute; !slices.Contains(parts, name) { // naming one twice is refused
			parts = append(parts, name)
		}
	}
	*expression = aws.String(strings.Join(parts, ", "))
}
