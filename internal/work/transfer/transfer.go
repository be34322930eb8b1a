// Package transfer reads and writes whole tables at any endpoint: scans in parallel segments, writes in
// batches, and the description that creates a table like another one.
//
//	Complete:  a scan that ends without an error has returned every item that existed throughout
//	Resumable: a segment continues after any key that it has returned
//	Rated:     no more items a second than the rate pass, over any time longer than a second
package transfer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/retry"
)

// Rate limits the number of items a second. Its methods are safe for concurrent use.
type Rate struct {
	perSecond float64
	passed    clock.Elapsed
	mu        sync.Mutex
	free      time.Duration // when the next item may pass
}

// NewRate returns a limit; 0 is no limit.
func NewRate(perSecond float64) *Rate { return &Rate{perSecond: perSecond, passed: clock.Stopwatch()} }

// Wait waits until n more items may pass. It returns ctx's error once ctx is done.
func (r *Rate) Wait(ctx context.Context, n int) error {
	if r.perSecond > 0 {
		if pause := r.reserve(n); pause > 0 {
			clock.Pause(pause, ctx.Done())
		}
	}
	return ctx.Err()
}

// reserve returns the time until n items may pass.
func (r *Rate) reserve(n int) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.passed()
	pause := r.free - now
	r.free = max(r.free, now) + time.Duration(float64(n)/r.perSecond*float64(time.Second))
	return pause
}

// page returns the most items of a page, so that segments that share the rate do not stop for long
// after each page. 0 is no limit.
func (r *Rate) page(segments int) int32 {
	if r.perSecond == 0 {
		return 0
	}
	return int32(min(max(math.Ceil(r.perSecond/float64(segments)), 1), 10_000))
}

// Side is a table at an endpoint.
type Side struct {
	DB    *dynamodb.Client
	Table string
	Rate  *Rate
	Retry retry.Policy // of calls that fail for a while
}

// Scan has the options of a scan.
type Scan struct {
	Side
	Segments   int
	Consistent bool
	Page       int // most items of a page; 0: as many as fit in 1 MB
}

// Segment reads a segment of the table. It begins behind a key, or with the first item if start is
// nil. page gets the items, and the key behind which the next page begins: nil for the last one.
func (s Scan) Segment(ctx context.Context, number int, start attr.Item, page func(items []attr.Item, next attr.Item) error) error {
	in := &dynamodb.ScanInput{TableName: &s.Table, ConsistentRead: &s.Consistent, ExclusiveStartKey: start}
	if s.Segments > 1 {
		in.Segment, in.TotalSegments = aws.Int32(int32(number)), aws.Int32(int32(s.Segments))
	}
	most := s.Rate.page(s.Segments)
	if page := int32(s.Page); page > 0 && (most == 0 || page < most) {
		most = page
	}
	if most > 0 {
		in.Limit = &most
	}
	for {
		var out *dynamodb.ScanOutput
		err := s.call(ctx, func() (err error) {
			out, err = s.DB.Scan(ctx, in)
			return err
		})
		if err != nil {
			return err
		}
		if err := s.Rate.Wait(ctx, len(out.Items)); err != nil {
			return err
		}
		next := out.LastEvaluatedKey
		if len(next) == 0 {
			next = nil
		}
		if err := page(out.Items, next); err != nil || next == nil {
			return err
		}
		in.ExclusiveStartKey = next
	}
}

// call repeats a call while its error may pass.
func (s Side) call(ctx context.Context, f func() error) error {
	b := s.Retry.Start()
	for {
		err := f()
		if err == nil || retry.Classify(err) == retry.Permanent {
			return err
		}
		if !b.Wait(ctx) {
			return cmp.Or(ctx.Err(), err)
		}
	}
}

// Limits of a batch.
const (
	BatchMax      = 25      // writes; the API's limit
	BatchBytesMax = 4 << 20 // far below the API's limit of 16 MB, since base64 and escapes are longer than the values
)

// Batches divides items into batches within these limits.
func Batches(items []attr.Item) iter.Seq[[]attr.Item] {
	return func(yield func([]attr.Item) bool) {
		begin, size := 0, 0
		for i, item := range items {
			n := sizeOf(attr.M(item))
			if i > begin && (i-begin == BatchMax || size+n > BatchBytesMax) {
				if !yield(items[begin:i]) {
					return
				}
				begin, size = i, 0
			}
			size += n
		}
		if begin < len(items) {
			yield(items[begin:])
		}
	}
}

// sizeOf returns about the size of a value in bytes.
func sizeOf(v types.AttributeValue) (n int) {
	switch v := v.(type) {
	case *types.AttributeValueMemberM:
		for name, e := range v.Value {
			n += len(name) + sizeOf(e)
		}
	case *types.AttributeValueMemberL:
		for _, e := range v.Value {
			n += sizeOf(e)
		}
	case *types.AttributeValueMemberSS:
		for _, e := range v.Value {
			n += len(e)
		}
	case *types.AttributeValueMemberBS:
		for _, e := range v.Value {
			n += len(e)
		}
	case *types.AttributeValueMemberNS:
		n = 20 * len(v.Value)
	default:
		n = len(attr.Bytes(v))
	}
	return n + 8
}

// errUnprocessed is the error of an endpoint that processes none of a batch.
var errUnprocessed = errors.New("the endpoint has left all items of a batch unprocessed: the table's capacity is too small")

// Write makes up to BatchMax writes of different keys. After an error, any of them may have been made.
func (s Side) Write(ctx context.Context, writes []types.WriteRequest) error {
	if len(writes) == 0 {
		return nil
	}
	if err := s.Rate.Wait(ctx, len(writes)); err != nil {
		return err
	}
	b := s.Retry.Start()
	for {
		out, err := s.DB.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{s.Table: writes}})
		switch {
		case err != nil && retry.Classify(err) == retry.Permanent:
			return err
		case err == nil:
			var left []types.WriteRequest
			for _, unprocessed := range out.UnprocessedItems { // the key may be the table's ARN
				left = append(left, unprocessed...)
			}
			if len(left) == 0 {
				return nil
			}
			if len(left) < len(writes) {
				b.Ease()
			}
			writes, err = left, errUnprocessed
		}
		if !b.Wait(ctx) {
			return cmp.Or(ctx.Err(), err)
		}
	}
}

// Put returns the write of an item.
func Put(item attr.Item) types.WriteRequest {
	return types.WriteRequest{PutRequest: &types.PutRequest{Item: item}}
}

// Delete returns the deletion of a key.
func Delete(key attr.Item) types.WriteRequest {
	return types.WriteRequest{DeleteRequest: &types.DeleteRequest{Key: key}}
}

// Parallel calls f for each number below n, at most at once at a time, until one fails. It returns
// the first error, when all calls have ended.
func Parallel(ctx context.Context, n, atOnce int, f func(ctx context.Context, i int) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var running sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for i := range n {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			break
		}
		running.Go(func() {
			defer func() { <-slots }()
			if err := f(ctx, i); err != nil {
				stop(err)
			}
		})
	}
	running.Wait()
	return context.Cause(ctx)
}

// Window turns batches that end in any order into a position. Its methods are safe for concurrent
// use.
type Window struct {
	mu    sync.Mutex
	begun int64
	done  map[int64]int64 // the positions behind batches that have ended, by their numbers
	next  int64           // the first batch that has not ended
	at    int64
}

// NewWindow returns a window at a position.
func NewWindow(at int64) *Window { return &Window{done: make(map[int64]int64), at: at} }

// Begin returns the number of the next batch.
func (w *Window) Begin() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begun++
	return w.begun - 1
}

// End records that a batch has ended; behind is the position behind it.
func (w *Window) End(batch, behind int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done[batch] = behind
	for {
		at, ended := w.done[w.next]
		if !ended {
			return
		}
		delete(w.done, w.next)
		w.at, w.next = at, w.next+1
	}
}

// At returns the position before which all batches have ended.
func (w *Window) At() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.at
}

// Missing reports whether an error says that a table does not exist.
func Missing(err error) bool {
	_, missing := errors.AsType[*types.ResourceNotFoundException](err)
	return missing
}

// counted is a number with its unit, for errors.
func counted(n int, unit string) string {
	if n == 1 {
		return "1 " + unit
	}
	return fmt.Sprintf("%d %ss", n, unit)
}
