package timeseries

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Format is the format of a file's lines.
type Format string

const (
	CSV          Format = "csv"    // comma-separated values, after a line of names
	NDJSON       Format = "ndjson" // one JSON object per line
	LineProtocol Format = "influx" // InfluxDB's line protocol
)

// Mapping assigns the parts of a line to device, time, metrics and tags. The zero value uses common
// names.
type Mapping struct {
	// Device is the column, member or tag with the device's name. Default: the first existing one
	// of DeviceNames.
	Device string
	// As is the device of every line. Default: "", the line names it.
	As string
	// Time is the column or member with the instant. Default: the first existing one of TimeNames.
	// The line protocol has a fixed place for it.
	Time string
	// Metrics are the metrics to read; others count as unknown. Default: all columns, members and
	// fields with numbers. Other values are then tags.
	Metrics []string
	// Tags are columns and members stored as text, even if they look like numbers. Default: those
	// that are not numbers.
	Tags []string
	// Measurement adds the line protocol's measurement to the names of fields: cpu_idle. Default:
	// false; but a field "value" has the measurement's name.
	Measurement bool
	// TimeFormat is the form of instants. Default: FormatAuto; in the line protocol "ns".
	TimeFormat TimeFormat
	// Zone applies to instants without a zone. Default: UTC.
	Zone *time.Location
	// Comma separates the values of CSV. Default: ",".
	Comma rune
	// Header has the names of CSV's columns. Default: the first line.
	Header []string
}

// Default names of devices and instants, in any case.
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

// named returns the index of the wanted name, or by default of the first usual one; -1 if there is
// none.
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

// metricName renames a metric whose name the table uses.
func metricName(name string) string {
	switch name {
	case attrDevice, attrTime, attrTTL, attrMetadata:
		return name + "_"
	}
	return name
}

// wants reports whether the mapping includes a metric.
func (m *Mapping) wants(name string) bool {
	return len(m.Metrics) == 0 || slices.Contains(m.Metrics, name)
}

// reading is the content of a line.
type reading struct {
	Sample
	unknown []string // names of ignored values
}

// parser turns lines into samples.
type parser interface {
	// header reads the first line, and reports whether it has names and no sample.
	header(line []byte) (bool, error)
	// parse reads a line without its end. It returns nil and nil for a line without content, such
	// as an empty one.
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

// FormatOf returns the format of a file by its name, or "".
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
