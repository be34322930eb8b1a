package kv

import (
	"fmt"
	"strings"
	"testing"
)

// The bound holds for values in the memtable, in tables and in both, however well they compress. It
// covers other spans only as far as they share a table.
func TestBoundBytes(t *testing.T) {
	db, err := Open(Options{Durability: Memory})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	const each, n = 20_000, 200
	put := func(space string) {
		t.Helper()
		for i := range n {
			if err := write(db, fmt.Sprintf("%s%04d=", space, i)+strings.Repeat("x", each)); err != nil {
				t.Fatal(err)
			}
		}
	}
	bound := func(space string) int64 {
		t.Helper()
		got, err := db.BoundBytes(Span{[]byte(space), []byte(space + "~")})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	const all = each * n
	put("a")
	if got := bound("a"); got < all {
		t.Errorf("in the memtable and tables: %d, want %d or more", got, all)
	}
	if err := db.Flush(); err != nil {
		t.Fatal(err)
	}
	memtable := int64(db.Metrics().MemTableBytes) // empty, and it counts with its whole room
	if got := bound("a") - memtable; got < all || got > all+all/2 {
		t.Errorf("in tables: %d, want about %d", got, all)
	}
	if got := bound("b") - memtable; got != 0 {
		t.Errorf("where nothing is: %d", got)
	}
	put("b")
	if got, both := bound("a"), bound("b"); got < all || both < all {
		t.Errorf("with others: %d and %d, want %d or more", got, both, all)
	}
}
