package timeseries

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/retry"
)

const (
	batchMax = 25  // items of a BatchWriteItem
	getMax   = 100 // keys of a BatchGetItem

	backoffFirst = 25 * time.Millisecond
	backoffMost  = 5 * time.Second
)

// send writes a batch in one or several calls, and reports the outcome of each entry to its Write.
func (w *Writer) send(batch []*entry) {
	alike := map[string][]*entry{} // by key: a call must not have one key twice
	for _, e := range batch {
		alike[e.partition+"\x00"+e.key] = append(alike[e.partition+"\x00"+e.key], e)
	}
	left := make([]types.WriteRequest, 0, len(alike))
	for _, entries := range alike {
		left = append(left, types.WriteRequest{PutRequest: &types.PutRequest{Item: entries[0].item}})
		w.meter.note(entries[0].device, units(entries[0].item))
	}
	w.sendRequests(left, func(requests []types.WriteRequest, err error) {
		for _, r := range requests {
			for _, e := range alike[attr.String(r.PutRequest.Item[attrDevice])+"\x00"+attr.String(r.PutRequest.Item[attrTime])] {
				e.call.finish(e.index, err)
			}
		}
	})
}

// sendRequests writes up to a batch. It passes each request to done once, with nil when it is
// written, or with the error that ended the attempts. It retries temporary failures for RetryFor.
func (w *Writer) sendRequests(left []types.WriteRequest, done func([]types.WriteRequest, error)) {
	table := w.series.spec.Table
	again := patience(w.o.RetryFor).Start()
	for {
		out, err := w.series.db.BatchWriteItem(w.ctx, &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{table: left}})
		switch {
		case err == nil && len(out.UnprocessedItems[table]) == 0:
			done(left, nil)
			return
		case err == nil:
			rest := out.UnprocessedItems[table]
			if len(rest) < len(left) {
				done(without(left, rest), nil)
				again.Ease() // some progress
			}
			left, err = rest, errors.New("the endpoint leaves items unprocessed, as its capacity is used up")
			w.noteThrottled(left)
		case permanent(err) && len(left) > 1 && isValidation(err):
			// An item that the endpoint refuses must not fail the others.
			half := len(left) / 2
			w.sendRequests(left[:half:half], done)
			w.sendRequests(left[half:], done)
			return
		case permanent(err):
			done(left, err)
			return
		case retry.Classify(err) == retry.Throttled:
			w.noteThrottled(left)
		}
		if !again.Wait(w.ctx) {
			done(left, fmt.Errorf("tried again for %s: %w", w.o.RetryFor, err))
			return
		}
	}
}

func (w *Writer) noteThrottled(requests []types.WriteRequest) {
	for _, r := range requests {
		device, _ := splitPartition(attr.String(r.PutRequest.Item[attrDevice]))
		w.meter.noteThrottled(device)
	}
}

// without returns the requests of all that are not among others.
func without(all, others []types.WriteRequest) (rest []types.WriteRequest) {
	type id struct{ partition, key string }
	of := func(r types.WriteRequest) id {
		return id{attr.String(r.PutRequest.Item[attrDevice]), attr.String(r.PutRequest.Item[attrTime])}
	}
	gone := map[id]bool{}
	for _, r := range others {
		gone[of(r)] = true
	}
	for _, r := range all {
		if !gone[of(r)] {
			rest = append(rest, r)
		}
	}
	return rest
}

// units estimates an item's write units: one per KB or part of it.
func units(it item) float64 {
	size := 0
	for name, v := range it {
		size += len(name)
		switch v := v.(type) {
		case *types.AttributeValueMemberS:
			size += len(v.Value)
		case *types.AttributeValueMemberN:
			size += len(v.Value)/2 + 1
		}
	}
	return float64(size/1024 + 1)
}

// permanent reports whether another attempt is of no use: the request is refused, or its caller has
// given up.
func permanent(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || retry.Classify(err) == retry.Permanent
}

func isValidation(err error) bool {
	var e smithy.APIError
	return errors.As(err, &e) && e.ErrorCode() == "ValidationException"
}

// patience returns the policy of calls that are repeated for as long as most. Jitter keeps many that
// fail together from returning together.
func patience(most time.Duration) retry.Policy {
	return retry.Policy{First: backoffFirst, Most: backoffMost, Jitter: true, For: most}
}

// patiently makes a call until it is done, fails for good, or the time is up.
func patiently(ctx context.Context, most time.Duration, do func() error) error {
	return retry.Until(ctx, nil, patience(most), "", func() error {
		err := do()
		if err != nil && permanent(err) {
			return retry.Final(err)
		}
		return err
	})
}

// readFor is the time during which a failing read is retried.
const readFor = 30 * time.Second

// table returns the name of the samples' table for a request.
func (s *Series) table() *string { return aws.String(s.spec.Table) }
