package planner

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Scrape maps tables to the consumed units that /metrics reports as counters. A table includes its
// local indexes and excludes its global ones.
type Scrape map[string]Point

// Metrics that ReadScrape uses.
const (
	metricConsumed = "mayfly_consumed_units_total"       // tables at mayfly
	metricGuard    = "mayfly_guard_consumed_units_total" // guard's consumption at a table elsewhere
	metricTables   = "mayfly_table_expiry"               // one series per table at mayfly
	scrapeMax      = 32 << 20                            // bytes
	scrapeLineMax  = 1 << 20
)

// ReadScrape reads the /metrics of mayfly or of mayfly guard, in Prometheus's text format. It
// returns the units of one table, or for an empty name of all tables at mayfly. The metrics of
// guard need a name, and a table that they lack is an error.
func ReadScrape(r io.Reader, table string) (Scrape, error) {
	own, guarded, ours, tables := Scrape{}, Scrape{}, false, false
	lines := bufio.NewScanner(io.LimitReader(r, scrapeMax))
	lines.Buffer(make([]byte, 0, 64<<10), scrapeLineMax)
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		name, _, _ := strings.Cut(line, "{")
		ours = ours || strings.HasPrefix(name, "mayfly_")
		into := own
		switch name {
		case metricConsumed:
		case metricGuard:
			into = guarded
		case metricTables:
			tables = true
			continue
		default:
			continue
		}
		labels, v, err := readSample(line[len(name):])
		if err != nil {
			return nil, &LineError{n, err}
		}
		if labels["index"] != "" {
			continue
		}
		p := into[labels["TableName"]]
		switch labels["kind"] {
		case "write":
			p.Writes += v
		case "read":
			p.Reads += v
		}
		into[labels["TableName"]] = p
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return nil, fmt.Errorf("a line is longer than %d bytes: this is not a metrics page", scrapeLineMax)
	case err != nil:
		return nil, err
	case !ours:
		return nil, errors.New("it has no metrics of mayfly; mayfly serve has /metrics on its own port, mayfly guard on --metrics-port")
	case tables && len(own) == 0:
		return nil, fmt.Errorf("it has no %s: that mayfly is too old to count units; upgrade it", metricConsumed)
	case table == "" && len(guarded) > 0:
		return nil, fmt.Errorf("these are metrics of guard, which counts each table separately: choose one with --table (%s)", names(guarded))
	case table == "":
		return own, nil
	}
	for _, s := range []Scrape{own, guarded} {
		if p, is := s[table]; is {
			return Scrape{table: p}, nil
		}
	}
	if all := names(own) + names(guarded); all != "" {
		return nil, fmt.Errorf("table %s not found in it; it has %s", table, all)
	}
	return nil, fmt.Errorf("table %s not found in it; it has no tables", table)
}

// names returns the names of a few tables.
func names(s Scrape) string {
	const few = 5
	names := slices.Sorted(maps.Keys(s))
	if len(names) > few {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:few], ", "), len(names)-few)
	}
	return strings.Join(names, ", ")
}

// readSample reads the labels and the value of `{a="b",…} 17`.
func readSample(text string) (labels map[string]string, v float64, err error) {
	wrong := fmt.Errorf("invalid sample %q; expected a line such as {TableName=\"orders\"} 17", text)
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
	if len(cells) < 1 || len(cells) > 2 { // the second is a time
		return nil, 0, wrong
	}
	if v, err = strconv.ParseFloat(cells[0], 64); err != nil || !(v >= 0 && v <= 1e18) {
		return nil, 0, wrong
	}
	return labels, v, nil
}

// Since returns the units per second between two scrapes. A removed table counts as 0, and a new
// one from 0. It returns false if a counter restarted, because the server or the table did.
func (s Scrape) Since(before Scrape, seconds float64) (p Point, ok bool) {
	if seconds <= 0 {
		return Point{}, false
	}
	for table, now := range s {
		was := before[table]
		if now.Writes < was.Writes || now.Reads < was.Reads {
			return Point{}, false
		}
		p.Writes += (now.Writes - was.Writes) / seconds
		p.Reads += (now.Reads - was.Reads) / seconds
	}
	return p, true
}
