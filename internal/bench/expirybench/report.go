package expirybench

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/mayflydb/mayfly/internal/bench"
)

// Report is the result of a run. docs/expiry-benchmark/README.md documents its JSON.
type Report struct {
	Date     time.Time     `json:"date"`
	Command  string        `json:"command,omitempty"`
	Version  string        `json:"version,omitempty"` // of the program that measured
	Commit   string        `json:"commit,omitempty"`
	Machine  bench.Machine `json:"machine"`
	Endpoint Endpoint      `json:"endpoint"`
	Settings Settings      `json:"settings"`
	Clock    Clock         `json:"clock"`

	// ShowsExpired means that a Scan saw an item after its deadline. Only then an item that is not in the table
	// is proven to be removed, and not just hidden.
	ShowsExpired bool `json:"shows_expired"`

	NoTTL   string    `json:"no_ttl,omitempty"` // the refusal of UpdateTimeToLive
	LeftOut []LeftOut `json:"left_out,omitempty"`
	Cases   []Case    `json:"cases,omitempty"`
	Leaks   []Leak    `json:"leaks,omitempty"` // an entry for each operation

	Renewals *Renewals `json:"renewals,omitempty"`
	Events   *Events   `json:"events,omitempty"`
	Calls    []Call    `json:"calls,omitempty"`
	Cost     *Cost     `json:"cost,omitempty"`
	Survival *Survival `json:"survival,omitempty"`

	// Faults are broken promises of a server that claims durable data.
	Faults  []string `json:"faults"`
	Summary string   `json:"summary"` // one line
	TookS   float64  `json:"took_s"`
}

// Endpoint describes the measured server.
type Endpoint struct {
	Name       string `json:"name"`
	URL        string `json:"url"`
	Configured string `json:"configured,omitempty"` // as its operator says
	Started    string `json:"started,omitempty"`    // the command line of --start
	PID        int    `json:"pid,omitempty"`
	Local      bool   `json:"local"` // on the client's machine
}

// Settings are the options that influence figures.
type Settings struct {
	Only      []string `json:"only"`
	Items     int      `json:"items"`
	SpreadS   float64  `json:"spread_s"`
	AtOnce    []int    `json:"at_once"`
	Pending   []int    `json:"pending"`
	Renewals  int      `json:"renewals"`
	LoadS     float64  `json:"load_s"`
	WaitS     float64  `json:"wait_s"`
	ItemBytes int      `json:"item_bytes"`
	Quick     bool     `json:"quick,omitempty"`
}

// LeftOut is a measurement that was not made.
type LeftOut struct {
	What string `json:"what"`
	Why  string `json:"why"`
}

func newReport(o Options, e *endpoint, at time.Time) *Report {
	url := cmp.Or(o.Endpoint.URL, "aws")
	return &Report{
		Date: at.UTC().Truncate(time.Second), Version: o.Version, Commit: o.Commit, Machine: bench.ThisMachine(),
		Endpoint: Endpoint{Name: cmp.Or(o.Name, url), URL: url, Configured: o.Configured, Started: o.Start, PID: e.pid, Local: e.local},
		Settings: Settings{
			Only: o.Only, Items: o.Items, SpreadS: o.Spread.Seconds(), AtOnce: o.AtOnce, Pending: o.Pending, Renewals: o.Renewals,
			LoadS: o.Load.Seconds(), WaitS: o.Wait.Seconds(), ItemBytes: itemBytes, Quick: o.Quick,
		},
		Faults: []string{},
	}
}

// judge adds the faults and the summary to the report.
func (r *Report) judge() {
	for _, c := range r.Cases {
		for _, m := range c.Methods {
			if m.Name == indexQuery {
				continue
			}
			r.fault(m.Early, "%d items were gone before their deadline (%s, %s)", m.Name, c.Name)
			r.fault(m.Returned, "%d items came back after they were gone (%s, %s)", m.Name, c.Name)
		}
		if c.Records != nil {
			r.missing(c.Records.Lost, "%d removals have no stream record by the end of the wait (%s)", c.Name)
			r.fault(c.Records.Doubled, "%d removals have several stream records (%s)", c.Name)
			r.fault(c.Records.Unmarked, "%d records of expiry lack the userIdentity of DynamoDB's own (%s)", c.Name)
		}
	}
	if n := r.Renewals; n != nil {
		r.fault(n.Wrong, "%d items were removed although their renewal was acknowledged")
		r.fault(n.Emptied, "%d renewed items lost their other attributes")
		r.fault(n.WrongRecords, "%d records of removals have a deadline in the future")
	}
	if e := r.Events; e != nil {
		r.fault(e.Lost, "%d records of writes and deletions by clients did not come by the end of the wait")
		r.missing(e.Unrecorded, "%d removals of items with a history have no stream record by the end of the wait")
		r.fault(e.Doubled, "%d records of items with a history came again")
		r.fault(e.Disordered, "%d keys have records out of order")
		r.fault(e.Mismarked, "%d records of items with a history are wrongly marked as expiry or not")
	}
	if v := r.Survival; v != nil {
		r.fault(v.Lost, "%d acknowledged items are lost after a kill")
		r.missing(v.RecordsLost, "%d items that expired while the server was down have no stream record by the end of the wait")
		r.fault(v.RecordsDoubled, "%d records came again after a kill")
	}
	r.Summary = r.summarize()
}

// fault adds a fault unless its count is zero.
func (r *Report) fault(n int, format string, args ...any) {
	if n > 0 {
		r.Faults = append(r.Faults, fmt.Sprintf(format, append([]any{n}, args...)...))
	}
}

// missing adds a fault for removals without a record, if the endpoint's items are proven to be removed.
func (r *Report) missing(n int, format string, args ...any) {
	if r.ShowsExpired {
		r.fault(n, format, args...)
	}
}

// summarize returns the result in one line.
func (r *Report) summarize() string {
	if r.NoTTL != "" {
		return fmt.Sprintf("%s: has no TTL (%s), so nothing expires", r.Endpoint.Name, r.NoTTL)
	}
	var texts []string
	for _, c := range r.Cases {
		if c.LeftOut == "" {
			texts = append(texts, c.line())
			break
		}
	}
	if len(r.Leaks) > 0 {
		seen, offered := countLeaks(r.Leaks)
		texts = append(texts, fmt.Sprintf("%d of %d operations see expired items", seen, offered))
	}
	if n := r.Renewals; n != nil {
		if n.Removed == 0 && n.faults() == 0 {
			texts = append(texts, "none of the renewed items and of the others was removed, which shows nothing about renewals")
		} else {
			texts = append(texts, fmt.Sprintf("%d of %d acknowledged renewals removed wrongly", n.faults(), n.Acknowledged))
		}
	}
	if e := r.Events; e != nil && e.NotOffered == "" {
		texts = append(texts, fmt.Sprintf("%d of %d stream records wrong", e.faults(), e.Expected))
	}
	if v := r.Survival; v != nil && v.NotOffered == "" {
		texts = append(texts, fmt.Sprintf("%d of %d items lost by a kill", v.Lost, v.Acknowledged))
	}
	if len(r.Faults) == 0 {
		texts = append(texts, "no fault")
	} else {
		texts = append(texts, fmt.Sprintf("%d kinds of faults", len(r.Faults)))
	}
	return r.Endpoint.Name + ": " + strings.Join(texts, "; ")
}

// line describes a case in a few words.
func (c *Case) line() string {
	if c.LeftOut != "" {
		return "left out: " + c.LeftOut
	}
	if c.NotRemoved == c.Items {
		return fmt.Sprintf("none of %s was removed in time", c.Name)
	}
	for _, m := range c.Methods {
		if m.Name == "stream" && m.NotOffered == "" {
			return fmt.Sprintf("%s: stream records late by p50 %s, p99 %s, most %s", c.Name, late(m.Most.P50), late(m.Most.P99), late(m.Most.Max))
		}
	}
	m := c.Methods[0]
	return fmt.Sprintf("%s: gone from %s by p50 %s, p99 %s, most %s", c.Name, m.Name, late(m.Most.P50), late(m.Most.P99), late(m.Most.Max))
}

// late formats a lateness.
func late(ms *float64) string {
	switch {
	case ms == nil:
		return "later than the wait"
	case *ms >= 10_000:
		return fmt.Sprintf("%.1f s", *ms/1000)
	case *ms >= 100:
		return fmt.Sprintf("%.0f ms", *ms)
	}
	return fmt.Sprintf("%.1f ms", *ms)
}
