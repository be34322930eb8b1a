package bench

import (
	"context"
	"errors"
	"os"
	"path/filepath"
)

// expiries runs the experiments about lateness.
func (r *run) expiries(ctx context.Context) error {
	for _, e := range r.endpoints {
		for _, x := range []expiryExperiment{spreadExperiment, burstExperiment} {
			if e.onlyCalls || !r.runs(x.name) {
				continue
			}
			items, spread := r.Expiring, r.Spread
			if x.name == burstExperiment.name {
				items, spread = r.Burst, 0
			}
			found, err := r.expire(ctx, e, x, items, spread)
			if err != nil {
				return err
			}
			r.report.Expiry = append(r.report.Expiry, *found)
		}
	}
	return nil
}

// drained has the rounds of one kind of drain at one target.
type drained struct {
	items     int
	perS, cpu []float64
}

func (d *drained) add(items int, perS, cpuUS float64) {
	d.items = items
	d.perS = append(d.perS, perS)
	d.cpu = append(d.cpu, cpuUS)
}

// drains measures the removal rate of backlogs, at endpoints with TTL and in the loop, in turn.
func (r *run) drains(ctx context.Context) error {
	if !r.runs(drainExperiment.name) {
		return nil
	}
	for _, x := range []expiryExperiment{drainExperiment, drainPlainExperiment} {
		loop, rounds := new(drained), make([]drained, len(r.endpoints))
		for range r.Rounds {
			for i, e := range r.endpoints {
				if e.sweeps || e.onlyCalls {
					continue
				}
				found, err := r.expire(ctx, e, x, r.Burst, 0)
				if err != nil {
					return err
				}
				if found.DrainPerS > 0 {
					rounds[i].add(found.Items, found.DrainPerS, found.CPUUS)
				}
			}
			if err := r.drainLoop(ctx, x, loop); err != nil {
				return err
			}
		}
		r.addDrains(x, rounds, loop)
	}
	return nil
}

// drainLoop adds a round of the loop.
func (r *run) drainLoop(ctx context.Context, x expiryExperiment, rounds *drained) error {
	r.step("drain of %d items, %s", r.Burst, TargetLoop)
	dir := filepath.Join(r.dir, "drain")
	perS, cpu, err := drainLoop(ctx, dir, durabilities[r.Durability], r.Burst, designs[x.table].stream != streamNone)
	if err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	rounds.add(r.Burst, round(perS), round(micros(cpu)))
	r.result("%.0f/s", perS)
	return os.RemoveAll(dir)
}

// addDrains summarizes the rounds.
func (r *run) addDrains(x expiryExperiment, rounds []drained, loop *drained) {
	add := func(target string, d *drained) *Drain {
		r.report.Drain = append(r.report.Drain, Drain{
			About: x.about, Target: target, Items: d.items, Plain: designs[x.table].stream == streamNone, PerS: spreadOf(d.perS), CPUUS: spreadOf(d.cpu),
		})
		return &r.report.Drain[len(r.report.Drain)-1]
	}
	for i := range rounds {
		d := &rounds[i]
		if len(d.perS) == 0 {
			continue
		}
		ratios := make([]float64, len(d.perS))
		for round := range ratios {
			ratios[round] = d.perS[round] / loop.perS[round]
		}
		over := spreadOf(ratios)
		add(r.endpoints[i].name, d).OverLoop = &over
	}
	add(TargetLoop, loop)
}
