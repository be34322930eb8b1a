package service

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

func TestTags(t *testing.T) {
	d := open(t)
	arn := Some(d.tableARN(d.counters()))
	tag := func(from, to int) error {
		in := TagResourceInput{ARN: arn}
		for i := from; i < to; i++ {
			in.Tags = append(in.Tags, Tag{Some(fmt.Sprintf("k%02d", i)), Some("v")})
		}
		_, err := d.TagResource(ctx, &in)
		return err
	}
	if err := tag(0, 12); err != nil {
		t.Fatal(err)
	}
	first, err := d.ListTagsOfResource(ctx, &ListTagsInput{ARN: arn})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "all in one answer", fmt.Sprint(len(first.Tags), first.NextToken == ""), "12 true")

	if _, err := d.UntagResource(ctx, &UntagResourceInput{ARN: arn, Keys: []string{"k00", "none"}}); err != nil {
		t.Fatal(err)
	}
	if first, err = d.ListTagsOfResource(ctx, &ListTagsInput{ARN: arn}); err != nil {
		t.Fatal(err)
	}
	equal(t, "first left", first.Tags[0][0], "k01")
	invalidRequest(t, tag(12, 60), "Number of Tags exceed the current limit for the provided ResourceArn")
}

func TestTagsRefused(t *testing.T) {
	d := open(t)
	arn := d.tableARN(d.counters())
	one := []Tag{{Some("k"), Some("v")}}
	tests := []struct {
		about string
		in    TagResourceInput
		want  string
	}{
		{"no ARN", TagResourceInput{}, "Invalid TableArn"},
		{"ARN of an index", TagResourceInput{ARN: Some(arn + "/index/x"), Tags: one},
			"One or more parameter values were invalid: Invalid resource arn provided, only table or stream is accepted. Provided resource arn: " + arn + "/index/x"},
		{"no tags", TagResourceInput{ARN: Some(arn)}, "Atleast one Tag needs to be provided as Input."},
		{"bad key", TagResourceInput{ARN: Some(arn), Tags: []Tag{{Some("a?"), Some("")}}}, "The Tag Key provided is invalid, Key: a?"},
		{"key twice", TagResourceInput{ARN: Some(arn), Tags: append(one, one...)}, "Duplicate Tag Keys provided as input: Duplicate Tag Key found k"},
	}
	for _, tt := range tests {
		t.Run(tt.about, func(t *testing.T) {
			_, err := d.TagResource(ctx, &tt.in)
			invalidRequest(t, err, tt.want)
		})
	}
	_, err := d.TagResource(ctx, &TagResourceInput{ARN: Some(d.tableARN("none")), Tags: one})
	refused(t, err, dynamo.CodeResourceNotFound, "Requested resource not found: ResourcArn: "+d.tableARN("none")+" not found")
	_, err = d.UntagResource(ctx, &UntagResourceInput{ARN: Some(arn)})
	invalidRequest(t, err, "Atleast one Tag Key needs to be provided as Input.")
}

// TestTagsDenied: each of the three operations checks the ARN first, and treats a missing table in
// its own way.
func TestTagsDenied(t *testing.T) {
	d := open(t)
	arn := d.tableARN(d.counters())
	operations := map[string]func(arn string) error{
		"TagResource": func(arn string) error { _, err := d.TagResource(ctx, &TagResourceInput{ARN: Some(arn)}); return err },
		"UntagResource": func(arn string) error {
			_, err := d.UntagResource(ctx, &UntagResourceInput{ARN: Some(arn)})
			return err
		},
		"ListTagsOfResource": func(arn string) error {
			_, err := d.ListTagsOfResource(ctx, &ListTagsInput{ARN: Some(arn)})
			return err
		},
	}
	for _, bad := range []string{
		"Counters", "arn:aws:s3:::bucket", "arn:aws:dynamodb:eu-west-1:123456789012", "arn:aws:dynamodb::123456789012:table/Counters",
		strings.Replace(arn, "eu-west-1", "eu-west-2", 1), strings.Replace(arn, "123456789012", "123456789013", 1), strings.Replace(arn, "arn:aws:", "arn:aws-cn:", 1),
	} {
		for name, do := range operations {
			refused(t, do(bad), dynamo.CodeAccessDenied, "User: arn:aws:iam::123456789012:root is not authorized to perform: dynamodb:"+name+" on resource: "+bad)
		}
	}
	missing := d.tableARN("none")
	_, err := d.TagResource(ctx, &TagResourceInput{ARN: Some(missing), Tags: []Tag{{Some("k"), Some("v")}}})
	refused(t, err, dynamo.CodeResourceNotFound, "Requested resource not found: ResourcArn: "+missing+" not found")
	_, err = d.UntagResource(ctx, &UntagResourceInput{ARN: Some(missing), Keys: []string{"k"}})
	refused(t, err, dynamo.CodeResourceNotFound, "Requested resource not found")
	refused(t, operations["ListTagsOfResource"](missing), dynamo.CodeAccessDenied,
		"User: arn:aws:iam::123456789012:root is not authorized to perform: dynamodb:ListTagsOfResource on resource: "+missing)
}

// A table's tag sets the number of shards of its stream, from the next time that a stream is
// enabled; without the tag, the server's setting applies.
func TestShardsTag(t *testing.T) {
	d := open(t)
	spec := &StreamSpec{Enabled: Some(true), ViewType: Some("KEYS_ONLY")}
	in := musicTable("Music")
	in.Stream, in.Tags = spec, []Tag{{Some("mayfly:shards"), Some("1")}}
	out, err := d.CreateTable(ctx, &in)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "shards", len(d.shards(out.StreamARN)), 1)
	for _, step := range []struct {
		change func()
		want   int
	}{
		{func() { d.mustTag("Music", "mayfly:shards", "64") }, 64},
		{func() { d.mustTag("Music", "mayfly:shards", "07", "team", "a") }, 7},
		{func() { d.untag("Music", "team") }, 7},
		{func() { d.untag("Music", "mayfly:shards") }, 4},
	} {
		before := len(d.shards(out.StreamARN))
		step.change()
		equal(t, "shards of the stream that is enabled", len(d.shards(out.StreamARN)), before)
		d.updateMusic(UpdateTableInput{Stream: &StreamSpec{Enabled: Some(false)}})
		out.StreamARN = d.updateMusic(UpdateTableInput{Stream: spec}).StreamARN
		equal(t, "shards", len(d.shards(out.StreamARN)), step.want)
	}
	d.mustTag("Music", "mayfly:shards", "2")
	tags, err := d.ListTagsOfResource(ctx, &ListTagsInput{ARN: Some(d.tableARN("Music"))})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "tags", fmt.Sprint(tags.Tags), "[[mayfly:shards 2]]")
}
