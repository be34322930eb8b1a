package engine

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// formatStore fills a store with one of everything that FORMAT.md describes. The examples there are
// this store, key by key.
func formatStore(t *testing.T) *db {
	d := openMemory(t, func(o *Options) { o.StreamShards = 2 })
	if err := d.stop(); err != nil { // the test calls the reaper and the backfill step by step
		t.Fatal(err)
	}
	d.stop = func() error { return nil }

	events := d.table("events", func(td *TableDesc) { td.Indexes[0].Projection = Projection{Type: "INCLUDE", NonKey: []string{"n"}} })
	d.put(events, item("pk", "a", "sk", 1, "g", "x", "ttl", unix(10*time.Second)))
	d.put(events, item("pk", "a\x00b", "sk", -25))
	d.put(events, item("pk", "gone", "sk", 2, "ttl", unix(5*time.Second)))
	d.delete(events, item("pk", "a\x00b", "sk", -25))
	d.put(events, item("pk", "plain", "sk", 0))
	if err := d.clock.Advance(5 * time.Second); err != nil {
		t.Fatal(err)
	}
	if _, err := (&reaper{t: events}).Drain(context.Background(), d.clock.Millis()); err != nil {
		t.Fatal(err)
	}

	wide := d.table("wide", func(td *TableDesc) {
		td.Key = KeySchema{
			Partition: []KeyAttr{{"p1", dynamo.KindString}, {"p2", dynamo.KindNumber}, {"p3", dynamo.KindBinary}, {"p4", dynamo.KindString}},
			Sort:      []KeyAttr{{"s1", dynamo.KindNumber}, {"s2", dynamo.KindString}, {"s3", dynamo.KindBinary}, {"s4", dynamo.KindNumber}},
		}
		td.Indexes = []IndexDesc{{
			Name: "composite", Global: true, Projection: Projection{Type: "KEYS_ONLY"},
			Key: KeySchema{Partition: []KeyAttr{{"p2", dynamo.KindNumber}, {"p4", dynamo.KindString}}, Sort: []KeyAttr{{"s1", dynamo.KindNumber}, {"s2", dynamo.KindString}}},
		}}
		td.TTL, td.Stream = TTLDesc{}, StreamSpec{ViewType: "KEYS_ONLY"}
	})
	d.put(wide, wideItem())
	_, err := d.Alter(context.Background(), "default", "wide", func(td *TableDesc, _ Instant) error {
		td.TTL.Attribute, td.Stream.ViewType = "ttl", ""
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := wide.backfillStep(wide.Desc()); err != nil {
		t.Fatal(err)
	}
	_, err = d.Alter(context.Background(), "default", "events", func(td *TableDesc, _ Instant) error {
		td.Indexes = append(td.Indexes, IndexDesc{
			Name: "byTTL", Global: true, Projection: Projection{Type: "KEYS_ONLY"}, Key: KeySchema{Partition: []KeyAttr{{"ttl", dynamo.KindNumber}}},
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := events.indexBackfill(events.Desc(), events.Desc().Index("byTTL")).step(); err != nil {
		t.Fatal(err)
	}
	_, err = d.Alter(context.Background(), "default", "events", func(td *TableDesc, _ Instant) error {
		td.TTL.Attribute = "expires"
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}

	late := d.table("late", func(td *TableDesc) {
		td.Key.Sort, td.Indexes, td.Stream = nil, nil, StreamSpec{}
		td.TTL.Expiry = Expiry{Mode: ExpiryAWS, Seed: 7}
	})
	d.put(late, item("pk", "a", "ttl", unix(10*time.Second)))
	again, err := d.beginRestore(d.backup("late"), "again")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := again.restoreStep(again.Desc()); err != nil {
		t.Fatal(err)
	}
	d.closeSources()

	kept := d.table("kept", func(td *TableDesc) { td.Key.Sort, td.Indexes, td.TTL, td.Stream = nil, nil, TTLDesc{}, StreamSpec{} })
	d.keepHistory("kept", 35)
	d.put(kept, item("pk", "a", "n", 1))
	at := d.Now()
	if err := d.clock.Advance(time.Second); err != nil {
		t.Fatal(err)
	}
	d.put(kept, item("pk", "a", "n", 2))
	job, x := d.export("kept", Never, at, exportBytes)
	d.endExport(job, x)
	was, err := d.beginRestoreTo("kept", at, "was")
	if err != nil {
		t.Fatal(err)
	}
	for done := false; !done; {
		if done, err = was.restoreStep(was.Desc()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := was.undoStep(was.Desc()); err != nil {
		t.Fatal(err)
	}
	d.closeSources()

	fed := d.table("fed", func(td *TableDesc) { td.Key.Sort, td.Indexes, td.TTL, td.Stream = nil, nil, TTLDesc{}, StreamSpec{} })
	d.feed(fed, feedOne)
	d.feed(fed, "")
	if err := d.FinishFeed(fed.Desc().Feed.ID); err != nil {
		t.Fatal(err)
	}
	d.alter(fed, func(td *TableDesc) { td.Feed.Destination, td.Feed.Precision = feedTwo, "MICROSECOND" })
	d.put(fed, item("pk", "a"))
	return d
}

// wideItem has a key of eight parts.
func wideItem() dynamo.Item {
	var b dynamo.Builder
	b.Set("p1", dynamo.AppendString(nil, "s"))
	b.Set("p2", number("123.4"))
	b.Set("p3", dynamo.AppendBinary(nil, []byte{0, 255}))
	b.Set("p4", dynamo.AppendString(nil, "t"))
	b.Set("s1", number("0"))
	b.Set("s2", dynamo.AppendString(nil, "u"))
	b.Set("s3", dynamo.AppendBinary(nil, []byte{1}))
	b.Set("s4", number("-0.001"))
	return b.Item()
}

// pair is a key and its value.
type pair struct{ key, value []byte }

func (p pair) String() string {
	if p.key[0] == spaceCatalogue {
		return fmt.Sprintf("key   % x\nvalue %q\n      % x", p.key, p.value, p.value)
	}
	return fmt.Sprintf("key   % x\nvalue % x", p.key, p.value)
}

// backupForm matches the id of a backup.
var backupForm = regexp.MustCompile(`([0-9]{14}-)[0-9a-f]{8}`)

var uuidForm = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}`)

// dump returns everything in the store, in order. Table ids of the API and the ids of backups are
// random: each is replaced by a fixed value.
func (d *db) dump() (out []pair) {
	it := d.kv.NewIter(nil, nil)
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		value := uuidForm.ReplaceAll(it.Value(), []byte("00000000-0000-4000-8000-000000000000"))
		fixed := []byte("${1}00000000")
		out = append(out, pair{backupForm.ReplaceAll(it.Key(), fixed), backupForm.ReplaceAll(value, fixed)})
	}
	if err := it.Error(); err != nil {
		d.t.Fatal(err)
	}
	return out
}

// documented reads the examples of FORMAT.md: every fenced block marked "store". "key" and "value"
// start one; the text behind them, on that line and those below it, is hex, quoted text, or JSON,
// up to the first " # " of a line.
func documented(t *testing.T) (out []pair) {
	text, err := os.ReadFile("FORMAT.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range strings.Split(string(text), "```store\n")[1:] {
		block, _, _ = strings.Cut(block, "\n```")
		for _, example := range strings.Split("\n"+block, "\nkey ")[1:] {
			key, value, ok := strings.Cut(example, "\nvalue ")
			if !ok {
				t.Fatalf("FORMAT.md: no value in %q", example)
			}
			out = append(out, pair{exampleBytes(t, key), exampleBytes(t, value)})
		}
	}
	return out
}

// exampleBytes returns the bytes of an example's key or value.
func exampleBytes(t *testing.T, text string) (out []byte) {
	if strings.HasPrefix(text, "{") {
		var compact bytes.Buffer
		if err := json.Compact(&compact, []byte(text)); err != nil {
			t.Fatalf("FORMAT.md: %v in %s", err, text)
		}
		return compact.Bytes()
	}
	for line := range strings.SplitSeq(text, "\n") {
		line, _, _ = strings.Cut(line+" ", " # ")
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "`") {
			out = append(out, strings.Trim(line, "`")...)
			continue
		}
		for word := range strings.FieldsSeq(line) {
			b, err := hex.DecodeString(word)
			if strings.HasPrefix(word, `"`) {
				var unquoted string
				unquoted, err = strconv.Unquote(word)
				b = []byte(unquoted)
			}
			if err != nil {
				t.Fatalf("FORMAT.md: %q: %v", word, err)
			}
			out = append(out, b...)
		}
	}
	return out
}

// The examples of FORMAT.md match the store exactly, so neither the format nor the document can
// change unnoticed. To change the format on purpose, raise formatVersion and edit the document.
func TestFormat(t *testing.T) {
	d := formatStore(t)
	want := map[string][]byte{}
	for _, p := range documented(t) {
		want[string(p.key)] = p.value
	}
	for _, p := range d.dump() {
		w, ok := want[string(p.key)]
		switch {
		case !ok:
			t.Errorf("not in FORMAT.md:\n%v", p)
		case !bytes.Equal(w, p.value):
			t.Errorf("the store holds\n%v\nFORMAT.md says\n%v", p, pair{p.key, w})
		}
		delete(want, string(p.key))
	}
	for key, value := range want {
		t.Errorf("in FORMAT.md only:\n%v", pair{[]byte(key), value})
	}
}
