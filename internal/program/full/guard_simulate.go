package full

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mayflydb/mayfly/internal/guardsim"
	"github.com/mayflydb/mayfly/internal/program"
	"github.com/mayflydb/mayfly/planner"
)

// simulated is the outcome of a strategy beside its plan, as the command prints it in JSON.
type simulated struct {
	Plan      planner.GuardSize     `json:"plan"`
	Simulated *planner.GuardOutcome `json:"simulated"`
}

// runSimulation simulates guard with each strategy.
func runSimulation(ctx context.Context, f program.SimulateFlags, t program.Terminal) error {
	const help = "mayfly guard simulate --help"
	if f.Items == 0 || f.Rate == 0 {
		return program.Misuse(errors.New("--items and --rate are required"), "for example --items 1e8 --rate 1000")
	}
	if f.Strategy != "" && !slices.Contains(guardsim.Strategies, f.Strategy) {
		return program.Misuse(fmt.Errorf("--strategy %s cannot be simulated", f.Strategy), "use %s; mayfly plan guard computes the others", strings.Join(guardsim.Strategies, " or "))
	}
	prices, err := program.ReadPrices(f)
	if err != nil {
		return err
	}
	plan, err := planner.SizeGuard(planner.GuardLoad{
		Items: f.Items, Expirations: f.Rate, ItemBytes: int(min(f.ItemSize, 1<<30)), KeyBytes: int(min(f.KeySize, 1<<30)), Workers: f.Workers,
		Lease: time.Duration(f.Lease), Period: time.Duration(f.Period), RoundTrip: time.Duration(f.RoundTrip),
	}, prices)
	if err != nil {
		return program.MisuseOptions(err, help)
	}
	var all []simulated
	var wrong error
	for i := range plan.Options {
		size := plan.Options[i]
		if f.Strategy != "" && size.Strategy != f.Strategy || !slices.Contains(guardsim.Strategies, size.Strategy) {
			continue
		}
		o, err := guardsim.Run(ctx, guardsim.Options{
			Load: plan.Load, Plan: &size, Prices: prices, Share: float64(f.Share), For: time.Duration(f.For), Seed: f.Seed, Whole: f.Whole,
			Lose: float64(f.Lose), Pause: time.Duration(f.Pause), Reshard: f.Reshard, Throttle: float64(f.Throttle),
			Progress: func(done float64) { t.Step(int(done*1000), 1000, "simulating "+size.Strategy, "") },
		})
		t.Clear()
		var usage *guardsim.UsageError
		switch {
		case errors.As(err, &usage):
			return program.MisuseOptions(usage.Err, help)
		case err != nil:
			return err
		}
		if o.Early+o.Lost > 0 {
			wrong = errors.Join(wrong, fmt.Errorf("%s: %d items were removed early, and %d were never removed", size.Strategy, o.Early, o.Lost))
		}
		all = append(all, simulated{size, o})
		if !f.JSON {
			if len(all) > 1 {
				fmt.Fprintln(t.Out)
			}
			if err := o.WriteText(t.Out, &size); err != nil {
				return err
			}
		}
	}
	if f.JSON {
		return errors.Join(indented(t.Out, all), wrong)
	}
	return wrong
}
