package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// graph is the arrows between the files of a package. Files are known by their index.
type graph struct {
	files []string
	names []map[int][]string // from one file to another: the names used
}

func newGraph(files []string) *graph {
	g := &graph{files: slices.Sorted(slices.Values(files))}
	g.names = make([]map[int][]string, len(files))
	for i := range g.names {
		g.names[i] = map[int][]string{}
	}
	return g
}

// add adds an arrow because of a name. A file's use of its own names is none.
func (g *graph) add(from, to, name string) {
	a, okFrom := slices.BinarySearch(g.files, from)
	b, okTo := slices.BinarySearch(g.files, to)
	if okFrom && okTo && a != b && !slices.Contains(g.names[a][b], name) {
		g.names[a][b] = append(g.names[a][b], name)
	}
}

// count returns the number of arrows.
func (g *graph) count() (n int) {
	for _, to := range g.names {
		n += len(to)
	}
	return n
}

// share returns the percentage that n has of the arrows.
func (g *graph) share(n int) float64 {
	if g.count() == 0 {
		return 0
	}
	return 100 * float64(n) / float64(g.count())
}

// circular returns the number of arrows from whose end their beginning can be reached.
func (g *graph) circular() (n int) {
	reached := make([][]bool, len(g.files)) // from a file: each file that arrows lead to
	for f := range g.files {
		reached[f] = make([]bool, len(g.files))
		g.reach(f, reached[f])
	}
	for from := range g.files {
		for to := range g.names[from] {
			if reached[to][from] {
				n++
			}
		}
	}
	return n
}

// reach marks each file that arrows lead to from a file.
func (g *graph) reach(from int, reached []bool) {
	for to := range g.names[from] {
		if !reached[to] {
			reached[to] = true
			g.reach(to, reached)
		}
	}
}

// arrow is an arrow between two files.
type arrow struct{ from, to int }

// climbing returns the arrows that point up in an order of the files, from top to bottom.
func (g *graph) climbing(order []int) (back []arrow) {
	for i, from := range order {
		for _, to := range order[:i] {
			if g.names[from][to] != nil {
				back = append(back, arrow{from, to})
			}
		}
	}
	return back
}

// print prints the order and the arrows that climb.
func (g *graph) print(out io.Writer, order []int, back []arrow) {
	for _, f := range order {
		fmt.Fprintf(out, "  %s\n", g.files[f])
		for _, a := range back {
			if a.from == f {
				slices.Sort(g.names[f][a.to])
				fmt.Fprintf(out, "      up to %s: %s\n", g.files[a.to], strings.Join(g.names[f][a.to], ", "))
			}
		}
	}
}
