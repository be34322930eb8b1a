package timeseries

import (
	"bytes"
	"errors"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// lineProtocolParser reads InfluxDB's line protocol:
//
//	measurement[,tag=value…] field=value[,field=value…] timestamp
//
// Fields are metrics: numbers as 1.5, integers as 15i and 15u, booleans as t, true, f, false.
// Quoted fields are tags. If no tag names the device, its name is the measurement with all tags in
// order, like the name of a series there. A backslash escapes a comma, a space or an equals sign.
type lineProtocolParser struct{ m Mapping }

func (p *lineProtocolParser) header([]byte) (bool, error) { return false, nil }

func (p *lineProtocolParser) parse(line []byte) (*reading, *SampleError) {
	line = bytes.TrimSpace(line)
	if len(line) == 0 || line[0] == '#' {
		return nil, nil
	}
	if !utf8.Valid(line) {
		return nil, refuse(ReasonSyntax, "it is not UTF-8")
	}
	series, rest, ok := cutUnescaped(string(line), ' ', false)
	if !ok {
		return nil, refuse(ReasonSyntax, "it has no fields")
	}
	fields, at, _ := cutUnescaped(strings.TrimLeft(rest, " "), ' ', true)
	if at = strings.TrimSpace(at); at == "" {
		return nil, refuse(ReasonTime, "the time is missing")
	}
	r := &reading{Sample: Sample{Device: p.m.As, Values: map[string]float64{}}}
	measurement, bad := p.series(r, series)
	if bad != nil {
		return nil, bad
	}
	var err error
	if r.Time, err = p.m.TimeFormat.read(at, p.m.Zone); err != nil {
		return nil, refuse(ReasonTime, "%v", err)
	}
	for more := true; more; {
		var field string
		if field, fields, more = cutUnescaped(fields, ',', true); field == "" {
			return nil, refuse(ReasonSyntax, "a field is missing")
		}
		name, value, ok := cutUnescaped(field, '=', false)
		if !ok || name == "" || value == "" {
			return nil, refuse(ReasonSyntax, "the field %q has no name or no value", field)
		}
		if bad := p.field(r, measurement, unescape(name), value); bad != nil {
			return nil, bad
		}
	}
	return r, nil
}

// series reads measurement and tags, and finds the device.
func (p *lineProtocolParser) series(r *reading, text string) (measurement string, bad *SampleError) {
	measurement, tags, more := cutUnescaped(text, ',', false)
	if measurement = unescape(measurement); measurement == "" {
		return "", refuse(ReasonSyntax, "the measurement is missing")
	}
	var names, pairs []string
	for more {
		var tag string
		tag, tags, more = cutUnescaped(tags, ',', false)
		name, value, ok := cutUnescaped(tag, '=', false)
		if !ok || name == "" || value == "" {
			return "", refuse(ReasonSyntax, "the tag %q has no name or no value", tag)
		}
		if name = unescape(name); slices.Contains(names, name) {
			return "", refuse(ReasonSyntax, "duplicate tag %q", name)
		}
		names, pairs = append(names, name), append(pairs, name+"="+unescape(value))
		r.tag(name, unescape(value))
	}
	switch at := named(names, p.m.Device, DeviceNames); {
	case p.m.As != "":
	case at >= 0:
		r.Device = r.Tags[names[at]]
		delete(r.Tags, names[at])
	case p.m.Device != "":
		return "", refuse(ReasonDevice, "the tag %q is missing", p.m.Device)
	default:
		slices.Sort(pairs)
		r.Device = strings.Join(append([]string{measurement}, pairs...), ",")
		r.Tags = nil // the device's name contains them
	}
	if len(r.Tags) == 0 {
		r.Tags = nil
	}
	return measurement, nil
}

func (p *lineProtocolParser) field(r *reading, measurement, name, value string) *SampleError {
	metric := name
	switch {
	case p.m.Measurement:
		metric = measurement + "_" + name
	case name == "value":
		metric = measurement
	}
	if text, ok := strings.CutPrefix(value, `"`); ok {
		end := closingQuote(text)
		if end != len(text)-1 {
			return refuse(ReasonSyntax, "the string of %s is not closed by a quote", name)
		}
		r.tag(metric, strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(text[:end]))
		return nil
	}
	v, err := fieldNumber(value)
	if err != nil {
		return refuse(ReasonNumber, "%s is %q", name, value)
	}
	if !p.m.wants(metric) {
		r.unknown = append(r.unknown, metric)
		return nil
	}
	if _, twice := r.Values[metricName(metric)]; twice {
		return refuse(ReasonSyntax, "duplicate field %s", name)
	}
	r.Values[metricName(metric)] = v
	return nil
}

var errField = errors.New("no value")

// exactMax is the greatest integer up to which float64 is exact. Greater integers are refused,
// because they would change.
const exactMax = 1 << 53

func fieldNumber(value string) (float64, error) {
	switch value {
	case "t", "T", "true", "True", "TRUE":
		return 1, nil
	case "f", "F", "false", "False", "FALSE":
		return 0, nil
	}
	switch last := value[len(value)-1]; last {
	case 'i':
		n, err := strconv.ParseInt(value[:len(value)-1], 10, 64)
		if err == nil && (n > exactMax || n < -exactMax) {
			err = errField
		}
		return float64(n), err
	case 'u':
		n, err := strconv.ParseUint(value[:len(value)-1], 10, 64)
		if err == nil && n > exactMax {
			err = errField
		}
		return float64(n), err
	}
	v, err := strconv.ParseFloat(value, 64)
	if errors.Is(err, strconv.ErrRange) {
		return v, nil // the series refuses a sample with infinity
	}
	if err != nil {
		return 0, errField
	}
	return v, nil
}

// cutUnescaped cuts at the first separator without a backslash, and, on request, outside quotes.
func cutUnescaped(text string, separator byte, quotes bool) (before, after string, found bool) {
	quoted := false
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '\\' && i+1 < len(text):
			i++
		case quotes && text[i] == '"':
			quoted = !quoted
		case text[i] == separator && !quoted:
			return text[:i], text[i+1:], true
		}
	}
	return text, "", false
}

// closingQuote returns the index of the closing quote, or -1.
func closingQuote(text string) int {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return -1
}

// unescape removes backslashes before characters that they escape.
func unescape(text string) string {
	if !strings.Contains(text, `\`) {
		return text
	}
	return strings.NewReplacer(`\,`, `,`, `\ `, ` `, `\=`, `=`).Replace(text)
}
