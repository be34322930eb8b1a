package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

const (
	feedOne = "arn:aws:kinesis:us-east-1:000000000000:stream/one"
	feedTwo = "arn:aws:kinesis:us-east-1:000000000000:stream/two"
)

// alter changes a table's description.
func (d *db) alter(tab *Table, change func(*TableDesc)) {
	d.t.Helper()
	_, err := d.Alter(context.Background(), "default", tab.Desc().Name, func(td *TableDesc, _ Instant) error {
		change(td)
		return nil
	})
	if err != nil {
		d.t.Fatal(err)
	}
}

// feed enables a table's feed for a destination, or disables it for "".
func (d *db) feed(tab *Table, destination string) {
	d.t.Helper()
	d.alter(tab, func(td *TableDesc) { td.Feed.Destination = destination })
}

// feeds returns the records of each feed, oldest first, each record as its event and images. "gone"
// at its end says that the feed is disabled.
func (d *db) feeds() (out []string) {
	d.t.Helper()
	all, err := d.Feeds()
	if err != nil {
		d.t.Fatal(err)
	}
	for _, f := range all {
		var records []Record
		for _, sh := range f.Shards {
			rs, _ := d.shardRecords(f.ID, sh)
			records = append(records, rs...)
		}
		out = append(out, shown(records))
		if f.Disabled != 0 {
			out[len(out)-1] += "gone"
		}
	}
	return out
}

// shown returns records as text, in the order of their sequence numbers. An image is shown as its
// n.
func shown(records []Record) string {
	bySeq := map[uint64]string{}
	highest := uint64(0)
	for _, r := range records {
		text := map[Event]string{Insert: "+", Modify: "*", Remove: "-"}[r.Event]
		if r.Service {
			text += "!"
		}
		if r.Old != nil {
			text += r.Old.Get("n").Number().String()
		}
		text += ">"
		if r.New != nil {
			text += r.New.Get("n").Number().String()
		}
		bySeq[r.Seq] += text + " "
		highest = max(highest, r.Seq)
	}
	var b strings.Builder
	for seq := range highest + 1 {
		b.WriteString(bySeq[seq])
	}
	return b.String()
}

// A feed has both images of every change from its enabling to its disabling, beside a stream of
// each view type and without one. The API's stream is as without a feed.
func TestFeed(t *testing.T) {
	for view, own := range map[string]string{
		"": "", "KEYS_ONLY": "+> *> *> -> +> -!> ", "OLD_IMAGE": "+> *1> *2> -3> +> -!5> ", "NEW_IMAGE": "+>1 *>2 *>3 -> +>5 -!> ",
		"NEW_AND_OLD_IMAGES": "+>1 *1>2 *2>3 -3> +>5 -!5> ",
	} {
		for _, plain := range []bool{true, false} {
			t.Run(fmt.Sprintf("view %q, plain %v", view, plain), func(t *testing.T) {
				d := openMemory(t)
				tab := d.table("events", func(td *TableDesc) {
					td.Stream.ViewType = view
					if plain {
						td.Indexes = nil
					}
				})
				put := func(n int) { d.put(tab, item("pk", "a", "sk", 1, "g", "x", "n", n)) }
				put(1)
				d.feed(tab, feedOne)
				put(2)
				put(3)
				put(3) // no change
				d.delete(tab, item("pk", "a", "sk", 1))
				d.put(tab, item("pk", "a", "sk", 1, "n", 5, "ttl", unix(time.Second)))
				d.advance(time.Second)
				if got, want := fmt.Sprint(d.feeds()), "[*1>2 *2>3 -3> +>5 -!5> ]"; got != want {
					t.Errorf("the feed has %s, want %s", got, want)
				}
				if streams, err := d.Streams(); err != nil || len(streams) != min(len(view), 1) {
					t.Errorf("%d streams are shown, %v", len(streams), err)
				}
				if view != "" {
					if got := shownOf(d, tab); got != own {
						t.Errorf("the stream has %s, want %s", got, own)
					}
				}
				if _, err := d.StreamByLabel("default", "events", tab.Desc().Feed.Label); !errors.Is(err, ErrStreamNotFound) {
					t.Errorf("the feed is found as a stream: %v", err)
				}
				d.feed(tab, "")
				put(6)
				if got, want := fmt.Sprint(d.feeds()), "[*1>2 *2>3 -3> +>5 -!5> gone]"; got != want {
					t.Errorf("the disabled feed has %s, want %s", got, want)
				}
				d.verify()
			})
		}
	}
}

func shownOf(d *db, tab *Table) string { return shown(d.records(tab)) }

// The stream and the feed of a table are enabled and disabled independently, in any order. A new
// stream starts empty, and a disabled one keeps its records.
func TestFeedBesideStream(t *testing.T) {
	d := openMemory(t)
	tab := d.table("events", func(td *TableDesc) { td.Stream.ViewType, td.TTL, td.Indexes = "", TTLDesc{}, nil })
	put := func(n int) { // does not ask for the old item
		t.Helper()
		it := item("pk", "a", "sk", 1, "n", n)
		w := &Write{Table: tab, Key: keyOf(t, tab, it), Decide: func(dynamo.Item, Instant) (dynamo.Item, error) { return it, nil }}
		if err := d.Write(context.Background(), w); err != nil {
			t.Fatal(err)
		}
	}
	own := func(view string) { d.alter(tab, func(td *TableDesc) { td.Stream.ViewType = view }) }
	put(1)
	d.feed(tab, feedOne)
	put(2)
	own("NEW_IMAGE")
	if got := shownOf(d, tab); got != "" {
		t.Errorf("the new stream has %s", got)
	}
	first := d.stream(tab)
	put(3)
	d.feed(tab, "")
	put(4)
	own("")
	put(5)
	d.feed(tab, feedTwo)
	put(6)
	own("OLD_IMAGE")
	put(7)
	if got, want := shownOf(d, tab), "*6> "; got != want {
		t.Errorf("the second stream has %s, want %s", got, want)
	}
	own("")
	put(8)
	var old []Record
	for _, sh := range first.Shards {
		rs, _ := d.shardRecords(first.ID, sh)
		old = append(old, rs...)
	}
	if got, want := shown(old), "*>3 *>4 "; got != want {
		t.Errorf("the first stream has %s, want %s", got, want)
	}
	if got, want := fmt.Sprintf("%q", d.feeds()), `["*1>2 *2>3 gone" "*5>6 *6>7 *7>8 "]`; got != want {
		t.Errorf("the feeds have %s, want %s", got, want)
	}
	d.drop(tab)
	if got, want := fmt.Sprintf("%q", d.feeds()), `["*1>2 *2>3 gone" "*5>6 *6>7 *7>8 gone"]`; got != want {
		t.Errorf("after the table's end: the feeds have %s, want %s", got, want)
	}
	d.verify()
}

// A change of the destination ends the feed and starts another; one of the precision does not.
func TestFeedChanges(t *testing.T) {
	d := openMemory(t)
	tab := d.table("events", func(td *TableDesc) { td.Stream.ViewType = "" })
	d.alter(tab, func(td *TableDesc) { td.Feed.Destination, td.Feed.Precision = feedOne, "MILLISECOND" })
	d.put(tab, item("pk", "a", "sk", 1, "n", 1))
	d.alter(tab, func(td *TableDesc) { td.Feed.Precision = "MICROSECOND" })
	f, err := d.FeedByLabel("default", "events", tab.Desc().Feed.Label)
	if err != nil || f.Precision != "MICROSECOND" || f.Destination != feedOne || f.Disabled != 0 {
		t.Errorf("%+v, %v", f, err)
	}
	d.feed(tab, feedTwo)
	d.put(tab, item("pk", "a", "sk", 1, "n", 2))
	if got, want := fmt.Sprintf("%q", d.feeds()), `["+>1 gone" "*1>2 "]`; got != want {
		t.Errorf("the feeds have %s, want %s", got, want)
	}
}

// A feed survives a restart with its records. A disabled one can be finished, which survives too.
func TestFinishFeed(t *testing.T) {
	dir := newDirectory()
	d := dir.open(t)
	tab := d.table("events")
	d.feed(tab, feedOne)
	d.put(tab, item("pk", "a", "sk", 1, "n", 1))
	d.close()
	d = dir.open(t)
	tab = d.reopened("events")
	d.put(tab, item("pk", "a", "sk", 1, "n", 2))
	want := func(finished bool, records string) {
		t.Helper()
		all, err := d.Feeds()
		if err != nil || len(all) != 1 || all[0].Finished != finished {
			t.Fatalf("feeds %+v, %v", all, err)
		}
		if got := fmt.Sprintf("%q", d.feeds()); got != records {
			t.Errorf("the feeds have %s, want %s", got, records)
		}
	}
	finish := func(id uint32) {
		t.Helper()
		if err := d.FinishFeed(id); err != nil {
			t.Fatal(err)
		}
	}
	feed, stream := tab.Desc().Feed.ID, tab.Desc().Stream.ID
	finish(feed) // still enabled
	want(false, `["+>1 *1>2 "]`)
	d.alter(tab, func(td *TableDesc) { td.Stream.ViewType, td.Feed.Destination = "", "" })
	finish(stream) // no feed
	finish(99)
	want(false, `["+>1 *1>2 gone"]`)
	finish(feed)
	want(true, `["+>1 *1>2 gone"]`)
	d.close()
	if faults := checkAll(t, dir.fs, "data"); len(faults) > 0 {
		t.Error(faults)
	}
	d = dir.open(t)
	want(true, `["+>1 *1>2 gone"]`)
}

// A feed that no reader has read is trimmed like a stream, and goes with its last record.
func TestFeedAges(t *testing.T) {
	d := openMemory(t)
	tab := d.table("events", func(td *TableDesc) { td.Stream.ViewType = "" })
	d.feed(tab, feedOne)
	d.put(tab, item("pk", "a", "sk", 1, "n", 1))
	d.feed(tab, "")
	d.advance(23 * time.Hour)
	if got, want := fmt.Sprintf("%q", d.feeds()), `["+>1 gone"]`; got != want {
		t.Errorf("the feeds have %s, want %s", got, want)
	}
	d.advance(2 * time.Hour)
	if got := fmt.Sprintf("%q", d.feeds()); got != "[]" {
		t.Errorf("the feeds have %s", got)
	}
}

// Many items expire at once. The stream and the feed have one record of each removal, whether the
// removals were prepared or not.
func TestFeedOfReaper(t *testing.T) {
	d := openMemory(t)
	tab := d.table("events", func(td *TableDesc) { td.Stream.ViewType, td.Indexes = "KEYS_ONLY", nil })
	d.still() // before the feed: else the table's own preparer may pass the deadlines first
	d.feed(tab, feedOne)
	const n = 3000
	for i := range n {
		d.put(tab, item("pk", fmt.Sprint(i), "sk", 1, "n", i, "v", "before", "ttl", unix(time.Second)))
	}
	for range n / 2 / reapSlice {
		d.prepare(tab, d.Now())
	}
	ready := len(tab.prepared.list)
	for _, p := range tab.prepared.list { // to tell the prepared removals from the others
		p.feed.value = bytes.Replace(p.feed.value, []byte("before"), []byte("ahead!"), 1)
	}
	d.drainAt(tab, time.Second)
	used := 0
	feed, err := d.FeedByLabel("default", "events", tab.Desc().Feed.Label)
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]*StreamDesc{"stream": d.stream(tab), "feed": feed} {
		removed := map[string]int{}
		for _, sh := range s.Shards {
			rs, _ := d.shardRecords(s.ID, sh)
			for _, r := range rs {
				if r.Event != Remove {
					continue
				}
				removed[r.Keys.String()]++
				if whole := r.Old.Get("n") != nil; !r.Service || whole != (name == "feed") {
					t.Fatalf("%s: %+v", name, r)
				}
				if name == "feed" && string(r.Old.Get("v").Bytes()) == "ahead!" {
					used++
				}
			}
		}
		for key, times := range removed {
			if times != 1 {
				t.Errorf("%s: %d removals of %s", name, times, key)
			}
		}
		if len(removed) != n {
			t.Errorf("%s: %d removals, want %d", name, len(removed), n)
		}
	}
	if ready == 0 || ready == n || used != ready {
		t.Errorf("%d removals of %d were prepared, and %d of those were used", ready, n, used)
	}
	d.verify()
}
