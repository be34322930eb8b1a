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
	Start  time.Time // of the first minute; its time of day in UTC says when a new day's decreases are allowed
	Points []Point
	Units  bool // the points are units and not operations, as CloudWatch's metrics of consumed capacity are
}

// Point is the traffic of a minute, each a second.
type Point struct{ Writes, Reads float64 }

// ShapeMax is how many minutes a shape has at most: those of 366 days.
const ShapeMax = 366 * 24 * 60

// shapeBytesMax is the size of the largest file of a shape: some 120 bytes for each minute.
const shapeBytesMax = 64 << 20

// bounded reads up to so many bytes, and fails beyond.
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

// columns of a shape's file. The first is when a row begins; of the others at least one is there.
const (
	columnMinute    = "minute"
	columnTimestamp = "timestamp"
	columnWrites    = "writes"
	columnReads     = "reads"
	columnWCU       = "consumedwritecapacityunits"
	columnRCU       = "consumedreadcapacityunits"
)

// spellings are other names of the columns, in lower case.
var spellings = map[string]string{"time": columnTimestamp, "writes/s": columnWrites, "reads/s": columnReads, "writes_per_s": columnWrites, "reads_per_s": columnReads}

// LineError is what is wrong with a line of a file.
type LineError struct {
	Line int
	Err  error
}

func (e *LineError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }

func (e *LineError) Unwrap() error { return e.Err }

func lineErrorf(line int, format string, args ...any) error {
	return &LineError{line, fmt.Errorf(format, args...)}
}

// ReadShape reads a CSV file with a heading. A row is from a minute on:
//
//	minute,writes,reads                 minutes from 0, operations a second: a row holds until the next one
//	timestamp,writes,reads              RFC 3339 in whole minutes
//	timestamp,ConsumedWriteCapacityUnits,ConsumedReadCapacityUnits    sums of units, as CloudWatch has them, of the time that the two closest rows are apart; nothing where a row is missing
//
// Either column of traffic may be left out. Rows are in the order of time. A shape is up to ShapeMax minutes long, its file up to 64 MB.
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

// csvError words the errors of the reader as ours.
func csvError(err error) error {
	var parse *csv.ParseError
	if errors.As(err, &parse) {
		return &LineError{parse.Line, parse.Err}
	}
	return err
}

// row is a line of the file; minute is since 1970, or since the file's own 0.
type row struct {
	minute int64
	Point
}

// heading is where which column is; -1: nowhere.
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
		if err != nil || !(v >= 0 && v <= rateMax) { // NaN is not
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

// shape gives each minute its traffic.
func (h heading) shape(rows []row) (*Shape, error) {
	first, last := rows[0].minute, rows[len(rows)-1].minute
	step := int64(1) // between the two rows that are closest
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
			if *rate < rateMin { // a sum of next to nothing
				*rate = 0
			}
		}
		for m := w.minute; m < end; m++ {
			s.Points[m-first] = w.Point
		}
	}
	return s, nil
}

// mean is the traffic on average.
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
