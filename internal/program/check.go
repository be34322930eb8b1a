package program

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/mayflydb/mayfly"
)

type checkCommand struct {
	Dir  string `arg:"" help:"Directory of the database. Stop the server that uses it first."`
	JSON bool   `name:"json" help:"Print every fault as a JSON line, and a summary as the last one."`
}

func (checkCommand) Help() string {
	return `Example:

    mayfly check ./data

Exit codes: 0 no damage, 3 damaged, 1 the check failed, 2 the command line is wrong. Nothing in the directory
is changed. A damaged file is reported with the tables and keys that it holds. The relations between items, indexes,
deadlines and streams are checked if the files are sound.`
}

// exitDamaged is the exit code for a damaged directory, or a copy with losses.
const exitDamaged = 3

// Run checks a directory and prints its faults.
func (c checkCommand) Run(ctx context.Context, s streams) error {
	faults := faultList{s: s, bar: newBar(s.err), json: c.JSON}
	err := mayfly.Check(ctx, c.Dir, percent(faults.bar, "checking "+c.Dir), faults.add)
	faults.end()
	if err != nil {
		return adviseOffline(err, c.Dir)
	}
	if c.JSON {
		if err := writeJSON(s.out, map[string]any{"directory": c.Dir, "sound": faults.n == 0, "faults": faults.n}); err != nil {
			return err
		}
	} else if faults.n == 0 {
		fmt.Fprintf(s.out, "%s has no damage\n", c.Dir)
	}
	if faults.n == 0 {
		return nil
	}
	return &advised{
		error: fmt.Errorf("%s is damaged: %s", c.Dir, counted(faults.n, "fault")), exit: exitDamaged,
		next: fmt.Sprintf("restore a backup, or copy the readable part with: mayfly salvage %s --to NEW", c.Dir),
	}
}

// percent returns a function that redraws a bar after each further percent.
func percent(line bar, text string) func(done, total int64) {
	drawn := int64(-1)
	return func(done, total int64) {
		if now := 100 * done / max(total, 1); now != drawn {
			drawn = now
			line.draw(done, total, fmt.Sprintf("%s: %d%%", text, now))
		}
	}
}

// faultsShown is the maximum number of faults printed as text.
const faultsShown = 100

// faultList prints faults as they are found, in place of a bar.
type faultList struct {
	s    streams
	bar  bar
	json bool
	n    int
}

func (l *faultList) add(f mayfly.Fault) {
	l.bar.clear()
	l.n++
	switch {
	case l.json:
		_ = writeJSON(l.s.out, faultJSON(f))
	case l.n <= faultsShown:
		fmt.Fprintln(l.s.out, f)
	}
}

// end clears the bar, and prints the number of faults that were left out.
func (l *faultList) end() {
	l.bar.clear()
	if !l.json && l.n > faultsShown {
		fmt.Fprintf(l.s.out, "and %d more; --json prints them all\n", l.n-faultsShown)
	}
}

// faultJSON returns the JSON object of a fault for --json.
func faultJSON(f mayfly.Fault) map[string]any {
	out := map[string]any{"fault": f.Fault}
	if f.File != "" {
		out["file"] = f.File
		if f.Offset >= 0 {
			out["offset"] = f.Offset
		}
	}
	if f.Table != "" {
		out["table"] = f.Table
	}
	var places []map[string]string
	for _, p := range f.Places {
		place := map[string]string{"what": p.What}
		for name, value := range map[string]string{"table": p.Table, "from": p.From, "to": p.To} {
			if value != "" {
				place[name] = value
			}
		}
		places = append(places, place)
	}
	if places != nil {
		out["places"] = places
	}
	return out
}

// adviseOffline returns an error from reading a directory, with advice. No server may use the
// directory meanwhile.
func adviseOffline(err error, dir string) error {
	switch {
	case errors.Is(err, mayfly.ErrLocked):
		return advise(err, "stop the server that uses %s first", dir)
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR), errors.Is(err, mayfly.ErrForeign):
		return advise(err, "give the directory that mayfly serve uses as --data")
	case errors.Is(err, mayfly.ErrFormat):
		return advise(err, "use the version of mayfly that wrote %s", dir)
	}
	return err
}
