package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/guard"
	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/sdk"
)

// The attributes of an item. The last one is in tables for the index strategy only.
const (
	keyAttribute      = "k" // a text: the number of the item's life
	writeAttribute    = "n" // the number of the write, unique in the run
	deadlineAttribute = "deadline"
	shardAttribute    = "shard"
	shardIndex        = "deadlines"
	shards            = 4
)

// strategies are the strategies that chaos can run. The schedule strategy is missing: there the
// endpoint's scheduler removes the items, out of the proxy's sight.
var strategies = []guard.Strategy{guard.Stream, guard.Index, guard.Scan}

// ownTables are the tables that guard makes.
var ownTables = []string{"mayfly.leases", "mayfly.deadlines"}

// endpoint is the endpoint under test.
type endpoint struct {
	url         string
	region      string
	credentials aws.CredentialsProvider
	db          *dynamodb.Client // with the SDK's retries
	once        *dynamodb.Client // without
	close       func()
	existing    map[string]bool // the tables of guard that existed before
}

// connect returns the endpoint at a URL; "" starts an embedded mayfly.
func connect(ctx context.Context, url string) (*endpoint, error) {
	e := &endpoint{url: url, region: cmp.Or(os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"), "us-east-1"), close: func() {}}
	e.credentials = credentials.NewStaticCredentialsProvider(cmp.Or(os.Getenv("AWS_ACCESS_KEY_ID"), "any"), cmp.Or(os.Getenv("AWS_SECRET_ACCESS_KEY"), "any"), os.Getenv("AWS_SESSION_TOKEN"))
	if url == "" {
		if err := e.embed(); err != nil {
			return nil, fmt.Errorf("start a mayfly in this process: %w", err)
		}
	}
	c := aws.Config{Region: e.region, Credentials: e.credentials, BaseEndpoint: &e.url, HTTPClient: pooled()}
	e.db = sdk.DynamoDB(c)
	e.once = sdk.DynamoDB(c, func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} })
	limited, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	tables := dynamodb.NewListTablesPaginator(e.once, &dynamodb.ListTablesInput{})
	e.existing = map[string]bool{}
	for tables.HasMorePages() {
		page, err := tables.NextPage(limited)
		if err != nil {
			e.close()
			return nil, advise(fmt.Errorf("list the tables at %s: %w", e.url, err),
				"check that a server with the DynamoDB API runs there and accepts AWS_ACCESS_KEY_ID, start one with: mayfly serve --memory, or leave out --endpoint")
		}
		for _, name := range page.TableNames {
			e.existing[name] = true
		}
	}
	return e, nil
}

// embed starts a mayfly in memory behind a port of its own.
func (e *endpoint) embed() error {
	db, err := mayfly.Open("", mayfly.Options{DatabaseOnly: true})
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return errors.Join(err, db.Close())
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- db.Serve(ctx, l) }()
	e.url = "http://" + l.Addr().String()
	e.close = func() {
		stop()
		<-served
		_ = db.Close() // it is in memory
	}
	return nil
}

// pooled returns an HTTP client that keeps many connections, but not until the server closes them.
func pooled() *http.Client {
	return &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 128, IdleConnTimeout: 3 * time.Second}}
}

// createTable makes the table of a strategy. It reports whether the endpoint supports the strategy;
// if not, there is no table.
func (e *endpoint) createTable(ctx context.Context, name string, s guard.Strategy) (supported bool, err error) {
	if e.existing[name] {
		return false, advise(fmt.Errorf("table %s exists", name), "delete it, or choose another --seed")
	}
	in := &dynamodb.CreateTableInput{
		TableName: &name, BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String(keyAttribute), AttributeType: "S"}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String(keyAttribute), KeyType: "HASH"}},
	}
	switch s {
	case guard.Stream:
		in.StreamSpecification = &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewAndOldImages}
	case guard.Index:
		in.AttributeDefinitions = append(in.AttributeDefinitions,
			types.AttributeDefinition{AttributeName: aws.String(shardAttribute), AttributeType: "S"}, types.AttributeDefinition{AttributeName: aws.String(deadlineAttribute), AttributeType: "N"})
		in.GlobalSecondaryIndexes = []types.GlobalSecondaryIndex{{
			IndexName:  aws.String(shardIndex),
			KeySchema:  []types.KeySchemaElement{{AttributeName: aws.String(shardAttribute), KeyType: "HASH"}, {AttributeName: aws.String(deadlineAttribute), KeyType: "RANGE"}},
			Projection: &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly},
		}}
	}
	if _, err := e.db.CreateTable(ctx, in); err != nil {
		return false, fmt.Errorf("create table %s: %w", name, err)
	}
	for {
		out, err := e.db.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &name})
		if err != nil {
			return false, fmt.Errorf("describe table %s: %w", name, err)
		}
		if out.Table.TableStatus == types.TableStatusActive {
			if s == guard.Stream && out.Table.LatestStreamArn == nil {
				return false, e.deleteTable(ctx, name)
			}
			return true, nil
		}
		clock.Pause(200*time.Millisecond, ctx.Done())
	}
}

func (e *endpoint) deleteTable(ctx context.Context, name string) error {
	if _, err := e.db.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: &name}); err != nil {
		return fmt.Errorf("delete table %s: %w", name, err)
	}
	return nil
}

// deleteOwn deletes the tables that guard has made in this run.
func (e *endpoint) deleteOwn(ctx context.Context) error {
	var errs []error
	for _, name := range ownTables {
		var missing *types.ResourceNotFoundException
		if e.existing[name] {
			continue
		}
		if err := e.deleteTable(ctx, name); err != nil && !errors.As(err, &missing) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// contents returns the items of a table by their keys.
func (e *endpoint) contents(ctx context.Context, name string) (map[string]image, error) {
	items := map[string]image{}
	pages := dynamodb.NewScanPaginator(e.db, &dynamodb.ScanInput{TableName: &name, ConsistentRead: aws.Bool(true)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("scan table %s: %w", name, err)
		}
		for _, item := range page.Items {
			i := imageOf(item)
			items[i.key] = i
		}
	}
	return items, nil
}
