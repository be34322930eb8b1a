package service

import (
	"fmt"
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
	second, err := d.ListTagsOfResource(ctx, &ListTagsInput{ARN: arn, NextToken: Some(first.NextToken)})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "pages of ten", fmt.Sprint(len(first.Tags), second.Tags, second.NextToken == ""), "10 [[k10 v] [k11 v]] true")

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
		{"no ARN at all", TagResourceInput{ARN: Some("Counters")}, "One or more parameter values were invalid: ARNs must start with 'arn:': Counters"},
		{"ARN of an index", TagResourceInput{ARN: Some(arn + "/index/x"), Tags: one},
			"One or more parameter values were invalid: Invalid resource arn provided, only table or stream is accepted. Provided resource arn: " + arn + "/index/x"},
		{"ARN of another service", TagResourceInput{ARN: Some("arn:aws:s3:::bucket"), Tags: one},
			"One or more parameter values were invalid: Provided Arn is not a DynamoDB resource arn: arn:aws:s3:::bucket"},
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
	refused(t, err, dynamo.CodeResourceNotFound, "Requested resource not found: ResourceArn: "+d.tableARN("none")+" not found")
	_, err = d.UntagResource(ctx, &UntagResourceInput{ARN: Some(arn)})
	invalidRequest(t, err, "Atleast one Tag Key needs to be provided as Input.")
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
