package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/mayflydb/mayfly/internal/bench"
)

// stepDisplay shows the steps of a run: on a terminal as one line that is drawn again, elsewhere as a line for each step that has
// ended.
type stepDisplay struct {
	out      io.Writer
	terminal *os.File // nil where there is none
	color    bool
}

func newStepDisplay(out io.Writer) *stepDisplay {
	d := &stepDisplay{out: out, color: os.Getenv("NO_COLOR") == ""}
	if file, ok := out.(*os.File); ok && term.IsTerminal(int(file.Fd())) && os.Getenv("TERM") != "dumb" {
		d.terminal = file
	}
	return d
}

const stepBarWidth = 24

func (d *stepDisplay) show(s bench.Step) {
	if d.terminal == nil {
		if s.Result != "" {
			fmt.Fprintf(d.out, "%d/%d %s: %s\n", s.Done, max(s.Total, s.Done), s.Text, s.Result)
		}
		return
	}
	text := s.Text
	if s.Result != "" {
		text += ": " + s.Result
	}
	full := stepBarWidth * s.Done / max(s.Total, s.Done, 1)
	bar := strings.Repeat("█", full) + strings.Repeat("░", stepBarWidth-full)
	if width, _, err := term.GetSize(int(d.terminal.Fd())); err == nil && width > 0 {
		room := max(width-stepBarWidth-2, 0)
		text = string([]rune(text)[:min(utf8.RuneCountInString(text), room)])
	}
	if d.color {
		bar = "\x1b[" + green + "m" + bar + "\x1b[0m"
	}
	fmt.Fprintf(d.out, "\r\x1b[2K%s %s", bar, text)
}

// end clears the line, so that the report begins on an empty one.
func (d *stepDisplay) end() {
	if d.terminal != nil {
		fmt.Fprint(d.out, "\r\x1b[2K")
	}
}
