package planner

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// WriteText writes the plan for people.
func (p *GuardPlan) WriteText(out io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s items of %s with a deadline, %s expirations/s; an item lives for %s on average\n", millions(p.Load.Items), bytesText(p.Load.ItemBytes), number(p.Load.Expirations), about(seconds(min(p.Lives, 9e9))))
	fmt.Fprintf(&b, "prices of %s in US dollars, in force since %s; machines are not included\n\n", p.Prices.Region, p.Prices.Since)
	columns := [][]string{guardHeading()}
	for i := range p.Options {
		columns = append(columns, p.Options[i].cells())
	}
	var rows [][]string // each strategy is a column
	for i := range columns[0] {
		var row []string
		for _, c := range columns {
			row = append(row, c[i])
		}
		rows = append(rows, row)
	}
	writeColumns(&b, rows[0], rows[1:])
	for i := range p.Options {
		o := &p.Options[i]
		for _, why := range o.Why {
			fmt.Fprintf(&b, "  %s does not fit: %s\n", o.Strategy, why)
		}
		for _, note := range o.Notes {
			fmt.Fprintf(&b, "  %s: %s\n", o.Strategy, note)
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}

func guardHeading() []string {
	return []string{"", "fits", "workers", "busy", "partitions, shards", "lease, pass", "late, spread, p50", "late, spread, p99", "late, whole seconds, p50", "late, whole seconds, p99", "otherwise, up to", "armed, each", "memory, each", "disk", "write units/s", "read units/s",
		"stream calls/s", "an hour", "of it, deletes", "first scan", "its cost", "--max-rcu"}
}

// cells returns the figures in the order of guardHeading.
func (o *GuardSize) cells() []string {
	fits, lease, bound, disk, rcu := "yes", "", "", "", ""
	if !o.Fits {
		fits = "no"
	}
	if o.Lease > 0 {
		lease, bound = about(o.Lease), about(o.Bound)
	}
	if o.Pass > 0 {
		lease += ", " + about(o.Pass)
	}
	if o.DiskBytes > 0 {
		disk = size(o.DiskBytes)
	}
	if o.MaxRCU > 0 {
		rcu = number(o.MaxRCU)
	}
	first, costs := about(o.FirstScan), dollars(o.FirstScanUSD)
	if o.FirstScan == 0 {
		first, costs = "", ""
	}
	return []string{
		o.Strategy, fits, number(float64(o.Workers)), percent(o.Busy), o.shares(), lease, about(o.P50), about(o.P99), about(o.WholeP50), about(o.WholeP99), bound, number(o.Armed), size(o.MemoryBytes), disk,
		number(o.WriteUnits), number(o.ReadUnits), number(o.StreamCalls), dollars(o.HourUSD), dollars(o.DeletesUSD), first, costs, rcu,
	}
}

// shares returns the partitions of mayfly.deadlines, or the shards of the index.
func (o *GuardSize) shares() string {
	if n := o.Partitions + o.IndexShards; n > 0 {
		return number(float64(n))
	}
	return ""
}

// about returns a duration with two significant digits in one unit.
func about(d time.Duration) string {
	for _, u := range []struct {
		of   time.Duration
		name string
	}{{365 * 24 * time.Hour, "years"}, {24 * time.Hour, "days"}, {time.Hour, "h"}, {time.Minute, "min"}, {time.Second, "s"}, {time.Millisecond, "ms"}} {
		if d >= u.of || u.of == time.Millisecond {
			v := float64(d) / float64(u.of)
			if v < 10 {
				v = float64(int(v*10+0.5)) / 10
			} else {
				v = float64(int(v + 0.5))
			}
			if v == 1 && d >= 24*time.Hour {
				return "1 " + strings.TrimSuffix(u.name, "s")
			}
			return number(v) + " " + u.name
		}
	}
	return ""
}
