package conformance

import (
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
)

var listStreamsChecks = []check{
	{"OfATable", listStreamsOfATable},
	{"Pages", listStreamsPages},
	{"Limits", listStreamsLimits},
}

// streamsOf returns the ARNs of a table's streams.
func (tb *table) streamsOf(t *testing.T) []string {
	t.Helper()
	out, err := tb.Streams.ListStreams(t.Context(), &dynamodbstreams.ListStreamsInput{TableName: &tb.name})
	if err != nil {
		t.Fatalf("list streams: %v", err)
	}
	var arns []string
	for _, s := range out.Streams {
		if aws.ToString(s.TableName) != tb.name || !streamLabel.MatchString(aws.ToString(s.StreamLabel)) {
			t.Errorf("stream of %s with label %s", aws.ToString(s.TableName), aws.ToString(s.StreamLabel))
		}
		arns = append(arns, aws.ToString(s.StreamArn))
	}
	return arns
}

// ListStreams keeps a stream after it is disabled. Enabling streams again adds a second one.
func listStreamsOfATable(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	if got := tb.streamsOf(t); len(got) != 0 {
		t.Errorf("a table without stream has %v", got)
	}
	on := &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeKeysOnly}
	off := &types.StreamSpecification{StreamEnabled: aws.Bool(false)}
	first := aws.ToString(tb.update(t, &dynamodb.UpdateTableInput{StreamSpecification: on}).LatestStreamArn)
	tb.update(t, &dynamodb.UpdateTableInput{StreamSpecification: off})
	if got := tb.streamsOf(t); !slices.Equal(got, []string{first}) {
		t.Errorf("switched off: got %v, want %s", got, first)
	}
	second := aws.ToString(tb.update(t, &dynamodb.UpdateTableInput{StreamSpecification: on}).LatestStreamArn)
	got := tb.streamsOf(t)
	slices.Sort(got)
	want := []string{first, second}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("switched on again: got %v, want %v", got, want)
	}
}

// Pages of one stream each list every stream at most once, ours among them.
func listStreamsPages(t *testing.T, e *Endpoint) {
	var made []string
	for range 3 {
		made = append(made, newTable(t, e, "pk:S", stream(types.StreamViewTypeKeysOnly)).awaitStream(t))
	}
	var listed []string
	var start *string
	for {
		out, err := e.Streams.ListStreams(t.Context(), &dynamodbstreams.ListStreamsInput{Limit: aws.Int32(1), ExclusiveStartStreamArn: start})
		if err != nil {
			t.Fatal(err)
		}
		if len(out.Streams) > 1 {
			t.Fatalf("Limit 1 gave %d streams", len(out.Streams))
		}
		for _, s := range out.Streams {
			listed = append(listed, aws.ToString(s.StreamArn))
		}
		if start = out.LastEvaluatedStreamArn; start == nil {
			break
		}
	}
	for _, arn := range made {
		if n := countOf(listed, arn); n != 1 {
			t.Errorf("%s is listed %d times", arn, n)
		}
	}
}

func listStreamsLimits(t *testing.T, e *Endpoint) {
	e.refuse(t, "ListStreams", `{"Limit":0}`, validation, "…")
	e.refuse(t, "ListStreams", `{"Limit":101}`, validation, "…")
	e.refuse(t, "ListStreams", `{"ExclusiveStartStreamArn":"arn:aws:dynamodb:us-east-1:000000000000:nonsense"}`, validation, "…")
}
