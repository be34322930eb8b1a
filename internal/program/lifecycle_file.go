package program

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/mayflydb/mayfly/internal/work/resolve"
	"github.com/mayflydb/mayfly/lifecycle"
)

type lifecycleValidateCommand struct {
	File    string `arg:"" help:"YAML or JSON file of a definition."`
	Targets string `help:"File of targets (docs/targets.md). A handler that it does not name is an error." placeholder:"FILE"`
	JSON    bool   `name:"json" help:"Print JSON."`
}

func (lifecycleValidateCommand) Help() string {
	return `Example:

    mayfly lifecycle validate trial.yaml --targets targets.yaml`
}

// Run validates a file.
func (c lifecycleValidateCommand) Run(ctx context.Context, s streams) error {
	d, err := readChecked(ctx, c.File, c.Targets)
	if err != nil {
		return err
	}
	transitions := 0
	for i := range d.States {
		transitions += len(d.States[i].Next)
	}
	if c.JSON {
		return writeJSON(s.out, map[string]any{"file": c.File, "lifecycle": d.Name, "states": len(d.States), "transitions": transitions})
	}
	_, err = fmt.Fprintf(s.out, "%s is valid: lifecycle %s, %d states, %d transitions\n", c.File, d.Name, len(d.States), transitions)
	return err
}

// readChecked reads a definition. With a file of targets, a handler that it does not name is an error.
func readChecked(ctx context.Context, path, targets string) (*lifecycle.Definition, error) {
	if targets == "" {
		return readDefinition(path, nil)
	}
	mappings, shut, err := openTargets(ctx, targets, nil)
	if err != nil {
		return nil, err
	}
	r := resolve.New(mappings, nil, "not in the file of --targets")
	d, err := readDefinition(path, func(handler string) error {
		_, err := r.Resolve(handler)
		return err
	})
	return d, errors.Join(err, shut())
}

type lifecycleDrawCommand struct {
	File string `arg:"" help:"YAML or JSON file of a definition."`
	SVG  string `name:"svg" help:"Write the drawing to this file as SVG; - is standard output." placeholder:"FILE"`
}

func (lifecycleDrawCommand) Help() string {
	return `Example:

    mayfly lifecycle draw trial.yaml --svg trial.svg`
}

// Run draws a definition.
func (c lifecycleDrawCommand) Run(_ context.Context, s streams) error {
	d, err := readDefinition(c.File, nil)
	if err != nil {
		return err
	}
	switch c.SVG {
	case "":
		_, err = fmt.Fprint(s.out, d.Text())
	case "-":
		_, err = fmt.Fprint(s.out, d.SVG())
	default:
		err = os.WriteFile(c.SVG, []byte(d.SVG()), 0o644)
	}
	return err
}

type lifecycleApplyCommand struct {
	File       string `arg:"" help:"YAML or JSON file of a definition."`
	Reschedule bool   `help:"Recompute the next transition of entities under way. Without it the next transition stays, and the new definition applies after it."`
	Targets    string `help:"File of targets (docs/targets.md). A handler that it does not name is an error." placeholder:"FILE"`
	JSON       bool   `name:"json" help:"Print JSON."`
	endpointFlags
}

func (lifecycleApplyCommand) Help() string {
	return `Example:

    mayfly lifecycle apply trial.yaml

A state with entities must stay, or the file must rename it: renamed: {old: new}. Calls to an unknown handler become
dead letters; --targets finds such a handler beforehand.`
}

// Run stores a definition.
func (c lifecycleApplyCommand) Run(ctx context.Context, s streams) error {
	d, err := readChecked(ctx, c.File, c.Targets)
	if err != nil {
		return err
	}
	e, l, err := c.lifecycles(ctx)
	if err != nil {
		return err
	}
	applied, err := l.Apply(ctx, *d, lifecycle.ApplyOptions{Reschedule: c.Reschedule})
	if err != nil {
		return e.adviseLifecycle(err, d.Name)
	}
	runs, err := awaitRunner(ctx, l, d.Name)
	if err != nil {
		return e.adviseLifecycle(err, d.Name)
	}
	if c.JSON {
		return writeJSON(s.out, map[string]any{
			"lifecycle": d.Name, "version": applied.Version, "unchanged": applied.Unchanged, "entities": applied.Entities, "renamed": applied.Renamed, "stuck": applied.Stuck,
			"rescheduled": applied.Rescheduled, "full": append([]string{}, applied.Full...), "runs": runs,
		})
	}
	under := 0
	for _, n := range applied.Entities {
		under += n
	}
	switch {
	case applied.Unchanged:
		fmt.Fprintf(s.out, "%s is unchanged at version %d", d.Name, applied.Version)
	default:
		fmt.Fprintf(s.out, "%s is now version %d", d.Name, applied.Version)
	}
	if under > 0 {
		fmt.Fprintf(s.out, "; entities under way: %d", under)
	}
	if applied.Renamed > 0 {
		fmt.Fprintf(s.out, ", %d in renamed states", applied.Renamed)
	}
	if applied.Rescheduled > 0 {
		fmt.Fprintf(s.out, ", %d rescheduled", applied.Rescheduled)
	}
	fmt.Fprintln(s.out)
	if applied.Stuck > 0 {
		fmt.Fprintf(s.err, "%d of them have no next transition any more; mayfly lifecycle show %s lists them with the reason\n", applied.Stuck, d.Name)
	}
	for _, id := range applied.Full {
		fmt.Fprintf(s.err, "%s is unchanged: its item would exceed the size limit; make it smaller with mayfly lifecycle set %s %s, then apply again\n", id, d.Name, id)
	}
	if !runs {
		fmt.Fprintf(s.err, "its transitions do not run yet: start mayfly lifecycle run --endpoint %s\n", e.name())
	}
	return nil
}

// awaitRunner waits briefly for a process that runs the lifecycle, and reports whether there is
// one.
func awaitRunner(ctx context.Context, l *lifecycle.Lifecycles, name string) (bool, error) {
	for end := time.Now().Add(3 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		runs, err := l.Runs(ctx, name)
		if runs || err != nil || time.Now().After(end) || ctx.Err() != nil {
			return runs, err
		}
	}
}
