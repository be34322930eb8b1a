package program

import (
	"strings"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/guard"
)

// A narrow terminal shows the numbers without the bar, on one line.
func TestBarFits(t *testing.T) {
	scan := activity{table: "orders", Progress: guard.Progress{Doing: guard.WholeScan, Done: 40, Total: 100, Unit: "items"}, timeLeft: 20 * time.Second}
	long := scan
	long.table = strings.Repeat("long-name", 20)
	for _, c := range []struct {
		width int
		text  string
		cells int
		shown string
	}{
		{80, scan.text(), 24, "orders: scan, 40 of about 100 items, 20s left"},
		{60, scan.text(), 8, "orders: scan, 40 of about 100 items, 20s left"},
		{50, scan.text(), 0, "orders: scan, 40 of about 100 items, 20s left"},
		{40, scan.text(), 0, "scan, 40 of about 100 items, 20s left"},
		{40, long.text(), 0, "scan, 40 of about 100 items, 20s left"},
		{30, scan.text(), 0, "scan, 40 of about 100 items, "},
		{40, "12 of about 200 items", 16, "12 of about 200 items"},
		{30, "12 of about 200 items", 0, "12 of about 200 items"},
		{40, "1000 samples read, 900 written, 100/s", 0, "1000 samples read, 900 written, 100/s"},
		{1, scan.text(), 0, ""},
	} {
		cells, shown := fitBar(c.width, c.text)
		if cells != c.cells || shown != c.shown {
			t.Errorf("%d columns show %d cells and %q; want %d and %q", c.width, cells, shown, c.cells, c.shown)
		}
	}
}
