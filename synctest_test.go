package mayfly_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly"
)

// In a bubble of testing/synctest, an embedded database follows the bubble's clock, so time.Sleep
// moves it, and Close leaves no goroutine behind.
func TestSynctest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, err := mayfly.Open("", mayfly.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		createSessions(t.Context(), db)
		putSession(t, db, "s-1", time.Now().Add(time.Hour))

		time.Sleep(time.Hour - time.Millisecond) // takes no time, and moves the database as well
		if !sessionExists(t, db, "s-1") {
			t.Error("the session ended too early")
		}
		time.Sleep(time.Millisecond)
		if sessionExists(t, db, "s-1") {
			t.Error("the session did not end")
		}
	})
}

func putSession(t *testing.T, db *mayfly.DB, id string, expires time.Time) {
	t.Helper()
	_, err := db.DynamoDB().PutItem(t.Context(), &dynamodb.PutItemInput{
		TableName: aws.String("sessions"),
		Item: map[string]types.AttributeValue{
			"id":      &types.AttributeValueMemberS{Value: id},
			"expires": &types.AttributeValueMemberN{Value: fmt.Sprint(expires.Unix())},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
}

func sessionExists(t *testing.T, db *mayfly.DB, id string) bool {
	t.Helper()
	got, err := db.DynamoDB().GetItem(t.Context(), &dynamodb.GetItemInput{
		TableName: aws.String("sessions"),
		Key:       map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: id}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return got.Item != nil
}
