package service

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/engine"
)

// mapped maps Kinesis streams to targets, which need not exist here. It returns a count of the
// calls of FeedsChanged.
func (d *db) mapped(arns ...string) *int {
	n := 0
	d.Service.isMapped = func(arn string) bool { return slices.Contains(arns, arn) }
	d.feedsChanged = func(context.Context) { n++ }
	return &n
}

func (d *db) kinesisCall(do func(context.Context, *KinesisInput) (*KinesisOutput, error), arn, precision string) {
	d.t.Helper()
	in := &KinesisInput{TableName: Some("Music"), StreamARN: Some(arn)}
	if precision != "" {
		in.Precision = Some(precision)
	}
	if _, err := do(ctx, in); err != nil {
		d.t.Fatal(err)
	}
}

// wantFeeds compares the feeds: the ends of their destinations, with precisions.
func (d *db) wantFeeds(when, want string) []Feed {
	d.t.Helper()
	feeds, err := d.Feeds()
	if err != nil {
		d.t.Fatal(err)
	}
	var list []string
	for _, f := range feeds {
		text := strings.TrimSpace(f.Table + " " + f.Destination[len(f.Destination)-3:] + " " + f.Precision)
		if f.Waits {
			text += " waits"
		}
		if f.Finished {
			text += " finished"
		}
		list = append(list, text)
	}
	equal(d.t, when, strings.Join(list, ", "), want)
	return feeds
}

// fed returns the records of a feed as the database's own readers see them.
func (d *db) fed(arn string) (out []StreamRecord) {
	d.t.Helper()
	own := WithFeeds(ctx)
	s, err := d.DescribeStream(own, &DescribeStreamInput{ARN: Some(arn)})
	if err != nil {
		d.t.Fatal(err)
	}
	for _, sh := range s.Shards {
		it, err := d.GetShardIterator(own, &GetShardIteratorInput{ARN: Some(arn), ShardID: Some(sh.ID), Type: Some("TRIM_HORIZON")})
		if err != nil {
			d.t.Fatal(err)
		}
		page, err := d.GetRecords(own, &GetRecordsInput{Iterator: Some(it.Iterator)})
		if err != nil {
			d.t.Fatal(err)
		}
		out = append(out, page.Records...)
		// a client cannot use the iterator
		_, err = d.GetRecords(ctx, &GetRecordsInput{Iterator: Some(it.Iterator)})
		refused(d.t, err, dynamo.CodeResourceNotFound, "Requested resource not found: Stream: "+arn+" not found")
	}
	return out
}

// The changes of a table without a stream are in a feed while a destination with a target is
// enabled. No operation of the API shows the feed.
func TestFeedOfDestination(t *testing.T) {
	d := open(t)
	changes := d.mapped(kinesisOne)
	d.music()
	var log strings.Builder
	d.log = slog.New(slog.NewTextHandler(&log, nil))
	d.put("Music", `{"artist":{"S":"a"},"song":{"S":"b"},"n":{"N":"1"}}`)
	d.kinesisCall(d.EnableKinesisStreamingDestination, kinesisOne, "")
	equal(t, "calls", *changes, 1)
	equal(t, "log", log.String(), "")
	feed := d.wantFeeds("enabled", "Music one")[0]
	if err := d.clock.Advance(123 * time.Millisecond); err != nil {
		t.Fatal(err)
	}
	d.put("Music", `{"artist":{"S":"a"},"song":{"S":"b"},"n":{"N":"2"}}`)
	rs := d.fed(feed.StreamARN)
	if len(rs) != 1 || rs[0].Old.Get("n").Number().String() != "1" || rs[0].New.Get("n").Number().String() != "2" || !rs[0].Created.Equal(epoch.Add(123*time.Millisecond)) {
		t.Errorf("records %+v", rs)
	}
	out, err := d.DescribeTable(ctx, &TableNameInput{TableName: Some("Music")})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "the table's stream", out.StreamARN+out.StreamViewType, "")
	list, err := d.ListStreams(ctx, &ListStreamsInput{})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "streams", len(list.Streams), 0)
	notFound := "Requested resource not found: Stream: " + feed.StreamARN + " not found"
	_, err = d.DescribeStream(ctx, &DescribeStreamInput{ARN: Some(feed.StreamARN)})
	refused(t, err, dynamo.CodeResourceNotFound, notFound)
	shard := Some("shardId-00000000000000000001-00000001")
	_, err = d.GetShardIterator(ctx, &GetShardIteratorInput{ARN: Some(feed.StreamARN), ShardID: shard, Type: Some("TRIM_HORIZON")})
	refused(t, err, dynamo.CodeResourceNotFound, notFound)
	_, err = d.ListStreams(ctx, &ListStreamsInput{StartARN: Some(feed.StreamARN)})
	invalidRequest(t, err, "Invalid StreamArn: "+feed.StreamARN)
	for _, do := range []func() error{
		func() error {
			_, err := d.PutResourcePolicy(ctx, &PutResourcePolicyInput{ARN: Some(feed.StreamARN), Policy: PolicyArg{Text: Some(`{}`)}})
			return err
		},
		func() error {
			_, err := d.GetResourcePolicy(ctx, &ResourcePolicyInput{ARN: Some(feed.StreamARN)})
			return err
		},
	} {
		if err := do(); err == nil || strings.Contains(fmt.Sprint(err), "PolicyNotFound") {
			t.Errorf("a policy of the feed: %v", err)
		}
	}

	d.kinesisCall(d.UpdateKinesisStreamingDestination, kinesisOne, precisionMicros)
	d.wantFeeds("updated", "Music one MICROSECOND")
	equal(t, "precision", d.FeedPrecision(feed.StreamARN), precisionMicros)
	d.kinesisCall(d.DisableKinesisStreamingDestination, kinesisOne, "")
	d.put("Music", `{"artist":{"S":"a"},"song":{"S":"b"},"n":{"N":"3"}}`)
	d.wantFeeds("disabled, with a record", "Music one MICROSECOND")
	equal(t, "records", len(d.fed(feed.StreamARN)), 1)
	// the same destination again: its first feed comes first
	d.kinesisCall(d.EnableKinesisStreamingDestination, kinesisOne, "")
	equal(t, "the first feed", d.wantFeeds("again", "Music one MICROSECOND, Music one waits")[0].StreamARN, feed.StreamARN)
	if err := d.FinishFeed(feed.StreamARN); err != nil {
		t.Fatal(err)
	}
	second := d.wantFeeds("the first is finished", "Music one MICROSECOND finished, Music one")[1].StreamARN
	d.put("Music", `{"artist":{"S":"a"},"song":{"S":"b"},"n":{"N":"4"}}`)
	rs = d.fed(second)
	if len(rs) != 1 || rs[0].New.Get("n").Number().String() != "4" {
		t.Errorf("records %+v", rs)
	}
	if err := d.FinishFeed("arn:aws:dynamodb:eu-west-1:123456789012:table/Music/stream/none"); err != nil {
		t.Error(err)
	}
}

// Tables with the same destination have feeds of their own: a feed waits only for an earlier one of
// its table.
func TestFeedsOfTwoTables(t *testing.T) {
	d := open(t)
	d.mapped(kinesisOne)
	d.music()
	in := musicTable("Films")
	if _, err := d.CreateTable(ctx, &in); err != nil {
		t.Fatal(err)
	}
	record := `{"artist":{"S":"a"},"song":{"S":"b"}}`
	d.kinesisCall(d.EnableKinesisStreamingDestination, kinesisOne, "")
	d.put("Music", record)
	if _, err := d.EnableKinesisStreamingDestination(ctx, &KinesisInput{TableName: Some("Films"), StreamARN: Some(kinesisOne)}); err != nil {
		t.Fatal(err)
	}
	d.put("Films", record)
	d.wantFeeds("enabled", "Music one, Films one")
	d.kinesisCall(d.DisableKinesisStreamingDestination, kinesisOne, "")
	d.kinesisCall(d.EnableKinesisStreamingDestination, kinesisOne, "")
	feeds := d.wantFeeds("again", "Music one, Films one, Music one waits")
	if err := d.FinishFeed(feeds[0].StreamARN); err != nil {
		t.Fatal(err)
	}
	d.wantFeeds("the first is finished", "Music one finished, Films one, Music one")
}

// A finished feed is listed also if its destination no longer has a target, so that its reader's
// checkpoints are deleted. An unfinished one is not: nothing can be delivered.
func TestFinishedFeedWithoutTarget(t *testing.T) {
	d := open(t)
	d.mapped(kinesisOne)
	d.music()
	d.kinesisCall(d.EnableKinesisStreamingDestination, kinesisOne, "")
	d.put("Music", `{"artist":{"S":"a"},"song":{"S":"b"}}`)
	d.kinesisCall(d.DisableKinesisStreamingDestination, kinesisOne, "")
	feed := d.wantFeeds("disabled", "Music one")[0]
	d.mapped()
	d.wantFeeds("without a target", "")
	if err := d.FinishFeed(feed.StreamARN); err != nil {
		t.Fatal(err)
	}
	d.wantFeeds("finished", "Music one finished")
}

// A destination without a target is only stored. It gets a feed at the next start with a target,
// and keeps the feed at a start without one.
func TestAdoptDestinations(t *testing.T) {
	d := open(t)
	d.mapped(kinesisTwo)
	d.music()
	var log strings.Builder
	d.log = slog.New(slog.NewTextHandler(&log, nil))
	adopt := func() {
		t.Helper()
		log.Reset()
		if err := d.AdoptDestinations(ctx); err != nil {
			t.Fatal(err)
		}
	}
	stored := func() bool { return strings.Contains(log.String(), "no target is mapped to it") }
	waits := func() bool { return strings.Contains(log.String(), "has no target any more") }
	adopt()
	d.wantFeeds("without a destination", "")
	d.kinesisCall(d.EnableKinesisStreamingDestination, kinesisOne, precisionMicros)
	d.wantFeeds("without a target", "")
	equal(t, "logged", stored(), true)
	adopt()
	d.wantFeeds("still without", "")
	equal(t, "logged", stored(), true)
	d.mapped(kinesisOne)
	adopt()
	first := d.wantFeeds("with a target", "Music one MICROSECOND")
	equal(t, "logged", stored(), false)
	adopt()
	equal(t, "the feed", d.wantFeeds("once more", "Music one MICROSECOND")[0], first[0])
	d.mapped()
	adopt()
	d.wantFeeds("the target is gone", "")
	equal(t, "logged as only stored", stored(), false)
	equal(t, "logged as waiting", waits(), true)
	d.put("Music", `{"artist":{"S":"a"},"song":{"S":"b"}}`)
	d.mapped(kinesisOne)
	adopt()
	equal(t, "logged as waiting", waits(), false)
	equal(t, "the feed", d.wantFeeds("it is back", "Music one MICROSECOND")[0], first[0])
	equal(t, "records", len(d.fed(first[0].StreamARN)), 1)
	d.mapped()
	d.kinesisCall(d.DisableKinesisStreamingDestination, kinesisOne, "")
	adopt()
	equal(t, "logged as waiting", waits(), true) // the record from before
	d.put("Music", `{"artist":{"S":"a"},"song":{"S":"c"}}`)
	equal(t, "records", len(d.fed(first[0].StreamARN)), 1)
}

// A destination whose feed is gone gets a new one at the next start, and the log says so. A feed
// that the table no longer names is delivered to its end first.
func TestAdoptLostFeed(t *testing.T) {
	for name, lose := range map[string]func(td *engine.TableDesc){
		"another feed": func(td *engine.TableDesc) { td.Feed.ID = 99 },
		"no feed":      func(td *engine.TableDesc) { td.Feed = engine.FeedSpec{} },
	} {
		t.Run(name, func(t *testing.T) {
			d := open(t)
			d.mapped(kinesisOne)
			d.music()
			var log strings.Builder
			d.log = slog.New(slog.NewTextHandler(&log, nil))
			d.kinesisCall(d.EnableKinesisStreamingDestination, kinesisOne, precisionMicros)
			d.put("Music", `{"artist":{"S":"a"},"song":{"S":"b"},"n":{"N":"1"}}`)
			_, err := d.engine.Alter(ctx, namespace, "Music", func(td *engine.TableDesc, _ engine.Instant) error {
				lose(td)
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			d.put("Music", `{"artist":{"S":"a"},"song":{"S":"b"},"n":{"N":"2"}}`)
			for range 2 { // the second start changes nothing
				if err := d.AdoptDestinations(ctx); err != nil {
					t.Fatal(err)
				}
			}
			equal(t, "log lines", strings.Count(log.String(), "the feed of a Kinesis destination is lost"), map[string]int{"another feed": 1}[name])
			feeds := d.wantFeeds("afterwards", "Music one MICROSECOND, Music one MICROSECOND waits")
			d.put("Music", `{"artist":{"S":"a"},"song":{"S":"b"},"n":{"N":"3"}}`)
			for i, want := range []string{"1", "3"} {
				rs := d.fed(feeds[i].StreamARN)
				if len(rs) != 1 || rs[0].New.Get("n").Number().String() != want {
					t.Errorf("the feed %d has %+v, want one record with n = %s", i, rs, want)
				}
			}
			if err := d.FinishFeed(feeds[0].StreamARN); err != nil {
				t.Fatal(err)
			}
			d.wantFeeds("the first is finished", "Music one MICROSECOND finished, Music one MICROSECOND")
		})
	}
}
