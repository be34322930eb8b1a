package strict_test

import (
	"errors"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/guard/strict"
)

// newLaggingEndpoint returns an endpoint whose clock is behind this machine's, with an item that
// has expired here and expires there later. Its clients, the middleware and the proxy, use this
// machine's clock.
func newLaggingEndpoint(t *testing.T, offset, in time.Duration) (*mayfly.DB, *calls, map[string]*dynamodb.Client) {
	t.Helper()
	o := lateOptions
	o.Start = time.Now().Add(-offset).Truncate(time.Second)
	db := open(t, o)
	makeTables(t, db.DynamoDB())
	if _, err := db.DynamoDB().PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("plain"),
		Item: item{"pk": str("p"), "sk": num("0"), "ttl": num(strconv.FormatInt(o.Start.Add(in).Unix(), 10)), "n": num("41")}}); err != nil {
		t.Fatal(err)
	}
	seen := &calls{next: db.Handler()}
	server := httptest.NewServer(seen)
	t.Cleanup(server.Close)
	rules := plainRules
	rules.MaxSkew = 2 * time.Minute
	proxy, err := strict.NewProxy(strict.ProxyOptions{Rules: rules, Endpoint: server.URL, Credentials: dial(server.URL, clientPair).Options().Credentials})
	if err != nil {
		t.Fatal(err)
	}
	before := httptest.NewServer(proxy)
	t.Cleanup(before.Close)
	return db, seen, map[string]*dynamodb.Client{
		"middleware": dynamodb.New(dial(server.URL, clientPair).Options(), strict.Middleware(rules)), "proxy": dial(before.URL, clientPair),
	}
}

// NeverEarly: an item that has expired by this machine's wrong clock, and not by the endpoint's,
// exists for reads, conditions, updates and returned values.
func TestJudgedByTheEndpointsClock(t *testing.T) {
	for _, way := range []string{"middleware", "proxy"} {
		_, calls, clients := newLaggingEndpoint(t, time.Minute, 30*time.Second)
		c := clients[way]
		out, err := c.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("plain"), Key: expiredKey})
		if err != nil || out.Item == nil {
			t.Errorf("%s: it is hidden: %v", way, err)
		}
		_, err = c.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("plain"), Item: expiredKey, ConditionExpression: aws.String("attribute_not_exists(pk)")})
		if _, ok := errors.AsType[*types.ConditionalCheckFailedException](err); !ok {
			t.Errorf("%s: a condition takes it for absent: %v", way, err)
		}
		if counted, err := count(t, c); err != nil || printed(counted.Attributes["n"]) != `{"Value":"42"}` {
			t.Errorf("%s: an update: %v, %v", way, counted, err)
		}
		scanned, err := c.Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String("plain")})
		if err != nil || len(scanned.Items) != 1 {
			t.Errorf("%s: a scan: %v, %v", way, scanned, err)
		}
		deleted, err := c.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: aws.String("plain"), Key: expiredKey, ReturnValues: types.ReturnValueAllOld})
		if err != nil || printed(deleted.Attributes["n"]) != `{"Value":"42"}` {
			t.Errorf("%s: a deletion returns %v, %v", way, deleted, err)
		}
		if calls.seen[0] != "DescribeEndpoints" || strings.Count(strings.Join(calls.seen, " "), "DescribeEndpoints") != 1 {
			t.Errorf("%s: %v", way, calls.seen)
		}
	}
}

// An item that has expired by the endpoint's clock only, or by this machine's only, is shown: one of
// the clocks is wrong, and an item that is hidden too early is lost.
func TestHiddenByBothClocks(t *testing.T) {
	for _, c := range []struct {
		offset, in time.Duration // of the endpoint's clock behind this machine's; of the deadline there
		hidden     bool
	}{{-time.Minute, -time.Second, false}, {time.Minute, time.Second, false}, {-time.Minute, -2 * time.Minute, true}, {time.Minute, -time.Second, true}} {
		for _, way := range []string{"middleware", "proxy"} {
			_, _, clients := newLaggingEndpoint(t, c.offset, c.in)
			for try := range 3 {
				out, err := clients[way].GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("plain"), Key: expiredKey})
				if err != nil || (out.Item == nil) != c.hidden {
					t.Errorf("%s: %v: at try %d: %v, %v", way, c, try, out, err)
				}
			}
		}
	}
}

// If no better time is known, an update does not remove an item that has expired by this machine's
// clock until the endpoint's Date allows it.
func TestUpdateRemovesNothingEarly(t *testing.T) {
	for _, way := range []string{"middleware", "proxy"} {
		for _, in := range []string{"an update", "a transaction"} {
			db, calls, clients := newLaggingEndpoint(t, time.Minute, 30*time.Second)
			c := clients[way]
			calls.undated = true
			calls.instead = func(operation string, _ []byte) (int, string) {
				calls.undated = operation == "DescribeEndpoints"
				return 0, ""
			}
			var err error
			if in == "an update" {
				_, err = count(t, c)
			} else {
				_, err = c.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{{Update: &types.Update{
					TableName: aws.String("plain"), Key: expiredKey, UpdateExpression: aws.String("ADD n :one"), ExpressionAttributeValues: item{":one": num("1")}}}}})
			}
			if err == nil || in == "an update" && !strings.Contains(err.Error(), "the endpoint's clock shows") {
				t.Errorf("%s: %s: %v", way, in, err)
			}
			out, err := db.DynamoDB().GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("plain"), Key: expiredKey})
			if err != nil || printed(out.Item["n"]) != `{"Value":"41"}` || strings.Contains(strings.Join(calls.seen, " "), "DeleteItem") {
				t.Errorf("%s: the item is %v, %v, after %v", way, out.Item, err, calls.seen)
			}
		}
	}
}

// If the endpoint's clock is about to reach the deadline, an update waits for it.
func TestUpdateWaitsForTheEndpointsTime(t *testing.T) {
	db, calls, clients := newLaggingEndpoint(t, time.Minute, time.Second)
	asked := 0
	calls.undated = true // so that this machine's clock decides
	calls.instead = func(operation string, _ []byte) (int, string) {
		calls.undated = operation == "DescribeEndpoints"
		if asked++; asked == 3 {
			if _, err := db.Clock().Advance(t.Context(), time.Second); err != nil {
				t.Error(err)
			}
		}
		return 0, ""
	}
	out, err := count(t, clients["middleware"])
	if err != nil || printed(out.Attributes["n"]) != `{"Value":"1"}` {
		t.Errorf("%v", err)
	}
	if got := strings.Join(calls.seen, " "); got != "DescribeEndpoints UpdateItem UpdateItem DeleteItem UpdateItem" {
		t.Error(got)
	}
}

// If an endpoint sends no Date, nothing is removed.
func TestUpdateWithoutDate(t *testing.T) {
	_, calls, clients := newLaggingEndpoint(t, time.Minute, -time.Second)
	calls.undated = true
	_, err := count(t, clients["middleware"])
	if err == nil || !strings.Contains(err.Error(), "have no Date header") || len(calls.seen) != 2 {
		t.Errorf("after %v: %v", calls.seen, err)
	}
}
