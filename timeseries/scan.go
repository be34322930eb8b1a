package timeseries

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/work/ensure"
)

// Scan returns all samples of the series, or of one of several segments, in the order of the table:
// within a shard of a device by time. It omits expired ones. While the shard count of a device
// changes, a sample may appear twice, with the same Key.
func (r *Reader) Scan(ctx context.Context, segment, segments int) iter.Seq2[Sample, error] {
	return func(yield func(Sample, error) bool) {
		in := &dynamodb.ScanInput{TableName: r.series.table(), ConsistentRead: aws.Bool(r.o.Strong)}
		if segments > 1 {
			in.Segment, in.TotalSegments = aws.Int32(int32(segment)), aws.Int32(int32(segments))
		}
		for {
			var out *dynamodb.ScanOutput
			err := patiently(ctx, readFor, func() (err error) {
				out, err = r.series.db.Scan(ctx, in)
				return err
			})
			if ensure.Missing(err) {
				err = fmt.Errorf("%w: %w", ErrNoSeries, err)
			}
			if err != nil {
				yield(Sample{}, fmt.Errorf("read series %q: %w", r.series.spec.Table, err))
				return
			}
			now := r.series.spec.Now()
			for _, it := range out.Items {
				s, deadline, err := readItem(it)
				if err != nil {
					yield(Sample{}, fmt.Errorf("read series %q: %w", r.series.spec.Table, err))
					return
				}
				if !deadline.IsZero() && !deadline.After(now) {
					continue
				}
				if !yield(s, nil) {
					return
				}
			}
			if in.ExclusiveStartKey = out.LastEvaluatedKey; len(out.LastEvaluatedKey) == 0 {
				return
			}
		}
	}
}

// Count returns the endpoint's estimate of the number of samples; Amazon updates it every six
// hours.
func (s *Series) Count(ctx context.Context) (int64, error) {
	out, err := s.db.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: s.table()})
	if err != nil {
		return 0, fmt.Errorf("read series %q: %w", s.spec.Table, err)
	}
	return aws.ToInt64(out.Table.ItemCount), nil
}

// Key and deadline attributes of a series' table.
const (
	AttributeDevice = attrDevice
	AttributeTime   = attrTime
	AttributeTTL    = attrTTL
)

// IsLayout reports whether a table has the key schema of a series.
func IsLayout(table *types.TableDescription) bool {
	want := map[string]types.KeyType{attrDevice: types.KeyTypeHash, attrTime: types.KeyTypeRange}
	for _, k := range table.KeySchema {
		if want[aws.ToString(k.AttributeName)] != k.KeyType {
			return false
		}
	}
	for _, a := range table.AttributeDefinitions {
		if _, key := want[aws.ToString(a.AttributeName)]; key && a.AttributeType != types.ScalarAttributeTypeS {
			return false
		}
	}
	return len(table.KeySchema) == len(want)
}

// ReadItem returns the sample of an item of a series' table, such as a stream's image, and its
// deadline, or zero without one.
func ReadItem(it map[string]types.AttributeValue) (Sample, time.Time, error) { return readItem(it) }

// ReadKey returns the instant in a sample's Key, and the sequence, if it has one.
func ReadKey(key string) (at time.Time, sequence uint32, err error) { return splitKey(key) }

// PlaceKey returns the sort key after which a query with After continues, or "". It is for readers
// of samples in other places.
func PlaceKey(q Query) (string, error) {
	if q.After == "" {
		return "", nil
	}
	return readPlace(q.After, &q)
}
