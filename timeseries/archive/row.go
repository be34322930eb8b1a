package archive

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/mayflydb/mayfly/timeseries"
)

// row is a sample in a file.
type row struct {
	device, key, metadata string
	values                []value
}

type value struct {
	column int // of a metric
	number float64
}

// Columns besides metrics. A metric with one of these names, in any case, is refused: Athena and
// Spark ignore case.
const (
	columnDevice   = "deviceId"
	columnTime     = "timestamp"
	columnKey      = "sample_key"
	columnMetadata = "metadata"

	metricsMax = 2000
)

// metrics numbers the names of metrics.
type metrics struct {
	names  []string
	number map[string]int
}

func newMetrics() *metrics { return &metrics{number: map[string]int{}} }

func (m *metrics) of(name string) (int, error) {
	if n, ok := m.number[name]; ok {
		return n, nil
	}
	for _, own := range []string{columnDevice, columnTime, columnKey, columnMetadata} {
		if strings.EqualFold(name, own) {
			return 0, fmt.Errorf("the metric %q cannot be archived: a column has that name", name)
		}
	}
	if len(m.names) == metricsMax {
		return 0, fmt.Errorf("more than %d metrics do not fit into a file's columns", metricsMax)
	}
	n := len(m.names)
	m.names, m.number[name] = append(m.names, name), n
	return n, nil
}

func (m *metrics) row(s *timeseries.Sample) (r row, err error) {
	r = row{device: s.Device, key: s.Key, values: make([]value, 0, len(s.Values))}
	for name, v := range s.Values {
		n, err := m.of(name)
		if err != nil {
			return r, err
		}
		r.values = append(r.values, value{n, v})
	}
	if len(s.Tags) > 0 {
		doc, err := json.Marshal(s.Tags)
		if err != nil {
			return r, err
		}
		r.metadata = string(doc)
	}
	return r, r.check()
}

func (m *metrics) sample(r row) (s timeseries.Sample, err error) {
	s = timeseries.Sample{Device: r.device, Key: r.key, Values: make(map[string]float64, len(r.values))}
	if s.Time, s.Sequence, err = timeseries.ReadKey(r.key); err != nil {
		return s, err
	}
	for _, v := range r.values {
		if !math.IsNaN(v.number) {
			s.Values[m.names[v.column]] = v.number
		}
	}
	if r.metadata != "" {
		if err := json.Unmarshal([]byte(r.metadata), &s.Tags); err != nil {
			return s, fmt.Errorf("the metadata of device %q at %s: %w", r.device, r.key, err)
		}
	}
	return s, nil
}

// room reports whether a sample's metrics get numbers.
func (m *metrics) room(s *timeseries.Sample) bool {
	n := len(m.names)
	for name := range s.Values {
		if _, ok := m.number[name]; !ok {
			n++
		}
	}
	return n <= metricsMax
}

// bytes estimates the memory of a row.
func (r *row) bytes() int {
	return rowBytes + len(r.device) + len(r.key) + len(r.metadata) + 16*len(r.values)
}

// rowBytes is the overhead of a row in memory.
const rowBytes = 150

// check refuses rows that cannot be samples. Writers use it too, because one refused row makes a
// file unreadable.
func (r *row) check() error {
	switch {
	case r.device == "" || len(r.device) > deviceMax:
		return fmt.Errorf("sample %q: the device's name has %d bytes, not 1 to %d", r.key, len(r.device), deviceMax)
	case len(r.metadata) > metadataMax:
		return fmt.Errorf("the metadata of device %q have %d bytes; the limit is %d", r.device, len(r.metadata), metadataMax)
	}
	if _, _, err := timeseries.ReadKey(r.key); err != nil {
		return fmt.Errorf("device %q: %w", r.device, err)
	}
	return nil
}

const (
	deviceMax   = 2048          // bytes; the maximum of a partition key
	metadataMax = 6 * 400 << 10 // bytes; an item has 400 KB, and JSON may escape each byte with six
)

// sameRow reports whether two rows of one file are equal.
func sameRow(a, b *row) bool {
	sorted := func(r *row) []value {
		values := slices.Clone(r.values)
		sort.Slice(values, func(i, j int) bool { return values[i].column < values[j].column })
		return values
	}
	return inFile(a, b) == 0 && a.metadata == b.metadata && slices.Equal(sorted(a), sorted(b))
}

// day returns the row's day in UTC, the start of its key.
func (r *row) day() string { return r.key[:len(time.DateOnly)] }

// byDay orders an export: by day, and within a day like a file.
func byDay(a, b *row) int { return cmp.Or(strings.Compare(a.day(), b.day()), inFile(a, b)) }

func inFile(a, b *row) int {
	return cmp.Or(strings.Compare(a.device, b.device), strings.Compare(a.key, b.key))
}

// dayDir returns the directory of a day's files.
func dayDir(day string) string { return "dt=" + day + "/" }
