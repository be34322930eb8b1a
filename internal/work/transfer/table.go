package transfer

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/work/retry"
)

// Table is the definition of a table, from which another one like it can be created. As JSON its members
// have the names of CreateTable's input, besides TimeToLiveAttribute.
type Table struct {
	TableName              string
	AttributeDefinitions   []types.AttributeDefinition
	KeySchema              []types.KeySchemaElement
	BillingMode            types.BillingMode
	ProvisionedThroughput  *Throughput `json:",omitempty"`
	GlobalSecondaryIndexes []Index     `json:",omitempty"`
	LocalSecondaryIndexes  []Index     `json:",omitempty"`
	TimeToLiveAttribute    string      `json:",omitempty"`
}

// Throughput is provisioned capacity.
type Throughput struct{ ReadCapacityUnits, WriteCapacityUnits int64 }

// Index is a secondary index.
type Index struct {
	IndexName             string
	KeySchema             []types.KeySchemaElement
	Projection            Projection
	ProvisionedThroughput *Throughput `json:",omitempty"`
}

// Projection has the attributes of an index.
type Projection struct {
	ProjectionType   types.ProjectionType
	NonKeyAttributes []string `json:",omitempty"`
}

// Described is an existing table: its definition, identity and size.
type Described struct {
	Table
	ARN, ID     string // the id is empty if the endpoint has none
	Created     time.Time
	Items, Size int64                // estimates: DynamoDB updates them every six hours
	Stream      types.StreamViewType // empty: off
}

// Same reports whether two descriptions are of the same table, also under two addresses. Tables
// without an id are the same if they have the same ARN and were created at the same time.
func (d Described) Same(other Described) bool {
	if d.ID != "" && other.ID != "" {
		return d.ID == other.ID
	}
	return d.ARN != "" && d.ARN == other.ARN && d.Created.Equal(other.Created)
}

// Describe returns the description of a table.
func (s Side) Describe(ctx context.Context) (d Described, err error) {
	var out *dynamodb.DescribeTableOutput
	err = s.call(ctx, func() (err error) {
		out, err = s.DB.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &s.Table})
		return err
	})
	if err != nil {
		return d, err
	}
	t := out.Table
	d.ARN, d.ID, d.Items, d.Size = aws.ToString(t.TableArn), aws.ToString(t.TableId), aws.ToInt64(t.ItemCount), aws.ToInt64(t.TableSizeBytes)
	d.Created = aws.ToTime(t.CreationDateTime)
	d.TableName, d.AttributeDefinitions, d.KeySchema = aws.ToString(t.TableName), t.AttributeDefinitions, t.KeySchema
	d.BillingMode = types.BillingModeProvisioned
	if t.BillingModeSummary != nil {
		d.BillingMode = cmp.Or(t.BillingModeSummary.BillingMode, d.BillingMode)
	}
	if t.StreamSpecification != nil && aws.ToBool(t.StreamSpecification.StreamEnabled) {
		d.Stream = t.StreamSpecification.StreamViewType
	}
	provisioned := d.BillingMode == types.BillingModeProvisioned
	d.ProvisionedThroughput = throughput(provisioned, t.ProvisionedThroughput)
	for _, x := range t.GlobalSecondaryIndexes {
		d.GlobalSecondaryIndexes = append(d.GlobalSecondaryIndexes, Index{aws.ToString(x.IndexName), x.KeySchema, projection(x.Projection), throughput(provisioned, x.ProvisionedThroughput)})
	}
	for _, x := range t.LocalSecondaryIndexes {
		d.LocalSecondaryIndexes = append(d.LocalSecondaryIndexes, Index{aws.ToString(x.IndexName), x.KeySchema, projection(x.Projection), nil})
	}
	d.TimeToLiveAttribute, err = s.ttl(ctx)
	return d, err
}

func throughput(provisioned bool, d *types.ProvisionedThroughputDescription) *Throughput {
	if !provisioned || d == nil {
		return nil
	}
	return &Throughput{aws.ToInt64(d.ReadCapacityUnits), aws.ToInt64(d.WriteCapacityUnits)}
}

func projection(p *types.Projection) Projection {
	if p == nil {
		return Projection{ProjectionType: types.ProjectionTypeAll}
	}
	return Projection{p.ProjectionType, p.NonKeyAttributes}
}

// ttl returns the TTL attribute of the table. Some endpoints have no operation for it.
func (s Side) ttl(ctx context.Context) (attribute string, err error) {
	err = s.call(ctx, func() error {
		out, err := s.DB.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: &s.Table})
		if retry.Code(err) == "UnknownOperationException" {
			return nil
		}
		if err != nil {
			return err
		}
		if d := out.TimeToLiveDescription; d != nil && (d.TimeToLiveStatus == types.TimeToLiveStatusEnabled || d.TimeToLiveStatus == types.TimeToLiveStatusEnabling) {
			attribute = aws.ToString(d.AttributeName)
		}
		return nil
	})
	return attribute, err
}

// ReadTable reads a table's description from JSON.
func ReadTable(text []byte) (t Table, err error) {
	if err := json.Unmarshal(text, &t); err != nil {
		return t, fmt.Errorf("invalid JSON: %w", err)
	}
	return t, t.check()
}

// check returns an error if the description lacks the keys or their types.
func (t Table) check() error {
	if n := len(t.KeySchema); n < 1 || n > 2 {
		return fmt.Errorf("KeySchema has %s; a table has 1 or 2", counted(n, "key"))
	}
	kinds := t.Types()
	for _, k := range t.Keys() {
		if kind := kinds[k]; kind != "S" && kind != "N" && kind != "B" {
			return fmt.Errorf("AttributeDefinitions has no type S, N or B for the key %q", k)
		}
	}
	return nil
}

// Keys returns the names of the key attributes, the partition key first.
func (t Table) Keys() []string {
	var names []string
	for _, k := range t.KeySchema {
		if k.KeyType == types.KeyTypeHash {
			names = append([]string{aws.ToString(k.AttributeName)}, names...)
		} else {
			names = append(names, aws.ToString(k.AttributeName))
		}
	}
	return names
}

// Types returns the types of the key attributes of the table and of its indexes.
func (t Table) Types() map[string]string {
	kinds := make(map[string]string, len(t.AttributeDefinitions))
	for _, d := range t.AttributeDefinitions {
		kinds[aws.ToString(d.AttributeName)] = string(d.AttributeType)
	}
	return kinds
}

// Keyed returns the description of a table on demand with these keys. The sort key may be empty.
func Keyed(key, kind, sort, sortKind string) (Table, error) {
	t := Table{BillingMode: types.BillingModePayPerRequest}
	add := func(name, kind string, role types.KeyType) {
		t.AttributeDefinitions = append(t.AttributeDefinitions, types.AttributeDefinition{AttributeName: &name, AttributeType: types.ScalarAttributeType(kind)})
		t.KeySchema = append(t.KeySchema, types.KeySchemaElement{AttributeName: &name, KeyType: role})
	}
	add(key, kind, types.KeyTypeHash)
	if sort != "" {
		add(sort, sortKind, types.KeyTypeRange)
	}
	if key == sort {
		return t, errors.New("the partition key and the sort key have the same name")
	}
	return t, t.check()
}

// tablePause is the pause between two questions whether a table is active.
const tablePause = 200 * time.Millisecond

// ErrNoTTL is the error of an endpoint that has no TTL. The table exists without it.
var ErrNoTTL = errors.New("the endpoint has no time to live")

// Create creates the table at a side and completes it. After an error, the table may exist; then
// Complete does the rest.
func (s Side) Create(ctx context.Context, t Table) error {
	in := &dynamodb.CreateTableInput{
		TableName: &s.Table, AttributeDefinitions: t.AttributeDefinitions, KeySchema: t.KeySchema, BillingMode: t.BillingMode, ProvisionedThroughput: t.ProvisionedThroughput.sdk(),
	}
	for _, x := range t.GlobalSecondaryIndexes {
		in.GlobalSecondaryIndexes = append(in.GlobalSecondaryIndexes, types.GlobalSecondaryIndex{
			IndexName: &x.IndexName, KeySchema: x.KeySchema, Projection: x.Projection.sdk(), ProvisionedThroughput: x.ProvisionedThroughput.sdk(),
		})
	}
	for _, x := range t.LocalSecondaryIndexes {
		in.LocalSecondaryIndexes = append(in.LocalSecondaryIndexes, types.LocalSecondaryIndex{IndexName: &x.IndexName, KeySchema: x.KeySchema, Projection: x.Projection.sdk()})
	}
	if _, err := s.DB.CreateTable(ctx, in); err != nil {
		return err
	}
	for {
		err := s.Complete(ctx, t)
		if !Missing(err) { // DescribeTable is eventually consistent
			return err
		}
		clock.Pause(tablePause, ctx.Done())
	}
}

// Complete waits until a table that Create has begun is active, and sets its TTL attribute. It does
// not change a table that has the attribute already.
func (s Side) Complete(ctx context.Context, t Table) error {
	if err := s.AwaitActive(ctx); err != nil {
		return err
	}
	return s.setTTL(ctx, t.TimeToLiveAttribute)
}

func (t *Throughput) sdk() *types.ProvisionedThroughput {
	if t == nil {
		return nil
	}
	return &types.ProvisionedThroughput{ReadCapacityUnits: &t.ReadCapacityUnits, WriteCapacityUnits: &t.WriteCapacityUnits}
}

func (p Projection) sdk() *types.Projection {
	return &types.Projection{ProjectionType: p.ProjectionType, NonKeyAttributes: p.NonKeyAttributes}
}

// AwaitActive waits until the table is active. A missing table is an error at once.
func (s Side) AwaitActive(ctx context.Context) error {
	for {
		var status types.TableStatus
		err := s.call(ctx, func() error {
			out, err := s.DB.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &s.Table})
			if err == nil {
				status = out.Table.TableStatus
			}
			return err
		})
		if err != nil || status == types.TableStatusActive {
			return err
		}
		clock.Pause(tablePause, ctx.Done())
	}
}

// setTTL sets the TTL attribute of the table, unless it is set already.
func (s Side) setTTL(ctx context.Context, attribute string) error {
	if attribute == "" {
		return nil
	}
	err := s.call(ctx, func() error {
		_, err := s.DB.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
			TableName: &s.Table, TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: &attribute, Enabled: aws.Bool(true)},
		})
		return err
	})
	if retry.Code(err) == "UnknownOperationException" {
		return ErrNoTTL
	}
	if retry.Invalid(err) { // also if it is set already
		if current, failed := s.ttl(ctx); failed == nil && current == attribute {
			return nil
		}
	}
	return err
}

// Empty reports whether a table has no items.
func (s Side) Empty(ctx context.Context) (empty bool, err error) {
	err = s.call(ctx, func() error {
		out, err := s.DB.Scan(ctx, &dynamodb.ScanInput{TableName: &s.Table, Limit: aws.Int32(1), ConsistentRead: aws.Bool(true)})
		if err == nil {
			empty = len(out.Items) == 0 && len(out.LastEvaluatedKey) == 0
		}
		return err
	})
	return empty, err
}
