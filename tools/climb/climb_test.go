package main

import (
	"slices"
	"strings"
	"testing"
)

// graphOf returns a graph from lines such as "a b c": file a uses files b and c.
func graphOf(lines ...string) *graph {
	var files []string
	for _, l := range lines {
		files = append(files, strings.Fields(l)...)
	}
	slices.Sort(files)
	g := newGraph(slices.Compact(files))
	for _, l := range lines {
		names := strings.Fields(l)
		for _, to := range names[1:] {
			g.add(names[0], to, "x")
		}
	}
	return g
}

func TestClimbingArrows(t *testing.T) {
	for _, c := range []struct {
		name                   string
		graph                  *graph
		arrows, climb, circles int
	}{
		{"empty", graphOf(), 0, 0, 0},
		{"own names", graphOf("a a"), 0, 0, 0},
		{"tree", graphOf("a b c", "b d", "c d"), 4, 0, 0},
		{"tree, in any order of names", graphOf("d b c", "b a", "c a"), 4, 0, 0},
		{"two that use each other", graphOf("a b", "b a"), 2, 1, 2},
		{"circle of three", graphOf("a b", "b c", "c a"), 3, 1, 3},
		{"circle with a tail", graphOf("a b", "b c", "c b d"), 4, 1, 2},
		{"one back arrow breaks two circles", graphOf("a b c", "b d", "c d", "d a"), 5, 1, 5},
		{"all use all", graphOf("a b c", "b a c", "c a b"), 6, 3, 6},
	} {
		if n := c.graph.count(); n != c.arrows {
			t.Errorf("%s: %d arrows; want %d", c.name, n, c.arrows)
		}
		order := c.graph.order()
		if sorted := slices.Sorted(slices.Values(order)); len(slices.Compact(sorted)) != len(c.graph.files) {
			t.Errorf("%s: the order %v does not have every file once", c.name, order)
		}
		if n := len(c.graph.climbing(order)); n != c.climb {
			t.Errorf("%s: %d arrows climb in %v; want %d", c.name, n, order, c.climb)
		}
		if n := c.graph.circular(); n != c.circles {
			t.Errorf("%s: %d arrows on circles; want %d", c.name, n, c.circles)
		}
	}
}

// TestOwnPackage runs the program on its own source. The output names the package and its files.
func TestOwnPackage(t *testing.T) {
	var out strings.Builder
	if err := run(&out, []string{"."}, true, 100); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "tools/climb") || !strings.Contains(out.String(), "  main.go\n") {
		t.Errorf("the output names neither the package nor its files:\n%s", out.String())
	}
}

// TestTooSteep: a package with a larger share than asked for is an error.
func TestTooSteep(t *testing.T) {
	if err := run(&strings.Builder{}, []string{"."}, false, -1); err == nil {
		t.Error("a share above the limit is no error")
	}
	if err := run(&strings.Builder{}, []string{"./does-not-exist"}, false, 100); err == nil {
		t.Error("a package that does not exist is no error")
	}
}
