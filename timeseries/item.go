package timeseries

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/work/attr"
)

type item = map[string]types.AttributeValue

// readEpoch returns the deadline in a TTL attribute, in seconds since 1970 with or without a
// fraction. It rounds up to the millisecond, so that no sample expires early.
func readEpoch(s string) (time.Time, error) {
	seconds, fraction, _ := strings.Cut(s, ".")
	n, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil || n < 0 || n > 1<<40 {
		return time.Time{}, fmt.Errorf("ttl %q is not a number of seconds", s)
	}
	var millis int64
	if fraction != "" {
		f, err := strconv.ParseFloat("0."+fraction, 64)
		if err != nil {
			return time.Time{}, fmt.Errorf("ttl %q is not a number of seconds", s)
		}
		for millis = int64(f * 1000); float64(millis) < f*1000; millis++ {
		}
	}
	return time.UnixMilli(n*1000 + millis).UTC(), nil
}

// formatNumber returns the shortest text that reads back as the same number.
func formatNumber(v float64) string {
	return strconv.FormatFloat(v+0, 'g', -1, 64) // adding 0 turns -0 into 0, as in DynamoDB
}

// newItem returns the item of a sample in the table of the latest samples. For the samples' table
// the caller replaces the partition key by a shard's, and adds the keys of indexes. A zero deadline
// means unlimited retention.
func newItem(s *Sample, key, metadata string, deadline time.Time) item {
	it := make(item, len(s.Values)+4)
	it[attrDevice], it[attrTime] = attr.S(s.Device), attr.S(key)
	if !deadline.IsZero() {
		it[attrTTL] = attr.N(attr.SecondsText(deadline))
	}
	if metadata != "" {
		it[attrMetadata] = attr.S(metadata)
	}
	for name, v := range s.Values {
		it[name] = attr.N(formatNumber(v))
	}
	return it
}

// readItem returns the sample of an item, and its deadline, or zero without one.
func readItem(it item) (s Sample, deadline time.Time, err error) {
	device, ok := attr.AsString(it[attrDevice])
	if !ok {
		return s, deadline, errors.New("an item of the table has no deviceId: it is not a sample")
	}
	s.Device, _ = splitPartition(device)
	key, ok := attr.AsString(it[attrTime])
	if !ok {
		return s, deadline, fmt.Errorf("an item of device %q has no timestamp: it is not a sample", s.Device)
	}
	s.Key = key
	if s.Time, s.Sequence, err = splitKey(key); err != nil {
		return s, deadline, fmt.Errorf("device %q: %w", s.Device, err)
	}
	s.Values = make(map[string]float64, len(it))
	for name, v := range it {
		n, ok := attr.AsNumber(v)
		switch {
		case !ok:
		case name == attrTTL:
			if deadline, err = readEpoch(n); err != nil {
				return s, deadline, fmt.Errorf("device %q at %s: %w", s.Device, s.Key, err)
			}
		default:
			if s.Values[name], err = strconv.ParseFloat(n, 64); err != nil {
				return s, deadline, fmt.Errorf("device %q at %s: %s: %w", s.Device, s.Key, name, err)
			}
		}
	}
	if m, ok := attr.AsString(it[attrMetadata]); ok {
		if err := json.Unmarshal([]byte(m), &s.Tags); err != nil {
			s.Tags = map[string]string{attrMetadata: m} // not JSON of ours: keep the text
		}
	}
	return s, deadline, nil
}
