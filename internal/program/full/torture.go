package full

import (
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
	tortureWorkersMost  = 256
	tortureEpisodesMost = 1_000_000_000
	tortureForMost      = 168 * time.Hour
	tortureForDefault   = time.Minute
)

// errLawBroken is the error of a run with findings.
var errLawBroken = errors.New("a law was broken")

// runTorture runs episodes of the simulation and prints the report.
func runTorture(ctx context.Context, c program.TortureFlags, t program.Terminal) error {
	if c.Child && c.Episode != nil {
		sim.Child(c.Seed, uint64(*c.Episode), t.Out) // ends the process
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
	o := sim.Options{Replay: "mayfly torture --seed %d --episode %d", Seed: c.Seed, Workers: min(runtime.NumCPU(), tortureWorkersMost)}
	var wrong error
	switch {
	case c.Episode != nil && c.Episodes != nil:
		wrong = errors.New("--episode is a single episode, so it does not go with --episodes")
	case c.Episode != nil && c.For != nil:
		wrong = errors.New("--episode is a single episode, which runs to its end, so it does not go with --for")
	case c.Episode != nil && *c.Episode < 0:
		wrong = fmt.Errorf("--episode: %d is negative", *c.Episode)
	case c.Episodes != nil && (*c.Episodes < 1 || *c.Episodes > tortureEpisodesMost):
		wrong = fmt.Errorf("--episodes: %d is not between 1 and %d", *c.Episodes, tortureEpisodesMost)
	case c.Workers != nil && (*c.Workers < 1 || *c.Workers > tortureWorkersMost):
		wrong = fmt.Errorf("--workers: %d is not between 1 and %d", *c.Workers, tortureWorkersMost)
	case c.For != nil && (*c.For < time.Second || *c.For > tortureForMost):
		wrong = fmt.Errorf("--for: %v is not between 1s and 168h", *c.For)
	}
	if wrong != nil {
		return o, program.Misuse(wrong, "mayfly torture --help")
	}
	if c.Workers != nil {
		o.Workers = *c.Workers
	}
	switch {
	case c.Episode != nil:
		o.First, o.Episodes = uint64(*c.Episode), 1
	case c.Episodes != nil:
		o.Episodes = *c.Episodes
	case c.For == nil:
		o.For = tortureForDefault
	}
	if c.For != nil {
		o.For = *c.For
	}
	self, err := os.Executable()
	if err != nil {
		return o, fmt.Errorf("find this program: %w", err)
	}
	o.Self = func(seed, number uint64) []string {
		return []string{self, "torture", "--child", fmt.Sprint("--seed=", seed), fmt.Sprint("--episode=", number)}
	}
	return o, nil
}
