package stream

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/guard/internal/armed"
	"github.com/mayflydb/mayfly/guard/internal/strategy"
	"github.com/mayflydb/mayfly/internal/work/lease"
)

const (
	// Segments is the default number of a scan's segments, and hence the most workers that share it.
	// So many workers write a million rows a second, far more than a table of Amazon accepts, and a
	// small table costs 32 reads.
	Segments = 32

	segmentsMost   = 256 // all workers read all leases
	segmentsAtOnce = 4   // of a worker; the pages of more would only take memory
)

// segments are the parts of one scan, as this worker knows them. All workers together read them, at
// the rate of MaxRCU: each has the part of the budget that its unfinished segments are of all.
type segments struct {
	*Strategy
	doing string
	names []string
	turns chan struct{} // has an element for each segment that this worker reads at the moment
	mu    struct {
		sync.Mutex
		all      map[string]*segment
		finished bool // this worker has finished one
		reported bool // there was a report since this worker had none
	}
}

// segment is a part of the table.
type segment struct {
	read int64 // items so far, by all workers
	held bool  // this worker has its lease
	done bool
	ours bool // this worker has finished it, so read is exact
}

// newSegments returns the segments of the last scan of the settings. rows are the leases of scans: if
// the scan has begun with another number of segments, it continues with that.
func (s *Strategy) newSegments(set Settings, rows map[string]lease.Row) *segments {
	x := &segments{Strategy: s, doing: strategy.FirstScan, turns: make(chan struct{}, segmentsAtOnce)}
	if set.Scans > 1 {
		x.doing = strategy.WholeScan
	}
	x.mu.all = map[string]*segment{}
	scan, total := fmt.Sprintf("%d.%d/", set.born, set.Scans), 0
	for name := range rows {
		numbers, _ := strings.CutPrefix(name, scan)
		n, i := 0, 0
		if _, err := fmt.Sscanf(numbers, "%d/%d", &n, &i); err == nil && n > 0 && (total == 0 || n < total) {
			total = n
		}
	}
	total = cmp.Or(total, min(s.Segments, segmentsMost))
	for i := range total {
		name := fmt.Sprintf("%s%d/%d", scan, total, i)
		x.names = append(x.names, name)
		x.mu.all[name] = &segment{}
	}
	return x
}

// list returns the names of the leases, and notes how far the other workers are.
func (x *segments) list(_ context.Context, rows map[string]lease.Row) ([]string, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for name, g := range x.mu.all {
		switch row := rows[name]; {
		case g.held:
		case row.Checkpoint == lease.Done:
			g.done = true
		default:
			read, _ := readCheckpoint(row.Checkpoint)
			g.read = max(g.read, read)
		}
	}
	x.shareLocked()
	if x.mu.reported {
		x.reportLocked(strategy.Progress{})
	}
	return x.names, nil
}

// hold begins a segment whose lease this worker has taken, with the number of items before its
// checkpoint.
func (x *segments) hold(name string, read int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	g := x.mu.all[name]
	g.held, g.done, g.read = true, false, read
	x.shareLocked()
}

// add adds items that this worker has read. It returns the sum of the segment.
func (x *segments) add(name string, items int) int64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	g := x.mu.all[name]
	g.read += int64(items)
	x.reportLocked(strategy.Progress{})
	return g.read
}

// leave ends this worker's part in a segment.
func (x *segments) leave(name string, done bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	g := x.mu.all[name]
	g.held, g.done, g.ours = false, done, done
	x.mu.finished = x.mu.finished || done && x.mu.reported // else it was scanned before
	held, _ := x.shareLocked()
	if held == 0 && !done && x.mu.reported {
		x.reportLocked(strategy.Progress{Left: true})
		x.mu.reported = false
	}
}

// over reports the end of the scan, if this worker took part in it.
func (x *segments) over() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.mu.finished {
		for _, g := range x.mu.all {
			g.done = true
		}
		x.reportLocked(strategy.Progress{Ended: true})
	}
}

// shareLocked sets this worker's part of MaxRCU. A worker that does not know yet that others have
// finished segments takes a smaller part than it might, so all together never exceed the budget.
func (x *segments) shareLocked() (held, unfinished int) {
	for _, g := range x.mu.all {
		if g.held {
			held++
		}
		if !g.done {
			unfinished++
		}
	}
	x.Share(int64(held), max(unfinished, 1))
	return held, unfinished
}

// reportLocked reports the progress of all workers. A segment that another worker has finished counts
// as its part of the table.
func (x *segments) reportLocked(p strategy.Progress) {
	p.Doing, p.Unit, p.Total = x.doing, "items", x.Items()
	for _, g := range x.mu.all {
		if g.done && !g.ours {
			p.Done += max(g.read, p.Total/int64(len(x.names)))
		} else {
			p.Done += g.read
		}
	}
	x.mu.reported = true
	x.Progress(p)
}

// scan scans a segment whose lease this worker has taken, when it is its turn.
func (x *segments) scan(ctx context.Context, l *lease.Lease) error {
	read, start, err := x.checkpoint(l)
	if err != nil {
		return err
	}
	x.hold(l.Shard(), read)
	defer func() { x.leave(l.Shard(), l.Checkpoint() == lease.Done) }()
	select {
	case x.turns <- struct{}{}:
		defer func() { <-x.turns }()
	case <-ctx.Done():
		return ctx.Err()
	}
	return x.scanSegment(ctx, l, start, func(items int) int64 { return x.add(l.Shard(), items) })
}

// The checkpoint of a segment is read:<items so far>/key:<the last key of the last page, in base64>.
// Older versions have written only the key; they begin a segment with another checkpoint anew.

func checkpointText(read int64, k armed.Key) string {
	return fmt.Sprintf("read:%d/key:%s", read, base64.RawURLEncoding.EncodeToString([]byte(k)))
}

// readCheckpoint is the reverse, with the key in base64; "" if there is none.
func readCheckpoint(text string) (read int64, key string) {
	if tail, ok := strings.CutPrefix(text, "read:"); ok {
		number, tail, _ := strings.Cut(tail, "/")
		read, _ = strconv.ParseInt(number, 10, 64)
		text = tail
	}
	key, _ = strings.CutPrefix(text, "key:")
	return read, key
}

// checkpoint returns the number of items that were read in a segment, and the key where it continues.
func (s *Strategy) checkpoint(l *lease.Lease) (read int64, start map[string]types.AttributeValue, err error) {
	read, text := readCheckpoint(l.Checkpoint())
	if text == "" || l.Checkpoint() == lease.Done {
		return 0, nil, nil
	}
	k, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return 0, nil, fmt.Errorf("the checkpoint of the scan of %s is not a key: %w", l.Shard(), err)
	}
	return read, s.Table.Attributes(armed.Key(k)), nil
}
