package strict_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/guard/strict"
	"github.com/mayflydb/mayfly/internal/testkit"
)

// refusedForDoubt reports whether an error says that the endpoint's clock is in doubt.
func refusedForDoubt(err error) bool {
	return err != nil && strings.Contains(err.Error(), "InternalServerError: strict reads: the endpoint's clock is")
}

// A Date that jumps ahead by five minutes hides no live item, and no update removes one: requests
// fail until the Date is right again.
func TestDateJumps(t *testing.T) {
	for _, way := range []string{"middleware", "proxy"} {
		t.Run(way, func(t *testing.T) {
			db := open(t, mayfly.Options{Expiry: mayfly.ExpiryAWS, ExpiryDelay: "fixed:8784h"})
			makeTables(t, db.DynamoDB())
			calls := &calls{next: db.Handler()}
			server := httptest.NewServer(calls)
			t.Cleanup(server.Close)
			dates := testkit.NewDates(server.Client(), time.Now, 1)
			client := dial(server.URL, clientPair)
			c := dynamodb.New(client.Options(), func(o *dynamodb.Options) { o.HTTPClient = dates }, strict.Middleware(plainRules))
			front := ""
			if way == "proxy" {
				p, err := strict.NewProxy(strict.ProxyOptions{Rules: plainRules, Endpoint: server.URL, Credentials: client.Options().Credentials,
					HTTP: &http.Client{Transport: roundTrip(dates.Do)}})
				if err != nil {
					t.Fatal(err)
				}
				before := httptest.NewServer(p)
				t.Cleanup(before.Close)
				c, front = dial(before.URL, clientPair), before.URL
			}
			ttl := num(strconv.FormatInt(time.Now().Unix()+120, 10))
			if _, err := c.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("plain"), Item: item{"pk": str("p"), "sk": num("0"), "ttl": ttl, "n": num("1"), "name": str("Ada")}}); err != nil {
				t.Fatal(err)
			}
			get := func() error {
				out, err := c.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("plain"), Key: expiredKey})
				if err == nil && out.Item == nil {
					t.Error("a live item is hidden")
				}
				if err != nil && !refusedForDoubt(err) {
					t.Error(err)
				}
				return err
			}
			for range 5 {
				if err := get(); err != nil {
					t.Fatal(err)
				}
			}
			dates.Shift(5 * time.Minute)
			failed := 0
			for range 10 {
				if err := get(); err != nil {
					failed++
				}
			}
			if failed < 8 {
				t.Errorf("only %d of 10 requests fail", failed)
			}
			if _, err := count(t, c); !refusedForDoubt(err) {
				t.Errorf("an update: %v", err)
			}
			if _, err := c.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("plain"), Key: expiredKey}); !refusedForDoubt(err) {
				t.Errorf("a read: %v", err)
			}
			if _, err := c.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String("plain")}); err != nil {
				t.Errorf("what needs no time is refused: %v", err)
			}
			if front != "" {
				if status := health(t, front); status != http.StatusServiceUnavailable {
					t.Errorf("the health check: %d", status)
				}
			}
			dates.Heal()
			for {
				if err := get(); err == nil {
					break
				}
				time.Sleep(20 * time.Millisecond)
			}
			if front != "" {
				if status := health(t, front); status != http.StatusOK {
					t.Errorf("the health check: %d", status)
				}
			}
			out, err := count(t, c)
			if err != nil || printed(out.Attributes["n"]) != `{"Value":"2"}` || printed(out.Attributes["name"]) != `{"Value":"Ada"}` {
				t.Errorf("%v, %v", out, err)
			}
			if strings.Contains(strings.Join(calls.seen, " "), "DeleteItem") {
				t.Error("the item was removed")
			}
		})
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func health(t *testing.T, url string) int {
	t.Helper()
	a, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	a.Body.Close()
	return a.StatusCode
}

// Whatever the Dates of an endpoint show, no live item is hidden, taken for absent, or removed. When
// they are right again, requests are answered again.
func TestClockFaults(t *testing.T) {
	for seed := range uint64(5) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { clockFaults(t, seed) })
		})
	}
}

func clockFaults(t *testing.T, seed uint64) {
	db, err := mayfly.Open("", mayfly.Options{Expiry: mayfly.ExpiryAWS, ExpiryDelay: "fixed:8784h"})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	makeTables(t, db.DynamoDB())
	var dates *testkit.Dates
	c := dynamodb.New(db.DynamoDB().Options(), func(o *dynamodb.Options) {
		dates = testkit.NewDates(o.HTTPClient, time.Now, seed)
		o.HTTPClient, o.Retryer = dates, aws.NopRetryer{}
	}, strict.Middleware(plainRules))
	dice := rand.New(rand.NewPCG(seed, 2))
	ends, counts := map[string]int64{}, map[string]int{}
	answered, refused, hidden := 0, 0, 0
	ask := func(name string) {
		key := item{"pk": str("p"), "sk": num(name)}
		live := ends[name] > time.Now().UnixMilli()
		var err error
		switch dice.IntN(3) {
		case 0:
			var out *dynamodb.GetItemOutput
			if out, err = c.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("plain"), Key: key}); err == nil && out.Item == nil {
				hidden++
				if live {
					t.Errorf("live item %s is hidden", name)
				}
			}
		case 1:
			_, err = c.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("plain"), Item: key, ConditionExpression: aws.String("attribute_not_exists(pk)")})
			if _, exists := errors.AsType[*types.ConditionalCheckFailedException](err); exists {
				err = nil
			} else if err == nil {
				delete(ends, name)
				if live {
					t.Errorf("live item %s is replaced", name)
				}
			}
		default:
			var out *dynamodb.UpdateItemOutput
			out, err = c.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{TableName: aws.String("plain"), Key: key, UpdateExpression: aws.String("ADD n :one"),
				ExpressionAttributeValues: item{":one": num("1")}, ReturnValues: types.ReturnValueAllNew})
			if _, early := errors.AsType[*types.TransactionConflictException](err); early {
				err = nil // it has expired by one clock, and may not be removed yet
			} else if err == nil && !live {
				delete(ends, name)
			} else if err == nil {
				counts[name]++
				if printed(out.Attributes["n"]) != fmt.Sprintf(`{"Value":"%d"}`, counts[name]) || out.Attributes["name"] == nil {
					t.Errorf("live item %s was removed: it is %v after %d updates", name, out.Attributes, counts[name])
				}
			}
		}
		if err == nil {
			answered++
		} else if refused++; !refusedForDoubt(err) {
			t.Error(err)
		}
	}
	for i := range 60 {
		for j := range 5 {
			name, at := strconv.Itoa(i*5+j), time.Now().UnixMilli()+dice.Int64N(90_000)
			if _, err := db.DynamoDB().PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("plain"), Item: item{"pk": str("p"), "sk": num(name), "name": str("Ada"),
				"ttl": num(fmt.Sprintf("%d.%03d", at/1000, at%1000))}}); err != nil {
				t.Fatal(err)
			}
			ends[name] = at
		}
		if i%2 == 0 {
			dates.Fail()
		} else {
			dates.Heal()
		}
		for range 30 {
			time.Sleep(time.Duration(dice.Int64N(int64(time.Second))))
			name := strconv.Itoa(dice.IntN(5 * (i + 1)))
			if _, known := ends[name]; known {
				ask(name)
			}
		}
	}
	if dates.Heal(); answered < 300 || refused < 20 || hidden < 20 {
		t.Errorf("too mild: %d answered, %d refused, %d hidden", answered, refused, hidden)
	}
	for range 3 {
		_, _ = c.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("plain"), Key: expiredKey})
		time.Sleep(time.Second)
	}
	if _, err := c.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("plain"), Key: expiredKey}); err != nil {
		t.Errorf("after the faults: %v", err)
	}
	t.Logf("%d answered, %d refused, %d hidden", answered, refused, hidden)
}
