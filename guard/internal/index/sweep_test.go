package index

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/guard/internal/armed"
	"github.com/mayflydb/mayfly/guard/internal/strategy"
	"github.com/mayflydb/mayfly/guard/internal/table"
	"github.com/mayflydb/mayfly/internal/work/attr"
)

// stub is guard, whose clock stands still and which never removes.
type stub struct {
	strategy.Guard
	set *armed.Set
}

const stubNow = 1893456000_000

func (g *stub) Arm(e armed.Entry)               { g.set.Arm(e) }
func (g *stub) Now() int64                      { return stubNow }
func (g *stub) Progress(strategy.Progress)      {}
func (g *stub) BadValue(k armed.Key, err error) {}

// newOfOneShard returns a sweeper of a table with an index of one shard and an item that expired five
// seconds ago. It has swept up to now, except for what it missed since from.
func newOfOneShard(t *testing.T, from, now int64) *sweeper {
	t.Helper()
	db, err := mayfly.Open("", mayfly.Options{Expiry: mayfly.ExpiryAWS, Start: time.UnixMilli(stubNow), Frozen: true})
	must(t, err)
	t.Cleanup(func() { must(t, db.Close()) })
	client := db.DynamoDB()
	_, err = client.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: aws.String("items"), BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{
			{AttributeName: aws.String("pk"), AttributeType: "S"}, {AttributeName: aws.String(shardKeyDefault), AttributeType: "S"}, {AttributeName: aws.String("ttl"), AttributeType: "N"},
		},
		KeySchema: []types.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: "HASH"}},
		GlobalSecondaryIndexes: []types.GlobalSecondaryIndex{{
			IndexName:  aws.String("shards"),
			KeySchema:  []types.KeySchemaElement{{AttributeName: aws.String(shardKeyDefault), KeyType: "HASH"}, {AttributeName: aws.String("ttl"), KeyType: "RANGE"}},
			Projection: &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly},
		}},
	})
	must(t, err)
	_, err = client.PutItem(t.Context(), &dynamodb.PutItemInput{
		TableName: aws.String("items"), Item: map[string]types.AttributeValue{"pk": attr.S("a"), shardKeyDefault: attr.S("0"), "ttl": attr.Int(stubNow/1000 - 5)},
	})
	must(t, err)
	described, err := table.Describe(t.Context(), client, "items")
	must(t, err)
	described.Attribute = "ttl"
	set := armed.New()
	x := New(&strategy.Env{Guard: &stub{set: set}, Armed: set, Table: described, DB: client, Log: slog.New(slog.DiscardHandler)}, Options{Period: 5 * time.Second})
	must(t, x.find())
	x.layout = layout{Shards: 1}
	return x.newSweeper(nil, []string{"0"}, from, now)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Sweeping continues after the endpoint's clock was set back by more than a sweep repeats.
func TestSweepAfterTheClockWentBack(t *testing.T) {
	s := newOfOneShard(t, stubNow, stubNow+time.Hour.Milliseconds())
	must(t, s.once(t.Context(), stubNow, stubNow+10_000))
	if n := s.Armed.Len(); n != 1 {
		t.Errorf("%d deadlines are armed", n)
	}
}

// A failed catch-up leaves the watermark where it was, and the next worker begins there.
func TestFailedCatchUp(t *testing.T) {
	from := stubNow - time.Hour.Milliseconds()
	s := newOfOneShard(t, from, stubNow)
	ended, end := context.WithCancel(t.Context())
	end()
	if err := s.catchUp(ended, stubNow); !errors.Is(err, context.Canceled) {
		t.Errorf("catching up: %v", err)
	}
	if kept := s.caught.Load(); kept != from {
		t.Errorf("caught up to %d, want %d", kept, from)
	}
}
