package expirybench

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"golang.org/x/sync/errgroup"

	"github.com/mayflydb/mayfly/internal/bench"
	"github.com/mayflydb/mayfly/internal/work/retry"
)

// Survival is what a kill of the server did.
type Survival struct {
	NotOffered string `json:"not_offered,omitempty"`

	Acknowledged int     `json:"acknowledged"` // items with distant deadlines, written until the kill
	Lost         int     `json:"lost"`         // of them, after the restart
	Expired      int     `json:"expired"`      // items whose deadline passed while the server was down
	DownS        float64 `json:"down_s"`
	BackS        float64 `json:"back_s"` // from the start of the process to its first answer
	// Of the items that expired meanwhile, the first Scan after the restart still saw so many, and the last
	// of them was gone at most so long after the first answer; nil: not within the wait.
	StillSeen  int      `json:"still_seen"`
	LastGoneMS *float64 `json:"last_gone_ms"`
	// Their records of removals that came by the end of the wait.
	Records        int    `json:"records"`
	RecordsLost    int    `json:"records_lost"`
	RecordsDoubled int    `json:"records_doubled"`
	NoStream       string `json:"no_stream,omitempty"`
}

const (
	expiringItems = 500 // that expire while the server is down
	keptWriters   = 4   // that write items with distant deadlines until the kill
	keptMost      = 20_000
	keptFor       = time.Second
	// numbers of items with distant deadlines begin here
	keptFrom = 1_000_000
)

// survival kills the server while it writes, and counts the survivors after a restart.
func (r *run) survival(ctx context.Context) error {
	if r.server == nil {
		r.report.Survival = &Survival{NotOffered: "the run may not start the server (--start)"}
		return nil
	}
	r.step("survival of a kill")
	return r.prepared(PartSurvival, func(lead time.Duration) error { return r.killOnce(ctx, lead) })
}

func (r *run) killOnce(ctx context.Context, lead time.Duration) error {
	t, err := r.createTable(ctx, "killed", design{stream: true})
	if err != nil {
		return err
	}
	defer r.discard(ctx, t)
	found := &Survival{Expired: expiringItems}
	deadline := r.firstDeadline(lead + keptFor)
	if _, err := t.fill(ctx, expiringItems, lead, func(i int) item { return item{i, deadline} }); err != nil {
		return err
	}
	acknowledged := r.writeUntilKilled(ctx, t)
	killed := time.Now()
	if r.answers(ctx) {
		return fmt.Errorf("--start: the endpoint still answers after the kill of process %d; give the server's own command", r.server.pid())
	}
	if killed.After(deadline) {
		if err := r.restart(ctx); err != nil {
			return err
		}
		return errTooSlow
	}
	if err := bench.Pause(ctx, time.Until(deadline.Add(time.Second))); err != nil {
		return err
	}
	found.Acknowledged = len(acknowledged)
	begun := time.Now()
	if err := r.restart(ctx); err != nil {
		return err
	}
	back := time.Now()
	found.DownS, found.BackS = back.Sub(killed).Round(10*time.Millisecond).Seconds(), back.Sub(begun).Round(10*time.Millisecond).Seconds()
	if err := t.countSurvivors(ctx, found, acknowledged, back, r.Wait); err != nil {
		return err
	}
	r.report.Survival = found
	r.report.ShowsExpired = r.report.ShowsExpired || found.StillSeen > 0
	r.result("%d of %d acknowledged items lost, %d of %d records", found.Lost, found.Acknowledged, found.RecordsLost, found.Expired)
	return nil
}

// writeUntilKilled writes items with distant deadlines, and kills the server meanwhile. It returns the
// numbers of the acknowledged ones.
func (r *run) writeUntilKilled(ctx context.Context, t *table) (acknowledged map[int]bool) {
	far := time.Now().Add(farDeadline)
	acknowledged = map[int]bool{}
	var mu sync.Mutex
	var next atomic.Int64
	var writers errgroup.Group
	for range keptWriters {
		writers.Go(func() error {
			for {
				number := int(next.Add(1))
				if number > keptMost || t.put(ctx, item{keptFrom + number, far}.attributes()) != nil {
					return nil // killed: the effect of this write is unknown
				}
				mu.Lock()
				acknowledged[keptFrom+number] = true
				mu.Unlock()
			}
		})
	}
	_ = bench.Pause(ctx, keptFor)
	r.server.kill()
	_ = writers.Wait() // they return no errors
	return acknowledged
}

// restart starts the server again after a kill.
func (r *run) restart(ctx context.Context) (err error) {
	if r.server, err = r.startServer(ctx); err == nil {
		r.pid = r.server.pid()
	}
	return err
}

// countSurvivors compares the table and its stream after a restart with the acknowledged items.
func (t *table) countSurvivors(ctx context.Context, found *Survival, acknowledged map[int]bool, back time.Time, wait time.Duration) error {
	if _, err := t.db.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &t.name}); retry.Code(err) == "ResourceNotFoundException" {
		found.Lost, found.RecordsLost, found.NoStream = found.Acknowledged, found.Expired, "the table is lost too"
		return nil
	}
	counts := make([]int, expiringItems)
	left := expiringItems
	var f *follower
	if t.stream {
		var err error
		f, err = t.follow(ctx, types.ShardIteratorTypeTrimHorizon, func(record types.Record, _ time.Time) {
			number, ok := keyNumber(record)
			if ok && number < expiringItems && record.EventName == types.OperationTypeRemove {
				if counts[number]++; counts[number] == 1 {
					left--
				}
			}
		})
		if err != nil {
			found.NoStream = fmt.Sprintf("after the restart: %v", err)
		}
	} else {
		found.NoStream = "the table has no stream: the endpoint refuses one"
	}
	seen, err := t.awaitGone(ctx, found, acknowledged, back, wait)
	if f == nil || err != nil {
		if t.stream { // it cannot be read
			found.RecordsLost = expiringItems - seen
		}
		return err
	}
	_ = bench.Poll(ctx, recordPoll, time.Until(back.Add(wait)), "", func() (bool, error) { // the report counts missing records
		f.mu.Lock()
		defer f.mu.Unlock()
		return left == seen, nil
	})
	_ = bench.Pause(ctx, watchOn) // for records that come again
	if err := f.stop(ctx); err != nil {
		return err
	}
	for _, n := range counts {
		found.Records += min(n, 1)
		found.RecordsDoubled += max(n-1, 0)
	}
	found.RecordsLost = max(expiringItems-seen-found.Records, 0)
	return nil
}

// awaitGone scans the table until no expired item is left, and returns how many are at the end. The first
// Scan counts the lost items.
func (t *table) awaitGone(ctx context.Context, found *Survival, acknowledged map[int]bool, back time.Time, wait time.Duration) (seen int, err error) {
	for first := true; ; first = false {
		seen, kept := 0, 0
		err := t.scan(ctx, func(number int, _ time.Time) {
			switch {
			case number < expiringItems:
				seen++
			case acknowledged[number]:
				kept++
			}
		})
		if err != nil {
			return 0, fmt.Errorf("scan the table after the restart: %w", err)
		}
		if first {
			found.StillSeen, found.Lost = seen, len(acknowledged)-kept
		}
		if seen == 0 {
			ms := millis(time.Since(back))
			found.LastGoneMS = &ms
			return 0, nil
		}
		if time.Since(back) > wait {
			return seen, nil
		}
		if err := bench.Pause(ctx, scanPause); err != nil {
			return 0, err
		}
	}
}
