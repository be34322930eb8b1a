package full

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/mayflydb/mayfly/internal/program"
	"github.com/mayflydb/mayfly/internal/sim"
)

// The limits of the flags of mayfly torture.
const (
	tortureWorkersMost = 256
	tortureForMost     = 168 * time.Hour
)

// errLawBroken is the error of a run with findings.
var errLawBroken = errors.New("a law was broken")

// runTorture runs episodes of the simulation and prints the report.
func runTorture(ctx context.Context, c program.TortureFlags, t program.Terminal) error {
	if c.Child {
		sim.Child(c.Seed, uint64(max(c.Episode, 0)), t.Out) // ends the process
	}
	o, err := tortureOptions(c)
	if err != nil {
		return err
	}
	done := 0
	o.Done = func(r sim.Result) {
		done++
		t.Step(done, max(o.Episodes, done), fmt.Sprintf("episode %d, trace %s", r.Episode, r.Trace), "")
	}
	report, err := sim.Run(ctx, o)
	t.Clear()
	if err != nil {
		return err
	}
	if c.JSON {
		err = indented(t.Out, report)
	} else {
		err = report.WriteText(t.Out)
	}
	switch {
	case err != nil:
		return err
	case len(report.Findings) > 0:
		return program.Advise(errLawBroken, "replay it: %s", report.Findings[0].Replay)
	case ctx.Err() != nil:
		return errors.New("interrupted")
	case report.Counts.Episodes == 0:
		return program.Misuse(errors.New("no episode ended in this time"), "give it more time: --for 1m")
	}
	return nil
}

// tortureOptions returns the options that the flags set.
func tortureOptions(c program.TortureFlags) (sim.Options, error) {
	c.Workers = cmp.Or(c.Workers, min(runtime.NumCPU(), tortureWorkersMost))
	if c.Workers < 1 || c.Workers > tortureWorkersMost {
		return sim.Options{}, program.Misuse(fmt.Errorf("--workers: %d is not between 1 and %d", c.Workers, tortureWorkersMost), "mayfly torture --help")
	}
	if c.For < time.Second || c.For > tortureForMost {
		return sim.Options{}, program.Misuse(fmt.Errorf("--for: %v is not between 1s and 168h", c.For), "mayfly torture --help")
	}
	if c.Episodes < 0 {
		return sim.Options{}, program.Misuse(fmt.Errorf("--episodes: %d is negative", c.Episodes), "mayfly torture --help")
	}
	self, err := os.Executable()
	if err != nil {
		return sim.Options{}, fmt.Errorf("find this program: %w", err)
	}
	o := sim.Options{
		Self: func(seed, number uint64) []string {
			return []string{self, "torture", "--child", fmt.Sprint("--seed=", seed), fmt.Sprint("--episode=", number)}
		},
		Replay: "mayfly torture --seed %d --episode %d", Seed: c.Seed, Episodes: c.Episodes, For: c.For, Workers: c.Workers,
	}
	if c.Episode >= 0 {
		o.First, o.Episodes, o.For = uint64(c.Episode), 1, 0
	}
	return o, nil
}
