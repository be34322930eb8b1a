package service

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/engine"
)

const (
	kinesisOne = "arn:aws:kinesis:us-east-1:123456789012:stream/one"
	kinesisTwo = "arn:aws:kinesis:us-east-1:123456789012:stream/two"

	kinesisEnableState  = "Table is not in a valid state to enable Kinesis Streaming Destination: EnableKinesisStreamingDestination must be DISABLED or ENABLE_FAILED to perform ENABLE operation."
	kinesisDisableState = "Table is not in a valid state to enable Kinesis Streaming Destination: KinesisStreamingDestination must be ACTIVE to perform DISABLE operation."
	kinesisUpdateState  = "Table is not in a valid state to enable Kinesis Streaming Destination: Kinesis streaming is not in ACTIVE state. Updates are only allowed in ACTIVE state. " +
		"TableName: Music, kdsArn: " + kinesisOne
)

func (d *db) kinesis() string {
	d.t.Helper()
	out, err := d.DescribeKinesisStreamingDestination(ctx, &TableNameInput{TableName: Some("Music")})
	if err != nil {
		d.t.Fatal(err)
	}
	var list []string
	for _, k := range out.Destinations {
		list = append(list, strings.TrimSuffix(k.StreamARN[len(k.StreamARN)-3:]+" "+k.Status+" "+k.Precision, " "))
	}
	return strings.Join(list, ", ")
}

// TestKinesisDestinations walks through the states of a table's destinations.
func TestKinesisDestinations(t *testing.T) {
	d := open(t)
	d.music()
	in := func(arn, precision string) *KinesisInput {
		in := &KinesisInput{TableName: Some("Music"), StreamARN: Some(arn)}
		if precision != "" {
			in.Precision = Some(precision)
		}
		return in
	}
	enable, disable, update := d.EnableKinesisStreamingDestination, d.DisableKinesisStreamingDestination, d.UpdateKinesisStreamingDestination
	_, err := disable(ctx, in(kinesisOne, ""))
	invalidRequest(t, err, kinesisDisableState)
	_, err = update(ctx, in(kinesisOne, precisionMicros))
	invalidRequest(t, err, "Table is not in a valid state to enable Kinesis Streaming Destination: No streaming destination with streamArn: "+kinesisOne+" found for table with tableName: Music")
	equal(t, "at first", d.kinesis(), "")

	var log strings.Builder
	d.log = slog.New(slog.NewTextHandler(&log, nil))
	out, err := enable(ctx, in(kinesisOne, ""))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), "its stream gets no records, since no target is mapped to it") || !strings.Contains(log.String(), "table=Music stream="+kinesisOne) {
		t.Errorf("the log does not say that nothing is delivered: %s", log.String())
	}
	equal(t, "the answer", *out, KinesisOutput{TableName: "Music", StreamARN: kinesisOne, Status: "ENABLING"})
	equal(t, "enabled", d.kinesis(), "one ACTIVE")
	for _, arn := range []string{kinesisOne, kinesisTwo} {
		_, err = enable(ctx, in(arn, precisionMicros))
		invalidRequest(t, err, kinesisEnableState)
	}
	_, err = update(ctx, in(kinesisOne, precisionMillis))
	desc, _ := d.engine.Table(namespace, "Music")
	invalidRequest(t, err, "Invalid Request: Precision is already set to the desired value of MILLISECOND for tableId: "+desc.Desc().UUID+", kdsArn: "+kinesisOne)
	if out, err = update(ctx, in(kinesisOne, precisionMicros)); err != nil {
		t.Fatal(err)
	}
	equal(t, "the answer", *out, KinesisOutput{TableName: "Music", StreamARN: kinesisOne, Status: "UPDATING", Precision: precisionMicros})
	equal(t, "updated", d.kinesis(), "one ACTIVE MICROSECOND")
	_, err = disable(ctx, in(kinesisTwo, ""))
	invalidRequest(t, err, kinesisDisableState)
	_, err = disable(ctx, in(kinesisOne, precisionMicros))
	invalidRequest(t, err, "Stream cannot be disabled using EnableKinesisStreamingConfiguration parameters")
	if out, err = disable(ctx, in(kinesisOne, "")); err != nil {
		t.Fatal(err)
	}
	equal(t, "the answer", *out, KinesisOutput{TableName: "Music", StreamARN: kinesisOne, Status: "DISABLING"})
	equal(t, "disabled", d.kinesis(), "one DISABLED")
	_, err = disable(ctx, in(kinesisOne, ""))
	invalidRequest(t, err, kinesisDisableState)
	_, err = update(ctx, in(kinesisOne, precisionMicros))
	invalidRequest(t, err, kinesisUpdateState)

	if _, err = enable(ctx, in(kinesisTwo, precisionMicros)); err != nil {
		t.Fatal(err)
	}
	equal(t, "the latest first", d.kinesis(), "two ACTIVE MICROSECOND, one DISABLED")
	if _, err = disable(ctx, in(kinesisTwo, "")); err != nil {
		t.Fatal(err)
	}
	if _, err = enable(ctx, in(kinesisOne, "")); err != nil {
		t.Fatal(err)
	}
	equal(t, "enabled again", d.kinesis(), "one ACTIVE, two DISABLED")
}

// TestManyKinesisDestinations: the list of disabled destinations is bounded, and never loses the
// enabled one.
func TestManyKinesisDestinations(t *testing.T) {
	var d engine.TableDesc
	for i := range 3 * kinesisMax {
		arn := fmt.Sprint(kinesisOne, i)
		if err := enableDestination(&d, &KinesisInput{StreamARN: Some(arn)}); err != nil {
			t.Fatal(err)
		}
		if list := d.API.Kinesis; list[0].ARN != arn || len(list) != min(i+1, kinesisMax) {
			t.Fatalf("%d destinations, and the first is %s", len(list), list[0].ARN)
		}
		destination(&d, arn).Disabled = true
	}
}

func TestKinesisDestinationRefused(t *testing.T) {
	d := open(t)
	d.music()
	for _, test := range []struct {
		about string
		do    func(*Service) (*KinesisOutput, error)
		code  dynamo.Code
		want  string
	}{
		{"no table", func(s *Service) (*KinesisOutput, error) {
			return s.EnableKinesisStreamingDestination(ctx, &KinesisInput{StreamARN: Some(kinesisOne)})
		}, dynamo.CodeValidation, "The parameter 'TableName' is required but was not present in the request"},
		{"no stream", func(s *Service) (*KinesisOutput, error) {
			return s.EnableKinesisStreamingDestination(ctx, &KinesisInput{TableName: Some("Music")})
		}, dynamo.CodeValidation, "1 validation error detected: Value null at 'streamArn' failed to satisfy constraint: Member must not be null"},
		{"empty stream and wrong precision", func(s *Service) (*KinesisOutput, error) {
			return s.EnableKinesisStreamingDestination(ctx, &KinesisInput{TableName: Some("Music"), StreamARN: Some(""), Precision: Some("SECOND")})
		}, dynamo.CodeValidation, "2 validation errors detected: Value '' at 'streamArn' failed to satisfy constraint: Member must have length greater than or equal to 37; " +
			"Value 'SECOND' at 'enableKinesisStreamingConfiguration.approximateCreationDateTimePrecision' failed to satisfy constraint: Member must satisfy enum value set: [MILLISECOND, MICROSECOND]"},
		{"disabled without ARN's form", func(s *Service) (*KinesisOutput, error) {
			return s.DisableKinesisStreamingDestination(ctx, &KinesisInput{TableName: Some("Music"), StreamARN: Some("not-an-arn")})
		}, dynamo.CodeValidation, kinesisDisableState},
		{"no configuration", func(s *Service) (*KinesisOutput, error) {
			return s.UpdateKinesisStreamingDestination(ctx, &KinesisInput{TableName: Some("Music"), StreamARN: Some(kinesisOne)})
		}, dynamo.CodeValidation, "Streaming destination cannot be updated with given parameters: UpdateKinesisStreamingConfiguration cannot be null or contain only null values"},
		{"missing table", func(s *Service) (*KinesisOutput, error) {
			return s.EnableKinesisStreamingDestination(ctx, &KinesisInput{TableName: Some("none"), StreamARN: Some(kinesisOne)})
		}, dynamo.CodeResourceNotFound, "Requested resource not found: Table: none not found"},
		{"missing table described", func(s *Service) (*KinesisOutput, error) {
			_, err := s.DescribeKinesisStreamingDestination(ctx, &TableNameInput{TableName: Some("none")})
			return nil, err
		}, dynamo.CodeResourceNotFound, "Requested resource not found: Table: none not found"},
	} {
		_, err := test.do(d.Service)
		t.Run(test.about, func(t *testing.T) { refused(t, err, test.code, test.want) })
	}
	equal(t, "nothing", d.kinesis(), "")
}

// A delivery changes mayfly's own tables. If such a change were delivered too, there would be no end.
func TestKinesisDestinationOfOwnTable(t *testing.T) {
	d := open(t)
	d.mapped(kinesisOne)
	_, err := d.EnableKinesisStreamingDestination(ctx, &KinesisInput{TableName: Some("mayfly.leases"), StreamARN: Some(kinesisOne)})
	invalidRequest(t, err, "A Kinesis stream cannot be a destination of the tables of mayfly itself: mayfly.leases")
}
