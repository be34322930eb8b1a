package service

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/mayflydb/mayfly/internal/points"
)

// An error that the API does not define is a system error, unless the client has disconnected.
func TestSystemErrors(t *testing.T) {
	d := open(t)
	table := d.counters()
	for _, c := range []struct {
		err  error
		want float64 // -1: no point
	}{
		{context.Canceled, -1}, {fmt.Errorf("read: %w", context.Canceled), -1}, {context.DeadlineExceeded, -1},
		{errors.New("disk"), 1}, {context.Canceled, 1}, {errors.New("disk"), 2},
	} {
		d.Measure("Scan", &ScanInput{TableName: Some(table)}, nil, c.err)
		got := -1.0
		k := points.Key{Namespace: points.DynamoDB, Metric: points.SystemErrors, Table: table, Operation: "Scan"}
		for _, p := range d.engine.Points().Points(k, points.Oldest, 1<<40) {
			got = p.Sum
		}
		if got != c.want {
			t.Errorf("after %v: %v, want %v", c.err, got, c.want)
		}
	}
}

// Reads of a feed do not count, unlike reads of the table's own stream.
func TestFeedReadsUncounted(t *testing.T) {
	d := open(t)
	d.mapped(kinesisOne)
	stream := d.streamed()
	d.kinesisCall(d.EnableKinesisStreamingDestination, kinesisOne, "")
	d.put("Music", `{"artist":{"S":"a"},"song":{"S":"b"}}`)
	equal(t, "records of the stream", len(d.records(stream)), 1)
	equal(t, "records of the feed", len(d.fed(d.wantFeeds("enabled", "Music one")[0].StreamARN)), 1)
	var counted []string
	for _, k := range d.engine.Points().Keys(0) {
		if k.Metric == points.ReturnedRecords || k.Metric == points.ReturnedBytes {
			counted = append(counted, k.Metric+" of "+k.Stream)
		}
	}
	_, label, err := parseStreamARN(stream)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "counted", fmt.Sprint(counted), fmt.Sprint([]string{points.ReturnedBytes + " of " + label, points.ReturnedRecords + " of " + label}))
}
