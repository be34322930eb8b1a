package ensure_test

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/work/ensure"
)

var spec = ensure.Spec{Name: "mayfly.test", Key: "k", Sort: "s", TTL: "due", Stream: true, Shards: 1}

func open(t *testing.T) *mayfly.DB {
	t.Helper()
	db, err := mayfly.Open("", mayfly.Options{Expiry: mayfly.ExpiryAWS})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// check looks at the table's description.
func check(t *testing.T, db *dynamodb.Client, d *types.TableDescription) {
	t.Helper()
	if d.TableStatus != types.TableStatusActive || d.LatestStreamArn == nil || d.BillingModeSummary.BillingMode != types.BillingModePayPerRequest {
		t.Errorf("%+v", d)
	}
	out, err := db.DescribeTimeToLive(t.Context(), &dynamodb.DescribeTimeToLiveInput{TableName: &spec.Name})
	if err != nil || *out.TimeToLiveDescription.AttributeName != "due" {
		t.Errorf("%+v, %v", out, err)
	}
}

// Of workers that make a table at once none fails, and all get it. It goes by its deadlines
// although the server's default is another.
func TestTable(t *testing.T) {
	db := open(t)
	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			d, err := ensure.Table(t.Context(), db.DynamoDB(), spec)
			if err != nil {
				t.Error(err)
				return
			}
			check(t, db.DynamoDB(), d)
		})
	}
	workers.Wait()
	d, err := ensure.Table(t.Context(), db.DynamoDB(), spec) // it is there
	if err != nil {
		t.Fatal(err)
	}
	tags, err := db.DynamoDB().ListTagsOfResource(t.Context(), &dynamodb.ListTagsOfResourceInput{ResourceArn: d.TableArn})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, tag := range tags.Tags {
		got[*tag.Key] = *tag.Value
	}
	if got["mayfly:expiry"] != "strict" || got["mayfly:shards"] != "1" {
		t.Errorf("tags %v", got)
	}
}

// withoutTags is an endpoint that does not take tags.
type withoutTags struct{ dynamodb.HTTPClient }

func (w withoutTags) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	if strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".CreateTable") && bytes.Contains(body, []byte(`"Tags"`)) {
		return &http.Response{
			StatusCode: 400, Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
			Body: io.NopCloser(strings.NewReader(`{"__type":"com.amazon.coral.validate#ValidationException","message":"no tags here"}`)),
		}, nil
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return w.HTTPClient.Do(r)
}

func TestTableWithoutTags(t *testing.T) {
	o := open(t).DynamoDB().Options()
	o.HTTPClient = withoutTags{o.HTTPClient}
	o.DisableValidateResponseChecksum = true
	db := dynamodb.New(o)
	d, err := ensure.Table(t.Context(), db, spec)
	if err != nil {
		t.Fatal(err)
	}
	check(t, db, d)
}

// If the endpoint refuses the spec's own tags, an operator's tags stay in the request.
func TestOperatorsTagsStay(t *testing.T) {
	o := open(t).DynamoDB().Options()
	o.HTTPClient = withoutTags{o.HTTPClient}
	o.DisableValidateResponseChecksum = true
	_, err := ensure.Table(t.Context(), dynamodb.New(o), spec.With(ensure.Settings{Tags: map[string]string{"team": "orders"}}))
	if err == nil || !strings.Contains(err.Error(), "no tags here") {
		t.Errorf("the table was made without its tags: %v", err)
	}
}

// A fault of the table itself is an error that names it.
func TestTableRefused(t *testing.T) {
	_, err := ensure.Table(t.Context(), open(t).DynamoDB(), ensure.Spec{Name: "x y", Key: "k"})
	if err == nil || !strings.Contains(err.Error(), "make table x y: ") {
		t.Errorf("got %v", err)
	}
}

// A setting that was switched off is restored with a log line, and a deleted table is created
// again.
func TestRestore(t *testing.T) {
	db := open(t).DynamoDB()
	restore := func(want ...string) *types.TableDescription {
		t.Helper()
		d, missing, err := ensure.Restore(t.Context(), db, spec)
		if err != nil || !slices.Equal(missing, want) {
			t.Fatalf("restored %v, %v; want %v", missing, err, want)
		}
		check(t, db, d)
		return d
	}
	first := *restore(ensure.NoTable).LatestStreamArn
	restore()
	if _, err := db.UpdateTable(t.Context(), &dynamodb.UpdateTableInput{
		TableName: &spec.Name, StreamSpecification: &types.StreamSpecification{StreamEnabled: aws.Bool(false)},
	}); err != nil {
		t.Fatal(err)
	}
	if second := *restore(ensure.NoStream).LatestStreamArn; second == first {
		t.Errorf("the stream is %s still", second)
	}
	if _, err := db.UpdateTimeToLive(t.Context(), &dynamodb.UpdateTimeToLiveInput{
		TableName: &spec.Name, TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: &spec.TTL, Enabled: aws.Bool(false)},
	}); err != nil {
		t.Fatal(err)
	}
	restore(ensure.NoTTL)
	restore()
	if _, err := db.DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: &spec.Name}); err != nil {
		t.Fatal(err)
	}
	restore(ensure.NoTable)
}
