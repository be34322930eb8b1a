package timeseries

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"
)

// Sample is a reading of a device: what it measured at an instant.
type Sample struct {
	// Device names what was read: 1 to 1,024 bytes of UTF-8, not ending in "#shard" and two digits.
	Device string
	// Time is when, to the nanosecond, from 1970 to 9999.
	Time time.Time
	// Sequence tells samples of one device and one instant apart, and orders them. With 0 their values and tags do: then two that are alike are one. A writer that
	// always gives the same number replaces a sample by a corrected one.
	Sequence uint32
	// Values are the metrics, by name: 1 to 200. Neither NaN nor infinite, and of a size that DynamoDB's numbers have (0, or 1E-130 to 9.9E+125).
	Values map[string]float64
	// Tags are what else is known of the reading; at most 32 KB as JSON. They are kept, and are not searched by.
	Tags map[string]string
	// Key is the sort key that it has in the table. Readers fill it in, writers do not look at it.
	Key string
}

// Reason says in a word why a sample, or a line, cannot be used.
type Reason string

const (
	ReasonDevice    Reason = "bad device"
	ReasonTime      Reason = "bad time"
	ReasonExpired   Reason = "beyond retention"
	ReasonFuture    Reason = "in the future"
	ReasonNoValues  Reason = "no values"
	ReasonNumber    Reason = "not a number"
	ReasonMetric    Reason = "bad metric"
	ReasonTags      Reason = "bad tags"
	ReasonSyntax    Reason = "not understood"
	ReasonLong      Reason = "line too long"
	ReasonDuplicate Reason = "duplicate"
	ReasonRefused   Reason = "refused by the endpoint"
)

// SampleError says why a sample cannot be stored, or a line not be used.
type SampleError struct {
	Reason  Reason
	Message string
}

func (e *SampleError) Error() string { return e.Message }

func refuse(reason Reason, format string, args ...any) *SampleError {
	return &SampleError{reason, fmt.Sprintf(format, args...)}
}

const (
	deviceMax  = 1024     // bytes, so that shards' names fit into a partition key
	metricsMax = 200      // of a sample
	metricMax  = 255      // bytes of a metric's name
	tagsMax    = 32 << 10 // bytes of a sample's tags as JSON

	numberLeast    = 1e-130 // DynamoDB's numbers other than 0
	numberGreatest = 9.9e125
)

// Attributes of the samples' table that are no metrics.
const (
	attrDevice   = "deviceId"
	attrTime     = "timestamp"
	attrTTL      = "ttl"
	attrMetadata = "metadata"

	bucketPrefix = "metric#" // before a metric's name: the attribute that is the partition key of its index
)

// check says what of a sample keeps it from being stored, whatever the time is.
func (s *Sample) check() *SampleError {
	if err := checkDevice(s.Device); err != nil {
		return err
	}
	if y := s.Time.UTC().Year(); y < 1970 || y > 9999 {
		return refuse(ReasonTime, "the year %d is not between 1970 and 9999", y)
	}
	switch n := len(s.Values); {
	case n == 0:
		return refuse(ReasonNoValues, "it has no values")
	case n > metricsMax:
		return refuse(ReasonMetric, "it has %d metrics; the limit is %d", n, metricsMax)
	}
	for name, v := range s.Values {
		if err := checkMetric(name); err != nil {
			return err
		}
		if err := checkNumber(name, v); err != nil {
			return err
		}
	}
	return nil
}

func checkDevice(device string) *SampleError {
	switch {
	case device == "":
		return refuse(ReasonDevice, "the device is missing")
	case len(device) > deviceMax:
		return refuse(ReasonDevice, "the device's name has %d bytes; the limit is %d", len(device), deviceMax)
	case !utf8.ValidString(device):
		return refuse(ReasonDevice, "the device's name is not UTF-8: %q", device)
	}
	if _, shard := splitPartition(device); shard > 0 {
		return refuse(ReasonDevice, "the device's name %q ends like a shard's name, which is reserved", device)
	}
	return nil
}

func checkMetric(name string) *SampleError {
	switch {
	case name == "" || len(name) > metricMax:
		return refuse(ReasonMetric, "a metric's name must have 1 to %d bytes, this one has %d", metricMax, len(name))
	case !utf8.ValidString(name):
		return refuse(ReasonMetric, "the metric's name is not UTF-8: %q", name)
	case name == attrDevice || name == attrTime || name == attrTTL || name == attrMetadata || strings.HasPrefix(name, bucketPrefix):
		return refuse(ReasonMetric, "a metric cannot be named %q: the attribute is reserved", name)
	}
	return nil
}

func checkNumber(name string, v float64) *SampleError {
	switch a := math.Abs(v); {
	case math.IsNaN(v):
		return refuse(ReasonNumber, "%s is NaN", name)
	case math.IsInf(v, 0):
		return refuse(ReasonNumber, "%s is infinite", name)
	case a != 0 && (a < numberLeast || a > numberGreatest):
		return refuse(ReasonNumber, "%s is %g, which is not between %g and %g", name, v, numberLeast, numberGreatest)
	}
	return nil
}

// metadata is the sample's tags as they are stored: JSON, with names in order; empty for none.
func (s *Sample) metadata() (string, *SampleError) {
	if len(s.Tags) == 0 {
		return "", nil
	}
	for name, value := range s.Tags {
		if !utf8.ValidString(name) || !utf8.ValidString(value) {
			return "", refuse(ReasonTags, "the tag %q=%q is not UTF-8", name, value)
		}
	}
	text, err := json.Marshal(s.Tags)
	switch {
	case err != nil:
		return "", refuse(ReasonTags, "the tags: %v", err)
	case len(text) > tagsMax:
		return "", refuse(ReasonTags, "the tags have %d bytes; the limit is %d", len(text), tagsMax)
	}
	return string(text), nil
}
