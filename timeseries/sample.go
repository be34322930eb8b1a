package timeseries

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"
)

// Sample is a reading of a device at an instant.
type Sample struct {
	// Device names the source: 1 to 1,024 bytes of UTF-8, not ending in "#shard" and two digits.
	Device string
	// Time is the instant of the reading, to the nanosecond, from 1970 to 9999.
	Time time.Time
	// Sequence distinguishes and orders samples of one device and instant. With 0 their values and
	// tags distinguish them, and equal ones are one sample. A writer that always uses the same
	// number replaces a sample by its correction.
	Sequence uint32
	// Values are the metrics by name: 1 to 200 finite numbers within DynamoDB's range (0, or 1E-130
	// to 9.9E+125).
	Values map[string]float64
	// Tags are further facts about the reading; at most 32 KB as JSON. They are stored, but not
	// searchable.
	Tags map[string]string
	// Key is the sort key in the table. Readers set it, writers ignore it.
	Key string
}

// Reason is a word for the reason why a sample or a line is unusable.
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

// SampleError reports why a sample cannot be stored, or a line not be used.
type SampleError struct {
	Reason  Reason
	Message string
}

func (e *SampleError) Error() string { return e.Message }

func refuse(reason Reason, format string, args ...any) *SampleError {
	return &SampleError{reason, fmt.Sprintf(format, args...)}
}

const (
	deviceMax  = 1024     // bytes; with a shard's suffix it fits into a partition key
	metricsMax = 200      // of a sample
	metricMax  = 255      // bytes of a metric's name
	tagsMax    = 32 << 10 // bytes of a sample's tags as JSON

	numberLeast    = 1e-130 // range of DynamoDB's numbers other than 0
	numberGreatest = 9.9e125
)

// Attributes in the samples' table besides metrics.
const (
	attrDevice   = "deviceId"
	attrTime     = "timestamp"
	attrTTL      = "ttl"
	attrMetadata = "metadata"

	// prefix of the attribute that is the partition key of a metric's index
	bucketPrefix = "metric#"
)

// check returns the reason why a sample cannot be stored, or nil. It does not check the tags, nor
// whether the time is expired or too far in the future.
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
	if stem, _ := splitPartition(device); stem != device {
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

// metadata returns the stored form of a sample's tags: JSON with sorted names, or "" without tags.
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
