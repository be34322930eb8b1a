#!/usr/bin/env bash
# A first hour in Go: a module of your own whose test opens a database, and moves its clock.
#
# Needs Go. MAYFLY_SOURCE is a checkout of mayfly, by default the one of this script. Run it in an empty directory.
set -euo pipefail

source=$(realpath "${MAYFLY_SOURCE:-$(dirname "$0")/../..}")
cat >go.mod <<END
module example.com/shop

go 1.26

require github.com/mayflydb/mayfly v0.0.0
replace github.com/mayflydb/mayfly => $source
END
cp "$source/go.sum" .

cat >lock.go <<'END'
// Package shop has a lock that ends by itself: an item that expires.
package shop

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Lock is an item of the table "locks".
type Lock struct {
	Name    string    `dynamodbav:"name" mayfly:"hash"`
	Owner   string    `dynamodbav:"owner"`
	Expires time.Time `dynamodbav:"expires,unixtime" mayfly:"ttl"`
}

// Take takes a lock until an instant. It reports whether nobody had it.
func Take(ctx context.Context, db *dynamodb.Client, name, owner string, until time.Time) (bool, error) {
	_, err := db.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: aws.String("locks"), ConditionExpression: aws.String("attribute_not_exists(#n)"), ExpressionAttributeNames: map[string]string{"#n": "name"},
		Item: map[string]types.AttributeValue{
			"name":    &types.AttributeValueMemberS{Value: name},
			"owner":   &types.AttributeValueMemberS{Value: owner},
			"expires": &types.AttributeValueMemberN{Value: strconv.FormatInt(until.Unix(), 10)},
		},
	})
	var taken *types.ConditionalCheckFailedException
	if errors.As(err, &taken) {
		return false, nil
	}
	return err == nil, err
}
END

cat >lock_test.go <<'END'
package shop

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflydb/mayfly/mayflytest"
)

func take(t *testing.T, db *mayflytest.DB, owner string) bool {
	t.Helper()
	ok, err := Take(t.Context(), db.DynamoDB(), "till", owner, db.Clock().Now().Add(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	return ok
}

// The clock stands still until the test moves it.
func TestLockEnds(t *testing.T) {
	db := mayflytest.Open(t)
	db.CreateTable("locks", Lock{})
	if !take(t, db, "ada") || take(t, db, "bob") {
		t.Fatal("the first one does not have the lock")
	}
	db.Advance(time.Minute - time.Millisecond)
	if take(t, db, "bob") {
		t.Error("the lock ended early")
	}
	db.Advance(time.Millisecond)
	if n := len(db.Expired("locks")); n != 1 || !take(t, db, "bob") {
		t.Errorf("the lock did not end at its deadline; %d expired", n)
	}
}

// In a bubble of testing/synctest, time.Sleep moves the database.
func TestLockEndsInBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := mayflytest.Open(t, mayflytest.Running())
		db.CreateTable("locks", "name", mayflytest.TTL("expires"))
		if !take(t, db, "ada") {
			t.Fatal("the lock is taken")
		}
		time.Sleep(time.Minute)
		if !take(t, db, "bob") {
			t.Error("the lock did not end")
		}
	})
}
END

go mod tidy >/dev/null 2>&1 || go mod tidy
go test ./...
