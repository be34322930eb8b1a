package expirybench

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/mayflydb/mayfly/internal/bench"
)

// Cost is what an expiration costs the server, beyond its use of the machine when idle.
type Cost struct {
	Unknown string `json:"unknown,omitempty"` // why there are no figures

	Items     int      `json:"items"` // that expired at one instant
	CPUUS     float64  `json:"server_cpu_us"`
	DiskBytes *float64 `json:"disk_bytes"` // written, as the kernel counts them; nil: it does not say
	// The length of the measurement: from some time before the deadline until a Scan found none of the items. The
	// Scans' own use is not part of the cost.
	OverS float64 `json:"over_s"`
	// The idle use, of which as much as fits into OverS has been subtracted.
	IdleCPUPercent float64 `json:"idle_cpu_percent"`
}

const (
	costFor  = 3 * time.Second // from the deadline to the first Scan
	costRest = 3 * time.Second // before the first measurement, and after writing, for work that the server has put off
	// The measurement begins so long before the deadline, since a server may prepare removals.
	costEarly = 3 * time.Second
	costQuick = 500 * time.Millisecond // each of these times in a quick run

	costMost  = 10_000
	costLeast = 1000
	// a server needs more CPU time to write an item
	costOfWrite = time.Microsecond
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
	n, rest, early := costMost, costRest, costEarly
	if r.Quick {
		n, rest, early = costLeast, costQuick, costQuick
	}
	n = min(n, max(int(r.perS*r.Load.Seconds()/2), 1))
	t, err := r.createTable(ctx, "cost", design{index: true, stream: true})
	if err != nil {
		return err
	}
	defer r.discard(ctx, t)
	if err := bench.Pause(ctx, rest); err != nil {
		return err
	}
	first := r.use()
	if err := bench.Pause(ctx, early+costFor); err != nil {
		return err
	}
	second := r.use()
	lead += time.Duration(2 * float64(n) / r.perS * float64(time.Second))
	s := schedule{first: r.firstDeadline(lead + rest + early), n: n, seconds: 1}
	if _, err := t.fill(ctx, n, lead, s.item); err != nil {
		return err
	}
	if used := r.use().cpu - second.cpu; used < time.Duration(n)*costOfWrite {
		r.report.Cost = &Cost{Unknown: fmt.Sprintf("process %d used %s of CPU while %d items were written, so it is not the server", r.pid, used, n)}
		r.result("%s", r.report.Cost.Unknown)
		return nil
	}
	begin := s.first.Add(-early)
	if time.Until(begin) < rest {
		return errTooSlow
	}
	if err := bench.Pause(ctx, time.Until(begin)); err != nil {
		return err
	}
	before := r.use()
	var scans use // what the Scans used
	for window := costFor; ; window = min(2*window, r.Wait) {
		if err := bench.Pause(ctx, time.Until(s.first.Add(window))); err != nil {
			return err
		}
		after, left := r.use(), 0
		if err := t.scan(ctx, func(int, time.Time) { left++ }); err != nil {
			return err
		}
		scanned := r.use()
		if left == 0 {
			after.cpu, after.written = after.cpu-scans.cpu, after.written-scans.written
			r.report.Cost = costOf(n, first, second, before, after)
			r.result("%.1f us of CPU, %s", r.report.Cost.CPUUS, r.report.Cost.disk())
			return nil
		}
		if window >= r.Wait {
			r.report.Cost = &Cost{Unknown: fmt.Sprintf("%d of %d items were not removed within %s", left, n, r.Wait)}
			r.result("%s", r.report.Cost.Unknown)
			return nil
		}
		scans.cpu, scans.written = scans.cpu+scanned.cpu-after.cpu, scans.written+scanned.written-after.written
	}
}

// costOf returns the cost of n items that were removed between before and after, less the use of the idle
// server between first and second in as much time.
func costOf(n int, first, second, before, after use) *Cost {
	idle, window := second.at.Sub(first.at).Seconds(), after.at.Sub(before.at).Seconds()
	cpu := float64(after.cpu-before.cpu) - window/idle*float64(second.cpu-first.cpu)
	c := &Cost{
		Items: n, CPUUS: tenth(cpu / 1000 / float64(n)),
		IdleCPUPercent: math.Round(1e4*(second.cpu-first.cpu).Seconds()/idle) / 100, OverS: math.Round(1e3*window) / 1e3,
	}
	if first.written >= 0 { // else the kernel does not say
		written := tenth((float64(after.written-before.written) - window/idle*float64(second.written-first.written)) / float64(n))
		c.DiskBytes = &written
	}
	return c
}

// disk describes the bytes that an expiration writes.
func (c *Cost) disk() string {
	if c.DiskBytes == nil {
		return "an unknown number of bytes written to disk"
	}
	return fmt.Sprintf("%.0f bytes written to disk", *c.DiskBytes)
}

// tenth rounds to a tenth, and takes a negative difference for nothing.
func tenth(v float64) float64 { return math.Round(10*max(v, 0)) / 10 }
