package bench

import (
	"fmt"
	"io"
	"strings"
)

// Guard is the result of the guard experiment at the program's own server.
type Guard struct {
	Target   string     `json:"target"`
	Removals []Removals `json:"removals"`
	Armed    int        `json:"armed"`    // deadlines in a worker's memory
	ArmedMB  float64    `json:"armed_mb"` // resident memory of that process, in millions of bytes
}

// Removals is the result for items that guard removed.
type Removals struct {
	Experiment string `json:"experiment"`
	About      string `json:"about"`
	Items      int    `json:"items"`
	// from the deadline to the record's arrival at a reader
	LateMS      *Lateness `json:"late_ms,omitempty"`
	PerS        float64   `json:"per_s,omitempty"` // from the common deadline to the last record
	GuardCPUUS  float64   `json:"guard_cpu_us,omitempty"`
	ServerCPUUS float64   `json:"server_cpu_us,omitempty"`
	Faults
}

// line summarizes the result in a few words.
func (x *Removals) line() string {
	if x.NotRemoved+x.Lost > 0 {
		return fmt.Sprintf("of %d: %s", x.Items, x.list())
	}
	return brief(x.PerS, x.LateMS)
}

func (r *Report) writeGuard(b *strings.Builder) {
	g := r.Guard
	if g == nil {
		return
	}
	fmt.Fprintf(b, "\nguard beside %s, which removes nothing by itself\n", g.Target)
	for _, x := range g.Removals {
		guard := "-" // unknown after a kill
		if x.GuardCPUUS > 0 {
			guard = short(x.GuardCPUUS) + " us"
		}
		fmt.Fprintf(b, "  %d %s: %s; CPU each: server %s us, guard %s\n", x.Items, x.About, x.list(), short(x.ServerCPUUS), guard)
		columns(b, func(w io.Writer) { writeLateness(w, "late in a reader's hands", x.LateMS) })
		if x.PerS > 0 {
			fmt.Fprintf(b, "    %s removals/s\n", short(x.PerS))
		}
	}
	fmt.Fprintf(b, "  %s MB resident with %d deadlines armed\n", short(g.ArmedMB), g.Armed)
}
