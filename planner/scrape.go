package planner

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Scrape is what /metrics has told of traffic so far: counters.
type Scrape struct {
	Writes, Reads float64 // requests that mayfly has answered; or, of guard, units consumed at a table
	Units         bool    // they are units
}

// What is read of /metrics.
const (
	metricRequests = "mayfly_requests_total"
	metricUnits    = "mayfly_guard_consumed_units_total"
	scrapeMax      = 32 << 20 // bytes
	scrapeLineMax  = 1 << 20
)

// traffic is what each operation counts as. A batch counts as many times as it has items on average, which the caller says; PartiQL is not counted, as it may be either.
var traffic = map[string]struct{ write, batch bool }{
	"PutItem": {write: true}, "UpdateItem": {write: true}, "DeleteItem": {write: true}, "BatchWriteItem": {write: true, batch: true}, "TransactWriteItems": {write: true, batch: true},
	"GetItem": {}, "Query": {}, "Scan": {}, "BatchGetItem": {batch: true}, "TransactGetItems": {batch: true},
}

// ReadScrape reads /metrics of mayfly, or of mayfly guard, in Prometheus's text format. With a table it is guard's metrics of that table that count; without one, the requests that mayfly
// has answered with success, to all tables together, since they are not counted by table. A batch or transaction counts as perBatch requests.
func ReadScrape(r io.Reader, table string, perBatch float64) (Scrape, error) {
	s, found, ours := Scrape{Units: table != ""}, false, false
	lines := bufio.NewScanner(io.LimitReader(r, scrapeMax))
	lines.Buffer(make([]byte, 0, 64<<10), scrapeLineMax)
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		ours = ours || strings.HasPrefix(line, "mayfly_")
		name, _, _ := strings.Cut(line, "{")
		if name != metricRequests && name != metricUnits {
			continue
		}
		labels, v, err := readSample(line[len(name):])
		if err != nil {
			return s, &LineError{n, err}
		}
		switch {
		case table != "" && name == metricUnits && labels["TableName"] == table:
			found = true
			if labels["kind"] == "write" {
				s.Writes += v
			} else {
				s.Reads += v
			}
		case table == "" && name == metricRequests && labels["code"] == "OK":
			found = true
			is, counts := traffic[labels["operation"]]
			if is.batch {
				v *= perBatch
			}
			switch {
			case !counts:
			case is.write:
				s.Writes += v
			default:
				s.Reads += v
			}
		}
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return s, fmt.Errorf("a line has more than %d bytes: these are no metrics", scrapeLineMax)
	case err != nil:
		return s, err
	case !ours:
		return s, errors.New("there is no metric of mayfly in it")
	case !found && table != "":
		return s, fmt.Errorf("there is no %s of the table %s in it: a table's units are told by mayfly guard --metrics-port", metricUnits, table)
	}
	return s, nil
}

// readSample reads `{a="b",…} 17`.
func readSample(text string) (labels map[string]string, v float64, err error) {
	wrong := fmt.Errorf("%q is not a sample such as {operation=\"PutItem\"} 17", text)
	labels = map[string]string{}
	rest, is := strings.CutPrefix(text, "{")
	for is && !strings.HasPrefix(rest, "}") {
		name, after, found := strings.Cut(rest, "=")
		if !found || !strings.HasPrefix(after, `"`) {
			return nil, 0, wrong
		}
		end := 1
		for end < len(after) && after[end] != '"' {
			if after[end] == '\\' {
				end++
			}
			end++
		}
		if end >= len(after) {
			return nil, 0, wrong
		}
		value, err := strconv.Unquote(after[:end+1])
		if err != nil {
			return nil, 0, wrong
		}
		labels[strings.TrimSpace(name)] = value
		rest = strings.TrimLeft(after[end+1:], ", ")
	}
	rest = strings.TrimPrefix(rest, "}")
	cells := strings.Fields(rest)
	if len(cells) < 1 || len(cells) > 2 { // a time may follow
		return nil, 0, wrong
	}
	if v, err = strconv.ParseFloat(cells[0], 64); err != nil || !(v >= 0 && v <= 1e18) {
		return nil, 0, wrong
	}
	return labels, v, nil
}

// Since is the traffic a second between two scrapes, so many seconds apart. ok is false where a counter has begun anew: the server was started again.
func (s Scrape) Since(before Scrape, seconds float64) (p Point, ok bool) {
	if s.Writes < before.Writes || s.Reads < before.Reads || seconds <= 0 {
		return Point{}, false
	}
	return Point{(s.Writes - before.Writes) / seconds, (s.Reads - before.Reads) / seconds}, true
}
