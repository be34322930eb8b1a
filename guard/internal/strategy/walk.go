package strategy

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/guard/internal/table"
	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/invariant"
	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/lease"
)

// Walk reads some segments of a table or an index again and again, under a lease whose checkpoint
// is its position. A worker that takes the lease continues the pass from there. Such a pass does
// not count as a whole one, and the next begins at once.
type Walk struct {
	*Reader
	Lease  *lease.Lease // nil: the position is not saved
	Number int          // of the lease, below Shares: its segments are congruent to it
	Shares int
	Every  time.Duration // between the beginnings of two passes, at least
	First  time.Duration // estimated duration of the first pass
	Input  dynamodb.ScanInput
	Extra  []string // further attributes to read
	// Visit gets each page, and the instant before which its items will be read again.
	Visit   func(ctx context.Context, items []map[string]types.AttributeValue, until int64) error
	Through func() // a pass has ended
	// the state of the present pass
	saved int64        // ms
	arms  int64        // ms: up to there all is armed that this pass has read so far
	armed atomic.Int64 // ms: the same of the last pass that has read all; 0: there was none
}

// saveEvery is the time, in ms, between two checkpoints.
const saveEvery = 3_000

// place is the position of a walk: its checkpoint.
type place struct {
	Segment int `json:"segment"`
	// the last that was read, see KeyText; "": none of the segment
	Key    string `json:"key,omitempty"`
	TookMs int64  `json:"tookMs,omitempty"` // the last whole pass; 0: not known
	Passes int64  `json:"passes,omitempty"` // whole ones, of all workers
}

// WholePasses returns the number of whole passes in the checkpoint of a walk, and the duration of the
// last one.
func WholePasses(checkpoint string) (passes int64, took time.Duration) {
	var at place
	if json.Unmarshal([]byte(checkpoint), &at) != nil {
		return 0, 0
	}
	return at.Passes, time.Duration(at.TookMs) * time.Millisecond
}

// NumberOf returns the number in the name of a lease, which follows the prefix.
func NumberOf(l *lease.Lease, prefix string) int {
	n, _ := strconv.Atoi(strings.TrimPrefix(l.Shard(), prefix))
	return n
}

// ArmedUntil returns the instant before which the last pass has armed everything; 0 before there
// was one.
func (w *Walk) ArmedUntil() int64 { return w.armed.Load() }

// Once makes one pass, from the checkpoint on.
func (w *Walk) Once(ctx context.Context) error {
	at := w.resume()
	err := w.pass(ctx, &at, w.Now())
	if err != nil {
		w.save(context.WithoutCancel(ctx), at)
	}
	return err
}

// Run makes one pass after another until ctx is done.
func (w *Walk) Run(ctx context.Context) error {
	at := w.resume()
	whole := at.Segment == w.Number && at.Key == ""
	for {
		began := w.Now()
		w.arms = clock.Never
		if err := w.pass(ctx, &at, began); err != nil {
			w.save(context.WithoutCancel(ctx), at)
			return EndOf(ctx, err)
		}
		at.Segment, at.Key = w.Number, ""
		if whole {
			at.TookMs, at.Passes = max(w.Now()-began, 1), at.Passes+1
			w.armed.Store(w.arms)
		}
		w.Through()
		w.save(ctx, at)
		if whole {
			if err := w.Pass(ctx, began, w.Every.Milliseconds()); err != nil {
				return EndOf(ctx, err)
			}
		}
		if whole = true; invariant.Injected(invariant.ScanOnce) {
			<-ctx.Done()
		}
	}
}

// resume parses the checkpoint. An invalid one, for example one of another number of segments,
// counts as none.
func (w *Walk) resume() (at place) {
	if w.Lease == nil {
		return place{Segment: w.Number}
	}
	if json.Unmarshal([]byte(w.Lease.Checkpoint()), &at) != nil || at.Segment%w.Shares != w.Number || at.Segment < 0 || at.Segment >= w.Segments || at.TookMs < 0 {
		return place{Segment: w.Number}
	}
	if _, err := ReadKeyText(at.Key); err != nil {
		at.Segment, at.Key = w.Number, ""
	}
	return at
}

// pass reads from a place to the end.
func (w *Walk) pass(ctx context.Context, at *place, began int64) error {
	for {
		if err := w.segment(ctx, at, began); err != nil {
			return err
		}
		if at.Segment+w.Shares >= w.Segments {
			return nil
		}
		at.Segment, at.Key = at.Segment+w.Shares, ""
	}
}

func (w *Walk) segment(ctx context.Context, at *place, began int64) (err error) {
	in := w.Input
	in.Segment, in.TotalSegments = aws.Int32(int32(at.Segment)), aws.Int32(int32(w.Segments))
	in.ExpressionAttributeNames = map[string]string{}
	w.Table.Project(&in.ProjectionExpression, in.ExpressionAttributeNames, w.Extra...)
	if in.ExclusiveStartKey, err = ReadKeyText(at.Key); err != nil {
		return err
	}
	for read := 0; ; read++ {
		items, _, err := w.Scan(ctx, &in)
		if p := (*table.Problem)(nil); read == 0 && at.Key != "" && errors.As(err, &p) && p.Code == table.Misconfigured {
			w.Log.Warn("a scan's checkpoint is unusable; it starts over", "table", w.Table.Name, "segment", at.Segment, "error", err)
			at.Key, in.ExclusiveStartKey = "", nil
			continue
		}
		if err != nil {
			return err
		}
		until := w.until(at, began)
		w.Leave(until)
		if err := w.Visit(ctx, items, until); err != nil {
			return err
		}
		if in.ExclusiveStartKey == nil {
			return nil
		}
		at.Key = KeyText(in.ExclusiveStartKey)
		if w.Now() >= w.saved+saveEvery {
			w.save(ctx, *at)
		}
	}
}

// until returns the instant before which the present item will be read again: passes take as long
// as the last one, or this one so far, with a factor of two in reserve.
func (w *Walk) until(at *place, began int64) int64 {
	now := w.Now()
	took := cmp.Or(at.TookMs, w.First.Milliseconds())
	return now + 2*max(took, now-began, w.Every.Milliseconds()) + nearby
}

// Leave notes that this pass does not arm all that lies from an instant on.
func (w *Walk) Leave(at int64) { w.arms = min(w.arms, at) }

// save writes the checkpoint. If that fails, the next save repeats it.
func (w *Walk) save(ctx context.Context, at place) {
	if w.Lease == nil {
		return
	}
	w.saved = w.Now()
	text, _ := json.Marshal(at)
	w.Env.Save(ctx, w.Lease, string(text), "the progress of a scan was not written")
}

// KeyText returns an exclusive start key as checkpoints have it.
func KeyText(key map[string]types.AttributeValue) string {
	plain := make(map[string][2]string, len(key))
	for name, v := range key {
		switch v := v.(type) {
		case *types.AttributeValueMemberS:
			// which need not be UTF-8 everywhere
			plain[name] = [2]string{"S", base64.StdEncoding.EncodeToString([]byte(v.Value))}
		case *types.AttributeValueMemberN:
			plain[name] = [2]string{"N", v.Value}
		case *types.AttributeValueMemberB:
			plain[name] = [2]string{"B", base64.StdEncoding.EncodeToString(v.Value)}
		}
	}
	text, _ := json.Marshal(plain)
	return string(text)
}

// ReadKeyText is the reverse of KeyText; "" is no key.
func ReadKeyText(text string) (map[string]types.AttributeValue, error) {
	if text == "" {
		return nil, nil
	}
	var plain map[string][2]string
	if err := json.Unmarshal([]byte(text), &plain); err != nil {
		return nil, fmt.Errorf("key in a checkpoint: %w", err)
	}
	if len(plain) == 0 {
		return nil, fmt.Errorf("key in a checkpoint: no attributes")
	}
	key := make(map[string]types.AttributeValue, len(plain))
	for name, kindAndValue := range plain {
		kind, value := kindAndValue[0], kindAndValue[1]
		bytes, err := base64.StdEncoding.DecodeString(value)
		switch {
		case kind == "N":
			key[name] = attr.N(value)
		case err != nil:
			return nil, fmt.Errorf("key in a checkpoint: %w", err)
		case kind == "S":
			key[name] = attr.S(string(bytes))
		case kind == "B":
			key[name] = attr.B(bytes)
		default:
			return nil, fmt.Errorf("key in a checkpoint: unknown type %q", kind)
		}
	}
	return key, nil
}
