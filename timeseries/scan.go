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

// Scan gives all samples of the series, or of one of so many segments that may be read at once, in the order in which the table has them: a device's shard is in the
// order of time. What has expired is left out. A device whose shard count changes may show one sample twice, with the same Key.
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

// Count is about how many samples the series has, as the endpoint tells: Amazon counts anew every six hours.
func (s *Series) Count(ctx context.Context) (int64, error) {
	out, err := s.db.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: s.table()})
	if err != nil {
		return 0, fmt.Errorf("read series %q: %w", s.spec.Table, err)
	}
	return aws.ToInt64(out.Table.ItemCount), nil
}

// Attributes of a series' table that are its key, and its deadline.
const (
	AttributeDevice = attrDevice
	AttributeTime   = attrTime
	AttributeTTL    = attrTTL
)

// IsLayout reports whether a table has the key of a series'.
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

// ReadItem is the sample of an item of a series' table, such as a stream's image, and its deadline; zero for none.
func ReadItem(it map[string]types.AttributeValue) (Sample, time.Time, error) { return readItem(it) }

// ReadKey is what a sample's Key says: its instant, and its sequence where it has one.
func ReadKey(key string) (at time.Time, sequence uint32, err error) { return splitKey(key) }

// PlaceKey is the sort key behind which a query with After goes on; "" without one. For readers of samples that are elsewhere.
func PlaceKey(q Query) (string, error) {
	if q.After == "" {
		return "", nil
	}
	return readPlace(q.After, &q)
}
