package program

import (
	"bytes"
	"slices"
	"testing"
)

// A listing that is sorted keeps the first rows of any number, in a bounded amount of memory.
func TestFirstRows(t *testing.T) {
	first := firstRows[int]{limit: 3, before: func(a, b *int) bool { return *a < *b }}
	for n := 5 * listingMax; n > 0; n-- {
		first.add(n)
	}
	if len(first.rows) > 2*listingMax {
		t.Errorf("%d rows are kept, want at most %d", len(first.rows), 2*listingMax)
	}
	if rows := first.sorted(); !slices.Equal(rows, []int{1, 2, 3}) || !first.more {
		t.Errorf("got the rows %v and more %v, want 1, 2, 3 and more", rows, first.more)
	}
}

func TestListing(t *testing.T) {
	for _, test := range []struct {
		name     string
		rows     []string
		json     bool
		out, err string
	}{
		{"no rows", nil, false, "no hares\n", ""},
		{"no rows as JSON", nil, true, "", ""},
		{"table", []string{"a"}, false, "Name\na\n", ""},
		{"JSON", []string{"a", "b"}, true, "\"a\"\n\"b\"\n", ""},
		{"more rows than the limit", []string{"a", "b", "c"}, false, "Name\na\nb\n", "there are more than 2; --limit 0 shows all\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var out, err bytes.Buffer
			s := streams{&out, &err}
			l := listing{table: table{heading: []string{"Name"}}, plural: "hares", json: test.json, limit: 2, hint: "--limit 0 shows all"}
			for _, name := range test.rows[:l.fit(len(test.rows))] {
				if err := l.show(s, name, name); err != nil {
					t.Fatal(err)
				}
			}
			if err := l.end(s); err != nil {
				t.Fatal(err)
			}
			if out.String() != test.out || err.String() != test.err {
				t.Errorf("printed %q and %q, want %q and %q", out.String(), err.String(), test.out, test.err)
			}
		})
	}
}
