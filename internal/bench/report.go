package bench

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// Report is the result of a run. docs/bench.md documents its JSON.
type Report struct {
	Date      time.Time  `json:"date"`
	Command   string     `json:"command,omitempty"` // reproduces such a report
	Version   string     `json:"version,omitempty"` // of the program
	Commit    string     `json:"commit,omitempty"`  // of the program's source
	Machine   Machine    `json:"machine"`
	Settings  Settings   `json:"settings"`
	Endpoints []Endpoint `json:"endpoints"` // ratios compare the first one with the others

	Calls  []Figure `json:"calls,omitempty"`
	Ratios []Ratio  `json:"ratios,omitempty"`
	Expiry []Expiry `json:"expiry,omitempty"`
	Drain  []Drain  `json:"drain,omitempty"`
	Start  *Start   `json:"start,omitempty"`

	Schedules *Schedules  `json:"schedules,omitempty"`
	Delivered []Delivered `json:"delivered,omitempty"`
	Guard     *Guard      `json:"guard,omitempty"`

	Parts []Part `json:"parts,omitempty"` // origins of merged experiments; see Merge

	Errors   int      `json:"errors"`             // wrong answers of all endpoints
	Problems []string `json:"problems,omitempty"` // the first of each kind
	TookS    float64  `json:"took_s"`
}

// Machine describes the machine of the run.
type Machine struct {
	OS   string  `json:"os"`
	Arch string  `json:"arch"`
	CPUs int     `json:"cpus"`
	Go   string  `json:"go"`
	Load float64 `json:"load"` // load average over the minute before the run; -1 if unknown

	CPU    string `json:"cpu,omitempty"`    // the model, if known
	System string `json:"system,omitempty"` // distribution and kernel, if known
}

// Line describes the machine for people.
func (m *Machine) Line() string {
	text := fmt.Sprintf("%s/%s, %d CPUs shared by servers and client, %s, load %.1f at the start", m.OS, m.Arch, m.CPUs, m.Go, m.Load)
	for _, more := range []string{m.System, m.CPU} {
		if more != "" {
			text = more + ", " + text
		}
	}
	return text
}

// Settings are the options that influence figures.
type Settings struct {
	Durability string `json:"durability"`
	DurationMS int64  `json:"duration_ms"`
	Rounds     int    `json:"rounds"`
	Items      int    `json:"items"`
	ItemBytes  int    `json:"item_bytes"`
	Pending    int    `json:"pending,omitempty"`
}

// Endpoint describes a measured endpoint.
type Endpoint struct {
	Name       string   `json:"name"`
	Version    string   `json:"version,omitempty"`
	Durability string   `json:"durability,omitempty"` // as Settings.Durability
	URL        string   `json:"url"`
	PID        int      `json:"pid,omitempty"`
	Notes      []string `json:"notes,omitempty"` // its limitations
}

// title returns the endpoint's name and version.
func (e *Endpoint) title() string { return strings.TrimSpace(e.Name + " " + e.Version) }

// answers describes the state of an acknowledged write; empty if unknown.
func (e *Endpoint) answers() string {
	return map[string]string{"sync": "synced to disk", "async": "written, not synced yet", "memory": "in memory"}[e.Durability]
}

// Names of the references among the targets of figures.
const (
	TargetEcho = "echo"
	TargetLoop = "loop"
)

// Figure has the measurements of one scenario, with one number of connections, at an endpoint or a
// reference.
type Figure struct {
	Scenario    string `json:"scenario"`
	About       string `json:"about"`
	Connections int    `json:"connections"`
	Target      string `json:"target"`

	CallsPerS Spread `json:"calls_per_s"`
	ItemsPerS Spread `json:"items_per_s"`
	MBPerS    Spread `json:"mb_per_s"` // of items, in millions of bytes
	P50MS     Spread `json:"p50_ms"`
	P99MS     Spread `json:"p99_ms"`
	// per call; for the loop all of its CPU time. nil: unknown
	ServerCPUUS *Spread `json:"server_cpu_us,omitempty"`
	ClientCPUUS *Spread `json:"client_cpu_us,omitempty"` // per call. nil: there is no client

	Calls  int `json:"calls"`
	Errors int `json:"errors"`
}

// Spread has the median of a figure over the rounds, and its least and greatest value.
type Spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// MarshalJSON omits bounds that WritePublished has removed.
func (s Spread) MarshalJSON() ([]byte, error) {
	type all Spread
	if s.Median != 0 && s.Min == 0 && s.Max == 0 {
		return json.Marshal(map[string]float64{"median": s.Median})
	}
	return json.Marshal(all(s))
}

// spreadOf returns the spread of at least one value.
func spreadOf(values []float64) Spread {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return Spread{Median: round((sorted[(n-1)/2] + sorted[n/2]) / 2), Min: round(sorted[0]), Max: round(sorted[n-1])}
}

// round rounds to four digits, more than any figure is accurate to.
func round(v float64) float64 {
	if v == 0 {
		return 0
	}
	unit := math.Pow(10, math.Floor(math.Log10(math.Abs(v)))-3)
	if unit < 1 { // divide by a whole number, so that no further digits appear
		inverse := math.Round(1 / unit)
		return math.Round(v*inverse) / inverse
	}
	return math.Round(v/unit) * unit
}

// Ratio is a ratio of two figures of the same rounds: Target's in Scenario over Over's in
// OverScenario.
type Ratio struct {
	Scenario     string `json:"scenario"`
	Connections  int    `json:"connections"`
	Target       string `json:"target"`
	Metric       string `json:"metric"`
	Over         string `json:"over"`
	OverScenario string `json:"over_scenario"`
	Value        Spread `json:"value"`
}
