package conformance

import (
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

var kinesisDestinationChecks = []check{
	{"States", kinesisStates},
	{"Refused", kinesisRefused},
}

// conformanceStream is the Kinesis stream of the checks. It must exist at an endpoint that looks for
// it.
const conformanceStream = "arn:aws:kinesis:us-east-1:000000000000:stream/mayfly-conformance"

const kinesisState = "Table is not in a valid state to enable Kinesis Streaming Destination: "

// awaitKinesis waits until the table's only destination has a status. It returns the destination.
func (tb *table) awaitKinesis(t *testing.T, status types.DestinationStatus) (k types.KinesisDataStreamDestination) {
	t.Helper()
	tb.await(t, "the destination to be "+string(status), func() bool {
		out, err := tb.DB.DescribeKinesisStreamingDestination(t.Context(), &dynamodb.DescribeKinesisStreamingDestinationInput{TableName: &tb.name})
		if err != nil || len(out.KinesisDataStreamDestinations) != 1 {
			t.Fatalf("%+v, %v", out, err)
		}
		k = out.KinesisDataStreamDestinations[0]
		return k.DestinationStatus == status
	})
	return k
}

// A destination is enabled, updated, disabled and enabled again. The table has no stream of its own
// for that.
func kinesisStates(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	tb.ok(t, "DescribeKinesisStreamingDestination", `{}`).want(t, "KinesisDataStreamDestinations", `[]`)
	stream := `{"StreamArn":"` + conformanceStream + `"`
	a := tb.ok(t, "EnableKinesisStreamingDestination", stream+`}`)
	a.want(t, "DestinationStatus", `"ENABLING"`)
	a.want(t, "EnableKinesisStreamingConfiguration", `{}`)
	if k := tb.awaitKinesis(t, types.DestinationStatusActive); aws.ToString(k.StreamArn) != conformanceStream || k.ApproximateCreationDateTimePrecision != "" {
		t.Errorf("enabled: %+v", k)
	}
	if d := tb.awaitActive(t); d.StreamSpecification != nil || d.LatestStreamArn != nil {
		t.Errorf("the table has a stream: %+v", d.StreamSpecification)
	}
	tb.refuse(t, "EnableKinesisStreamingDestination", stream+`}`, validation, kinesisState+"EnableKinesisStreamingDestination must be DISABLED or ENABLE_FAILED to perform ENABLE operation.")
	const update = "UpdateKinesisStreamingConfiguration"
	millis, micros := `,"`+update+`":{"ApproximateCreationDateTimePrecision":"MILLISECOND"}}`, `,"`+update+`":{"ApproximateCreationDateTimePrecision":"MICROSECOND"}}`
	tb.refuse(t, "UpdateKinesisStreamingDestination", stream+millis, validation, "Invalid Request: Precision is already set to the desired value of MILLISECOND for tableId: …, kdsArn: "+conformanceStream)
	a = tb.ok(t, "UpdateKinesisStreamingDestination", stream+micros)
	a.want(t, "DestinationStatus", `"UPDATING"`)
	a.want(t, update, `{"ApproximateCreationDateTimePrecision":"MICROSECOND"}`)
	if k := tb.awaitKinesis(t, types.DestinationStatusActive); k.ApproximateCreationDateTimePrecision != types.ApproximateCreationDateTimePrecisionMicrosecond {
		t.Errorf("updated: %+v", k)
	}
	tb.ok(t, "DisableKinesisStreamingDestination", stream+`}`).want(t, "DestinationStatus", `"DISABLING"`)
	tb.awaitKinesis(t, types.DestinationStatusDisabled)
	tb.refuse(t, "DisableKinesisStreamingDestination", stream+`}`, validation, kinesisState+"KinesisStreamingDestination must be ACTIVE to perform DISABLE operation.")
	tb.refuse(t, "UpdateKinesisStreamingDestination", stream+micros, validation,
		kinesisState+"Kinesis streaming is not in ACTIVE state. Updates are only allowed in ACTIVE state. TableName: $T, kdsArn: "+conformanceStream)
	tb.ok(t, "EnableKinesisStreamingDestination", stream+`}`)
	if k := tb.awaitKinesis(t, types.DestinationStatusActive); k.ApproximateCreationDateTimePrecision != "" {
		t.Errorf("enabled again: %+v", k)
	}
}

func kinesisRefused(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	tb.refuse(t, "EnableKinesisStreamingDestination", `{"StreamArn":""}`, validation,
		"1 validation error detected: Value '' at 'streamArn' failed to satisfy constraint: Member must have length greater than or equal to 37")
	tb.refuse(t, "DisableKinesisStreamingDestination", `{"StreamArn":"not-an-arn"}`, validation, kinesisState+"KinesisStreamingDestination must be ACTIVE to perform DISABLE operation.")
	stream := `"StreamArn":"` + conformanceStream + `"`
	tb.refuse(t, "DisableKinesisStreamingDestination", `{`+stream+`,"EnableKinesisStreamingConfiguration":{"ApproximateCreationDateTimePrecision":"MICROSECOND"}}`, validation,
		"Stream cannot be disabled using EnableKinesisStreamingConfiguration parameters")
	for _, config := range []string{``, `,"UpdateKinesisStreamingConfiguration":{}`} {
		tb.refuse(t, "UpdateKinesisStreamingDestination", `{`+stream+config+`}`, validation,
			"Streaming destination cannot be updated with given parameters: UpdateKinesisStreamingConfiguration cannot be null or contain only null values")
	}
	tb.refuse(t, "UpdateKinesisStreamingDestination", `{`+stream+`,"UpdateKinesisStreamingConfiguration":{"ApproximateCreationDateTimePrecision":"MICROSECOND"}}`, validation,
		kinesisState+"No streaming destination with streamArn: "+conformanceStream+"…")
	for _, op := range []string{"EnableKinesisStreamingDestination", "DisableKinesisStreamingDestination", "DescribeKinesisStreamingDestination"} {
		e.refuse(t, op, `{"TableName":"no-such-table",`+stream+`}`, notFound, "Requested resource not found: Table: no-such-table not found")
	}
}

// wantOnly checks that the answer has these members and no others.
func (a answer) wantOnly(t *testing.T, members ...string) {
	t.Helper()
	for name := range a {
		if !slices.Contains(members, name) {
			t.Errorf("the answer has %s", name)
		}
	}
	for _, name := range members {
		if _, present := a[name]; !present {
			t.Errorf("the answer has no %s", name)
		}
	}
}
