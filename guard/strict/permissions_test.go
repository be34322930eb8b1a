package strict_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/guard"
	"github.com/mayflydb/mayfly/guard/strict"
)

// TestProxyPermissions: guard's list has the actions that a proxy calls by itself. The application
// queries, scans and updates.
func TestProxyPermissions(t *testing.T) {
	for _, attribute := range []string{"", "ttl"} {
		db := open(t, mayfly.Options{Expiry: mayfly.ExpiryAWS, ExpiryDelay: "fixed:24h"})
		name := "sessions"
		_, err := db.DynamoDB().CreateTable(t.Context(), &dynamodb.CreateTableInput{
			TableName: &name, BillingMode: types.BillingModePayPerRequest,
			AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("pk"), AttributeType: "S"}, {AttributeName: aws.String("user"), AttributeType: "S"}},
			KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: "HASH"}},
			GlobalSecondaryIndexes: []types.GlobalSecondaryIndex{{
				IndexName: aws.String("users"), KeySchema: []types.KeySchemaElement{{AttributeName: aws.String("user"), KeyType: "HASH"}},
				Projection: &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly},
			}},
		})
		if err == nil {
			_, err = db.DynamoDB().UpdateTimeToLive(t.Context(), &dynamodb.UpdateTimeToLiveInput{
				TableName: &name, TimeToLiveSpecification: &types.TimeToLiveSpecification{Enabled: aws.Bool(true), AttributeName: aws.String("ttl")},
			})
		}
		for key, seconds := range map[string]int64{"past": -10, "future": 3600} {
			if err == nil {
				_, err = db.DynamoDB().PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &name, Item: map[string]types.AttributeValue{
					"pk": &types.AttributeValueMemberS{Value: key}, "user": &types.AttributeValueMemberS{Value: "ada"},
					"ttl": &types.AttributeValueMemberN{Value: fmt.Sprint(time.Now().Unix() + seconds)},
				}})
			}
		}
		if err != nil {
			t.Fatal(err)
		}

		var mu sync.Mutex
		used := map[string]bool{}
		endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch _, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), "."); operation {
			case "", "Query", "Scan", "UpdateItem": // the application's
			default:
				mu.Lock()
				used["dynamodb:"+operation] = true
				mu.Unlock()
			}
			db.Handler().ServeHTTP(w, r)
		}))
		defer endpoint.Close()
		proxy, err := strict.NewProxy(strict.ProxyOptions{
			Rules: strict.Rules{Tables: map[string]string{name: attribute}}, Endpoint: endpoint.URL, Clients: []strict.Credential{clientPair},
			Credentials: credentials.NewStaticCredentialsProvider("any", "any", ""),
		})
		if err != nil {
			t.Fatal(err)
		}
		front := httptest.NewServer(proxy)
		defer front.Close()
		app := dial(front.URL, clientPair)
		_, err = app.Scan(t.Context(), &dynamodb.ScanInput{TableName: &name})
		if err == nil {
			_, err = app.Query(t.Context(), &dynamodb.QueryInput{
				TableName: &name, IndexName: aws.String("users"), KeyConditionExpression: aws.String("#u = :u"), ExpressionAttributeNames: map[string]string{"#u": "user"},
				ExpressionAttributeValues: map[string]types.AttributeValue{":u": &types.AttributeValueMemberS{Value: "ada"}},
			})
		}
		if err == nil {
			_, err = app.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
				TableName: &name, Key: map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: "past"}}, UpdateExpression: aws.String("SET visits = :one"),
				ExpressionAttributeValues: map[string]types.AttributeValue{":one": &types.AttributeValueMemberN{Value: "1"}},
			})
		}
		if err != nil {
			t.Fatal(err)
		}
		listed := map[string]bool{}
		for _, p := range guard.Permissions(guard.UseProxy, guard.Options{Attribute: attribute}) {
			listed[p.Action] = true
		}
		// for endpoints that do not return the item that failed a condition
		mu.Lock()
		used["dynamodb:GetItem"] = true
		mu.Unlock()
		if got, want := slices.Sorted(maps.Keys(used)), slices.Sorted(maps.Keys(listed)); !slices.Equal(got, want) {
			t.Errorf("attribute %q: the proxy calls %v, and the list has %v", attribute, got, want)
		}
	}
}
