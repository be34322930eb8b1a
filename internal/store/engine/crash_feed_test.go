package engine

import (
	"context"
	"slices"
)

// crashFeeds are the destinations of table events, one after the other.
var crashFeeds = []string{feedOne, "", feedTwo, feedOne}

// changeFeed gives table events the n-th destination.
func (r *crashRun) changeFeed(ctx context.Context, e *Engine, n int) bool {
	r.feed.changing = true
	to := crashFeeds[n%len(crashFeeds)]
	_, err := e.Alter(ctx, "default", "events", func(d *TableDesc, _ Instant) error {
		d.Feed.Destination = to
		return nil
	})
	if err == nil {
		r.feed.acked, r.feed.changing = to, false
	}
	return err == nil
}

// checkFeeds checks that the feeds of table events have exactly the records that its stream got
// while they were enabled. checkRecords shows that the stream has one of each acknowledged write.
func (a *afterCrash) checkFeeds() {
	a.t.Helper()
	if to := a.tables["events"].Desc().Feed.Destination; to != a.run.feed.acked && !a.run.feed.changing {
		a.t.Errorf("the destination %q was acknowledged and is lost: it is %q", a.run.feed.acked, to)
	}
	feeds, err := a.Feeds()
	if err != nil {
		a.t.Fatal(err)
	}
	fed := 0
	for i, f := range feeds {
		first, last := f.Shards[0].First, ^uint64(0)
		for _, sh := range f.Shards {
			first = min(first, sh.First)
			if f.Disabled != 0 {
				last = sh.Last // all were closed at once, or earlier by a child
			}
		}
		if f.Disabled == 0 && i < len(feeds)-1 {
			a.t.Errorf("feed %d is enabled beside feed %d", f.ID, feeds[len(feeds)-1].ID)
		}
		want := map[string][]string{}
		for key, rs := range a.records {
			for _, rec := range rs {
				if key.table == "events" && rec.Seq >= first && rec.Seq <= last {
					want[key.key] = append(want[key.key], feedText(rec))
				}
			}
		}
		got := map[string][]string{}
		for _, sh := range parentsFirst(f.Shards) {
			rs, _ := a.shardRecords(f.ID, sh)
			for _, rec := range rs {
				got[rec.Keys.String()] = append(got[rec.Keys.String()], feedText(rec))
			}
		}
		for _, h := range a.run.keys {
			key := h.key.String()
			if h.table == "events" && !slices.Equal(got[key], want[key]) {
				a.t.Errorf("feed %d has of %s\n%q\nthe stream has\n%q", f.ID, key, got[key], want[key])
			}
			if h.table == "events" {
				fed += len(got[key])
				delete(got, key)
			}
		}
		if len(got) > 0 {
			a.t.Errorf("feed %d has records of other keys: %v", f.ID, got)
		}
	}
	if a.run.cut < 0 && fed == 0 {
		a.t.Error("no feed has a record after the whole workload, so the test shows nothing")
	}
}

// feedText returns a record without its sequence number: the one in the stream has another.
func feedText(r Record) string {
	r.Seq = 0
	return recordText(r)
}
