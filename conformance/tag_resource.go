package conformance

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

var tagResourceChecks = []check{
	{"AddChangeRemove", tagAddChangeRemove},
	{"Refused", tagRefused},
	{"BadARN", tagBadARN},
	{"AtMostFifty", tagAtMostFifty},
}

// wantTags compares a table's tags, read page by page.
func (tb *table) wantTags(t *testing.T, want map[string]string) {
	t.Helper()
	got := map[string]string{}
	var next *string
	for {
		out, err := tb.DB.ListTagsOfResource(t.Context(), &dynamodb.ListTagsOfResourceInput{ResourceArn: &tb.arn, NextToken: next})
		if err != nil {
			t.Fatalf("list tags: %v", err)
		}
		for _, tag := range out.Tags {
			got[*tag.Key] = *tag.Value
		}
		if next = out.NextToken; next == nil {
			break
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("tags: got %v, want %v", got, want)
	}
}

// Tags are added and changed one by one; removing one that is not there is no error.
func tagAddChangeRemove(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	tb.wantTags(t, map[string]string{})
	tag := func(pairs ...string) {
		t.Helper()
		in := &dynamodb.TagResourceInput{ResourceArn: &tb.arn}
		for i := 0; i < len(pairs); i += 2 {
			in.Tags = append(in.Tags, types.Tag{Key: aws.String(pairs[i]), Value: aws.String(pairs[i+1])})
		}
		if _, err := e.DB.TagResource(t.Context(), in); err != nil {
			t.Fatalf("tag: %v", err)
		}
	}
	tag("a", "1", "b", "2")
	tag("b", "3", "c", "")
	tb.wantTags(t, map[string]string{"a": "1", "b": "3", "c": ""})
	if _, err := e.DB.UntagResource(t.Context(), &dynamodb.UntagResourceInput{ResourceArn: &tb.arn, TagKeys: []string{"a", "none"}}); err != nil {
		t.Fatalf("untag: %v", err)
	}
	tb.wantTags(t, map[string]string{"b": "3", "c": ""})
}

func tagRefused(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	arn := `{"ResourceArn":"` + tb.arn + `",`
	e.refuse(t, "TagResource", arn+`"Tags":[]}`, validation, "Atleast one Tag needs to be provided as Input.")
	e.refuse(t, "UntagResource", arn+`"TagKeys":[]}`, validation, "Atleast one Tag Key needs to be provided as Input.")
	e.refuse(t, "TagResource", arn+`"Tags":[{"Key":"aws:x","Value":"1"}]}`, validation, "Tag Key cannot be prefixed with aws:, Key: aws:x")
	e.refuse(t, "TagResource", arn+`"Tags":[{"Key":"a","Value":"1"},{"Key":"a","Value":"2"}]}`, validation,
		"Duplicate Tag Keys provided as input: Duplicate Tag Key found a")
	long := strings.Repeat("k", 129)
	e.refuse(t, "TagResource", arn+`"Tags":[{"Key":"`+long+`","Value":"1"}]}`, validation,
		"1 validation error detected: Value '"+long+"' at 'tags.1.member.key' failed to satisfy constraint: Member must have length less than or equal to 128")
	e.refuse(t, "UntagResource", arn+`"TagKeys":["a","","`+long+`"]}`, validation,
		"2 validation errors detected: Value '' at 'tagKeys.2.member' failed to satisfy constraint: Member must have length greater than or equal to 1; Value '"+long+"' at 'tagKeys.3.member' failed to satisfy constraint: Member must have length less than or equal to 128")
	tb.wantTags(t, map[string]string{})
}

// Each kind of wrong ARN has its own message.
func tagBadARN(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	missing := strings.TrimSuffix(tb.arn, tb.name) + "no-such-table"
	const tags = `,"Tags":[{"Key":"a","Value":"1"}]}`
	const keys = `,"TagKeys":["a"]}`
	denied := func(operation, arn string) string {
		return "User: arn:aws:iam::… is not authorized to perform: dynamodb:" + operation + " on resource: " + arn + "…"
	}
	e.refuse(t, "TagResource", `{"ResourceArn":"`+missing+`"`+tags, notFound, "Requested resource not found: ResourcArn: "+missing+" not found")
	e.refuse(t, "UntagResource", `{"ResourceArn":"`+missing+`"`+keys, notFound, "Requested resource not found")
	e.refuse(t, "ListTagsOfResource", `{"ResourceArn":"`+missing+`"}`, accessDenied, denied("ListTagsOfResource", missing))
	elsewhere := strings.Replace(tb.arn, "arn:aws:dynamodb:", "arn:aws:dynamodb:xx-", 1)
	for _, arn := range []string{"nonsense", "arn:aws:s3:::bucket", elsewhere, strings.Replace(tb.arn, ":table/", "1:table/", 1)} {
		for operation, rest := range map[string]string{"TagResource": tags, "UntagResource": keys, "ListTagsOfResource": "}"} {
			e.refuse(t, operation, `{"ResourceArn":"`+arn+`"`+rest, accessDenied, denied(operation, arn))
		}
	}
	e.refuse(t, "TagResource", `{"ResourceArn":"`+tb.arn+`/index/byA"`+tags, validation,
		invalid+"Invalid resource arn provided, only table or stream is accepted. Provided resource arn: "+tb.arn+"/index/byA")
	e.refuse(t, "TagResource", `{"Tags":[{"Key":"a","Value":"1"}]}`, validation, "Invalid TableArn")
}

// All fifty tags are in one answer. The fifty-first tag is refused, and changing one of the fifty is not.
func tagAtMostFifty(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	var tags []types.Tag
	for i := range 50 {
		tags = append(tags, types.Tag{Key: aws.String(fmt.Sprintf("k%02d", i)), Value: aws.String("v")})
	}
	if _, err := e.DB.TagResource(t.Context(), &dynamodb.TagResourceInput{ResourceArn: &tb.arn, Tags: tags}); err != nil {
		t.Fatalf("fifty tags: %v", err)
	}
	if out, err := e.DB.ListTagsOfResource(t.Context(), &dynamodb.ListTagsOfResourceInput{ResourceArn: &tb.arn}); err != nil || len(out.Tags) != 50 || out.NextToken != nil {
		t.Errorf("one answer: %+v, %v", out, err)
	}
	e.refuse(t, "TagResource", `{"ResourceArn":"`+tb.arn+`","Tags":[{"Key":"one-more","Value":""}]}`, validation,
		"Number of Tags exceed the current limit for the provided ResourceArn")
	e.ok(t, "TagResource", `{"ResourceArn":"`+tb.arn+`","Tags":[{"Key":"k07","Value":"changed"}]}`)
}
