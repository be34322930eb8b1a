package timeseries

import (
	"context"
	"errors"
	"maps"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/work/attr"
)

// latestWriter stores the latest sample of each device. note remembers a candidate; settle writes
// the candidates of a device, for all callers at once. A condition on the write keeps an earlier
// sample from replacing a later one, whichever process writes.
type latestWriter struct {
	w    *Writer
	slot chan struct{} // limits concurrent writes to the number of batches
	mu   struct {
		sync.Mutex
		noted   map[string]noted   // newer than any sample known to be written
		flights map[string]*flight // being written, by device
		known   map[string]string  // sort keys of some devices: the stored one is the same or newer
	}
}

type noted struct {
	key  string
	item func() item
}

// flight is a write in progress. Other callers wait for it.
type flight struct {
	done chan struct{}
	err  error
}

const knownMax = 200_000 // devices; a forgotten one costs a write that the condition refuses

func (l *latestWriter) init(w *Writer) {
	l.w, l.slot = w, make(chan struct{}, w.o.Parallel)
	l.mu.noted, l.mu.flights, l.mu.known = map[string]noted{}, map[string]*flight{}, map[string]string{}
}

// note remembers a written sample that may be its device's latest.
func (l *latestWriter) note(device, key string, it func() item) {
	if l.w.series.spec.NoLatest {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.known[device] < key && l.mu.noted[device].key < key {
		l.mu.noted[device] = noted{key, it}
	}
}

// settle returns when the latest samples of these devices, by sort key, or newer ones are written.
func (l *latestWriter) settle(ctx context.Context, newest map[string]string) error {
	if l.w.series.spec.NoLatest {
		return nil
	}
	var (
		wait sync.WaitGroup
		mu   sync.Mutex
		errs []error
	)
	for device, key := range newest {
		if l.isKnown(device, key) {
			continue
		}
		select {
		case l.slot <- struct{}{}:
		case <-ctx.Done():
			wait.Wait()
			return ctx.Err()
		}
		wait.Go(func() {
			defer func() { <-l.slot }()
			if err := l.settleOne(ctx, device, key); err != nil {
				mu.Lock()
				defer mu.Unlock()
				if len(errs) < 3 { // more errors would say the same
					errs = append(errs, err)
				}
			}
		})
	}
	wait.Wait()
	return errors.Join(errs...)
}

// settleAll settles every noted sample.
func (l *latestWriter) settleAll(ctx context.Context) error {
	newest := map[string]string{}
	l.mu.Lock()
	for device, n := range l.mu.noted {
		newest[device] = n.key
	}
	l.mu.Unlock()
	return l.settle(ctx, newest)
}

func (l *latestWriter) isKnown(device, key string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.known[device] >= key
}

func (l *latestWriter) settleOne(ctx context.Context, device, key string) error {
	for {
		l.mu.Lock()
		if l.mu.known[device] >= key {
			l.mu.Unlock()
			return nil
		}
		f := l.mu.flights[device]
		if f == nil {
			break
		}
		l.mu.Unlock()
		select {
		case <-f.done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	n, ok := l.mu.noted[device]
	if !ok { // it was known once and forgotten
		l.mu.Unlock()
		return nil
	}
	f := &flight{done: make(chan struct{})}
	l.mu.flights[device] = f
	delete(l.mu.noted, device)
	l.mu.Unlock()

	written, err := l.write(n)

	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.mu.flights, device)
	if f.err = err; err != nil {
		if l.mu.noted[device].key < n.key {
			l.mu.noted[device] = n
		}
	} else {
		if len(l.mu.known) >= knownMax {
			maps.DeleteFunc(l.mu.known, func(string, string) bool { return true })
		}
		l.mu.known[device] = max(l.mu.known[device], written)
	}
	close(f.done)
	return err
}

// write puts a latest sample, and returns the sort key of the sample stored afterwards.
func (l *latestWriter) write(n noted) (key string, err error) {
	s := l.w.series
	err = patiently(l.w.ctx, l.w.o.RetryFor, func() error {
		_, err := s.db.PutItem(l.w.ctx, &dynamodb.PutItemInput{
			TableName:                           aws.String(s.spec.LatestTable()),
			Item:                                n.item(),
			ConditionExpression:                 aws.String("attribute_not_exists(#d) OR #t <= :t"),
			ExpressionAttributeNames:            map[string]string{"#d": attrDevice, "#t": attrTime},
			ExpressionAttributeValues:           item{":t": attr.S(n.key)},
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		})
		return err
	})
	if newer, ok := errors.AsType[*types.ConditionalCheckFailedException](err); ok {
		return max(n.key, attr.String(newer.Item[attrTime])), nil
	}
	return n.key, err
}
