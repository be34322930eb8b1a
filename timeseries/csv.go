package timeseries

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// csvParser reads CSV, one sample per line. A quoted value contains no line end, so a missing quote
// spoils its own line and not the rest of the file.
type csvParser struct {
	m        Mapping
	names    []string
	device   int // columns; -1: Mapping.As names the device
	time     int
	isMetric []bool
	isTag    []bool // columns stored as tags
	cells    []string
}

const columnsMax = 1000

func (p *csvParser) header(line []byte) (bool, error) {
	if p.names != nil { // Mapping.Header has the names
		return false, nil
	}
	names, err := p.split(line, nil)
	if err != nil {
		return true, fmt.Errorf("the line of names: %w", err)
	}
	return true, p.setNames(names)
}

func (p *csvParser) setNames(names []string) error {
	p.names = make([]string, len(names))
	for i, name := range names {
		p.names[i] = strings.TrimSpace(name)
	}
	if len(names) > columnsMax {
		return fmt.Errorf("%d columns are too many; the limit is %d", len(names), columnsMax)
	}
	p.device = -1
	if p.m.As == "" {
		if p.device = named(p.names, p.m.Device, DeviceNames); p.device < 0 {
			return missingName("device", p.m.Device, p.names, DeviceNames)
		}
	}
	if p.time = named(p.names, p.m.Time, TimeNames); p.time < 0 {
		return missingName("time", p.m.Time, p.names, TimeNames)
	}
	for _, m := range p.m.Metrics {
		if !slices.Contains(p.names, m) {
			return fmt.Errorf("column %q not found; the columns are %s", m, strings.Join(p.names, ", "))
		}
	}
	p.isMetric, p.isTag = make([]bool, len(names)), make([]bool, len(names))
	for i, name := range p.names {
		other := i != p.device && i != p.time && name != ""
		p.isTag[i] = other && slices.Contains(p.m.Tags, name)
		p.isMetric[i] = other && !p.isTag[i] && p.m.wants(name)
	}
	return nil
}

// ErrMapping reports that a file lacks a column of its mapping.
var ErrMapping = errors.New("not found")

func missingName(what, wanted string, names, usual []string) error {
	if wanted != "" {
		return fmt.Errorf("the column of the %s, %q, was %w; the columns are %s", what, wanted, ErrMapping, strings.Join(names, ", "))
	}
	return fmt.Errorf("the column of the %s was %w: none of %s is among the columns %s", what, ErrMapping, strings.Join(usual, ", "), strings.Join(names, ", "))
}

func (p *csvParser) parse(line []byte) (*reading, *SampleError) {
	if len(line) == 0 {
		return nil, nil
	}
	cells, err := p.split(line, p.cells[:0])
	p.cells = cells
	if err != nil {
		return nil, refuse(ReasonSyntax, "%v", err)
	}
	if len(cells) != len(p.names) {
		return nil, refuse(ReasonSyntax, "it has %d values for %d columns", len(cells), len(p.names))
	}
	r := &reading{Sample: Sample{Device: p.m.As, Values: make(map[string]float64, len(cells))}}
	if p.device >= 0 {
		r.Device = strings.Clone(strings.TrimSpace(cells[p.device]))
	}
	if r.Time, err = p.m.TimeFormat.read(strings.TrimSpace(cells[p.time]), p.m.Zone); err != nil {
		return nil, refuse(ReasonTime, "%v", err)
	}
	for i, name := range p.names {
		if bad := p.cell(r, i, name, cells[i]); bad != nil {
			return nil, bad
		}
	}
	return r, nil
}

// cell reads a value that is neither device nor time.
func (p *csvParser) cell(r *reading, i int, name, cell string) *SampleError {
	if i == p.device || i == p.time || name == "" {
		return nil
	}
	value := strings.TrimSpace(cell)
	if value == "" || value == "null" || value == "NULL" {
		return nil // no measurement
	}
	if p.isTag[i] {
		r.tag(name, value)
		return nil
	}
	if !p.isMetric[i] {
		r.unknown = append(r.unknown, name)
		return nil
	}
	v, err := strconv.ParseFloat(value, 64)
	switch {
	case err == nil || errors.Is(err, strconv.ErrRange):
		r.Values[metricName(name)] = v // the series refuses a sample with NaN or infinity
	case len(p.m.Metrics) > 0:
		return refuse(ReasonNumber, "%s is %q", name, value)
	default:
		r.tag(name, value)
	}
	return nil
}

func (r *reading) tag(name, value string) {
	if r.Tags == nil {
		r.Tags = map[string]string{}
	}
	r.Tags[name] = strings.Clone(value)
}

var errQuote = errors.New("a quote is not closed, or is inside a value")

// split appends the values of a line. A doubled quote within quotes is one quote.
func (p *csvParser) split(line []byte, cells []string) ([]string, error) {
	if !utf8.Valid(line) {
		return cells, errors.New("it is not UTF-8")
	}
	rest, comma := string(line), string(p.m.Comma)
	for {
		if !strings.HasPrefix(rest, `"`) {
			cell, after, more := strings.Cut(rest, comma)
			if strings.Contains(cell, `"`) {
				return cells, errQuote
			}
			cells = append(cells, cell)
			if rest = after; !more {
				return cells, nil
			}
			continue
		}
		cell, after, err := unquote(rest[1:])
		if err != nil {
			return cells, err
		}
		cells = append(cells, cell)
		if after == "" {
			return cells, nil
		}
		var more bool
		if rest, more = strings.CutPrefix(after, comma); !more {
			return cells, errQuote
		}
	}
}

// unquote returns the text up to the closing quote, and the text behind it.
func unquote(text string) (value, after string, err error) {
	var b strings.Builder
	for {
		at := strings.IndexByte(text, '"')
		if at < 0 {
			return "", "", errQuote
		}
		b.WriteString(text[:at])
		if text = text[at+1:]; !strings.HasPrefix(text, `"`) {
			return b.String(), text, nil
		}
		b.WriteByte('"')
		text = text[1:]
	}
}
