package bench

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
)

// grid is a table of texts, with rows and columns in the order of their first mention.
type grid struct {
	rows, columns []string
	cells         map[[2]string]string
}

// add appends a text to a cell.
func (g *grid) add(row, column, text string) {
	if g.cells == nil {
		g.cells = map[[2]string]string{}
	}
	if !slices.Contains(g.rows, row) {
		g.rows = append(g.rows, row)
	}
	if !slices.Contains(g.columns, column) {
		g.columns = append(g.columns, column)
	}
	g.cells[[2]string{row, column}] += text
}

// write writes the rows, each as one line. Empty cells have the text of empty.
func (g *grid) write(w io.Writer, begin, between, end, empty string) {
	for _, row := range g.rows {
		texts := []string{row}
		for _, column := range g.columns {
			texts = append(texts, cmp.Or(g.cells[[2]string{row, column}], empty))
		}
		fmt.Fprintln(w, begin+strings.Join(texts, between)+end)
	}
}
