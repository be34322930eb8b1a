package guard

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/guard/internal/armed"
	"github.com/mayflydb/mayfly/guard/internal/pace"
	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/invariant"
	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/lease"
)

// The scan strategy reads the whole table again and again, in segments shared by the workers,
// within a budget. It arms the deadlines that come before the next read of their segment. So items
// go at their instant, except for an item that is written and expires between two passes.
type scanning struct {
	g   *Guard
	ask *asker
	// of a dry run, so that it reports an item and its deadline only once; else nil
	seen *sightings
	held atomic.Int64 // leases that this worker has
	mu   struct {
		sync.Mutex
		walks map[*walk]bool // of those leases
	}
}

const (
	scanPrefix = "scan/"
	roomKept   = 100_000 // room below which only near deadlines are armed
	nearby     = 60_000  // ms: a deadline that is near
	firstPass  = time.Hour
)

func newScan(g *Guard) strategy {
	if g.o.MaxRCU == 0 {
		g.o.MaxRCU = scanUnits
	}
	x := &scanning{g: g, ask: &asker{g, pace.NewBudget(g.o.MaxRCU)}}
	if g.o.DryRun {
		x.seen = newSightings(g)
	}
	x.mu.walks = map[*walk]bool{}
	return x
}

// scanUnits is the default of MaxRCU if Auto has chosen the strategy.
const scanUnits = 100

func (x *scanning) run(ctx context.Context) error {
	first, err := x.estimate(ctx)
	if err != nil {
		return endOf(ctx, err)
	}
	leases := x.g.shares(Scan)
	var names []string
	for i := range min(x.g.o.Segments, leasesMost) {
		names = append(names, scanPrefix+strconv.Itoa(i))
	}
	passes := &track{g: x.g, doing: WholeScan, until: roundByRound}
	return endOf(ctx, lease.Hold(ctx, leases, names, func(ctx context.Context, l *lease.Lease) error {
		x.share(1, len(names))
		defer x.share(-1, len(names))
		part := passes.part(0, len(names))
		defer part.leave()
		var w *walk
		w = &walk{
			g: x.g, ask: x.ask, lease: l, number: numberOf(l, scanPrefix), leases: len(names), every: x.g.o.Period, first: first,
			scan: dynamodb.ScanInput{TableName: &x.g.o.Table}, through: part.end,
			visit: func(ctx context.Context, items []map[string]types.AttributeValue, until int64) error {
				part.add(len(items))
				return x.visit(ctx, items, until, w.leave)
			},
		}
		x.note(w, true)
		defer x.note(w, false)
		return w.run(ctx)
	}))
}

// share divides MaxRCU among the workers as the segments are.
func (x *scanning) share(more int64, of int) {
	x.ask.budget.Share(x.g.o.MaxRCU * max(float64(x.held.Add(more)), 0.5) / float64(of))
}

// note notes that a walk is under way, or is no more.
func (x *scanning) note(w *walk, walks bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.mu.walks[w] = walks; !walks {
		delete(x.mu.walks, w)
	}
}

// horizonAt returns the instant before which this worker has armed all deadlines of its segments; 0
// if it has none, or has not read one to its end yet.
func (x *scanning) horizonAt() (at int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	at = clock.Never
	for w := range x.mu.walks {
		at = min(at, w.armed.Load())
	}
	if at == clock.Never {
		return 0
	}
	return at
}

// estimate returns how long the first pass will take, by the endpoint's approximate size of the
// table.
func (x *scanning) estimate(ctx context.Context) (took time.Duration, err error) {
	err = x.ask.again(ctx, "DescribeTable", func() (int, *types.ConsumedCapacity, error) {
		out, err := x.g.db.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &x.g.o.Table})
		if err != nil {
			return 0, nil, err
		}
		if out.Table != nil {
			units := float64(aws.ToInt64(out.Table.TableSizeBytes)) / 8192
			took = time.Duration(min(units/x.g.o.MaxRCU, 1e8) * float64(time.Second))
		}
		return 0, nil, nil
	})
	return max(took, firstPass), err
}

// visit arms the deadlines that are due before their items are read again. It calls left with
// deadlines that it leaves out for lack of room.
func (x *scanning) visit(ctx context.Context, items []map[string]types.AttributeValue, until int64, left func(at int64)) error {
	arm := x.g.arm
	if x.seen != nil {
		arm = x.seen.see
	}
	for _, item := range items {
		if e, ok := x.g.entryOf(item); ok && e.At <= until {
			armed, err := armWithRoom(ctx, x.g, e, arm)
			if err != nil {
				return err
			}
			if !armed {
				left(e.At)
			}
		}
	}
	return nil
}

// armWithRoom arms a deadline. With little room, it leaves a distant deadline to a later pass, and
// waits for room for a near one.
func armWithRoom(ctx context.Context, g *Guard, e armed.Entry, arm func(armed.Entry)) (armed bool, err error) {
	if g.room() < roomKept && e.At > g.now()+nearby {
		return false, nil
	}
	for g.room() == 0 {
		clock.Pause(roomPause, ctx.Done())
		if err := ctx.Err(); err != nil {
			return false, err
		}
	}
	arm(e)
	return true, nil
}

// walk reads some segments of a table or an index again and again, under a lease whose checkpoint
// is its position. A worker that takes the lease continues there. The end of the last segment
// completes its first pass; the next begins at once.
type walk struct {
	g       *Guard
	ask     *asker
	lease   *lease.Lease // nil: the position is not saved
	number  int          // of the lease, among leases many: its segments are congruent to it
	leases  int
	every   time.Duration // between the beginnings of two passes, at least
	first   time.Duration // estimated duration of the first pass
	scan    dynamodb.ScanInput
	extra   []string // further attributes to read
	visit   func(ctx context.Context, items []map[string]types.AttributeValue, until int64) error
	through func()       // a pass has ended
	saved   int64        // ms
	arms    int64        // ms: up to there all is armed that this pass has read so far
	armed   atomic.Int64 // ms: the same of the last pass that has read all; 0: there was none
}

// place is the position of a walk: its checkpoint.
type place struct {
	Segment int `json:"segment"`
	// the last that was read, see keyText; "": none of the segment
	Key    string `json:"key,omitempty"`
	TookMs int64  `json:"tookMs,omitempty"` // the last whole pass; 0: not known
	Passes int64  `json:"passes,omitempty"` // whole ones, by whomever
}

func numberOf(l *lease.Lease, prefix string) int {
	n, _ := strconv.Atoi(strings.TrimPrefix(l.Shard(), prefix))
	return n
}

func (w *walk) run(ctx context.Context) error {
	at := w.resume()
	whole := at.Segment == w.number && at.Key == ""
	for {
		began := w.g.now()
		w.arms = clock.Never
		if err := w.pass(ctx, &at, began); err != nil {
			w.save(context.WithoutCancel(ctx), at)
			return endOf(ctx, err)
		}
		at.Segment, at.Key = w.number, ""
		if whole {
			at.TookMs, at.Passes = max(w.g.now()-began, 1), at.Passes+1
			w.armed.Store(w.arms)
		}
		w.through()
		w.save(ctx, at)
		if whole {
			if err := w.g.pass(ctx, began, w.every.Milliseconds()); err != nil {
				return endOf(ctx, err)
			}
		}
		if whole = true; invariant.Injected(invariant.ScanOnce) {
			<-ctx.Done()
		}
	}
}

// resume parses the checkpoint. An invalid one, for example one of another number of segments,
// counts as none.
func (w *walk) resume() (at place) {
	if w.lease == nil {
		return place{Segment: w.number}
	}
	if json.Unmarshal([]byte(w.lease.Checkpoint()), &at) != nil || at.Segment%w.leases != w.number || at.Segment < 0 || at.Segment >= w.g.o.Segments || at.TookMs < 0 {
		return place{Segment: w.number}
	}
	if _, err := readKeyText(at.Key); err != nil {
		at.Segment, at.Key = w.number, ""
	}
	return at
}

// pass reads from a place to the end.
func (w *walk) pass(ctx context.Context, at *place, began int64) error {
	for {
		if err := w.segment(ctx, at, began); err != nil {
			return err
		}
		if at.Segment+w.leases >= w.g.o.Segments {
			return nil
		}
		at.Segment, at.Key = at.Segment+w.leases, ""
	}
}

func (w *walk) segment(ctx context.Context, at *place, began int64) (err error) {
	in := w.scan
	in.Segment, in.TotalSegments = aws.Int32(int32(at.Segment)), aws.Int32(int32(w.g.o.Segments))
	in.ExpressionAttributeNames = map[string]string{}
	w.g.project(&in.ProjectionExpression, in.ExpressionAttributeNames, w.extra...)
	if in.ExclusiveStartKey, err = readKeyText(at.Key); err != nil {
		return err
	}
	for read := 0; ; read++ {
		items, _, err := w.ask.scan(ctx, &in)
		if p := (*Problem)(nil); read == 0 && at.Key != "" && errors.As(err, &p) && p.Code == Misconfigured {
			w.g.log.Warn("a scan's checkpoint is unusable; it starts over", "table", w.g.o.Table, "segment", at.Segment, "error", err)
			at.Key, in.ExclusiveStartKey = "", nil
			continue
		}
		if err != nil {
			return err
		}
		until := w.until(at, began)
		w.leave(until)
		if err := w.visit(ctx, items, until); err != nil {
			return err
		}
		if in.ExclusiveStartKey == nil {
			return nil
		}
		at.Key = keyText(in.ExclusiveStartKey)
		if w.g.now() >= w.saved+saveEvery {
			w.save(ctx, *at)
		}
	}
}

// until returns the instant before which the present item will be read again: passes take as long
// as the last one, or this one so far, with a factor of two in reserve.
func (w *walk) until(at *place, began int64) int64 {
	now := w.g.now()
	took := at.TookMs
	if took == 0 {
		took = w.first.Milliseconds()
	}
	return now + 2*max(took, now-began, w.every.Milliseconds()) + nearby
}

// leave notes that this pass does not arm all that lies from an instant on.
func (w *walk) leave(at int64) { w.arms = min(w.arms, at) }

// save writes the checkpoint. If that fails, the next save repeats it.
func (w *walk) save(ctx context.Context, at place) {
	if w.lease == nil {
		return
	}
	w.saved = w.g.now()
	text, _ := json.Marshal(at)
	if string(text) == w.lease.Checkpoint() || !w.lease.Held() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, saveLimit)
	defer cancel()
	if err := w.lease.Save(ctx, string(text)); err != nil && ctx.Err() == nil {
		w.g.log.Warn("the progress of a scan was not written", "table", w.g.o.Table, "lease", w.lease.Shard(), "error", err)
	}
}

// keyText is an exclusive start key as checkpoints have it.
func keyText(key map[string]types.AttributeValue) string {
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

// readKeyText is the reverse; "" is no key.
func readKeyText(text string) (map[string]types.AttributeValue, error) {
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
