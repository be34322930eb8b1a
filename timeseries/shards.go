package timeseries

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/ensure"
)

// Shards is the number of partitions of a device, and the schedule of its change.
type Shards struct {
	Count  int       `json:"count"`  // used by writers until NextAt
	Next   int       `json:"next"`   // used by writers from NextAt on
	NextAt time.Time `json:"nextAt"` // zero: writers use Next
	Asked  int       `json:"asked"`  // least number that readers query, until AskedEnds
	// AskedEnds is when the last sample in the shards that writers no longer use has expired. Zero:
	// there are no such shards, or samples are kept for ever.
	AskedEnds time.Time `json:"askedEnds"`
	Version   int64     `json:"-"` // number of changes
}

// oneShard is the value of a device that was never spread.
var oneShard = Shards{Count: 1, Next: 1, Asked: 1}

// Writers returns the number of shards among which writers choose.
func (s Shards) Writers(now time.Time) int {
	if now.Before(s.NextAt) {
		return s.Count
	}
	return s.Next
}

// Readers returns the number of shards that readers query.
func (s Shards) Readers(now time.Time) int {
	most := max(s.Writers(now), s.Next)
	if s.AskedEnds.IsZero() || now.Before(s.AskedEnds) {
		most = max(most, s.Asked)
	}
	return most
}

// errChanging reports that a device's shard count is changing already.
var errChanging = errors.New("the shard count is changing already")

// change returns the shards after a change of the writers' count. Caches are at most cacheFor old,
// and samples last for keep after they are written, zero for ever.
func (s Shards) change(to int, now time.Time, cacheFor, keep time.Duration) (Shards, error) {
	from := s.Writers(now)
	if now.Before(s.NextAt) {
		return s, fmt.Errorf("%w: to %d at %s", errChanging, s.Next, s.NextAt.Format(time.RFC3339))
	}
	asked := s.Readers(now)
	n := Shards{Count: from, Next: to, Asked: max(asked, to), Version: s.Version + 1}
	if to > from {
		// Readers see it within cacheFor; the other half allows for different clocks.
		n.NextAt = now.Add(2 * cacheFor)
	}
	switch {
	case n.Asked <= to:
	case keep == 0: // no sample expires
	default:
		// The last writer sees the change within cacheFor, and its samples last for keep.
		n.AskedEnds = now.Add(2*cacheFor + keep)
		if to >= from && asked > from { // only shards of an earlier change still need readers
			n.AskedEnds = s.AskedEnds
		}
	}
	return n, nil
}

// Shards returns the stored shard counts of a device.
func (s *Series) Shards(ctx context.Context, device string) (Shards, error) {
	row, err := getConfig(ctx, s.db, s.spec.Table, prefixShards+device)
	if err != nil {
		return Shards{}, fmt.Errorf("read the shard count of %q: %w", device, err)
	}
	if row == nil {
		return oneShard, nil
	}
	return readShards(row)
}

// SetShards changes the number of shards, 1 to 100, of a device. An increase takes effect after
// twice CacheFor. Readers query the greater number until then, and after a decrease until the
// endpoint has emptied the old shards. A change in progress refuses another one.
func (s *Series) SetShards(ctx context.Context, device string, count int) (Shards, error) {
	if count < 1 || count > shardsMax {
		return Shards{}, fmt.Errorf("%d is not between 1 and %d shards", count, shardsMax)
	}
	if err := checkDevice(device); err != nil {
		return Shards{}, err
	}
	there, err := s.Shards(ctx, device)
	if err != nil {
		return Shards{}, err
	}
	now := s.spec.Now()
	if count == there.Next {
		return there, nil
	}
	var keep time.Duration
	if s.spec.Retention > 0 {
		keep = s.spec.Retention + s.spec.Ahead
	}
	next, err := there.change(count, now, s.spec.CacheFor, keep)
	if err != nil {
		return there, fmt.Errorf("device %q: %w", device, err)
	}
	if err := s.saveShards(ctx, device, next); err != nil {
		return there, err
	}
	s.shards.forget()
	return next, nil
}

// saveShards stores a change, unless another process was faster.
func (s *Series) saveShards(ctx context.Context, device string, n Shards) error {
	doc, err := json.Marshal(n)
	if err != nil {
		return err
	}
	_, err = s.db.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: aws.String(ConfigTable),
		Item: item{
			attrSeries: attr.S(s.spec.Table), attrName: attr.S(prefixShards + device), attrJSON: attr.S(string(doc)), attrVersion: attr.Int(n.Version),
		},
		ConditionExpression:       aws.String("attribute_not_exists(#v) OR #v = :before"),
		ExpressionAttributeNames:  map[string]string{"#v": attrVersion},
		ExpressionAttributeValues: item{":before": attr.Int(n.Version - 1)},
	})
	if _, ok := errors.AsType[*types.ConditionalCheckFailedException](err); ok {
		return fmt.Errorf("device %q: %w by another process", device, errChanging)
	}
	if err != nil {
		return fmt.Errorf("write the shard count of %q: %w", device, err)
	}
	return nil
}

func readShards(it item) (n Shards, err error) {
	if err := json.Unmarshal([]byte(attr.String(it[attrJSON])), &n); err != nil {
		return n, fmt.Errorf("the shard count %q in table %s: %w", attr.String(it[attrName]), ConfigTable, err)
	}
	for _, count := range []int{n.Count, n.Next, n.Asked} {
		if count < 1 || count > shardsMax {
			return n, fmt.Errorf("the shard count %q in table %s: %d is not between 1 and %d", attr.String(it[attrName]), ConfigTable, count, shardsMax)
		}
	}
	if v, ok := attr.AsNumber(it[attrVersion]); ok {
		n.Version, err = strconv.ParseInt(v, 10, 64)
	}
	return n, err
}

// shardCache caches the shard counts of all devices of a series, read together. It never uses
// counts older than Spec.CacheFor: a reader with old counts would miss shards, and a writer with
// old counts would hide samples from all readers.
type shardCache struct {
	series *Series
	mu     struct {
		sync.Mutex
		at    time.Time // start of the read that loaded the counts; zero: they must be read
		known map[string]Shards
	}
	load sync.Mutex // held while reading
}

// forget makes the next caller read again.
func (c *shardCache) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.at = time.Time{}
}

// get returns the shard counts of all devices that have, or had, more than one.
func (c *shardCache) get(ctx context.Context) (map[string]Shards, error) {
	if known, ok := c.fresh(); ok {
		return known, nil
	}
	c.load.Lock()
	defer c.load.Unlock()
	if known, ok := c.fresh(); ok { // another caller has read them
		return known, nil
	}
	at := c.series.spec.Now()
	known, err := c.series.allShards(ctx)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.at, c.mu.known = at, known
	return known, nil
}

func (c *shardCache) fresh() (map[string]Shards, bool) {
	now := c.series.spec.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	age := now.Sub(c.mu.at)
	return c.mu.known, c.mu.known != nil && !c.mu.at.IsZero() && age >= 0 && age < c.series.spec.CacheFor
}

// of returns the shard counts of a device.
func (c *shardCache) of(ctx context.Context, device string) (Shards, error) {
	known, err := c.get(ctx)
	if err != nil {
		return Shards{}, err
	}
	if n, ok := known[device]; ok {
		return n, nil
	}
	return oneShard, nil
}

// allShards reads the stored shard counts.
func (s *Series) allShards(ctx context.Context) (map[string]Shards, error) {
	known := map[string]Shards{}
	in := &dynamodb.QueryInput{
		TableName: aws.String(ConfigTable), ConsistentRead: aws.Bool(true),
		KeyConditionExpression:    aws.String("#s = :s AND begins_with(#n, :p)"),
		ExpressionAttributeNames:  map[string]string{"#s": attrSeries, "#n": attrName},
		ExpressionAttributeValues: item{":s": attr.S(s.spec.Table), ":p": attr.S(prefixShards)},
	}
	for {
		var out *dynamodb.QueryOutput
		err := patiently(ctx, readFor, func() (err error) {
			out, err = s.db.Query(ctx, in)
			return err
		})
		if ensure.Missing(err) {
			return nil, fmt.Errorf("series %q: %w", s.spec.Table, ErrNoSeries)
		}
		if err != nil {
			return nil, fmt.Errorf("read the shard counts: %w", err)
		}
		for _, it := range out.Items {
			n, err := readShards(it)
			if err != nil {
				return nil, err
			}
			known[strings.TrimPrefix(attr.String(it[attrName]), prefixShards)] = n
		}
		if len(out.LastEvaluatedKey) == 0 {
			return known, nil
		}
		in.ExclusiveStartKey = out.LastEvaluatedKey
	}
}
