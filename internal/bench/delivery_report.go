package bench

import (
	"fmt"
	"io"
	"strings"
)

// Schedules is the result of the schedules experiment at the program's own server.
type Schedules struct {
	Target         string    `json:"target"`
	Create         Figure    `json:"create"`
	Pending        int       `json:"pending"`          // schedules that fire long after the run
	IdleCPUPercent float64   `json:"idle_cpu_percent"` // of one CPU, while nothing is due
	Firings        []Firings `json:"firings"`
}

// Kinds of firings.
const (
	firingsEven  = "even"
	firingsBurst = "burst"
)

// Firings is the result for firing schedules.
type Firings struct {
	Experiment string `json:"experiment"`
	About      string `json:"about"`
	Count      int    `json:"count"`
	// other schedules that fire long after the run
	Pending int       `json:"pending"`
	LateMS  *Lateness `json:"late_ms,omitempty"` // from the instant to the arrival at the webhook
	// firings of another group at the same time
	BesideMS *Lateness `json:"beside_late_ms,omitempty"`
	// from the common instant to the last arrival
	DrainS float64 `json:"drain_s,omitempty"`
	PerS   float64 `json:"per_s,omitempty"`
	CPUUS  float64 `json:"server_cpu_us,omitempty"` // for each firing
	Early  int     `json:"early"`
	Twice  int     `json:"twice"` // repeated arrivals, with the same id
	Lost   int     `json:"lost"`
}

// line summarizes the result in a few words.
func (x *Firings) line() string {
	if x.Lost > 0 {
		return fmt.Sprintf("%d of %d did not arrive", x.Lost, x.Count)
	}
	return brief(x.PerS, x.LateMS)
}

// Delivered is the rate of records to a target.
type Delivered struct {
	About   string  `json:"about"`
	To      string  `json:"to"` // webhook or nats
	Target  string  `json:"target"`
	Records int     `json:"records"`
	PerS    float64 `json:"per_s"`
	CPUUS   float64 `json:"server_cpu_us,omitempty"` // for each record
	Twice   int     `json:"twice"`
	Lost    int     `json:"lost"`
}

func (r *Report) writeSchedules(b *strings.Builder) {
	s := r.Schedules
	if s == nil {
		return
	}
	fmt.Fprintf(b, "\nschedules at %s\n", s.Target)
	columns(b, func(w io.Writer) {
		fmt.Fprintf(w, "%s, %d connections\t%s/s\t%s\tp50 %s\tp99 %s ms\tserver CPU %s us\t\n", s.Create.About, s.Create.Connections,
			short(s.Create.CallsPerS.Median), bounds(s.Create.CallsPerS), short(s.Create.P50MS.Median), short(s.Create.P99MS.Median), known(s.Create.ServerCPUUS))
	})
	fmt.Fprintf(b, "  with %d pending and nothing due: %s %% of a CPU\n", s.Pending, short(s.IdleCPUPercent))
	for _, x := range s.Firings {
		fmt.Fprintf(b, "  %d %s, %d pending: early %d, twice %d, lost %d; server CPU each %s us\n", x.Count, x.About, x.Pending, x.Early, x.Twice, x.Lost, short(x.CPUUS))
		columns(b, func(w io.Writer) {
			writeLateness(w, "late at the webhook", x.LateMS)
			writeLateness(w, "another group's", x.BesideMS)
		})
		if x.DrainS > 0 {
			fmt.Fprintf(b, "    %s firings/s, the last after %s s\n", short(x.PerS), short(x.DrainS))
		}
	}
}

func (r *Report) writeDelivered(b *strings.Builder) {
	for _, x := range r.Delivered {
		fmt.Fprintf(b, "\ntriggers at %s: %d %s: %s/s; twice %d, lost %d; server CPU each %s us\n",
			x.Target, x.Records, x.About, short(x.PerS), x.Twice, x.Lost, short(x.CPUUS))
	}
	if !r.deliveredTo(toNATS) {
		b.WriteString("  " + strings.ReplaceAll(withoutNATS, "`", "") + "\n")
	}
}
