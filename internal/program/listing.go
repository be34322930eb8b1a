package program

import (
	"fmt"
	"slices"
	"sort"
)

// listing prints rows as a table, or as JSON lines. All commands that list a table share it.
type listing struct {
	table
	plural string // the rows, for "no reminders"; "": a table without rows is its heading
	json   bool   // print JSON lines instead of a table
	limit  int    // maximum number of rows; 0: no limit
	hint   string // how to see more than limit rows

	count int
	more  bool // rows beyond the limit were left out
}

// fit returns how many of the next n rows are within the limit, and counts them.
func (l *listing) fit(n int) int {
	if l.limit > 0 && l.count+n > l.limit {
		n, l.more = l.limit-l.count, true
	}
	l.count += n
	return n
}

// show prints value as a JSON line, or keeps the cells for the table that end prints.
func (l *listing) show(s streams, value any, cells ...string) error {
	if l.json {
		return writeJSON(s.out, value)
	}
	l.add(cells...)
	return nil
}

// end prints the table, or that there are no rows, and then on standard error that there are more.
func (l *listing) end(s streams) error {
	if l.more {
		defer fmt.Fprintf(s.err, "there are more than %d; %s\n", l.limit, l.hint)
	}
	switch {
	case l.json:
		return nil
	case len(l.rows) == 0 && l.plural != "":
		_, err := fmt.Fprintln(s.out, "no "+l.plural)
		return err
	}
	return l.write(s.out)
}

// listingMax is the highest --limit of a listing that is sorted, which is kept in memory.
const listingMax = 10_000

// checkLimit returns an error if the --limit of a sorted listing is out of range.
func checkLimit(limit int) error {
	if limit < 1 || limit > listingMax {
		return misused(fmt.Errorf("--limit %d is not between 1 and %d", limit, listingMax), "for example --limit 100")
	}
	return nil
}

// firstRows keeps the first limit rows in the order of before, out of any number of rows.
type firstRows[T any] struct {
	limit  int
	before func(a, b *T) bool
	rows   []T
	more   bool // rows beyond the limit were dropped
}

// add keeps the row unless limit rows come before it. Memory is bounded by listingMax.
func (f *firstRows[T]) add(row T) {
	if f.rows = append(f.rows, row); len(f.rows) > 2*listingMax {
		f.sorted()
	}
}

// sorted drops the rows beyond the limit and returns the others in order.
func (f *firstRows[T]) sorted() []T {
	sort.Slice(f.rows, func(i, j int) bool { return f.before(&f.rows[i], &f.rows[j]) })
	if len(f.rows) > f.limit {
		f.rows, f.more = slices.Clone(f.rows[:f.limit]), true
	}
	return f.rows
}
