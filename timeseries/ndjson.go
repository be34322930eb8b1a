package timeseries

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
	"strconv"
	"unicode/utf8"
)

// jsonParser reads one JSON object per line. It joins the names of nested members: {"air":
// {"temperature": 4}} has air.temperature.
type jsonParser struct{ m Mapping }

func (p *jsonParser) header([]byte) (bool, error) { return false, nil }

const nestedMax = 4

func (p *jsonParser) parse(line []byte) (*reading, *SampleError) {
	if line = bytes.TrimSpace(line); len(line) == 0 {
		return nil, nil
	}
	if !utf8.Valid(line) {
		return nil, refuse(ReasonSyntax, "it is not UTF-8")
	}
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.UseNumber()
	var object map[string]any
	if err := decoder.Decode(&object); err != nil || object == nil {
		return nil, refuse(ReasonSyntax, "not a JSON object")
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, refuse(ReasonSyntax, "unexpected text after the JSON object")
	}
	names := slices.Sorted(maps.Keys(object))
	r := &reading{Sample: Sample{Device: p.m.As, Values: make(map[string]float64, len(object))}}
	device := -1
	if p.m.As == "" {
		if device = named(names, p.m.Device, DeviceNames); device < 0 {
			return nil, refuse(ReasonDevice, "the device is missing")
		}
		switch v := object[names[device]].(type) {
		case string:
			r.Device = v
		case json.Number:
			r.Device = v.String()
		default:
			return nil, refuse(ReasonDevice, "%s is not a string", names[device])
		}
	}
	at := named(names, p.m.Time, TimeNames)
	if at < 0 {
		return nil, refuse(ReasonTime, "the time is missing")
	}
	var err error
	switch v := object[names[at]].(type) {
	case string:
		r.Time, err = p.m.TimeFormat.read(v, p.m.Zone)
	case json.Number:
		r.Time, err = p.m.TimeFormat.read(v.String(), p.m.Zone)
	default:
		return nil, refuse(ReasonTime, "%s is not a time", names[at])
	}
	if err != nil {
		return nil, refuse(ReasonTime, "%v", err)
	}
	for i, name := range names {
		if i != device && i != at {
			if bad := p.member(r, name, object[name], 0); bad != nil {
				return nil, bad
			}
		}
	}
	return r, nil
}

// member reads a value that is neither device nor time.
func (p *jsonParser) member(r *reading, name string, value any, depth int) *SampleError {
	switch v := value.(type) {
	case nil: // no measurement
	case map[string]any:
		if depth == nestedMax {
			return refuse(ReasonSyntax, "%s: objects are nested deeper than %d levels", name, nestedMax)
		}
		for _, inner := range slices.Sorted(maps.Keys(v)) {
			if bad := p.member(r, name+"."+inner, v[inner], depth+1); bad != nil {
				return bad
			}
		}
	case json.Number:
		if slices.Contains(p.m.Tags, name) {
			r.tag(name, v.String())
			return nil
		}
		n, err := v.Float64()
		if err != nil && !errors.Is(err, strconv.ErrRange) {
			return refuse(ReasonNumber, "%s is %s", name, v)
		}
		p.number(r, name, n)
	case bool:
		n := 0.0
		if v {
			n = 1
		}
		p.number(r, name, n)
	case string:
		return p.text(r, name, v)
	default:
		r.unknown = append(r.unknown, name)
	}
	return nil
}

func (p *jsonParser) number(r *reading, name string, n float64) {
	if p.m.wants(name) {
		r.Values[metricName(name)] = n
	} else {
		r.unknown = append(r.unknown, name)
	}
}

// text stores a text as a tag. The text of a selected metric must be a number, and becomes its
// value. If metrics are selected, a text of neither a metric nor a tag counts as unknown. The texts
// NaN and Inf, for which JSON has no number, become values too, so that Check refuses the sample.
func (p *jsonParser) text(r *reading, name, v string) *SampleError {
	n, err := strconv.ParseFloat(v, 64)
	isNumber := err == nil
	switch {
	case slices.Contains(p.m.Tags, name):
		r.tag(name, v)
	case len(p.m.Metrics) > 0 && !p.m.wants(name):
		r.unknown = append(r.unknown, name)
	case len(p.m.Metrics) > 0 && isNumber || isNumber && (n != n || n-n != 0):
		r.Values[metricName(name)] = n
	case len(p.m.Metrics) > 0:
		return refuse(ReasonNumber, "%s is %q", name, v)
	default:
		r.tag(name, v)
	}
	return nil
}
