package items

import (
	"context"
	"iter"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/ensure"
	"github.com/mayflydb/mayfly/internal/work/retry"
)

// Get returns an item by a consistent read; nil if there is none. A missing table is an error.
func Get(ctx context.Context, db *dynamodb.Client, table string, key attr.Item) (attr.Item, error) {
	out, err := db.GetItem(ctx, &dynamodb.GetItemInput{TableName: &table, Key: key, ConsistentRead: aws.Bool(true)})
	if err != nil {
		return nil, err
	}
	return out.Item, nil
}

// Scan returns the items of all pages of a consistent scan. An error is the last element.
func Scan(ctx context.Context, db *dynamodb.Client, in *dynamodb.ScanInput) iter.Seq2[attr.Item, error] {
	in.ConsistentRead = aws.Bool(true)
	p := dynamodb.NewScanPaginator(db, in)
	return pages(p.HasMorePages, func() ([]attr.Item, error) {
		page, err := p.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		return page.Items, nil
	})
}

// Query returns the items of all pages of a query. An error is the last element.
func Query(ctx context.Context, db *dynamodb.Client, in *dynamodb.QueryInput) iter.Seq2[attr.Item, error] {
	if in.IndexName == nil {
		in.ConsistentRead = aws.Bool(true)
	}
	p := dynamodb.NewQueryPaginator(db, in)
	return pages(p.HasMorePages, func() ([]attr.Item, error) {
		page, err := p.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		return page.Items, nil
	})
}

func pages(more func() bool, next func() ([]attr.Item, error)) iter.Seq2[attr.Item, error] {
	return func(yield func(attr.Item, error) bool) {
		for more() {
			page, err := next()
			if ensure.Missing(err) {
				return
			}
			if err != nil {
				yield(nil, err)
				return
			}
			for _, it := range page {
				if !yield(it, nil) {
					return
				}
			}
		}
	}
}

// unprocessed is the policy of reads of the keys that the endpoint has left out.
var unprocessed = retry.Policy{First: 5 * time.Millisecond, Most: time.Second}

// BatchGet reads items by their keys, at most 100, and calls f for each item that exists. It stops
// at an error of f. A missing table is an error.
func BatchGet(ctx context.Context, db *dynamodb.Client, keys map[string]types.KeysAndAttributes, f func(table string, it attr.Item) error) error {
	for pauses := unprocessed.Start(); ; {
		page, err := db.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: keys})
		if err != nil {
			return err
		}
		for table, found := range page.Responses {
			for _, it := range found {
				if err := f(table, it); err != nil {
					return err
				}
			}
		}
		if keys = page.UnprocessedKeys; len(keys) == 0 {
			return nil
		}
		if !pauses.Wait(ctx) {
			return ctx.Err()
		}
	}
}
