package service

import (
	"slices"

	"github.com/mayflydb/mayfly/internal/store/engine"
)

const (
	kinesisARNMin = 37
	// kinesisMax bounds the destinations of a table with those that were disabled: the oldest of
	// these make room.
	kinesisMax = 50

	precisionMillis = "MILLISECOND"
	precisionMicros = "MICROSECOND"

	msgKinesisState = "Table is not in a valid state to enable Kinesis Streaming Destination: "
)

var enumPrecision = []string{precisionMillis, precisionMicros}

// kinesisShape checks the members that the changes of a destination share. config is the path of
// their configuration.
func kinesisShape(in *KinesisInput, config string, arnMin int) error {
	var s shape
	s.Required("streamArn", in.StreamARN.Set)
	s.length("streamArn", in.StreamARN, arnMin, arnLengthMax)
	s.enum(config+".approximateCreationDateTimePrecision", in.Precision, enumPrecision)
	return s.err()
}

// destination returns a table's destination, enabled or not, or nil. The list is a copy, so that the
// caller may change it.
func destination(d *engine.TableDesc, arn string) *engine.KinesisDestination {
	d.API.Kinesis = slices.Clone(d.API.Kinesis)
	for i := range d.API.Kinesis {
		if k := &d.API.Kinesis[i]; k.ARN == arn {
			return k
		}
	}
	return nil
}
