package main

import (
	"fmt"
	"io"

	"github.com/mayflydb/mayfly/internal/bench"
)

// stepDisplay shows the steps of a run: one redrawn line on a terminal, otherwise a line for each
// finished step.
type stepDisplay struct {
	out io.Writer
	bar bar
}

func newStepDisplay(out io.Writer) *stepDisplay { return &stepDisplay{out, newBar(out)} }

func (d *stepDisplay) show(s bench.Step) {
	total := max(s.Total, s.Done)
	if d.bar.terminal == nil {
		if s.Result != "" {
			fmt.Fprintf(d.out, "%d/%d %s: %s\n", s.Done, total, s.Text, s.Result)
		}
		return
	}
	text := s.Text
	if s.Result != "" {
		text += ": " + s.Result
	}
	d.bar.draw(int64(s.Done), int64(total), text)
}

// end clears the line, so that the report begins on an empty one.
func (d *stepDisplay) end() { d.bar.clear() }
