package program

import (
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// table prints aligned columns under a heading.
type table struct {
	heading []string
	rows    [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// write prints the table. With colours the heading is dim.
func (t *table) write(to io.Writer) error {
	widths := make([]int, len(t.heading))
	for _, row := range append([][]string{t.heading}, t.rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(oneLine(cell)))
		}
	}
	var b strings.Builder
	heading := alignCells(t.heading, widths)
	if colours(to) {
		heading = "\x1b[" + dim + "m" + heading + "\x1b[0m"
	}
	b.WriteString(heading + "\n")
	for _, row := range t.rows {
		b.WriteString(alignCells(row, widths) + "\n")
	}
	_, err := io.WriteString(to, b.String())
	return err
}

func alignCells(cells []string, widths []int) string {
	var b strings.Builder
	for i, cell := range cells {
		cell = oneLine(cell)
		b.WriteString(cell)
		if i < len(cells)-1 {
			b.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+2))
		}
	}
	return strings.TrimRight(b.String(), " ")
}

// oneLine returns a cell's text without line breaks and control characters, since endpoints could
// use them to control the terminal.
func oneLine(text string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f || c >= 0x80 && c < 0xa0 {
			return ' '
		}
		return c
	}, text)
}

// colours reports whether the output may be coloured: a terminal that can, and no request against
// it.
func colours(to io.Writer) bool {
	return os.Getenv("NO_COLOR") == "" && asTerminal(to) != nil
}

// asTerminal returns the file of a terminal that can redraw lines, or nil.
func asTerminal(to any) *os.File {
	if file, ok := to.(*os.File); ok && term.IsTerminal(int(file.Fd())) && os.Getenv("TERM") != "dumb" {
		return file
	}
	return nil
}
