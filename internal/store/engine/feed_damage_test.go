package engine

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mayflydb/mayfly/internal/store/kv"
)

const feedLost = "the description of the stream for its Kinesis destination is lost"

// feedDamages are the ways in which a table and its feed do not fit each other. fault is what a
// check says of it, and lost what a salvage does; empty: nothing.
var feedDamages = map[string]struct {
	edit        func(b *kv.Batch, td *TableDesc, f *StreamDesc)
	fault, lost string
}{
	"sound":   {func(*kv.Batch, *TableDesc, *StreamDesc) {}, "", ""},
	"missing": {func(b *kv.Batch, _ *TableDesc, f *StreamDesc) { b.Delete(idKey(catStream, f.ID)) }, "has no description", feedLost},
	"for another destination": {func(b *kv.Batch, _ *TableDesc, f *StreamDesc) {
		f.Destination = feedTwo
		setJSON(b, idKey(catStream, f.ID), f)
	}, "is of another stream", feedLost},
	"with another label": {func(b *kv.Batch, _ *TableDesc, f *StreamDesc) {
		f.Label = "2025-01-01T00:00:00.000" + string(feedStream)
		setJSON(b, idKey(catStream, f.ID), f)
	}, "is of another stream", feedLost},
	"disabled": {func(b *kv.Batch, _ *TableDesc, f *StreamDesc) {
		f.disable(f.Shards[0].First+10, f.Created)
		setJSON(b, idKey(catStream, f.ID), f)
	}, "is of another stream", feedLost},
	"forgotten": {func(b *kv.Batch, td *TableDesc, _ *StreamDesc) {
		td.Feed = FeedSpec{}
		setJSON(b, tableCatalogueKey("default", "events"), td)
	}, "it is enabled, and its table does not write to it", "is disabled: the table's description is lost or names another"},
}

// damagedFeed returns a closed directory with a table and its feed, which has one record, after an
// edit of their descriptions.
func damagedFeed(t *testing.T, edit func(b *kv.Batch, td *TableDesc, f *StreamDesc)) directory {
	t.Helper()
	dir := newDirectory()
	d := dir.open(t)
	tab := d.table("events")
	d.feed(tab, feedOne)
	d.put(tab, item("pk", "a", "sk", 1, "n", 1))
	td := tab.Desc().clone()
	f, err := d.FeedByLabel("default", "events", td.Feed.Label)
	if err != nil {
		t.Fatal(err)
	}
	d.close()
	editStore(t, dir, func(b *kv.Batch) { edit(b, td, f.clone()) })
	return dir
}

// A check names a feed that does not fit its table, and a salvage makes it sound.
func TestFeedDamaged(t *testing.T) {
	says := func(what string, got []Fault, want string) {
		t.Helper()
		if text := fmt.Sprint(got); !strings.Contains(text, want) || (want == "") != (len(got) == 0) {
			t.Errorf("%s: %s, want %q", what, text, want)
		}
	}
	for name, c := range feedDamages {
		t.Run(name, func(t *testing.T) {
			dir := damagedFeed(t, c.edit)
			says("faults", checkAll(t, dir.fs, "data"), c.fault)
			says("lost", salvageInto(t, dir, "new"), c.lost)
			says("faults of the new directory", checkAll(t, dir.fs, "new"), "")
		})
	}
}

// A change of a table's description, even one that changes nothing, starts a new feed for a
// destination whose feed does not work. All earlier feeds are disabled then, since the reader of
// the new one waits for them.
func TestFeedMended(t *testing.T) {
	for name, c := range feedDamages {
		t.Run(name, func(t *testing.T) {
			dir := damagedFeed(t, c.edit)
			d := dir.open(t)
			tab := d.reopened("events")
			before := tab.Desc()
			if works := d.Feeding(before); works != (name == "sound") {
				t.Errorf("the feed works: %v", works)
			}
			d.feed(tab, feedOne)
			if !d.Feeding(tab.Desc()) {
				t.Error("the feed does not work after the change")
			}
			if kept := tab.Desc().Feed == before.Feed; kept != (name == "sound") {
				t.Errorf("the feed is kept: %v", kept)
			}
			d.put(tab, item("pk", "a", "sk", 1, "n", 2))
			feeds := d.feeds()
			want := "*1>2 "
			if name == "sound" {
				want = "+>1 *1>2 "
			}
			if last := feeds[len(feeds)-1]; last != want {
				t.Errorf("the last feed has %q, want %q", last, want)
			}
			for _, f := range feeds[:len(feeds)-1] {
				if !strings.HasSuffix(f, "gone") {
					t.Errorf("an earlier feed is enabled: %q", f)
				}
			}
			d.close()
			if faults := checkAll(t, dir.fs, "data"); name != "missing" && len(faults) > 0 {
				t.Errorf("the directory is not sound: %v", faults) // without its description records are strays
			}
		})
	}
}

// A stream and a feed that replace lost ones have ids that were never used, even if the identifiers
// are lost too, and labels that no stream of a dropped table with the same name has.
func TestSalvageNamesStreams(t *testing.T) {
	dir := newDirectory()
	d := dir.open(t)
	dropped := d.table("events")
	d.feed(dropped, feedOne)
	d.drop(dropped)
	tab := d.table("events")
	d.feed(tab, feedOne)
	lost := tab.Desc()
	d.close()
	editStore(t, dir, func(b *kv.Batch) {
		b.Delete(catalogueKey(catIDs))
		b.Delete(idKey(catStream, lost.Stream.ID))
		b.Delete(idKey(catStream, lost.Feed.ID))
	})
	salvageInto(t, dir, "new")
	o := dir.options()
	o.Dir = "new"
	d = open(t, o)
	defer d.close()
	now := d.reopened("events").Desc()
	if last := max(lost.Stream.ID, lost.Feed.ID); now.Stream.ID <= last || now.Feed.ID <= last {
		t.Errorf("the stream %d and the feed %d follow id %d", now.Stream.ID, now.Feed.ID, last)
	}
	streams, err := d.Streams()
	if err != nil {
		t.Fatal(err)
	}
	feeds, err := d.Feeds()
	if err != nil {
		t.Fatal(err)
	}
	labels := map[string]bool{lost.Stream.Label: true, lost.Feed.Label: true}
	for _, s := range append(streams, feeds...) {
		if labels[s.Label] {
			t.Errorf("the label %s is used twice", s.Label)
		}
		labels[s.Label] = true
	}
	if len(labels) != 6 {
		t.Errorf("labels %v, want those of the dropped table, the lost and the new ones", labels)
	}
}

// A damaged file that holds records of a feed is shown to hold them.
func TestFeedInDamagedFile(t *testing.T) {
	d := openMemory(t)
	tab := d.table("events")
	d.feed(tab, feedOne)
	from, to := streamSpan(tab.Desc().Feed.ID)
	if got, want := fmt.Sprint(d.ranges(from, to)), "[{events all records for a Kinesis stream}]"; got != want {
		t.Errorf("the file holds %s, want %s", got, want)
	}
}
