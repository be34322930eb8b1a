package expirybench

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mayflydb/mayfly/internal/bench"
	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/retry"
)

// Leak is what one operation showed of expired items.
type Leak struct {
	Operation string `json:"operation"`
	// NotOffered is why the operation was not measured: the endpoint's refusal, or that it does not even
	// find a live item.
	NotOffered string `json:"not_offered,omitempty"`
	Looks      int    `json:"looks"` // at an expired item
	Seen       int    `json:"seen"`  // of them, those that still saw it
	// The last look that saw an expired item was sent so long after its deadline; nil: none saw one.
	LastSeenMS *float64 `json:"last_seen_ms"`
	// The answer of the first look after it that saw none; nil: each look until the end of the wait saw one.
	FirstGoneMS *float64 `json:"first_gone_ms"`
}

// looksAfter are the times of the looks after the deadline, as far as the wait goes. Each look has an
// item of its own, since looking may change it.
var looksAfter = []time.Duration{
	2 * time.Millisecond, 10 * time.Millisecond, 50 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second, 5 * time.Second,
	10 * time.Second, 20 * time.Second, time.Minute, 10 * time.Minute, time.Hour, 24 * time.Hour, 48 * time.Hour,
}

// cleanFor ends the looks: when none since the deadline has seen an item for so long, none will.
const cleanFor = time.Second

// visibility measures which operations still see an expired item, and for how long.
func (r *run) visibility(ctx context.Context) error {
	r.step("visibility of expired items by operation")
	return r.prepared(PartVisibility, func(lead time.Duration) error { return r.look(ctx, lead) })
}

// look lets all operations look at expired items.
func (r *run) look(ctx context.Context, lead time.Duration) error {
	t, err := r.createTable(ctx, "visible", design{sorted: true, ranked: true, index: true})
	if err != nil {
		return err
	}
	defer r.discard(ctx, t)
	leaks := make([]Leak, len(operations))
	if err := r.checkLive(ctx, t, leaks); err != nil {
		return err
	}
	var offsets []time.Duration
	for _, after := range looksAfter {
		if after < r.Wait {
			offsets = append(offsets, after)
		}
	}
	offsets = append(offsets, r.Wait)
	deadline, err := r.writeProbes(ctx, t, leaks, len(offsets), lead)
	if err != nil {
		return err
	}
	from := deadline.Add(r.difference().behind()) // when the endpoint's clock has certainly reached the deadline
	for i, after := range offsets {
		if err := bench.Pause(ctx, time.Until(from.Add(after))); err != nil {
			return err
		}
		if err := r.lookOnce(ctx, t, leaks, i, from); err != nil {
			return err
		}
		if after >= cleanFor && !anySeen(leaks) {
			break
		}
	}
	seen, offered := countLeaks(leaks)
	r.report.Leaks = leaks
	r.result("%d of %d operations see expired items", seen, offered)
	return nil
}

// partitionOf returns the partition key of the item for a look of an operation.
func partitionOf(operation, look int) string {
	return fmt.Sprintf("operation-%d-look-%d", operation, look)
}

// liveLook is the look at an item that has not expired.
const liveLook = -1

func (r *run) writeProbe(ctx context.Context, t *table, operation, look int, deadline time.Time) error {
	p := partitionOf(operation, look)
	return t.put(ctx, attr.Item{
		keyName: attr.S(p), sortName: attr.S(sortValue), groupName: attr.S(p), rankName: attr.Int(1), numberName: attr.Int(countBefore),
		textName: attr.S(filling), deadlineName: attr.Seconds(deadline),
	})
}

const (
	liveWait = 2 * time.Second // for an index that follows its table
	livePoll = 50 * time.Millisecond
)

// checkLive lets each operation look at a live item. One that does not find it is not measured, since it
// would find no expired item either.
func (r *run) checkLive(ctx context.Context, t *table, leaks []Leak) error {
	for i, o := range operations {
		l := &leaks[i]
		l.Operation = o.name
		var sees bool
		var refusal error
		err := bench.Poll(ctx, livePoll, liveWait, "", func() (bool, error) {
			if err := r.writeProbe(ctx, t, i, liveLook, time.Now().Add(farDeadline)); err != nil {
				return false, err
			}
			sees, refusal = o.sees(ctx, t, partitionOf(i, liveLook))
			return sees || refuses(refusal), nil // a passing failure says nothing about what is offered
		})
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case refusal != nil && retry.Code(refusal) != "":
			l.NotOffered = retry.Code(refusal)
		case refusal != nil:
			l.NotOffered = refusal.Error()
		case !sees && err != nil:
			l.NotOffered = "it does not find a live item"
		}
	}
	return nil
}

// writeProbes writes an expiring item for each look of each offered operation, all with one deadline,
// and returns it.
func (r *run) writeProbes(ctx context.Context, t *table, leaks []Leak, looks int, lead time.Duration) (deadline time.Time, err error) {
	deadline = r.firstDeadline(lead)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(loaders)
	for i := range operations {
		for look := range looks {
			if leaks[i].NotOffered == "" {
				group.Go(func() error { return r.writeProbe(ctx, t, i, look, deadline) })
			}
		}
	}
	if err = group.Wait(); err == nil && time.Until(deadline) < r.difference().lead() {
		err = errTooSlow
	}
	return deadline, err
}

// lookOnce lets each offered operation look at its item of the look, all at once.
func (r *run) lookOnce(ctx context.Context, t *table, leaks []Leak, look int, from time.Time) error {
	var group errgroup.Group
	for i := range operations {
		l := &leaks[i]
		if l.NotOffered != "" {
			continue
		}
		group.Go(func() error {
			sent := millis(time.Since(from))
			sees, err := operations[i].sees(ctx, t, partitionOf(i, look))
			if err != nil {
				return fmt.Errorf("%s: %w", l.Operation, err)
			}
			answered := millis(time.Since(from))
			l.Looks++
			switch {
			case sees:
				l.Seen++
				l.LastSeenMS, l.FirstGoneMS = &sent, nil
			case l.FirstGoneMS == nil:
				l.FirstGoneMS = &answered
			}
			return nil
		})
	}
	return group.Wait()
}

// anySeen reports whether the last look of any operation saw an expired item.
func anySeen(leaks []Leak) bool {
	for _, l := range leaks {
		if l.NotOffered == "" && l.FirstGoneMS == nil {
			return true
		}
	}
	return false
}

// countLeaks returns how many of the offered operations saw an expired item.
func countLeaks(leaks []Leak) (seen, offered int) {
	for _, l := range leaks {
		if l.NotOffered == "" {
			offered++
		}
		if l.Seen > 0 {
			seen++
		}
	}
	return seen, offered
}
