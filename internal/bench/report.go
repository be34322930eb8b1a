package bench

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// Report is what a run found. Its JSON is documented in docs/bench.md.
type Report struct {
	Date      time.Time  `json:"date"`
	Command   string     `json:"command,omitempty"` // how to get such a report again
	Version   string     `json:"version,omitempty"` // of the program that ran it
	Commit    string     `json:"commit,omitempty"`  // that it was built from
	Machine   Machine    `json:"machine"`
	Settings  Settings   `json:"settings"`
	Endpoints []Endpoint `json:"endpoints"` // the first is the one that ratios are about

	Calls  []Figure `json:"calls,omitempty"`
	Ratios []Ratio  `json:"ratios,omitempty"`
	Expiry []Expiry `json:"expiry,omitempty"`
	Drain  []Drain  `json:"drain,omitempty"`
	Start  *Start   `json:"start,omitempty"`

	Schedules *Schedules  `json:"schedules,omitempty"`
	Delivered []Delivered `json:"delivered,omitempty"`
	Guard     *Guard      `json:"guard,omitempty"`

	Parts []Part `json:"parts,omitempty"` // what other runs have measured of this; see Merge

	Errors   int      `json:"errors"`             // answers that were not right, of all endpoints
	Problems []string `json:"problems,omitempty"` // the first of each kind
	TookS    float64  `json:"took_s"`
}

// Machine is what the run ran on.
type Machine struct {
	OS   string  `json:"os"`
	Arch string  `json:"arch"`
	CPUs int     `json:"cpus"`
	Go   string  `json:"go"`
	Load float64 `json:"load"` // processes that wanted to run in the minute before, where the system tells; -1 elsewhere

	CPU    string `json:"cpu,omitempty"`    // the model, where the system tells
	System string `json:"system,omitempty"` // distribution and kernel, where the system tells
}

// line describes the machine for people.
func (m *Machine) line() string {
	text := fmt.Sprintf("%s/%s, %d CPUs shared by servers and client, %s, load %.1f at the start", m.OS, m.Arch, m.CPUs, m.Go, m.Load)
	for _, more := range []string{m.System, m.CPU} {
		if more != "" {
			text = more + ", " + text
		}
	}
	return text
}

// Settings are those of the options that a figure depends on.
type Settings struct {
	Durability string `json:"durability"`
	DurationMS int64  `json:"duration_ms"`
	Rounds     int    `json:"rounds"`
	Items      int    `json:"items"`
	ItemBytes  int    `json:"item_bytes"`
	Pending    int    `json:"pending,omitempty"`
}

// Endpoint is what was measured.
type Endpoint struct {
	Name       string   `json:"name"`
	Version    string   `json:"version,omitempty"`
	Durability string   `json:"durability,omitempty"` // as Settings.Durability
	URL        string   `json:"url"`
	PID        int      `json:"pid,omitempty"`
	Notes      []string `json:"notes,omitempty"` // what it cannot do
}

// title returns the endpoint's name and version.
func (e *Endpoint) title() string { return strings.TrimSpace(e.Name + " " + e.Version) }

// answers returns what has become of a write that the endpoint has acknowledged; empty where it is
// not known.
func (e *Endpoint) answers() string {
	return map[string]string{"sync": "synced to disk", "async": "written, not synced yet", "memory": "in memory"}[e.Durability]
}

// Names of the references among the targets of figures.
const (
	TargetEcho = "echo"
	TargetLoop = "loop"
)

// Figure is what was measured of one scenario, with one number of connections, at an endpoint or a reference.
type Figure struct {
	Scenario    string `json:"scenario"`
	About       string `json:"about"`
	Connections int    `json:"connections"`
	Target      string `json:"target"`

	CallsPerS   Spread  `json:"calls_per_s"`
	ItemsPerS   Spread  `json:"items_per_s"`
	MBPerS      Spread  `json:"mb_per_s"` // of items, in millions of bytes
	P50MS       Spread  `json:"p50_ms"`
	P99MS       Spread  `json:"p99_ms"`
	ServerCPUUS *Spread `json:"server_cpu_us,omitempty"` // per call; of the loop: all that it takes. Missing: not known
	ClientCPUUS *Spread `json:"client_cpu_us,omitempty"` // per call. Missing: there is no client

	Calls  int `json:"calls"`
	Errors int `json:"errors"`
}

// Spread is a figure over the rounds.
type Spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// MarshalJSON leaves out bounds that Published has removed.
func (s Spread) MarshalJSON() ([]byte, error) {
	type all Spread
	if s.Median != 0 && s.Min == 0 && s.Max == 0 {
		return json.Marshal(map[string]float64{"median": s.Median})
	}
	return json.Marshal(all(s))
}

// spreadOf summarizes at least one value.
func spreadOf(values []float64) Spread {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return Spread{Median: round((sorted[(n-1)/2] + sorted[n/2]) / 2), Min: round(sorted[0]), Max: round(sorted[n-1])}
}

// round keeps four digits, which is more than any figure is good for.
func round(v float64) float64 {
	if v == 0 {
		return 0
	}
	unit := math.Pow(10, math.Floor(math.Log10(math.Abs(v)))-3)
	if unit < 1 { // divide by a whole number, so that no digits appear that are not there
		inverse := math.Round(1 / unit)
		return math.Round(v*inverse) / inverse
	}
	return math.Round(v/unit) * unit
}

// Ratio compares two figures of the same rounds: that of Target in Scenario over that of Over in OverScenario.
type Ratio struct {
	Scenario     string `json:"scenario"`
	Connections  int    `json:"connections"`
	Target       string `json:"target"`
	Metric       string `json:"metric"`
	Over         string `json:"over"`
	OverScenario string `json:"over_scenario"`
	Value        Spread `json:"value"`
}
