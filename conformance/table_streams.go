package conformance

import (
	"regexp"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// tableStreamChecks test a table's stream settings in requests for the table and in its
// description.
var tableStreamChecks = []check{
	{"Create", createStream},
	{"CreateRefused", createStreamSpecification},
	{"Update", updateStream},
	{"UpdateRefused", updateStreamRefused},
}

// streamLabel is the form of a stream's label: ISO 8601 without a zone, to the millisecond.
var streamLabel = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}$`)

// A table made with a stream names the stream.
func createStream(t *testing.T, e *Endpoint) {
	d := newTable(t, e, "pk:S", stream(types.StreamViewTypeKeysOnly)).awaitActive(t)
	if s := d.StreamSpecification; s == nil || !aws.ToBool(s.StreamEnabled) || s.StreamViewType != types.StreamViewTypeKeysOnly {
		t.Errorf("StreamSpecification: %+v", s)
	}
	label := aws.ToString(d.LatestStreamLabel)
	if !streamLabel.MatchString(label) {
		t.Errorf("LatestStreamLabel: %q", label)
	}
	if arn := aws.ToString(d.LatestStreamArn); arn != aws.ToString(d.TableArn)+"/stream/"+label {
		t.Errorf("LatestStreamArn: %q", arn)
	}
}

// A stream needs a view type when it is enabled and must not have one when it is not.
func createStreamSpecification(t *testing.T, e *Endpoint) {
	base := func(spec string) string {
		return object(attrs("a:S"), keys("a:HASH"), onDemand, `"StreamSpecification":`+spec)
	}
	refuseCreation(t, e, []refusedTable{
		{"enabled without view", base(`{"StreamEnabled":true}`),
			invalid + "Table is being created with a stream enabled, UpdateViewType is required"},
		{"disabled with view", base(`{"StreamEnabled":false,"StreamViewType":"KEYS_ONLY"}`),
			invalid + "Table is being created with a stream disabled, UpdateViewType should not be specified"},
		{"unknown view", base(`{"StreamEnabled":true,"StreamViewType":"EVERYTHING"}`),
			"1 validation error detected: Value 'EVERYTHING' at 'streamSpecification.streamViewType' failed to satisfy constraint: Member must satisfy enum value set: […]"},
	})
}

// Switching a stream off leaves its name in the description; switching it on again makes a new one.
func updateStream(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	on := &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewImage}
	d := tb.update(t, &dynamodb.UpdateTableInput{StreamSpecification: on})
	first := aws.ToString(d.LatestStreamArn)
	if d.StreamSpecification == nil || d.StreamSpecification.StreamViewType != types.StreamViewTypeNewImage || first == "" {
		t.Errorf("after enabling: %+v, stream %q", d.StreamSpecification, first)
	}
	d = tb.update(t, &dynamodb.UpdateTableInput{StreamSpecification: &types.StreamSpecification{StreamEnabled: aws.Bool(false)}})
	if d.StreamSpecification != nil || aws.ToString(d.LatestStreamArn) != first {
		t.Errorf("after disabling: %+v, stream %q, want none and %q", d.StreamSpecification, aws.ToString(d.LatestStreamArn), first)
	}
	d = tb.update(t, &dynamodb.UpdateTableInput{StreamSpecification: on})
	if second := aws.ToString(d.LatestStreamArn); second == first || second == "" {
		t.Errorf("enabled again: stream %q, the first was %q", second, first)
	}
}

func updateStreamRefused(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S", provisioned(1, 1))
	spec := func(text string) string { return `{"StreamSpecification":` + text + `}` }
	tb.refuse(t, "UpdateTable", spec(`{"StreamEnabled":false}`), validation, "Table has no stream to disable: TableName: $T")
	tb.refuse(t, "UpdateTable", spec(`{"StreamEnabled":true}`), validation,
		invalid+"If stream is being enabled then UpdateViewType is required")
	tb.refuse(t, "UpdateTable", spec(`{"StreamEnabled":false,"StreamViewType":"KEYS_ONLY"}`), validation,
		invalid+"If stream is being disabled, then UpdateViewType must not be specified")
	tb.refuse(t, "UpdateTable", `{"StreamSpecification":{"StreamEnabled":true,"StreamViewType":"KEYS_ONLY"},`+throughput(2, 2)+`}`, validation,
		invalid+"You cannot modify stream status while updating table IOPS")

	tb.update(t, &dynamodb.UpdateTableInput{StreamSpecification: &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeKeysOnly}})
	tb.refuse(t, "UpdateTable", spec(`{"StreamEnabled":true,"StreamViewType":"KEYS_ONLY"}`), validation,
		"Table already has an enabled stream: TableName: $T")
}
