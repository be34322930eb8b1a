package expirybench

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"

	"github.com/mayflydb/mayfly/internal/bench"
	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/retry"
)

// Attributes and indexes of all tables.
const (
	keyName      = "pk"
	sortName     = "sk"
	groupName    = "grp"
	rankName     = "rank"
	deadlineName = "expires_at"
	numberName   = "n"
	textName     = "filling"

	globalIndex = "by-group"
	localIndex  = "by-rank"
)

const (
	batchItems  = 25 // the most that BatchWriteItem accepts
	loaders     = 16 // parallel calls while a table is filled
	groupItems  = 20 // items with the same index key
	itemBytes   = 400
	farDeadline = 30 * 24 * time.Hour // distance of deadlines that no run reaches
	tableLimit  = time.Minute         // time for a table to become active
)

// design is what a table has if the endpoint offers it.
type design struct {
	sorted bool // with a sort key
	ranked bool // with a local index too
	index  bool
	stream bool // of both images
}

// table is a table of the run.
type table struct {
	*endpoint
	design
	name string
	arn  string // of its stream
}

// createTable creates a table with TTL. No two tables of a run have the same name: some endpoints show the
// records of a removed table in the stream of the next one with its name. An endpoint that refuses a stream, or indexes, gets a table
// without.
func (r *run) createTable(ctx context.Context, name string, wanted design) (*table, error) {
	r.created++
	t := &table{endpoint: r.endpoint, design: wanted, name: fmt.Sprintf("%s%s-%d", r.prefix, name, r.created)}
	_, err := r.db.CreateTable(ctx, t.input())
	for _, offered := range []design{
		{ranked: true, index: true}, {ranked: true, stream: true}, {index: true, stream: true}, {},
	} {
		less := design{wanted.sorted, wanted.ranked && offered.ranked, wanted.index && offered.index, wanted.stream && offered.stream}
		if !refuses(err) || less == t.design {
			continue
		}
		t.design = less
		_, err = r.db.CreateTable(ctx, t.input())
	}
	if err != nil {
		return nil, fmt.Errorf("create table %s: %w", t.name, err)
	}
	r.tables[t.name] = true
	if err := t.awaitActive(ctx); err != nil {
		return nil, err
	}
	return t, t.enableTTL(ctx)
}

// refuses reports whether an error means that the endpoint does not offer something. Another error, such as
// throttling, says nothing about that.
func refuses(err error) bool {
	return retry.Invalid(err) || retry.Code(err) == "UnknownOperationException"
}

// errNoTTL is the refusal of UpdateTimeToLive.
type errNoTTL struct{ error }

func (e *errNoTTL) Unwrap() error { return e.error }

func (t *table) enableTTL(ctx context.Context) error {
	_, err := t.db.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{TableName: &t.name, TimeToLiveSpecification: &types.TimeToLiveSpecification{
		AttributeName: aws.String(deadlineName), Enabled: aws.Bool(true),
	}})
	if refuses(err) {
		return &errNoTTL{err}
	}
	return err
}

func (t *table) input() *dynamodb.CreateTableInput {
	key := func(name string, kind types.KeyType) types.KeySchemaElement {
		return types.KeySchemaElement{AttributeName: &name, KeyType: kind}
	}
	in := &dynamodb.CreateTableInput{TableName: &t.name, BillingMode: types.BillingModePayPerRequest, KeySchema: []types.KeySchemaElement{key(keyName, types.KeyTypeHash)}}
	attribute := func(name string, kind types.ScalarAttributeType) {
		in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{AttributeName: &name, AttributeType: kind})
	}
	all := &types.Projection{ProjectionType: types.ProjectionTypeAll}
	attribute(keyName, types.ScalarAttributeTypeS)
	if t.sorted {
		attribute(sortName, types.ScalarAttributeTypeS)
		in.KeySchema = append(in.KeySchema, key(sortName, types.KeyTypeRange))
	}
	if t.ranked {
		attribute(rankName, types.ScalarAttributeTypeN)
		in.LocalSecondaryIndexes = []types.LocalSecondaryIndex{{
			IndexName: aws.String(localIndex), Projection: all,
			KeySchema: []types.KeySchemaElement{key(keyName, types.KeyTypeHash), key(rankName, types.KeyTypeRange)},
		}}
	}
	if t.index {
		attribute(groupName, types.ScalarAttributeTypeS)
		in.GlobalSecondaryIndexes = []types.GlobalSecondaryIndex{{
			IndexName: aws.String(globalIndex), Projection: all, KeySchema: []types.KeySchemaElement{key(groupName, types.KeyTypeHash)},
		}}
	}
	if t.stream {
		in.StreamSpecification = &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewAndOldImages}
	}
	return in
}

func (t *table) awaitActive(ctx context.Context) error {
	return bench.Poll(ctx, 20*time.Millisecond, tableLimit, "table "+t.name+" is not active", func() (bool, error) {
		out, err := t.db.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &t.name})
		if err != nil {
			return false, err
		}
		t.arn = aws.ToString(out.Table.LatestStreamArn)
		t.stream = t.stream && t.arn != ""
		for _, index := range out.Table.GlobalSecondaryIndexes {
			if index.IndexStatus != types.IndexStatusActive {
				return false, nil
			}
		}
		return out.Table.TableStatus == types.TableStatusActive, nil
	})
}

// drop removes the table. A missing one is no error.
func (r *run) drop(ctx context.Context, name string) error {
	_, err := r.db.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: &name})
	if err != nil && retry.Code(err) != "ResourceNotFoundException" {
		return fmt.Errorf("remove table %s: %w", name, err)
	}
	delete(r.tables, name)
	return nil
}

// item is an item of a table: its number and its deadline.
type item struct {
	number   int
	deadline time.Time
}

// keyOf returns an item's key. Its end is the number in ten digits.
func keyOf(number int) string { return fmt.Sprintf("item-%010d", number) }

// numberOf returns the number of an item from its key.
func numberOf(key any) (number int, ok bool) {
	digits, ours := strings.CutPrefix(attr.String(key), "item-")
	number, err := strconv.Atoi(digits)
	return number, ours && err == nil && number >= 0
}

func groupOf(number int) string { return fmt.Sprintf("group-%010d", number/groupItems) }

// filling makes up the size of an item.
var filling = strings.Repeat("Mayflies live for a day. ", itemBytes/25)[:itemBytes-100]

// attributes returns the whole item.
func (i item) attributes() attr.Item {
	return attr.Item{
		keyName: attr.S(keyOf(i.number)), groupName: attr.S(groupOf(i.number)), deadlineName: attr.Seconds(i.deadline),
		numberName: attr.Int(i.number), textName: attr.S(filling),
	}
}

// errTooSlow means that loading would take longer than its limit.
var errTooSlow = errors.New("loading takes too long")

// fill writes n items in batches over parallel connections, and returns the rate. It returns
// errTooSlow as soon as the items would clearly not be written within the limit.
func (t *table) fill(ctx context.Context, n int, limit time.Duration, which func(int) item) (perS float64, err error) {
	var next, written atomic.Int64
	start := time.Now()
	most, cancel := context.WithTimeout(ctx, 2*limit)
	defer cancel()
	group, ctx := errgroup.WithContext(most)
	for range loaders {
		group.Go(func() error {
			for {
				from := int(next.Add(batchItems)) - batchItems
				if from >= n {
					return nil
				}
				to := min(from+batchItems, n)
				if err := t.writeBatch(ctx, from, to, which); err != nil {
					return err
				}
				done, took := written.Add(int64(to-from)), time.Since(start)
				if took > limit || took > limit/10 && float64(took)*float64(n)/float64(done) > 1.5*float64(limit) {
					return errTooSlow
				}
			}
		})
	}
	if err = group.Wait(); err != nil && most.Err() == context.DeadlineExceeded {
		err = errTooSlow
	}
	return float64(written.Load()) / time.Since(start).Seconds(), err
}

// writeBatch writes the items from number from up to, but not including, to.
func (t *table) writeBatch(ctx context.Context, from, to int, which func(int) item) error {
	requests := make([]types.WriteRequest, 0, batchItems)
	for i := from; i < to; i++ {
		requests = append(requests, types.WriteRequest{PutRequest: &types.PutRequest{Item: which(i).attributes()}})
	}
	left := map[string][]types.WriteRequest{t.name: requests}
	for pauses := (retry.Policy{First: 20 * time.Millisecond, Most: time.Second}).Start(); ; {
		out, err := t.db.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{RequestItems: left})
		switch {
		case err == nil && len(out.UnprocessedItems) == 0:
			return nil
		case err == nil:
			left = out.UnprocessedItems
		case retry.Classify(err) == retry.Permanent:
			return fmt.Errorf("write items of %s: %w", t.name, err)
		}
		if !pauses.Wait(ctx) {
			if err == nil {
				err = ctx.Err()
			}
			return fmt.Errorf("write items of %s: %w", t.name, err)
		}
	}
}

// put writes an item.
func (t *table) put(ctx context.Context, i attr.Item) error {
	_, err := t.db.PutItem(ctx, &dynamodb.PutItemInput{TableName: &t.name, Item: i})
	return err
}

// discard removes the table at the end of a measurement. If that fails, the end of the run tries again.
func (r *run) discard(ctx context.Context, t *table) { _ = r.drop(ctx, t.name) }
