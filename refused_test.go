package mayfly

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/store/kv"
)

// A refused write reveals an item, and a repeated transaction reports that it has happened. Both depend
// on an earlier write: if that is not on disk yet and the sync then fails, they fail like that write.
func TestRefusalsAreDurable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := kv.NewCrashFS()
		var waits chan struct{} // syncs of the log wait for its end, and fail. Nil: they succeed
		disk.BeforeSync = func(name string) error {
			if waits == nil || !strings.HasSuffix(name, ".log") {
				return nil
			}
			<-waits
			return errors.New("input/output error")
		}
		db, err := Open("data", Options{fs: disk, DatabaseOnly: true, CacheBytes: 1 << 20, MemTableBytes: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close() // it has stopped
		makeTable(t, db.DynamoDB(), "rows")
		table := aws.String("rows")
		item := func(pk string) map[string]types.AttributeValue {
			return map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: pk}}
		}
		put := func() error {
			_, err := db.DynamoDB().PutItem(t.Context(), &dynamodb.PutItemInput{TableName: table, Item: item("a"), ConditionExpression: aws.String("attribute_not_exists(pk)")})
			return err
		}
		transactWith := func(token string) error {
			_, err := db.DynamoDB().TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{ClientRequestToken: &token,
				TransactItems: []types.TransactWriteItem{{Put: &types.Put{TableName: table, Item: item("b")}}}})
			return err
		}
		transact := func() error { return transactWith("token") }
		// the first one makes the table of tokens, and all calls wait for that
		if err := transactWith("an earlier one"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		waits = make(chan struct{})
		answers := make(chan error, 4)
		for _, call := range []func() error{put, transact, put, transact} {
			go func() { answers <- call() }()
			synctest.Wait() // it waits for the sync
		}
		close(waits)
		for range cap(answers) {
			var refused *types.ConditionalCheckFailedException
			if err := <-answers; err == nil {
				t.Error("a transaction that is not on disk has happened, says its repetition")
			} else if errors.As(err, &refused) {
				t.Error("a write was refused because of an item that is not on disk")
			}
		}
	})
}
