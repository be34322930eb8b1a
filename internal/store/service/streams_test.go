package service

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// streamed creates the table Music with a stream of both images, and returns its ARN.
func (d *db) streamed() string {
	d.t.Helper()
	d.music()
	return d.updateMusic(UpdateTableInput{Stream: &StreamSpec{Enabled: Some(true), ViewType: Some("NEW_AND_OLD_IMAGES")}}).StreamARN
}

func (d *db) shards(arn string) []ShardDescription {
	d.t.Helper()
	out, err := d.DescribeStream(ctx, &DescribeStreamInput{ARN: Some(arn)})
	if err != nil {
		d.t.Fatal(err)
	}
	return out.Shards
}

func (d *db) iterator(in GetShardIteratorInput) string {
	d.t.Helper()
	out, err := d.GetShardIterator(ctx, &in)
	if err != nil {
		d.t.Fatal(err)
	}
	return out.Iterator
}

// records returns all records of a stream, shard by shard, from the trim horizon on.
func (d *db) records(arn string) []StreamRecord {
	d.t.Helper()
	var all []StreamRecord
	for _, sh := range d.shards(arn) {
		it := d.iterator(GetShardIteratorInput{ARN: Some(arn), ShardID: Some(sh.ID), Type: Some("TRIM_HORIZON")})
		out, err := d.GetRecords(ctx, &GetRecordsInput{Iterator: Some(it)})
		if err != nil {
			d.t.Fatal(err)
		}
		all = append(all, out.Records...)
	}
	return all
}

func TestStreamRecords(t *testing.T) {
	d := open(t)
	arn := d.streamed()
	if err := d.clock.Advance(1700 * time.Millisecond); err != nil {
		t.Fatal(err)
	}
	d.put("Music", `{"artist":{"S":"a"},"song":{"S":"b"}}`)
	d.put("Music", `{"artist":{"S":"a"},"song":{"S":"b"}}`) // changes nothing
	d.put("Music", `{"artist":{"S":"a"},"song":{"S":"b"},"label":{"S":"x"}}`)
	if _, err := d.DeleteItem(ctx, &WriteInput{TableName: Some("Music"), Item: arg(`{"artist":{"S":"a"},"song":{"S":"b"}}`)}); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	seen := map[string]bool{}
	records := d.records(arn)
	for _, r := range records {
		fmt.Fprintln(&b, r.EventName, r.Old, r.New, r.SizeBytes)
		seen[r.EventID] = true
	}
	equal(t, "records", b.String(), `INSERT (none) {"artist":{"S":"a"},"song":{"S":"b"}} 24
MODIFY {"artist":{"S":"a"},"song":{"S":"b"}} {"artist":{"S":"a"},"label":{"S":"x"},"song":{"S":"b"}} 42
REMOVE {"artist":{"S":"a"},"label":{"S":"x"},"song":{"S":"b"}} (none) 30
`)
	r := records[0]
	equal(t, "keys", r.Keys.String(), `{"artist":{"S":"a"},"song":{"S":"b"}}`)
	equal(t, "the rest", fmt.Sprint(r.Region, r.ViewType, r.Service, r.Created), fmt.Sprint("eu-west-1", "NEW_AND_OLD_IMAGES", false, epoch.Add(time.Second)))
	equal(t, "distinct event ids of 32 digits", fmt.Sprint(len(seen), len(r.EventID)), "3 32")
	equal(t, "digits of a sequence number", len(r.Sequence), 21)
}

func TestShardIteratorTypes(t *testing.T) {
	d := open(t)
	arn := d.streamed()
	for i := range 4 {
		d.put("Music", fmt.Sprintf(`{"artist":{"S":"a"},"song":{"S":"b"},"n":{"N":"%d"}}`, i))
	}
	records := d.records(arn)
	at, shard := records[2].Sequence, ""
	for _, sh := range d.shards(arn) {
		it := d.iterator(GetShardIteratorInput{ARN: Some(arn), ShardID: Some(sh.ID), Type: Some("TRIM_HORIZON")})
		if out, err := d.GetRecords(ctx, &GetRecordsInput{Iterator: Some(it)}); err == nil && len(out.Records) > 0 {
			shard = sh.ID
		}
	}
	read := func(in GetShardIteratorInput, limit int64) (string, string) {
		t.Helper()
		in.ARN, in.ShardID = Some(arn), Some(shard)
		out, err := d.GetRecords(ctx, &GetRecordsInput{Iterator: Some(d.iterator(in)), Limit: Some(limit)})
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		for _, r := range out.Records {
			b.WriteString(r.New.Get("n").Number().String())
		}
		return b.String(), out.Next
	}
	tests := []struct {
		in   GetShardIteratorInput
		want string
	}{
		{GetShardIteratorInput{Type: Some("TRIM_HORIZON")}, "0123"},
		{GetShardIteratorInput{Type: Some("LATEST")}, ""},
		{GetShardIteratorInput{Type: Some("AT_SEQUENCE_NUMBER"), Sequence: Some(at)}, "23"},
		{GetShardIteratorInput{Type: Some("AFTER_SEQUENCE_NUMBER"), Sequence: Some(at)}, "3"},
	}
	for _, tt := range tests {
		got, next := read(tt.in, 100)
		equal(t, tt.in.Type.V, got, tt.want)
		equal(t, tt.in.Type.V+" goes on", next != "", true)
	}
	latest, err := d.GetShardIterator(ctx, &GetShardIteratorInput{ARN: Some(arn), ShardID: Some(shard), Type: Some("LATEST")})
	if err != nil {
		t.Fatal(err)
	}
	d.put("Music", `{"artist":{"S":"a"},"song":{"S":"b"},"n":{"N":"4"}}`)
	got, _ := read(GetShardIteratorInput{Type: Some("AFTER_SEQUENCE_NUMBER"), Sequence: Some(latest.Before)}, 100)
	equal(t, "behind where LATEST began", got, "4")
	first, next := read(GetShardIteratorInput{Type: Some("TRIM_HORIZON")}, 3)
	out, err := d.GetRecords(ctx, &GetRecordsInput{Iterator: Some(next)})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "by limit", fmt.Sprint(first, " ", len(out.Records)), "012 2")
}

// A disabled stream can be read to its end, where its shards have no next iterator.
func TestDisabledStreamEnds(t *testing.T) {
	d := open(t)
	arn := d.streamed()
	d.put("Music", `{"artist":{"S":"a"},"song":{"S":"b"}}`)
	d.updateMusic(UpdateTableInput{Stream: &StreamSpec{Enabled: Some(false)}})
	out, err := d.DescribeStream(ctx, &DescribeStreamInput{ARN: Some(arn)})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "status", out.Status, "DISABLED")
	for _, sh := range out.Shards {
		equal(t, "closed shard "+sh.ID+" has an end", sh.End != "", true)
		it := d.iterator(GetShardIteratorInput{ARN: Some(arn), ShardID: Some(sh.ID), Type: Some("TRIM_HORIZON")})
		page, err := d.GetRecords(ctx, &GetRecordsInput{Iterator: Some(it)})
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "next", page.Next, "")
	}
	equal(t, "records", len(d.records(arn)), 1)
}

func TestIteratorsExpire(t *testing.T) {
	d := open(t)
	arn := d.streamed()
	it := d.iterator(GetShardIteratorInput{ARN: Some(arn), ShardID: Some(d.shards(arn)[0].ID), Type: Some("LATEST")})
	if err := d.clock.Advance(15 * time.Minute); err != nil {
		t.Fatal(err)
	}
	out, err := d.GetRecords(ctx, &GetRecordsInput{Iterator: Some(it)})
	if err != nil {
		t.Fatalf("after just 15 minutes: %v", err)
	}
	fresh := out.Next
	if err := d.clock.Advance(time.Millisecond); err != nil {
		t.Fatal(err)
	}
	_, err = d.GetRecords(ctx, &GetRecordsInput{Iterator: Some(it)})
	refused(t, err, dynamo.CodeExpiredIterator, "The shard iterator has expired. Shard iterators expire 15 minutes after they are issued")

	later := New(Options{Engine: d.engine, Region: d.region, Account: d.account})
	for _, old := range []string{it, fresh} {
		if _, err = later.GetRecords(ctx, &GetRecordsInput{Iterator: Some(old)}); err != nil {
			t.Errorf("an iterator of an earlier run: %v", err)
		}
	}
}

func TestDescribeStream(t *testing.T) {
	d := open(t)
	arn := d.streamed()
	all := d.shards(arn)
	equal(t, "shards", len(all), 4)
	equal(t, "first", fmt.Sprint(all[0]), "{shardId-00000000000000000001-00000001  100000000000000000001 }")
	page, err := d.DescribeStream(ctx, &DescribeStreamInput{ARN: Some(arn), Limit: Some[int64](3)})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "last of a page", page.LastShardID, all[2].ID)
	page, err = d.DescribeStream(ctx, &DescribeStreamInput{ARN: Some(arn), StartShardID: Some(page.LastShardID)})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "second page", fmt.Sprint(len(page.Shards), page.Shards[0].ID == all[3].ID, page.LastShardID == ""), "1 true true")
	page, err = d.DescribeStream(ctx, &DescribeStreamInput{ARN: Some(arn), FilterType: Some("CHILD_SHARDS"), ParentOnly: Some(all[0].ID)})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "children of an open shard", len(page.Shards), 0)
}

func TestListStreams(t *testing.T) {
	d := open(t)
	first := d.streamed()
	d.updateMusic(UpdateTableInput{Stream: &StreamSpec{Enabled: Some(false)}})
	second := d.updateMusic(UpdateTableInput{Stream: &StreamSpec{Enabled: Some(true), ViewType: Some("KEYS_ONLY")}}).StreamARN
	if _, err := d.DeleteTable(ctx, &TableNameInput{TableName: Some("Music")}); err != nil {
		t.Fatal(err)
	}
	page, err := d.ListStreams(ctx, &ListStreamsInput{TableName: Some("Music"), Limit: Some[int64](1)})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "first page, of a table that is gone", fmt.Sprint(page.Streams[0].ARN == first, page.LastARN == first), "true true")
	page, err = d.ListStreams(ctx, &ListStreamsInput{StartARN: Some(first)})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "the rest", fmt.Sprint(len(page.Streams), page.Streams[0].ARN == second, page.LastARN), "1 true")
	if page, err = d.ListStreams(ctx, &ListStreamsInput{TableName: Some(d.counters())}); err != nil || len(page.Streams) != 0 {
		t.Errorf("table without a stream: %v, %v", page, err)
	}
}

func TestStreamsRefused(t *testing.T) {
	d := open(t)
	arn := d.streamed()
	shard := d.shards(arn)[0].ID
	iterate := func(in GetShardIteratorInput) error {
		_, err := d.GetShardIterator(ctx, &in)
		return err
	}
	elsewhere := strings.Replace(arn, "Music", "Other", 1)
	refused(t, iterate(GetShardIteratorInput{ARN: Some(elsewhere), ShardID: Some(shard), Type: Some("LATEST")}),
		dynamo.CodeResourceNotFound, "Requested resource not found: Stream: "+elsewhere+" not found")
	bad := "arn:aws:dynamodb:eu-west-1:123456789012:nothing/like/it"
	invalidRequest(t, iterate(GetShardIteratorInput{ARN: Some(bad), ShardID: Some(shard), Type: Some("LATEST")}), "Invalid StreamArn: "+bad)
	refused(t, iterate(GetShardIteratorInput{ARN: Some(arn), ShardID: Some("shardId-00000000000000000009-00000001"), Type: Some("LATEST")}),
		dynamo.CodeResourceNotFound, "Requested resource not found: Shard does not exist")
	invalidRequest(t, iterate(GetShardIteratorInput{ARN: Some(arn), ShardID: Some(shard), Type: Some("AT_SEQUENCE_NUMBER")}),
		"SequenceNumber is required for ShardIteratorType AT_SEQUENCE_NUMBER")
	invalidRequest(t, iterate(GetShardIteratorInput{ARN: Some(arn), ShardID: Some(shard), Type: Some("hi")}),
		"1 validation error detected: Value 'hi' at 'shardIteratorType' failed to satisfy constraint: Member must satisfy enum value set: "+
			"[AFTER_SEQUENCE_NUMBER, LATEST, AT_SEQUENCE_NUMBER, TRIM_HORIZON]")
	_, err := d.GetRecords(ctx, &GetRecordsInput{Iterator: Some("nonsense")})
	invalidRequest(t, err, "Invalid ShardIterator")
	_, err = d.GetRecords(ctx, &GetRecordsInput{Iterator: Some("nonsense"), Limit: Some[int64](1001)})
	invalidRequest(t, err, "1 validation error detected: Value '1001' at 'limit' failed to satisfy constraint: Member must have value less than or equal to 1000")
	_, err = d.ListStreams(ctx, &ListStreamsInput{TableName: Some("none")})
	refused(t, err, dynamo.CodeResourceNotFound, "Requested resource not found: Table: none not found")
}
