package strict_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/guard/strict"
)

var plainRules = strict.Rules{Tables: map[string]string{"plain": "ttl"}}

// expiredKey is the key of putExpired's expired item.
var expiredKey = item{"pk": str("p"), "sk": num("0")}

// count increments an item's counter. A missing item is created with a year to live.
func count(t *testing.T, c *dynamodb.Client) (*dynamodb.UpdateItemOutput, error) {
	return c.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{TableName: aws.String("plain"), Key: expiredKey, UpdateExpression: aws.String("SET #t = if_not_exists(#t, :late) ADD n :one"),
		ExpressionAttributeNames: map[string]string{"#t": "ttl"}, ExpressionAttributeValues: item{":one": num("1"), ":late": num("1798761600")}, ReturnValues: types.ReturnValueAllNew})
}

// TestRenewedBeforeItsRemoval renews an item between an update's failed condition and the removal
// of the expired item. The item stays, and the update increments it.
func TestRenewedBeforeItsRemoval(t *testing.T) {
	db := open(t, lateOptions)
	putExpired(t, db)
	c, calls := counted(t, db, plainRules)
	renewed := false
	calls.instead = func(operation string, _ []byte) (int, string) {
		if operation == "DeleteItem" && !renewed {
			renewed = true
			if _, err := db.DynamoDB().PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("plain"),
				Item: item{"pk": str("p"), "sk": num("0"), "ttl": num("1798761600"), "n": num("41")}}); err != nil {
				t.Error(err)
			}
		}
		return 0, ""
	}
	out, err := count(t, c)
	if err != nil {
		t.Fatal(err)
	}
	if n := printed(out.Attributes["n"]); n != `{"Value":"42"}` {
		t.Errorf("n is %s", n)
	}
	if got := strings.Join(calls.seen, " "); got != "UpdateItem DeleteItem UpdateItem" {
		t.Error(got)
	}
}

// TestConcurrentUpdatesOfExpiredItem updates an expired item many times at once. Each update counts
// once, and the expired item does not count.
func TestConcurrentUpdatesOfExpiredItem(t *testing.T) {
	db := open(t, lateOptions)
	putExpired(t, db)
	c := guarded(db, plainRules)
	const n = 16
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			if _, err := count(t, c); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	out, err := c.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("plain"), Key: expiredKey})
	if err != nil {
		t.Fatal(err)
	}
	if got := printed(out.Item["n"]); got != fmt.Sprintf(`{"Value":"%d"}`, n) || out.Item["g"] != nil {
		t.Errorf("n is %s of %v", got, out.Item)
	}
}

// TestEndpointOmitsConditionItem checks an endpoint that does not return the item of a failed
// condition: the rewriter reads it.
func TestEndpointOmitsConditionItem(t *testing.T) {
	db := open(t, lateOptions)
	putExpired(t, db)
	c, calls := counted(t, db, plainRules)
	calls.instead = func(operation string, body []byte) (int, string) {
		var in map[string]any
		if json.Unmarshal(body, &in) == nil && strings.HasPrefix(operation, "Update") && in["ReturnValuesOnConditionCheckFailure"] != nil {
			delete(in, "ReturnValuesOnConditionCheckFailure")
			raw, _ := json.Marshal(in)
			return passOn(t, db, operation, raw)
		}
		return 0, ""
	}
	if _, err := count(t, c); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(calls.seen, " "); got != "UpdateItem GetItem DeleteItem UpdateItem" {
		t.Error(got)
	}
}

// passOn sends a request to a database.
func passOn(t *testing.T, db *mayfly.DB, operation string, body []byte) (status int, answer string) {
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://in.process/", strings.NewReader(string(body)))
	if err != nil {
		t.Error(err)
		return 500, ""
	}
	r.Header.Set("X-Amz-Target", "DynamoDB_20120810."+operation)
	r.Header.Set("Content-Type", "application/x-amz-json-1.0")
	response, err := db.Transport().RoundTrip(r)
	if err != nil {
		t.Error(err)
		return 500, ""
	}
	defer response.Body.Close()
	var got json.RawMessage
	if err := json.NewDecoder(response.Body).Decode(&got); err != nil {
		t.Error(err)
	}
	return response.StatusCode, string(got)
}

// TestEndlessConflicts checks an endpoint that always reports a concurrent change: an update ends
// with a retryable error.
func TestEndlessConflicts(t *testing.T) {
	db := open(t, lateOptions)
	putExpired(t, db)
	c, calls := counted(t, db, plainRules)
	calls.instead = func(operation string, _ []byte) (int, string) {
		if operation == "DeleteItem" {
			return 400, `{"__type":"com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException"}`
		}
		return 0, ""
	}
	_, err := count(t, c)
	var conflict *types.TransactionConflictException
	if !errors.As(err, &conflict) || !strings.Contains(conflict.ErrorMessage(), "10 times") || len(calls.seen) != 20 {
		t.Errorf("after %d calls: %v", len(calls.seen), err)
	}
}

// TestTransactionRepeated checks that a transaction repeated later under its token gets the first
// answer, though its conditions have another instant.
func TestTransactionRepeated(t *testing.T) {
	for _, lost := range []bool{false, true} { // the first answer
		db := open(t, lateOptions)
		putExpired(t, db)
		c, calls := counted(t, db, plainRules)
		calls.instead = func(operation string, body []byte) (int, string) {
			if lost && operation == "TransactWriteItems" {
				lost = false
				if status, answer := passOn(t, db, operation, body); status != 200 {
					t.Errorf("%d %s", status, answer)
				}
				return 500, `{"__type":"com.amazonaws.dynamodb.v20120810#InternalServerError"}`
			}
			return 0, ""
		}
		in := &dynamodb.TransactWriteItemsInput{ClientRequestToken: aws.String("token"), TransactItems: []types.TransactWriteItem{{Update: &types.Update{
			TableName: aws.String("plain"), Key: item{"pk": str("p"), "sk": num("1")}, UpdateExpression: aws.String("ADD n :one"), ExpressionAttributeValues: item{":one": num("1")}}}}}
		if _, err := c.TransactWriteItems(t.Context(), in); err != nil && !strings.Contains(err.Error(), "InternalServerError") {
			t.Fatal(err)
		}
		if _, err := db.Clock().Advance(t.Context(), time.Second); err != nil {
			t.Fatal(err)
		}
		if _, err := c.TransactWriteItems(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		out, err := c.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("plain"), Key: item{"pk": str("p"), "sk": num("1")}})
		if err != nil || printed(out.Item["n"]) != `{"Value":"1"}` {
			t.Errorf("n is %s, %v", printed(out.Item["n"]), err)
		}
		other := *in
		other.TransactItems = append(other.TransactItems, types.TransactWriteItem{Put: &types.Put{TableName: aws.String("plain"), Item: expiredKey}})
		_, err = c.TransactWriteItems(t.Context(), &other)
		if _, ok := errors.AsType[*types.IdempotentParameterMismatchException](err); !ok {
			t.Errorf("another under the same token: %v", err)
		}
	}
}

// TestRetries checks that the SDK retries each of the rewriter's calls by itself after a fault of
// the endpoint.
func TestRetries(t *testing.T) {
	db := open(t, lateOptions)
	putExpired(t, db)
	c, calls := counted(t, db, plainRules)
	o := c.Options()
	o.RetryMaxAttempts = 0 // the retryer's default
	o.Retryer = retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxAttempts, o.Backoff = 3, retry.BackoffDelayerFunc(func(int, error) (time.Duration, error) { return 0, nil })
	})
	c = dynamodb.New(o)
	failed := map[string]bool{}
	calls.instead = func(operation string, _ []byte) (int, string) {
		if !failed[operation] {
			failed[operation] = true
			return 500, `{"__type":"com.amazonaws.dynamodb.v20120810#InternalServerError"}`
		}
		return 0, ""
	}
	if _, err := count(t, c); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(calls.seen, " "); got != "UpdateItem UpdateItem DeleteItem DeleteItem UpdateItem" {
		t.Error(got)
	}
	calls.instead = func(string, []byte) (int, string) {
		return 400, `{"__type":"com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException","message":"slower"}`
	}
	calls.seen = nil
	_, err := count(t, c)
	var throttled *types.ProvisionedThroughputExceededException
	if !errors.As(err, &throttled) || len(calls.seen) != 3 {
		t.Errorf("after %d calls: %v", len(calls.seen), err)
	}
}
