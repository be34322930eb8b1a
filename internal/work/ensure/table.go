// Package ensure creates the tables of mayfly's own workers, at any endpoint, when they are first
// needed.
//
// If several workers find a table missing at once, one creates it, and all wait until it is active.
package ensure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/work/retry"
)

// Spec describes a table. Its keys are strings.
type Spec struct {
	Name   string
	Key    string // the partition key
	Sort   string // the sort key; "": none
	TTL    string // the TTL attribute; "": none
	Stream bool   // a stream of old images
	// open shards of the stream, if the endpoint supports the choice; 0: the endpoint's default
	Shards  int
	Indexes []Index // secondary indexes of the whole table

	settings Settings // without the name
}

// Settings are an operator's choices about a table. A table that exists keeps its own.
type Settings struct {
	Name   string            // Default: the spec's
	Tags   map[string]string // Default: none
	KMSKey string            // id, alias or ARN of the key of the encryption. Default: DynamoDB's own
	// provisioned capacity units, both or none. Default: the table is billed on demand
	ReadUnits, WriteUnits int64
}

// With returns the spec of the table with these settings.
func (s Spec) With(settings Settings) Spec {
	s.Name = cmp.Or(settings.Name, s.Name)
	s.settings = settings
	return s
}

// Index describes a secondary index. Its keys are strings; items without them are not in it.
type Index struct {
	Name    string
	Key     string
	Sort    string
	Include []string // attributes besides the keys; nil: all of them
}

const (
	tagShards = "mayfly:shards"
	tagExpiry = "mayfly:expiry" // exact expiry of the table, whatever the server's default

	activeLimit = 2 * time.Minute // for a table to become active
)

// activation is the policy of polls of a table that is being created.
var activation = retry.Policy{First: 5 * time.Millisecond, Most: time.Second}

// Table returns the description of an active table. It creates a missing table, and enables its
// stream and TTL if they are disabled.
func Table(ctx context.Context, db *dynamodb.Client, spec Spec) (*types.TableDescription, error) {
	d, _, err := Restore(ctx, db, spec)
	return d, err
}

// Parts that Restore can find missing.
const (
	NoTable  = "the table"
	NoStream = "its stream"
	NoTTL    = "its time to live"
)

// Restore is Table, and also returns the missing parts as words for a log: NoTable, NoStream and
// NoTTL. A table that was missing is empty.
func Restore(ctx context.Context, db *dynamodb.Client, spec Spec) (d *types.TableDescription, missing []string, err error) {
	d, err = active(ctx, db, spec.Name)
	if Missing(err) {
		missing = append(missing, NoTable)
		if err = create(ctx, db, spec); err == nil {
			d, err = active(ctx, db, spec.Name)
		}
	}
	if err == nil && spec.Stream && !streams(d) {
		missing = append(missing, NoStream)
		d, err = enableStream(ctx, db, spec.Name)
	}
	if err == nil && spec.TTL != "" {
		var enabled bool
		if enabled, err = enableTTL(ctx, db, spec); enabled && (len(missing) == 0 || missing[0] != NoTable) {
			missing = append(missing, NoTTL)
		}
	}
	if err != nil {
		return nil, missing, fmt.Errorf("make table %s: %w", spec.Name, err)
	}
	return d, missing, nil
}

func streams(d *types.TableDescription) bool {
	return d.StreamSpecification != nil && aws.ToBool(d.StreamSpecification.StreamEnabled)
}

// enableStream enables a stream of old images. If another worker was first, the call is refused,
// and enableStream checks again.
func enableStream(ctx context.Context, db *dynamodb.Client, name string) (*types.TableDescription, error) {
	_, err := db.UpdateTable(ctx, &dynamodb.UpdateTableInput{
		TableName:           &name,
		StreamSpecification: &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeOldImage},
	})
	d, again := active(ctx, db, name)
	switch {
	case again != nil:
		return nil, again
	case streams(d):
		return d, nil
	case err == nil:
		err = errors.New("its stream stays disabled")
	}
	return nil, err
}

// Missing reports whether an error says that a table or a stream does not exist.
func Missing(err error) bool {
	var missing *types.ResourceNotFoundException
	return errors.As(err, &missing)
}

// create creates the table. It succeeds if another worker creates it at the same time.
func create(ctx context.Context, db *dynamodb.Client, spec Spec) error {
	in := &dynamodb.CreateTableInput{
		TableName:            &spec.Name,
		BillingMode:          types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: &spec.Key, AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: &spec.Key, KeyType: types.KeyTypeHash}},
	}
	if spec.Sort != "" {
		in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{AttributeName: &spec.Sort, AttributeType: types.ScalarAttributeTypeS})
		in.KeySchema = append(in.KeySchema, types.KeySchemaElement{AttributeName: &spec.Sort, KeyType: types.KeyTypeRange})
	}
	for _, index := range spec.Indexes {
		addIndex(in, index)
	}
	if spec.Stream {
		in.StreamSpecification = &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeOldImage}
	}
	if spec.TTL != "" {
		in.Tags = append(in.Tags, types.Tag{Key: aws.String(tagExpiry), Value: aws.String("strict")})
	}
	if spec.Shards > 0 {
		in.Tags = append(in.Tags, types.Tag{Key: aws.String(tagShards), Value: aws.String(fmt.Sprint(spec.Shards))})
	}
	own := len(in.Tags)
	set(in, spec.settings)
	_, err := db.CreateTable(ctx, in)
	if own > 0 && retry.Invalid(err) {
		in.Tags = slices.Concat[[]types.Tag](in.Tags[own:]) // the endpoint does not support the first ones; nil if there are no others
		_, err = db.CreateTable(ctx, in)
	}
	if madeMeanwhile(err) {
		return nil
	}
	return err
}

// set puts an operator's settings into a request.
func set(in *dynamodb.CreateTableInput, s Settings) {
	for _, key := range slices.Sorted(maps.Keys(s.Tags)) {
		in.Tags = append(in.Tags, types.Tag{Key: &key, Value: aws.String(s.Tags[key])})
	}
	if s.KMSKey != "" {
		in.SSESpecification = &types.SSESpecification{Enabled: aws.Bool(true), SSEType: types.SSETypeKms, KMSMasterKeyId: &s.KMSKey}
	}
	if s.ReadUnits > 0 {
		in.BillingMode = types.BillingModeProvisioned
		in.ProvisionedThroughput = &types.ProvisionedThroughput{ReadCapacityUnits: &s.ReadUnits, WriteCapacityUnits: &s.WriteUnits}
		for i := range in.GlobalSecondaryIndexes {
			in.GlobalSecondaryIndexes[i].ProvisionedThroughput = in.ProvisionedThroughput
		}
	}
}

func addIndex(in *dynamodb.CreateTableInput, index Index) {
	for _, name := range []string{index.Key, index.Sort} {
		if !slices.ContainsFunc(in.AttributeDefinitions, func(d types.AttributeDefinition) bool { return *d.AttributeName == name }) {
			in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{AttributeName: &name, AttributeType: types.ScalarAttributeTypeS})
		}
	}
	projection := &types.Projection{ProjectionType: types.ProjectionTypeAll}
	if index.Include != nil {
		projection = &types.Projection{ProjectionType: types.ProjectionTypeInclude, NonKeyAttributes: index.Include}
	}
	in.GlobalSecondaryIndexes = append(in.GlobalSecondaryIndexes, types.GlobalSecondaryIndex{
		IndexName: &index.Name,
		KeySchema: []types.KeySchemaElement{
			{AttributeName: &index.Key, KeyType: types.KeyTypeHash}, {AttributeName: &index.Sort, KeyType: types.KeyTypeRange},
		},
		Projection: projection,
	})
}

func madeMeanwhile(err error) bool {
	var inUse *types.ResourceInUseException
	return errors.As(err, &inUse)
}

// active waits until a table is active.
func active(ctx context.Context, db *dynamodb.Client, name string) (*types.TableDescription, error) {
	elapsed := clock.Stopwatch()
	for pauses := activation.Start(); ; {
		out, err := db.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &name})
		switch {
		case err != nil:
			return nil, err
		case out.Table.TableStatus == types.TableStatusActive || out.Table.TableStatus == types.TableStatusUpdating:
			return out.Table, nil
		case elapsed() > activeLimit:
			return nil, fmt.Errorf("it has been %s for %s", out.Table.TableStatus, activeLimit)
		}
		if !pauses.Wait(ctx) {
			return nil, ctx.Err()
		}
	}
}

// enableTTL sets the TTL attribute unless there is one, and reports whether it did. If another
// worker was first, the call is refused, and enableTTL checks again.
func enableTTL(ctx context.Context, db *dynamodb.Client, spec Spec) (enabled bool, err error) {
	on := func() (bool, error) {
		out, err := db.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: &spec.Name})
		if err != nil {
			return false, err
		}
		status := out.TimeToLiveDescription.TimeToLiveStatus
		return status == types.TimeToLiveStatusEnabled || status == types.TimeToLiveStatusEnabling, nil
	}
	if done, err := on(); done || err != nil {
		return false, err
	}
	_, err = db.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
		TableName:               &spec.Name,
		TimeToLiveSpecification: &types.TimeToLiveSpecification{Enabled: aws.Bool(true), AttributeName: &spec.TTL},
	})
	if err == nil {
		return true, nil
	}
	if done, again := on(); done && again == nil {
		return false, nil
	}
	return false, err
}
