package expirybench

import (
	"context"
	"fmt"
	"time"

	"github.com/mayflydb/mayfly/internal/bench"
)

// Cost is what an expiration costs the server, beyond its use of the machine when idle.
type Cost struct {
	Unknown string `json:"unknown,omitempty"` // why there are no figures

	Items     int     `json:"items"` // that expired at one instant
	CPUUS     float64 `json:"server_cpu_us"`
	DiskBytes float64 `json:"disk_bytes"` // written, as the kernel counts them
	OverS     float64 `json:"over_s"`     // time in which they were removed, at most
}

const (
	costIdle  = 3 * time.Second // before the deadline, to learn the use when idle
	costQuick = time.Second
	costMost  = 10_000
	costLeast = 1000
)

// cost expires many items at once, while the run makes no call, and reads the process's CPU time and disk
// writes before and after that.
func (r *run) cost(ctx context.Context) error {
	r.step("cost of an expiration")
	if bench.ProcessCPU(r.pid) == 0 {
		r.report.Cost = &Cost{Unknown: "the server's process is not known, or not on this machine"}
		return nil
	}
	return r.prepared(PartCost, func(lead time.Duration) error { return r.costOnce(ctx, lead) })
}

// use is what a process has used so far.
type use struct {
	at      time.Time
	cpu     time.Duration
	written int64
}

func (r *run) use() use {
	return use{time.Now(), bench.ProcessCPU(r.pid), bench.ProcessWritten(r.pid)}
}

func (r *run) costOnce(ctx context.Context, lead time.Duration) error {
	n, idle := costMost, costIdle
	if r.Quick {
		n, idle = costLeast, costQuick
	}
	n = min(n, max(int(r.perS*r.Load.Seconds()/2), 1))
	t, err := r.createTable(ctx, "cost", design{index: true, stream: true})
	if err != nil {
		return err
	}
	defer r.discard(ctx, t)
	lead += time.Duration(2 * float64(n) / r.perS * float64(time.Second))
	s := schedule{first: time.Now().Add(lead + idle + time.Second).Truncate(time.Second), n: n, seconds: 1}
	if _, err := t.fill(ctx, n, lead, s.item); err != nil {
		return err
	}
	if time.Until(s.first) < idle {
		return errTooSlow
	}
	if err := bench.Pause(ctx, time.Until(s.first.Add(-idle))); err != nil {
		return err
	}
	first := r.use()
	if err := bench.Pause(ctx, time.Until(s.first)); err != nil {
		return err
	}
	second := r.use()
	for window := idle; ; window = min(2*window, r.Wait) {
		if err := bench.Pause(ctx, time.Until(s.first.Add(window))); err != nil {
			return err
		}
		third, left := r.use(), 0
		if err := t.scan(ctx, func(int, time.Time) { left++ }); err != nil {
			return err
		}
		if left == 0 {
			r.report.Cost = costOf(n, first, second, third)
			r.result("%.1f us of CPU, %.0f bytes of disk", r.report.Cost.CPUUS, r.report.Cost.DiskBytes)
			return nil
		}
		if window >= r.Wait {
			r.report.Cost = &Cost{Unknown: fmt.Sprintf("%d of %d items were not removed within %s", left, n, r.Wait)}
			r.result("%s", r.report.Cost.Unknown)
			return nil
		}
	}
}

// costOf returns the cost of n items that were removed between the second and the third reading, less what
// the process used in as much time between the first and the second.
func costOf(n int, first, second, third use) *Cost {
	share := third.at.Sub(second.at).Seconds() / second.at.Sub(first.at).Seconds()
	cpu := float64(third.cpu-second.cpu) - share*float64(second.cpu-first.cpu)
	written := float64(third.written-second.written) - share*float64(second.written-first.written)
	return &Cost{
		Items: n, CPUUS: millis(time.Duration(1000*max(cpu, 0))) / float64(n), DiskBytes: max(written, 0) / float64(n),
		OverS: third.at.Sub(second.at).Round(time.Millisecond).Seconds(),
	}
}
