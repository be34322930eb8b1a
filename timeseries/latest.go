package timeseries

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/ensure"
)

// Latest returns the newest sample of each device, without devices that have none. One call reads
// 100 devices; in a series without latest samples (Spec.NoLatest) one.
func (r *Reader) Latest(ctx context.Context, devices ...string) (map[string]Sample, error) {
	for _, device := range devices {
		if err := checkDevice(device); err != nil {
			return nil, err
		}
	}
	devices = slices.Compact(slices.Sorted(slices.Values(devices)))
	most, ask := getMax, r.latestOf
	if r.series.spec.NoLatest {
		most, ask = 1, r.newestOf
	}
	var (
		wait  sync.WaitGroup
		mu    sync.Mutex
		all   = make(map[string]Sample, len(devices))
		errs  []error
		slots = make(chan struct{}, r.o.Parallel)
	)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for some := range slices.Chunk(devices, most) {
		slots <- struct{}{}
		wait.Go(func() {
			defer func() { <-slots }()
			samples, err := ask(ctx, some)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				errs = append(errs, err)
				cancel() // the result is an error
			}
			for _, s := range samples {
				all[s.Device] = s
			}
		})
	}
	wait.Wait()
	if len(errs) > 0 {
		return nil, errs[0]
	}
	return all, nil
}

// latestOf reads up to 100 devices.
func (r *Reader) latestOf(ctx context.Context, devices []string) (samples []Sample, err error) {
	table := r.series.spec.LatestTable()
	keys := make([]map[string]types.AttributeValue, len(devices))
	for i, device := range devices {
		keys[i] = item{attrDevice: attr.S(device)}
	}
	again := patience(readFor).Start()
	for {
		var out *dynamodb.BatchGetItemOutput
		err := patiently(ctx, readFor, func() (err error) {
			out, err = r.series.db.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{
				RequestItems: map[string]types.KeysAndAttributes{table: {Keys: keys, ConsistentRead: aws.Bool(r.o.Strong)}},
			})
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("read the latest samples: %w", r.missing(err))
		}
		if samples, err = r.appendLive(samples, out.Responses[table]); err != nil {
			return nil, err
		}
		if keys = out.UnprocessedKeys[table].Keys; len(keys) == 0 {
			return samples, nil
		}
		if len(out.Responses[table]) > 0 {
			again.Ease()
		}
		if !again.Wait(ctx) {
			return nil, errors.Join(errors.New("read the latest samples: the endpoint leaves keys unprocessed, as its capacity is used up"), ctx.Err())
		}
	}
}

// missing turns a missing table into a missing series.
func (r *Reader) missing(err error) error {
	if ensure.Missing(err) {
		return fmt.Errorf("%w: %w", ErrNoSeries, err)
	}
	return err
}

// appendLive appends the samples of items that have not expired.
func (r *Reader) appendLive(samples []Sample, items []map[string]types.AttributeValue) ([]Sample, error) {
	now := r.series.spec.Now()
	for _, it := range items {
		s, deadline, err := readItem(it)
		if err != nil {
			return nil, fmt.Errorf("read the latest samples: %w", err)
		}
		if deadline.IsZero() || deadline.After(now) {
			samples = append(samples, s)
		}
	}
	return samples, nil
}

// newestOf reads the shards of one device.
func (r *Reader) newestOf(ctx context.Context, devices []string) (samples []Sample, err error) {
	for _, device := range devices {
		for s, err := range r.Range(ctx, Query{Device: device, Newest: true, Limit: 1}) {
			if err != nil {
				return nil, err
			}
			samples = append(samples, s)
		}
	}
	return samples, nil
}

// ErrNoLatest reports that a series without latest samples (Spec.NoLatest) cannot list its devices.
var ErrNoLatest = errors.New("the series was created with --no-latest, so it has no list of devices")

// AllLatest returns the newest sample of every device, unordered.
func (r *Reader) AllLatest(ctx context.Context) iter.Seq2[Sample, error] {
	return func(yield func(Sample, error) bool) {
		if r.series.spec.NoLatest {
			yield(Sample{}, ErrNoLatest)
			return
		}
		in := &dynamodb.ScanInput{TableName: aws.String(r.series.spec.LatestTable()), ConsistentRead: aws.Bool(r.o.Strong)}
		for {
			var out *dynamodb.ScanOutput
			err := patiently(ctx, readFor, func() (err error) {
				out, err = r.series.db.Scan(ctx, in)
				return err
			})
			var samples []Sample
			if err == nil {
				samples, err = r.appendLive(nil, out.Items)
			}
			if err != nil {
				yield(Sample{}, r.missing(err))
				return
			}
			for _, s := range samples {
				if !yield(s, nil) {
					return
				}
			}
			if len(out.LastEvaluatedKey) == 0 {
				return
			}
			in.ExclusiveStartKey = out.LastEvaluatedKey
		}
	}
}
