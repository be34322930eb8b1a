package planner

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
)

// Shape is traffic, minute by minute.
type Shape struct {
	// time of the first minute; the time of day in UTC decides when a day's decreases reset
	Start  time.Time
	Points []Point
	// points are units, like CloudWatch's metrics of consumed capacity, and not operations
	Units bool
}

// Point is the traffic of a minute, per second.
type Point struct{ Writes, Reads float64 }

// ShapeMax is the largest number of minutes in a shape: 366 days.
const ShapeMax = 366 * 24 * 60

// shapeBytesMax is the size of the largest file: about 120 bytes per minute.
const shapeBytesMax = 64 << 20

// bounded reads up to a number of bytes, and fails beyond.
type bounded struct {
	io.Reader
	left int
}

func (b *bounded) Read(to []byte) (int, error) {
	n, err := b.Reader.Read(to)
	if b.left -= n; b.left < 0 {
		return 0, fmt.Errorf("the file is larger than %d bytes", shapeBytesMax)
	}
	return n, err
}

// Columns of a shape's file. The first is the start of a row; at least one of the others is
// required.
const (
	columnMinute    = "minute"
	columnTimestamp = "timestamp"
	columnWrites    = "writes"
	columnReads     = "reads"
	columnWCU       = "consumedwritecapacityunits"
	columnRCU       = "consumedreadcapacityunits"
)

// spellings maps other names of the columns, in lower case.
var spellings = map[string]string{"time": columnTimestamp, "writes/s": columnWrites, "reads/s": columnReads, "writes_per_s": columnWrites, "reads_per_s": columnReads}

// LineError is an error in a line of a file.
type LineError struct {
	Line int
	Err  error
}

func (e *LineError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }

func (e *LineError) Unwrap() error { return e.Err }

func lineErrorf(line int, format string, args ...any) error {
	return &LineError{line, fmt.Errorf(format, args...)}
}

// ReadShape reads a CSV file with a heading:
//
//	minute,writes,reads                 minutes from 0, operations per second: a row holds until the next one
//	timestamp,writes,reads              RFC 3339 in whole minutes
//	timestamp,ConsumedWriteCapacityUnits,ConsumedReadCapacityUnits    CloudWatch's sums of units over the period, the smallest distance between rows; 0 if a row is missing
//
// Either column of traffic may be missing. Rows are in the order of time; the last one holds for
// the smallest distance between rows, a minute if it is the only one. A shape has up to ShapeMax
// minutes, and its file up to 64 MB.
func ReadShape(r io.Reader) (*Shape, error) {
	c := csv.NewReader(bufio.NewReaderSize(&bounded{r, shapeBytesMax}, 1<<16))
	c.ReuseRecord, c.TrimLeadingSpace, c.Comment = true, true, '#'
	heading, err := c.Read()
	if errors.Is(err, io.EOF) {
		return nil, errors.New("the file is empty; it must begin with a heading such as minute,writes,reads")
	} else if err != nil {
		return nil, csvError(err)
	}
	h, err := readHeading(heading)
	if err != nil {
		return nil, &LineError{1, err}
	}
	var rows []row
	for {
		record, err := c.Read()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, csvError(err)
		}
		line, _ := c.FieldPos(0)
		w, err := h.row(record)
		if err != nil {
			return nil, &LineError{line, err}
		}
		if n := len(rows); n > 0 && w.minute <= rows[n-1].minute {
			return nil, lineErrorf(line, "its time is not after the row before: sort the rows by time, each minute once")
		}
		if len(rows) > 0 && w.minute-rows[0].minute >= ShapeMax {
			return nil, lineErrorf(line, "it is more than %d minutes (366 days) after the first row", ShapeMax)
		}
		rows = append(rows, w)
	}
	if len(rows) == 0 {
		return nil, errors.New("the file has a heading but no rows")
	}
	return h.shape(rows)
}

// csvError translates an error of the CSV reader.
func csvError(err error) error {
	if parse, ok := errors.AsType[*csv.ParseError](err); ok {
		return &LineError{parse.Line, parse.Err}
	}
	return err
}

// row is a line of the file; minute counts from 1970, or from the file's own 0.
type row struct {
	minute int64
	Point
}

// heading is the index of each column; -1: missing.
type heading struct {
	at, writes, reads int
	timestamps, sums  bool
}

func readHeading(cells []string) (heading, error) {
	h := heading{at: -1, writes: -1, reads: -1}
	perSecond := false
	for i, cell := range cells {
		name := strings.ToLower(strings.TrimSpace(strings.TrimPrefix(cell, "\ufeff")))
		if other := spellings[name]; other != "" {
			name = other
		}
		at := &h.at
		switch name {
		case columnMinute:
		case columnTimestamp:
			h.timestamps = true
		case columnWrites:
			at, perSecond = &h.writes, true
		case columnReads:
			at, perSecond = &h.reads, true
		case columnWCU:
			at, h.sums = &h.writes, true
		case columnRCU:
			at, h.sums = &h.reads, true
		default:
			return h, fmt.Errorf("unknown column %q; use minute or timestamp, with writes and reads, or ConsumedWriteCapacityUnits and ConsumedReadCapacityUnits", cell)
		}
		if *at >= 0 {
			return h, fmt.Errorf("column %q repeats another column", cell)
		}
		*at = i
	}
	switch {
	case h.at < 0:
		return h, errors.New("the column minute or timestamp is missing")
	case h.writes < 0 && h.reads < 0:
		return h, errors.New("the column writes or reads is missing")
	case h.sums && perSecond:
		return h, errors.New("writes and reads cannot be mixed with ConsumedWriteCapacityUnits and ConsumedReadCapacityUnits")
	}
	return h, nil
}

func (h heading) row(cells []string) (w row, err error) {
	if w.minute, err = h.minute(cells[h.at]); err != nil {
		return w, err
	}
	for _, f := range []struct {
		of string
		in int
		to *float64
	}{{columnWrites, h.writes, &w.Writes}, {columnReads, h.reads, &w.Reads}} {
		if f.in < 0 {
			continue
		}
		v, err := strconv.ParseFloat(strings.TrimSpace(cells[f.in]), 64)
		if err != nil || !(v >= 0 && v <= rateMax) { // false for NaN
			return w, fmt.Errorf("%s: %q is not a number between 0 and %v", f.of, cells[f.in], rateMax)
		}
		*f.to = v
	}
	return w, nil
}

func (h heading) minute(cell string) (int64, error) {
	cell = strings.TrimSpace(cell)
	if !h.timestamps {
		m, err := strconv.ParseInt(cell, 10, 64)
		if err != nil || m < 0 || m > math.MaxInt32 {
			return 0, fmt.Errorf("minute: %q is not a whole number of 0 or more", cell)
		}
		return m, nil
	}
	t, err := time.Parse(time.RFC3339, cell)
	if err != nil {
		return 0, fmt.Errorf("timestamp: %q is not a time such as 2026-11-22T00:01:00Z", cell)
	}
	if t.Unix()%60 != 0 || t.Nanosecond() != 0 {
		return 0, fmt.Errorf("timestamp: %q is not a whole minute", cell)
	}
	return t.Unix() / 60, nil
}

// shape returns the traffic of each minute.
func (h heading) shape(rows []row) (*Shape, error) {
	first, last := rows[0].minute, rows[len(rows)-1].minute
	step := int64(1) // the smallest distance between rows
	for i := 1; i < len(rows); i++ {
		if d := rows[i].minute - rows[i-1].minute; i == 1 || d < step {
			step = d
		}
	}
	if last-first+step > ShapeMax {
		return nil, fmt.Errorf("with its last row of %d minutes the shape exceeds %d minutes (366 days)", step, ShapeMax)
	}
	s := &Shape{Start: time.Unix(first*60, 0).UTC(), Units: h.sums, Points: make([]Point, last-first+step)}
	for i, w := range rows {
		end := last + step
		if i+1 < len(rows) {
			end = rows[i+1].minute
		}
		if h.sums {
			end = w.minute + step
			w.Writes, w.Reads = w.Writes/float64(60*step), w.Reads/float64(60*step)
		}
		for _, rate := range []*float64{&w.Writes, &w.Reads} {
			if *rate < rateMin { // almost zero
				*rate = 0
			}
		}
		for m := w.minute; m < end; m++ {
			s.Points[m-first] = w.Point
		}
	}
	return s, nil
}

// mean returns the mean traffic.
func (s *Shape) mean() (p Point) {
	for _, q := range s.Points {
		p.Writes += q.Writes
		p.Reads += q.Reads
	}
	n := float64(len(s.Points))
	return Point{p.Writes / n, p.Reads / n}
}

func (s *Shape) check() error {
	if n := len(s.Points); n < 1 || n > ShapeMax {
		return fmt.Errorf("shape: %d minutes are not between 1 and %d", n, ShapeMax)
	}
	for i, p := range s.Points {
		if !(p.Writes >= 0 && p.Writes <= rateMax && p.Reads >= 0 && p.Reads <= rateMax) {
			return fmt.Errorf("shape: the traffic of minute %d is not between 0 and %v a second", i, rateMax)
		}
		if p.Writes > 0 && p.Writes < rateMin || p.Reads > 0 && p.Reads < rateMin {
			return fmt.Errorf("shape: the traffic of minute %d is less than one request in 30 years", i)
		}
	}
	return nil
}
