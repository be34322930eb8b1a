package main

import (
	"fmt"
	"io"

	"github.com/mayflydb/mayfly/internal/bench"
)

// showSteps returns a function that shows the steps of a run: in one redrawn line on a terminal,
// otherwise in a line for each finished step.
func showSteps(out io.Writer, b bar) func(bench.Step) {
	return func(s bench.Step) {
		total, text := max(s.Total, s.Done), s.Text
		if s.Result != "" {
			text += ": " + s.Result
		}
		switch {
		case b.terminal != nil:
			b.draw(int64(s.Done), int64(total), text)
		case s.Result != "":
			fmt.Fprintf(out, "%d/%d %s\n", s.Done, total, text)
		}
	}
}
