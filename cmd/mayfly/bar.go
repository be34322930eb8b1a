package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// bar is a progress bar with a text, on one line of a terminal.
type bar struct {
	terminal *os.File // nil: draw nothing
	color    bool
}

func newBar(out io.Writer) bar { return bar{asTerminal(out), colours(out)} }

const barCells = 24

// draw redraws the bar with done of total units.
func (b bar) draw(done, total int64, text string) {
	if b.terminal == nil {
		return
	}
	full := int(barCells * min(done, total) / max(total, 1))
	cells := strings.Repeat("█", full) + strings.Repeat("░", barCells-full)
	if width, _, err := term.GetSize(int(b.terminal.Fd())); err == nil && width > 0 {
		room := max(width-barCells-2, 0)
		text = string([]rune(text)[:min(utf8.RuneCountInString(text), room)])
	}
	if b.color {
		cells = "\x1b[" + green + "m" + cells + "\x1b[0m"
	}
	fmt.Fprintf(b.terminal, "\r\x1b[2K%s %s", cells, text)
}

// clear erases the bar, so that the next output begins on an empty line.
func (b bar) clear() {
	if b.terminal != nil {
		fmt.Fprint(b.terminal, "\r\x1b[2K")
	}
}
