package stream

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/guard/internal/armed"
)

// An attempt that has ended is not repeated when its record is read again: nothing is written, and
// nothing armed. A later record of the same deadline is.
func TestEndedIsNotWrittenAgain(t *testing.T) {
	s, g := fleetWorker(t, openFleet(t), "a")
	write := func(record string) {
		t.Helper()
		must(t, s.write(t.Context(), []*row{shown("x", claimedAt-1000, record)}, nil))
	}
	rows := func() (n int) {
		must(t, s.store.query(t.Context(), s.store.inbox(s.store.newest(), 0), "0", "~", 0, func(map[string]types.AttributeValue) bool { n++; return true }))
		return n
	}
	for record, how := range map[string]armed.Outcome{"1": armed.Removed, "2": armed.Refused} {
		write(record)
		batch, _ := g.set.Take(claimedAt, 10)
		if len(batch) != 1 || rows() != 1 {
			t.Fatalf("record %s has armed %d deadlines and written %d rows", record, len(batch), rows())
		}
		g.set.End(batch[0], how)
		must(t, s.dropAll(t.Context(), s.toClean()))
		write(record)
		if g.set.Len() != 0 || rows() != 0 {
			t.Errorf("record %s, read again, has armed %d deadlines and written %d rows", record, g.set.Len(), rows())
		}
	}
}

// Ended attempts are remembered for long enough, and not for ever. Rows of scans are not remembered.
func TestEnded(t *testing.T) {
	e := newEnded()
	of := func(i int) *row { return &row{key: "S\x01a", at: int64(i), tag: 7} }
	for i := range 3 * endedMost {
		e.add(of(i))
		if !e.has(of(i)) || i >= endedMost && !e.has(of(i-endedMost+1)) {
			t.Fatalf("forgotten after %d", i)
		}
	}
	if n := len(e.now) + len(e.old); n > 2*endedMost {
		t.Errorf("%d are remembered", n)
	}
	last := *of(3*endedMost - 1)
	for name, change := range map[string]func(*row){
		"key": func(r *row) { r.key = "S\x01b" }, "at": func(r *row) { r.at = -1 }, "tag": func(r *row) { r.tag = 8 },
	} {
		other := last
		if change(&other); e.has(&other) {
			t.Errorf("a row with another %s is the same", name)
		}
	}
	scanned := &row{key: "S\x01a", at: 1}
	if e.add(scanned); e.has(scanned) {
		t.Error("a scan's row is remembered")
	}
}
