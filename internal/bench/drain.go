package bench

import (
	"context"
	"errors"
	"os"
	"path/filepath"
)

// experimentDrain measures the removal rate of a backlog.
const experimentDrain = "drain"

// drains measures the removal rate of backlogs, at endpoints with mayfly's metrics and in the loop,
// in turn.
func (r *run) drains(ctx context.Context) error {
	for _, table := range []*design{tableBurst, tableBurstPlain} {
		x := expiryExperiment{name: experimentDrain, table: table, items: r.Burst}
		all := make([]drained, len(r.endpoints)+1) // the last is the loop's
		for range r.Rounds {
			if err := r.drainRound(ctx, x, all); err != nil {
				return err
			}
		}
		for _, d := range all {
			if len(d.perS) > 0 {
				r.report.Drain = append(r.report.Drain, d.summary(x))
			}
		}
	}
	return nil
}

// drained has the rounds of one kind of drain at one target.
type drained struct {
	target          string
	items           int
	perS, cpu, over []float64 // over: perS over the loop's; none for the loop itself
}

// drainRound adds a round of each target.
func (r *run) drainRound(ctx context.Context, x expiryExperiment, all []drained) error {
	var measured []*drained
	for i, e := range r.endpoints {
		_, counts, err := e.scrape(ctx)
		if err != nil {
			return err
		}
		if !counts || e.onlyCalls {
			continue
		}
		found, err := e.expire(ctx, r, x)
		if err != nil {
			return err
		}
		if found != nil && found.DrainPerS > 0 {
			all[i].add(e.name, found.Items, found.DrainPerS, found.CPUUS)
			measured = append(measured, &all[i])
		}
	}
	r.step("drain of %d items, %s", r.Burst, TargetLoop)
	dir := filepath.Join(r.dir, "drain")
	perS, cpu, err := drainLoop(ctx, dir, durabilities[r.Durability], r.Burst, x.table)
	if err = errors.Join(err, os.RemoveAll(dir)); err != nil {
		return err
	}
	all[len(r.endpoints)].add(TargetLoop, r.Burst, round(perS), round(micros(cpu)))
	for _, d := range measured {
		d.over = append(d.over, d.perS[len(d.perS)-1]/round(perS))
	}
	r.result("%.0f/s", perS)
	return nil
}

func (d *drained) add(target string, items int, perS, cpuUS float64) {
	d.target, d.items = target, items
	d.perS = append(d.perS, perS)
	d.cpu = append(d.cpu, cpuUS)
}

func (d *drained) summary(x expiryExperiment) Drain {
	sum := Drain{
		About: x.ofItems(d.target, d.items).About, Target: d.target, Items: d.items, Plain: !x.table.stream,
		PerS: spreadOf(d.perS), CPUUS: spreadOf(d.cpu),
	}
	if len(d.over) > 0 {
		over := spreadOf(d.over)
		sum.OverLoop = &over
	}
	return sum
}
