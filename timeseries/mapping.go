package timeseries

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Format is how a file's lines are written.
type Format string

const (
	CSV          Format = "csv"    // values by commas, or another character, under a line of names
	NDJSON       Format = "ndjson" // a JSON object a line
	LineProtocol Format = "influx" // InfluxDB's line protocol
)

// Mapping says what of a line is what. The zero value goes by the usual names.
type Mapping struct {
	// Device is the column, member or tag that names the device. Default: the first of DeviceNames that is there.
	Device string
	// As is the name of the device of every line, whatever stands in it. Default: none.
	As string
	// Time is the column or member that says when. Default: the first of TimeNames that is there. The line protocol has a place for it.
	Time string
	// Metrics are those that are read; others are counted as unknown. Default: all columns, members and fields that are numbers. What is no number is then a tag.
	Metrics []string
	// Tags are columns and members that are kept as they are, also where they look like numbers. Default: none but those that are no numbers.
	Tags []string
	// Measurement puts the line protocol's measurement in front of its fields' names: cpu_idle. Default: no; but a field "value" is named after it.
	Measurement bool
	// TimeFormat is how instants are written. Default: FormatAuto; in the line protocol "ns".
	TimeFormat TimeFormat
	// Zone is that of instants that name none. Default: UTC.
	Zone *time.Location
	// Comma is between the values of CSV. Default: ",".
	Comma rune
	// Header are the names of CSV's columns. Default: the first line has them.
	Header []string
}

// The names by which devices and instants go where nothing is said; capitals and small letters are the same.
var (
	DeviceNames = []string{"deviceId", "device_id", "device", "sensorId", "sensor_id", "sensor", "station", "host", "id", "name"}
	TimeNames   = []string{"timestamp", "time", "datetime", "date_time", "date", "ts", "_time"}
)

func (m Mapping) withDefaults(f Format) Mapping {
	if m.TimeFormat == "" {
		if m.TimeFormat = FormatAuto; f == LineProtocol {
			m.TimeFormat = "ns"
		}
	}
	if m.Zone == nil {
		m.Zone = time.UTC
	}
	if m.Comma == 0 {
		m.Comma = ','
	}
	return m
}

func (m Mapping) validate() error {
	var all []error
	all = append(all, m.TimeFormat.validate())
	if m.Comma == '"' || m.Comma == '\n' || m.Comma == '\r' || m.Comma == 0xfffd {
		all = append(all, fmt.Errorf("%q cannot separate CSV values", m.Comma))
	}
	if m.As != "" {
		if err := checkDevice(m.As); err != nil {
			all = append(all, err)
		}
	}
	for _, name := range m.Metrics {
		if err := checkMetric(name); err != nil {
			all = append(all, err)
		}
	}
	return errors.Join(all...)
}

// named finds the one of some names that is meant: wanted, or else the first of those that are usual.
func named(names []string, wanted string, usual []string) (at int) {
	if wanted != "" {
		return slices.Index(names, wanted)
	}
	for _, name := range usual {
		if at := slices.IndexFunc(names, func(n string) bool { return strings.EqualFold(n, name) }); at >= 0 {
			return at
		}
	}
	return -1
}

// metricName makes a metric's name of one that is taken by the table.
func metricName(name string) string {
	switch name {
	case attrDevice, attrTime, attrTTL, attrMetadata:
		return name + "_"
	}
	return name
}

// wants reports whether a metric is to be read.
func (m *Mapping) wants(name string) bool {
	return len(m.Metrics) == 0 || slices.Contains(m.Metrics, name)
}

// reading is what a line says, as far as it is understood.
type reading struct {
	Sample
	unknown []string // what of it was left out, by name
}

// parser makes samples of lines.
type parser interface {
	// header takes the first line, and reports whether it was one that has names and no sample.
	header(line []byte) (bool, error)
	// parse reads a line without its end. A line that says nothing, such as an empty one, gives nil and nil.
	parse(line []byte) (*reading, *SampleError)
}

func newParser(f Format, m Mapping) (parser, error) {
	switch f {
	case CSV:
		p := &csvParser{m: m}
		if len(m.Header) > 0 {
			return p, p.setNames(m.Header)
		}
		return p, nil
	case NDJSON:
		return &jsonParser{m: m}, nil
	case LineProtocol:
		return &lineProtocolParser{m: m}, nil
	}
	return nil, fmt.Errorf("invalid format %q; use csv, ndjson or influx", f)
}

// FormatOf is the format that a file's name tells; "" for none.
func FormatOf(name string) Format {
	name = strings.TrimSuffix(strings.ToLower(name), ".gz")
	for suffix, f := range map[string]Format{
		".csv": CSV, ".tsv": CSV, ".ndjson": NDJSON, ".jsonl": NDJSON, ".json": NDJSON, ".lp": LineProtocol, ".influx": LineProtocol, ".line": LineProtocol,
	} {
		if strings.HasSuffix(name, suffix) {
			return f
		}
	}
	return ""
}
