package console_test

import (
	"context"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
)

// attributes are the contents of an item. A text stands for a string, a whole number for a number.
type attributes map[string]any

// item returns the attributes in the SDK's types.
func (a attributes) item() map[string]types.AttributeValue {
	it := map[string]types.AttributeValue{}
	for name, v := range a {
		switch v := v.(type) {
		case string:
			it[name] = &types.AttributeValueMemberS{Value: v}
		case int64:
			it[name] = &types.AttributeValueMemberN{Value: strconv.FormatInt(v, 10)}
		}
	}
	return it
}

// made is a table that a test has made, with the partition key "id".
type made struct {
	t    *testing.T
	w    *world
	name string
}

// makeTable makes a table. With a TTL attribute its items expire; the stream's view may be "".
func (w *world) makeTable(t *testing.T, name, ttl string, view types.StreamViewType) made {
	t.Helper()
	in := &dynamodb.CreateTableInput{
		TableName: &name, BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
	}
	if view != "" {
		in.StreamSpecification = &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: view}
	}
	if _, err := w.db.CreateTable(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	wait := dynamodb.NewTableExistsWaiter(w.db, func(o *dynamodb.TableExistsWaiterOptions) { o.MinDelay, o.MaxDelay = 50*time.Millisecond, time.Second })
	if err := wait.Wait(t.Context(), &dynamodb.DescribeTableInput{TableName: &name}, time.Minute); err != nil {
		t.Fatal(err)
	}
	if ttl != "" {
		if _, err := w.db.UpdateTimeToLive(t.Context(), &dynamodb.UpdateTimeToLiveInput{
			TableName: &name, TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: &ttl, Enabled: aws.Bool(true)},
		}); err != nil {
			t.Fatal(err)
		}
	}
	return made{t, w, name}
}

// put puts an item.
func (m made) put(a attributes) {
	m.t.Helper()
	if _, err := m.w.db.PutItem(m.t.Context(), &dynamodb.PutItemInput{TableName: &m.name, Item: a.item()}); err != nil {
		m.t.Fatal(err)
	}
}

// delete deletes an item.
func (m made) delete(id string) {
	m.t.Helper()
	if _, err := m.w.db.DeleteItem(m.t.Context(), &dynamodb.DeleteItemInput{TableName: &m.name, Key: attributes{"id": id}.item()}); err != nil {
		m.t.Fatal(err)
	}
}

// has reports whether the table has an item.
func (m made) has(id string) bool {
	m.t.Helper()
	out, err := m.w.db.GetItem(m.t.Context(), &dynamodb.GetItemInput{TableName: &m.name, Key: attributes{"id": id}.item(), ConsistentRead: aws.Bool(true)})
	if err != nil {
		m.t.Fatal(err)
	}
	return len(out.Item) > 0
}

// lambda returns a client of Lambda's API, for triggers of a server of ours.
func (w *world) lambda() *lambda.Client {
	return lambda.New(lambda.Options{
		BaseEndpoint: aws.String("http://in.process"), Region: "us-east-1", Credentials: aws.AnonymousCredentials{},
		HTTPClient: &http.Client{Transport: w.own.Transport()},
	})
}

// advance moves the clock of a server whose clock may be moved, and waits for the work that was due.
func (w *world) advance(t *testing.T, d time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := w.own.Clock().Advance(ctx, d); err != nil {
		t.Fatal(err)
	}
}
