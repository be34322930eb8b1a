package timeseries

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/mayflydb/mayfly/internal/work/attr"
)

// LoadCheckpoint reads the checkpoint of a source into to, and reports whether there is one.
// ConfigTable keeps it with the series, so another machine can continue.
func (s *Series) LoadCheckpoint(ctx context.Context, source string, to any) (bool, error) {
	row, err := getConfig(ctx, s.db, s.spec.Table, prefixCheckpoint+source)
	if err != nil {
		return false, fmt.Errorf("read the checkpoint of %q: %w", source, err)
	}
	if row == nil {
		return false, nil
	}
	if err := json.Unmarshal([]byte(attr.String(row[attrJSON])), to); err != nil {
		return false, fmt.Errorf("the checkpoint of %q: %w", source, err)
	}
	return true, nil
}

// SaveCheckpoint stores checkpoint as JSON, in place of the source's previous one. The caller must
// have written everything before it.
func (s *Series) SaveCheckpoint(ctx context.Context, source string, checkpoint any) error {
	doc, err := json.Marshal(checkpoint)
	if err != nil {
		return err
	}
	it := item{attrSeries: attr.S(s.spec.Table), attrName: attr.S(prefixCheckpoint + source), attrJSON: attr.S(string(doc))}
	err = patiently(ctx, readFor, func() error {
		_, err := s.db.PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String(ConfigTable), Item: it})
		return err
	})
	if err != nil {
		return fmt.Errorf("write the checkpoint of %q: %w", source, err)
	}
	return nil
}
