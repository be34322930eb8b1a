package expirybench

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/mayflydb/mayfly/internal/bench"
	"github.com/mayflydb/mayfly/internal/work/attr"
)

// Call is the latency of one operation on items that do not expire: in phases without expiry, and in
// phases that begin with the common deadline of many items of another table. The phases alternate.
type Call struct {
	Operation string  `json:"operation"`
	PerS      int     `json:"per_s"`
	Rounds    int     `json:"rounds"`
	PhaseS    float64 `json:"phase_s"` // length of each phase
	Burst     int     `json:"burst"`   // items that expire at the beginning of each second one
	// Medians over the rounds.
	IdleP50MS  float64 `json:"idle_p50_ms"`
	IdleP99MS  float64 `json:"idle_p99_ms"`
	BurstP50MS float64 `json:"burst_p50_ms"`
	BurstP99MS float64 `json:"burst_p99_ms"`
	Failed     int     `json:"failed"`
}

const (
	callPerS    = 100 // of each operation
	callItems   = 200
	callWorkers = 16 // of each operation
	callRounds  = 3
	callPhase   = 3 * time.Second
	callQuick   = time.Second
	burstMost   = 10_000
	burstQuick  = 1000
	callLate    = 100 * time.Millisecond // of the deadline's phase, at most: the burst must be in it
)

// calls measures the latency of other calls, idle and during a burst, in turn.
func (r *run) calls(ctx context.Context) error {
	if r.removesNothing != "" {
		r.leaveOut(PartCalls, r.removesNothing)
		return nil
	}
	burst, phase := burstMost, callPhase
	if r.Quick {
		burst, phase = burstQuick, callQuick
	}
	burst = min(burst, int(r.perS*r.Load.Seconds()/2))
	r.step("other calls, idle and beside %s items that expire at once", bench.Count(burst))
	t, err := r.createTable(ctx, "called", design{})
	if err != nil {
		return err
	}
	defer r.discard(ctx, t)
	far := time.Now().Add(farDeadline)
	if _, err := t.fill(ctx, callItems, r.Load, func(i int) item { return item{i, far} }); err != nil {
		return err
	}
	list := []*caller{
		{name: "GetItem", call: func(ctx context.Context, n int) error {
			_, err := t.db.GetItem(ctx, &dynamodb.GetItemInput{TableName: &t.name, Key: attr.Item{keyName: attr.S(keyOf(n))}, ConsistentRead: aws.Bool(true)})
			return err
		}},
		{name: "PutItem", call: func(ctx context.Context, n int) error { return t.put(ctx, item{n, far}.attributes()) }},
	}
	return r.prepared(PartCalls, func(lead time.Duration) error {
		for _, c := range list {
			c.idle, c.during, c.failed = nil, nil, 0
		}
		for range callRounds {
			if err := r.callRound(ctx, list, burst, phase, lead); err != nil {
				return err
			}
		}
		r.report.Calls = nil
		for _, c := range list {
			r.report.Calls = append(r.report.Calls, Call{
				Operation: c.name, PerS: callPerS, Rounds: callRounds, PhaseS: phase.Seconds(), Burst: burst, Failed: c.failed,
				IdleP50MS: medianOf(c.idle, 0.5), IdleP99MS: medianOf(c.idle, 0.99), BurstP50MS: medianOf(c.during, 0.5), BurstP99MS: medianOf(c.during, 0.99),
			})
		}
		r.result("p99 of GetItem %.1f ms idle, %.1f ms in a burst", r.report.Calls[0].IdleP99MS, r.report.Calls[0].BurstP99MS)
		return nil
	})
}

// caller makes calls of one kind. It has the latencies of each phase.
type caller struct {
	name         string
	call         func(ctx context.Context, number int) error
	idle, during [][]time.Duration
	failed       int
}

// callRound loads a burst, and measures the phase before its deadline and the phase after it.
func (r *run) callRound(ctx context.Context, list []*caller, burst int, phase, lead time.Duration) error {
	t, err := r.createTable(ctx, "burst", design{index: true, stream: true})
	if err != nil {
		return err
	}
	defer r.discard(ctx, t)
	lead += time.Duration(2 * float64(burst) / r.perS * float64(time.Second))
	deadline := r.firstDeadline(lead + phase)
	if _, err := t.fill(ctx, burst, lead, func(i int) item { return item{i, deadline} }); err != nil {
		return err
	}
	begin := deadline.Add(-phase)
	if time.Now().After(begin) {
		return errTooSlow
	}
	if err := bench.Pause(ctx, time.Until(begin)); err != nil {
		return err
	}
	for i, phases := range []func(*caller) *[][]time.Duration{
		func(c *caller) *[][]time.Duration { return &c.idle }, func(c *caller) *[][]time.Duration { return &c.during },
	} {
		if i > 0 && time.Since(deadline) > callLate {
			return errTooSlow
		}
		if err := callFor(ctx, list, phase, phases); err != nil {
			return err
		}
	}
	return nil
}

// callFor makes all kinds of calls at their rate for some time. The load is open: a slow call does not hold
// back the next ones, and counts from the time at which it was due.
func callFor(ctx context.Context, list []*caller, phase time.Duration, phases func(*caller) *[][]time.Duration) error {
	start, n := time.Now(), int(phase.Seconds()*callPerS)
	var running sync.WaitGroup
	for _, c := range list {
		running.Go(func() {
			latencies, failed := c.callAll(ctx, start, n)
			all := phases(c)
			*all = append(*all, latencies)
			c.failed += failed
		})
	}
	running.Wait()
	return ctx.Err()
}

// callAll makes n calls, and returns the latencies of those that succeed.
func (c *caller) callAll(ctx context.Context, start time.Time, n int) (latencies []time.Duration, failed int) {
	var mu sync.Mutex
	var next atomic.Int64
	var running sync.WaitGroup
	for range callWorkers {
		running.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				due := start.Add(time.Duration(i) * time.Second / callPerS)
				err := bench.Pause(ctx, time.Until(due))
				if err == nil {
					err = c.call(ctx, i%callItems)
				}
				took := time.Since(due)
				mu.Lock()
				if err != nil {
					failed++
				} else {
					latencies = append(latencies, took)
				}
				mu.Unlock()
			}
		})
	}
	running.Wait()
	return latencies, failed
}

// medianOf returns the median over the phases of a quantile, in milliseconds.
func medianOf(phases [][]time.Duration, q float64) float64 {
	var values []time.Duration
	for _, p := range phases {
		values = append(values, quantile(p, q))
	}
	return millis(quantile(values, 0.5))
}
