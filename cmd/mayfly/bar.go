package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// bar is a line of a terminal that is drawn again and again: how far something is, and a text.
type bar struct {
	terminal *os.File // nil where there is none; nothing is drawn then
	color    bool
}

func newBar(out io.Writer) bar { return bar{asTerminal(out), colours(out)} }

const barCells = 24

// draw shows that done of total is done.
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

// clear takes the line away, so that what follows begins on an empty one.
func (b bar) clear() {
	if b.terminal != nil {
		fmt.Fprint(b.terminal, "\r\x1b[2K")
	}
}
