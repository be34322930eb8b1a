package mayfly

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/store/kv"
)

// fullDisk is a file system without room for a reserve while full is set.
type fullDisk struct {
	kv.FS
	full atomic.Bool
}

func (d *fullDisk) PathJoin(elem ...string) string {
	if d.full.Load() && elem[len(elem)-1] == "RESERVE" {
		return d.FS.PathJoin("nowhere", "RESERVE")
	}
	return d.FS.PathJoin(elem...)
}

// While the disk is full, /readyz has the reason why writes are refused, and deletes work. With
// room again, everything works without a call.
func TestReadinessOnFullDisk(t *testing.T) {
	disk := &fullDisk{FS: kv.NewMemFS()}
	o := Options{fs: disk, reserve: 4096}
	db, err := Open("data", o)
	if err != nil {
		t.Fatal(err)
	}
	makeTable(t, db.DynamoDB(), "events")
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	disk.full.Store(true)
	db = open(t, "data", o)
	put := &dynamodb.PutItemInput{
		TableName: aws.String("events"), Item: map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: "a"}},
	}
	var refused *types.LimitExceededException
	if _, err := db.DynamoDB().PutItem(t.Context(), put); !errors.As(err, &refused) {
		t.Errorf("a put: %v", err)
	}
	if _, err := db.DynamoDB().DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: put.TableName, Key: put.Item}); err != nil {
		t.Errorf("a delete: %v", err)
	}
	if ready := get(t, db, "/readyz"); !strings.HasPrefix(ready, "ready\ndegraded: the disk is full: ") {
		t.Errorf("/readyz: %s", ready)
	}
	disk.full.Store(false)
	for limit := time.Now().Add(30 * time.Second); get(t, db, "/readyz") != "ready\n"; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("/readyz: %s", get(t, db, "/readyz"))
		}
	}
	if _, err := db.DynamoDB().PutItem(t.Context(), put); err != nil {
		t.Errorf("a put with room: %v", err)
	}
}
