package consume_test

import (
	"testing"
	"time"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/work/consume"
	"github.com/mayflydb/mayfly/internal/work/lease"
)

// A consumer with a new name continues where the one with the old name was, also if a crash has cut
// the copying short. The old rows are deleted, unless a worker still uses them.
func TestAdopt(t *testing.T) {
	e := open(t, "", mayfly.Options{Shards: 2})
	e.table(t, "events")
	s := newSeen()
	older := func() *consume.Consumer {
		c := e.consumer(t, "events", s)
		c.Start, c.Leases = consume.Latest, lease.Options{Duration: time.Second}
		return c
	}
	stop := run(t, older().Run)
	await(t, "the start is stored", func() bool { return e.row(t, "start").Term != 0 })
	e.put(t, "events", "a", 0, 20)
	await(t, "the first have come", func() bool { return s.count() == 20 })

	newer := func() *consume.Consumer {
		c := older()
		c.Name = "test/label"
		must(t, c.Adopt(t.Context(), "test"))
		return c
	}
	newer()
	if len(e.rows(t)) == 0 {
		t.Error("the rows of a running worker are gone")
	}
	stop()
	must(t, consume.Forget(t.Context(), e.db, "test/label", lease.Options{}))
	leases := lease.New(e.db, "test/label", lease.Options{})
	for shard, row := range e.rows(t) {
		if consume.IsShard(shard) { // as after a crash
			_, err := leases.Note(t.Context(), shard, row.Checkpoint)
			must(t, err)
			break
		}
	}
	must(t, lease.New(e.db, "test", lease.Options{}).Mark(t.Context(), "lost"))
	e.put(t, "events", "b", 0, 20)
	c := newer()
	if rows := e.rows(t); len(rows) > 0 {
		t.Errorf("of the old name there are %v", rows)
	}
	lost := lostOf{}
	c.Lost = lost.call
	run(t, c.Run)
	await(t, "the others have come", func() bool { return s.of("insert b19") > 0 && s.count() == 40 && lost.calls() == 1 })
	e.put(t, "events", "c", 0, 20)
	await(t, "the last have come", func() bool { return s.count() == 60 })
	newer() // it has a start of its own, and nothing is left to adopt
	for name, times := range s.times {
		if times != 1 {
			t.Errorf("%s has come %d times", name, times)
		}
	}
}
