package mayfly

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/store/kv"
	"github.com/mayflydb/mayfly/internal/testkit"
)

// After a crash in Async mode the database has a prefix of its writes. So a checkpoint never stands
// for rows that are lost: guard relies on it for the deadlines in a directory.
func TestAsyncLosesLastWritesFirst(t *testing.T) {
	const pages, rows = 40, 25
	kept, lost := 0, 0
	seeds := testkit.Size[uint64](8, 20)
	if testing.Short() { // under the race detector each takes two seconds
		seeds = 5
	}
	for seed := range seeds {
		random := rand.New(rand.NewPCG(seed, 1))
		disk := kv.NewCrashFS()
		disk.KeepUnsynced(50*random.IntN(3), random.Uint64())
		options := Options{fs: disk, Durability: Async, DatabaseOnly: true, CacheBytes: 1 << 20, MemTableBytes: 1 << 20}
		db, err := Open("data", options)
		if err != nil {
			t.Fatal(err)
		}
		makeTable(t, db.DynamoDB(), "rows")
		text := func(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
		key := func(page, row int) string { return fmt.Sprintf("%d/%d", page, row) }
		disk.CutAfter(disk.Ops() + int64(random.IntN(150)))
		written := 0
		for page := 1; page <= pages; page++ {
			var all []types.WriteRequest
			for row := range rows {
				item := map[string]types.AttributeValue{"pk": text(key(page, row)), "more": text(string(make([]byte, 2000)))}
				all = append(all, types.WriteRequest{PutRequest: &types.PutRequest{Item: item}})
			}
			if _, err := db.DynamoDB().BatchWriteItem(t.Context(), &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{"rows": all}}); err != nil {
				break
			}
			if _, err := db.DynamoDB().PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("rows"),
				Item: map[string]types.AttributeValue{"pk": text("checkpoint"), "page": text(strconv.Itoa(page))}}); err != nil {
				break
			}
			written = page
		}
		disk.CutNow()
		_ = db.Close() // the disk has failed
		options.fs = disk.AfterCrash()
		db = open(t, "data", options)
		get := func(k string) map[string]types.AttributeValue {
			out, err := db.DynamoDB().GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("rows"), Key: map[string]types.AttributeValue{"pk": text(k)}})
			if _, gone := errors.AsType[*types.ResourceNotFoundException](err); gone {
				return nil // the table was lost with all rows
			}
			if err != nil {
				t.Fatal(err)
			}
			return out.Item
		}
		checkpoint := 0
		if page, has := get("checkpoint")["page"].(*types.AttributeValueMemberS); has {
			checkpoint, _ = strconv.Atoi(page.Value)
		}
		for page := 1; page <= checkpoint; page++ {
			for row := range rows {
				if get(key(page, row)) == nil {
					t.Fatalf("seed %d: the checkpoint is %d of %d, but row %s is gone", seed, checkpoint, written, key(page, row))
				}
			}
		}
		kept += checkpoint
		lost += written - checkpoint
	}
	if kept == 0 || lost == 0 {
		t.Errorf("%d pages were kept and %d lost: the crashes test nothing", kept, lost)
	}
}
