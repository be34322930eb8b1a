package admin

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// DeadlinesPath is the path of the deadlines of items. It is for the database that serves the
// request's access key, like the table. The query of a GET has, all of them optional:
//
//	table    the name of a table; without it, all tables whose TTL is on
//	from_ms  the beginning of the range, in milliseconds since 1970; without it 1970
//	to_ms    its end, which is outside; without it 2^53
//	steps    the number of equal steps that the range is counted in, 0 to 2,000; without it 1. With 0
//	         nothing is counted, which is fastest if only the first deadlines are of interest
//	keys     the most keys to return, 0 to 1,000; without it 0
//	minutes  how many minutes of removals before from_ms to return, 0 to 1,440; without it 0
//
// The answer is an object with
//
//	table             as asked; absent for all
//	attribute         the table's TTL attribute; absent if its TTL is off, or for all
//	from_ms, to_ms    the range
//	counts            the number of items that are removed in each step
//	counted_until_ms  the counts are complete before this instant: to_ms, or earlier if there are
//	                  more than a million deadlines in the range. With 0 steps, the keys are: they
//	                  may not be while a changed TTL is applied to more than a million items
//	first_ms          the first deadline of the range; absent if there is none
//	last_ms           the last deadline of the table or of all, in the range or not; absent if
//	                  there is none. While a changed TTL is applied to more than a million items, it
//	                  may be later: nothing expires after it
//	keys              the first deadlines of the range, in order: objects with table, key (in
//	                  DynamoDB JSON) and at_ms
//	keys_withheld     the number of tables whose keys are left out because the request's access key
//	                  does not allow dynamodb:Scan on them; absent if there are none
//	removed           the removals of each minute in which there were any, in order: objects with
//	                  minute_ms, the minute's beginning, and items
//
// An item in a table with aws expiry counts at the instant of its removal, not at its deadline.
const DeadlinesPath = "/_mayfly/deadlines"

// The limits of a request for deadlines.
const (
	deadlineStepsMost   = 2_000
	deadlineKeysMost    = 1_000
	deadlineMinutesMost = 24 * 60
	deadlineFarthest    = 1 << 53 // in milliseconds; JavaScript has no exact numbers beyond
)

// DeadlineRange is a request for deadlines.
type DeadlineRange struct {
	Table    string    // "": all
	From, To time.Time // To is outside
	Steps    int       // of equal length; 0: nothing is counted
	Keys     int       // the most keys to return
	Minutes  int       // before From, whose removals to return
}

// Deadlines are the instants at which items of a table, or of all, are removed, in a range of time.
type Deadlines struct {
	Attribute string    // of the table's TTL; "": off, or all tables
	Counts    []int64   // of each step
	Until     time.Time // the counts are complete before it; the end of the range, unless there are too many
	First     time.Time // of the range; zero: none
	Last      time.Time // after which nothing expires; zero: nothing expires
	Keys      []DeadlineKey
	Withheld  int // tables whose keys the request may not read
	Removed   []Removals
}

// DeadlineKey is the key of an item, in DynamoDB JSON, with its instant of removal.
type DeadlineKey struct {
	Table string
	Key   json.RawMessage
	At    time.Time
}

// Removals is the number of items whose deadlines removed them in a minute.
type Removals struct {
	Minute time.Time
	Items  int64
}

// deadlines answers with the deadlines of a table or of all: how many there are in each step of a
// range, the first of them with their keys, and the removals of the minutes before.
func (o Options) deadlines(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		w.Header().Set("Allow", http.MethodGet)
		writeError(w, http.StatusMethodNotAllowed, fmt.Errorf("%s does not take the method %s; use GET", r.URL.Path, r.Method))
		return
	}
	asked, err := readRange(r)
	if err != nil {
		writeError(w, http.StatusBadRequest, err)
		return
	}
	found, err := o.Deadlines(r.Context(), asked)
	var refused *RefusedError
	switch {
	case errors.As(err, &refused):
		writeError(w, refused.Status, err)
	case err != nil:
		writeError(w, http.StatusInternalServerError, err)
	default:
		writeJSON(w, http.StatusOK, shownDeadlines(asked, found))
	}
}

// readRange reads a request's range.
func readRange(r *http.Request) (asked DeadlineRange, err error) {
	from, to, steps, keys, minutes := int64(0), int64(deadlineFarthest), int64(1), int64(0), int64(0)
	numbers := map[string]struct {
		at          *int64
		least, most int64
	}{
		"from_ms": {&from, -deadlineFarthest, deadlineFarthest},
		"to_ms":   {&to, -deadlineFarthest, deadlineFarthest},
		"steps":   {&steps, 0, deadlineStepsMost},
		"keys":    {&keys, 0, deadlineKeysMost},
		"minutes": {&minutes, 0, deadlineMinutesMost},
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return asked, fmt.Errorf("invalid query %q: %w", r.URL.RawQuery, err)
	}
	for _, name := range slices.Sorted(maps.Keys(query)) {
		values := query[name]
		number, isNumber := numbers[name]
		switch {
		case strings.HasPrefix(name, "X-Amz-"): // the signature of a URL
		case !isNumber && name != "table":
			return asked, fmt.Errorf("unknown parameter %q; use table, from_ms, to_ms, steps, keys or minutes", name)
		case len(values) > 1:
			return asked, fmt.Errorf("%q is there %d times; give it once", name, len(values))
		case name == "table":
			asked.Table = values[0]
		default:
			n, err := strconv.ParseInt(values[0], 10, 64)
			if err != nil || n < number.least || n > number.most {
				return asked, fmt.Errorf("%q must be a whole number from %d to %d, not %q", name, number.least, number.most, values[0])
			}
			*number.at = n
		}
	}
	if to <= from {
		return asked, fmt.Errorf(`"to_ms" (%d) must be later than "from_ms" (%d)`, to, from)
	}
	asked.From, asked.To = time.UnixMilli(from), time.UnixMilli(to)
	asked.Steps, asked.Keys, asked.Minutes = int(steps), int(keys), int(minutes)
	return asked, nil
}

// shownDeadlines returns the answer as JSON.
func shownDeadlines(asked DeadlineRange, d Deadlines) any {
	type key struct {
		Table string          `json:"table"`
		Key   json.RawMessage `json:"key"`
		At    int64           `json:"at_ms"`
	}
	type removals struct {
		Minute int64 `json:"minute_ms"`
		Items  int64 `json:"items"`
	}
	keys, removed := []key{}, []removals{}
	for _, k := range d.Keys {
		keys = append(keys, key{k.Table, k.Key, k.At.UnixMilli()})
	}
	for _, m := range d.Removed {
		removed = append(removed, removals{m.Minute.UnixMilli(), m.Items})
	}
	instant := func(t time.Time) *int64 {
		if t.IsZero() {
			return nil
		}
		ms := t.UnixMilli()
		return &ms
	}
	return struct {
		Table     string     `json:"table,omitempty"`
		Attribute string     `json:"attribute,omitempty"`
		From      int64      `json:"from_ms"`
		To        int64      `json:"to_ms"`
		Counts    []int64    `json:"counts"`
		Until     int64      `json:"counted_until_ms"`
		First     *int64     `json:"first_ms,omitempty"`
		Last      *int64     `json:"last_ms,omitempty"`
		Keys      []key      `json:"keys"`
		Withheld  int        `json:"keys_withheld,omitempty"`
		Removed   []removals `json:"removed"`
	}{asked.Table, d.Attribute, asked.From.UnixMilli(), asked.To.UnixMilli(), d.Counts, d.Until.UnixMilli(), instant(d.First), instant(d.Last), keys, d.Withheld, removed}
}
