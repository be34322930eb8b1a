package conformance

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// activeTimeout is the limit for a table to become ACTIVE, or to disappear.
const activeTimeout = 2 * time.Minute

// table is a table that a check made; it is deleted when the check ends.
type table struct {
	*Endpoint
	name string
	arn  string
}

// tableOption changes the request that creates a table.
type tableOption func(*dynamodb.CreateTableInput)

// newTable creates a table and waits until it is ACTIVE. The key is written "pk:S" or "pk:S sk:N".
func newTable(t *testing.T, e *Endpoint, key string, options ...tableOption) *table {
	t.Helper()
	in := &dynamodb.CreateTableInput{TableName: aws.String(uniqueName(t)), BillingMode: types.BillingModePayPerRequest}
	in.KeySchema = keySchema(in, key)
	for _, option := range options {
		option(in)
	}
	return create(t, e, in)
}

// create creates a table, waits until it is ACTIVE, and deletes it when the check ends.
func create(t *testing.T, e *Endpoint, in *dynamodb.CreateTableInput) *table {
	t.Helper()
	out, err := e.DB.CreateTable(t.Context(), in)
	if err != nil {
		t.Fatalf("create table %s: %v", *in.TableName, err)
	}
	tb := &table{Endpoint: e, name: *in.TableName, arn: aws.ToString(out.TableDescription.TableArn)}
	t.Cleanup(func() { deleteTable(t, e, tb.name) })
	tb.awaitActive(t)
	return tb
}

// deleteTable deletes a table if it exists. It tries again while the endpoint is still changing the
// table.
func deleteTable(t *testing.T, e *Endpoint, name string) {
	deadline := time.Now().Add(activeTimeout)
	for {
		_, err := e.DB.DeleteTable(context.Background(), &dynamodb.DeleteTableInput{TableName: &name})
		var missing *types.ResourceNotFoundException
		var busy *types.ResourceInUseException
		switch {
		case err == nil || errors.As(err, &missing):
			return
		case errors.As(err, &busy) && time.Now().Before(deadline):
			time.Sleep(pollEvery)
		default:
			t.Errorf("delete table %s: %v", name, err)
			return
		}
	}
}

// pollEvery is the pause between two looks at something asynchronous.
const pollEvery = 20 * time.Millisecond

// awaitActive waits until the table and its global indexes are ACTIVE: an endpoint may answer
// before it has created or changed them.
func (tb *table) awaitActive(t *testing.T) *types.TableDescription {
	t.Helper()
	deadline := time.Now().Add(activeTimeout)
	for {
		out, err := tb.DB.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: &tb.name})
		if err == nil && isActive(out.Table) {
			return out.Table
		}
		if time.Now().After(deadline) {
			t.Fatalf("table %s is not ACTIVE after %v (last error: %v)", tb.name, activeTimeout, err)
		}
		time.Sleep(pollEvery)
	}
}

func isActive(d *types.TableDescription) bool {
	if d.TableStatus != types.TableStatusActive {
		return false
	}
	for _, index := range d.GlobalSecondaryIndexes {
		if index.IndexStatus != types.IndexStatusActive {
			return false
		}
	}
	return true
}

// uniqueName returns a name for a table from its check, to trace leftovers, with a random end.
func uniqueName(t *testing.T) string {
	parts := strings.Split(t.Name(), "/")
	readable := strings.Map(func(r rune) rune {
		if r < 128 && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9') {
			return r
		}
		return '-'
	}, parts[len(parts)-1])
	return fmt.Sprintf("mf-%.60s-%s", readable, strings.ToLower(rand.Text()[:12]))
}

// keySchema returns the schema of "pk:S sk:N" and declares the attributes in the request. Commas
// separate the attributes of a part of a global index's key: "a:S,b:N c:S,d:S".
func keySchema(in *dynamodb.CreateTableInput, key string) []types.KeySchemaElement {
	var schema []types.KeySchemaElement
	for i, part := range strings.Fields(key) {
		keyType := types.KeyTypeHash
		if i > 0 {
			keyType = types.KeyTypeRange
		}
		for attribute := range strings.SplitSeq(part, ",") {
			name, kind, _ := strings.Cut(attribute, ":")
			define(in, name, types.ScalarAttributeType(kind))
			schema = append(schema, types.KeySchemaElement{AttributeName: aws.String(name), KeyType: keyType})
		}
	}
	return schema
}

// define declares an attribute in the request, once.
func define(in *dynamodb.CreateTableInput, name string, kind types.ScalarAttributeType) {
	for _, d := range in.AttributeDefinitions {
		if *d.AttributeName == name {
			return
		}
	}
	in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{AttributeName: aws.String(name), AttributeType: kind})
}

// projection returns the projection of "ALL", "KEYS_ONLY" or "INCLUDE a b".
func projection(text string) *types.Projection {
	kind, attributes, _ := strings.Cut(text, " ")
	p := &types.Projection{ProjectionType: types.ProjectionType(kind)}
	if attributes != "" {
		p.NonKeyAttributes = strings.Fields(attributes)
	}
	return p
}

// local adds a local secondary index: local("byN", "pk:S n:N", "ALL").
func local(name, key, holds string) tableOption {
	return func(in *dynamodb.CreateTableInput) {
		in.LocalSecondaryIndexes = append(in.LocalSecondaryIndexes, types.LocalSecondaryIndex{
			IndexName: aws.String(name), KeySchema: keySchema(in, key), Projection: projection(holds),
		})
	}
}

// global adds a global secondary index: global("byG", "g:S n:N", "INCLUDE a b").
func global(name, key, holds string) tableOption {
	return func(in *dynamodb.CreateTableInput) {
		in.GlobalSecondaryIndexes = append(in.GlobalSecondaryIndexes, types.GlobalSecondaryIndex{
			IndexName: aws.String(name), KeySchema: keySchema(in, key), Projection: projection(holds),
		})
	}
}

// stream enables a stream on the table.
func stream(view types.StreamViewType) tableOption {
	return func(in *dynamodb.CreateTableInput) {
		in.StreamSpecification = &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: view}
	}
}

// provisioned sets the table's throughput instead of billing per request.
func provisioned(read, write int64) tableOption {
	return func(in *dynamodb.CreateTableInput) {
		in.BillingMode = types.BillingModeProvisioned
		in.ProvisionedThroughput = &types.ProvisionedThroughput{ReadCapacityUnits: &read, WriteCapacityUnits: &write}
	}
}

// fill replaces $T in a body by the table's name. A body that does not mention $T gets a TableName
// member.
func (tb *table) fill(body string) string {
	if !strings.Contains(body, "$T") {
		rest := strings.TrimPrefix(strings.TrimSpace(body), "{")
		comma := ","
		if strings.TrimSpace(rest) == "}" {
			comma = ""
		}
		body = `{"TableName":"$T"` + comma + rest
	}
	return strings.ReplaceAll(body, "$T", tb.name)
}

// ok makes a call on the table that must succeed.
func (tb *table) ok(t *testing.T, op, body string) answer {
	t.Helper()
	return tb.Endpoint.ok(t, op, tb.fill(body))
}

// refuse makes a call on the table that must fail.
func (tb *table) refuse(t *testing.T, op, body, code, message string) {
	t.Helper()
	tb.Endpoint.refuse(t, op, tb.fill(body), code, strings.ReplaceAll(message, "$T", tb.name))
}

// put stores items, one PutItem each.
func (tb *table) put(t *testing.T, items ...attributes) {
	t.Helper()
	for _, it := range items {
		if _, err := tb.DB.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &tb.name, Item: it}); err != nil {
			t.Fatalf("put %s: %v", itemText(it), err)
		}
	}
}

// load stores many items by batches, for checks that need volume.
func (tb *table) load(t *testing.T, items []attributes) {
	t.Helper()
	const most = 25
	for len(items) > 0 {
		n := min(most, len(items))
		pending := map[string][]types.WriteRequest{}
		for _, it := range items[:n] {
			pending[tb.name] = append(pending[tb.name], types.WriteRequest{PutRequest: &types.PutRequest{Item: it}})
		}
		items = items[n:]
		for len(pending) > 0 {
			out, err := tb.DB.BatchWriteItem(t.Context(), &dynamodb.BatchWriteItemInput{RequestItems: pending})
			if err != nil {
				t.Fatalf("batch write: %v", err)
			}
			pending = out.UnprocessedItems
		}
	}
}

// get returns an item by a strong read, or nil.
func (tb *table) get(t *testing.T, key attributes) attributes {
	t.Helper()
	out, err := tb.DB.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &tb.name, Key: key, ConsistentRead: aws.Bool(true)})
	if err != nil {
		t.Fatalf("get %s: %v", itemText(key), err)
	}
	return out.Item
}

// wantStored checks the stored item of a key; nil: none.
func (tb *table) wantStored(t *testing.T, key, want attributes) {
	t.Helper()
	wantItem(t, "stored under "+itemText(key), tb.get(t, key), want)
}

// delete removes an item.
func (tb *table) delete(t *testing.T, key attributes) {
	t.Helper()
	if _, err := tb.DB.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &tb.name, Key: key}); err != nil {
		t.Fatalf("delete %s: %v", itemText(key), err)
	}
}
