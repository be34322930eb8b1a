package bench

import (
	"fmt"
	"io"
	"strings"
)

// Guard is what the experiment with mayfly guard found, beside the program's own server.
type Guard struct {
	Target   string     `json:"target"`
	Removals []Removals `json:"removals"`
	Armed    int        `json:"armed"`    // deadlines in a worker's memory, and
	ArmedMB  float64    `json:"armed_mb"` // what is resident of the process then, in millions of bytes
}

// Removals is what came of items that guard removed.
type Removals struct {
	Experiment  string    `json:"experiment"`
	About       string    `json:"about"`
	Items       int       `json:"items"`
	LateMS      *Lateness `json:"late_ms,omitempty"` // from the deadline to the record in a reader's hands
	PerS        float64   `json:"per_s,omitempty"`   // from the deadline that all share to the last record
	GuardCPUUS  float64   `json:"guard_cpu_us,omitempty"`
	ServerCPUUS float64   `json:"server_cpu_us,omitempty"`
	Early       int       `json:"early"`
	Twice       int       `json:"twice"`
	Lost        int       `json:"lost"`
}

// line says the most important in a few words.
func (x *Removals) line() string {
	switch {
	case x.Lost > 0:
		return fmt.Sprintf("%d of %d were not removed", x.Lost, x.Items)
	case x.PerS > 0:
		return fmt.Sprintf("%.0f/s", x.PerS)
	case x.LateMS != nil:
		return fmt.Sprintf("p50 %.1f ms, p99 %.1f ms, at most %.0f ms late", x.LateMS.P50, x.LateMS.P99, x.LateMS.Max)
	}
	return ""
}

func (r *Report) writeGuard(b *strings.Builder) {
	g := r.Guard
	if g == nil {
		return
	}
	fmt.Fprintf(b, "\nguard beside %s, which removes nothing by itself\n", g.Target)
	for _, x := range g.Removals {
		fmt.Fprintf(b, "  %d %s: early %d, twice %d, lost %d; CPU each: server %s us, guard %s\n", x.Items, x.About, x.Early, x.Twice, x.Lost, short(x.ServerCPUUS), guardCPU(x.GuardCPUUS))
		columns(b, func(w io.Writer) { writeLateness(w, "late in a reader's hands", x.LateMS) })
		if x.PerS > 0 {
			fmt.Fprintf(b, "    %s removals/s\n", short(x.PerS))
		}
	}
	fmt.Fprintf(b, "  %s MB resident with %d deadlines armed\n", short(g.ArmedMB), g.Armed)
}

// guardCPU is not known of workers that were killed.
func guardCPU(us float64) string {
	if us == 0 {
		return "-"
	}
	return short(us) + " us"
}

func (g *Guard) faults() string {
	var early, twice, lost int
	for _, x := range g.Removals {
		early, twice, lost = early+x.Early, twice+x.Twice, lost+x.Lost
	}
	return fmt.Sprintf("%d, %d, %d", early, twice, lost)
}

// guardResults lists the figures of guard beside their goals.
func (r *Report) guardResults() (list []result) {
	g := r.Guard
	if g == nil {
		return nil
	}
	add := func(what, measured, goal, amazon string) { list = append(list, result{what, measured, goal, amazon}) }
	for _, x := range g.Removals {
		switch x.Experiment {
		case guardEven:
			add(fmt.Sprintf("Late, of %s removed at %s/s, each known a second before", count(x.Items), count(guardPerS)), lateMS(x.LateMS),
				fmt.Sprintf("p99 %d ms or less", goalGuardP99MS), amazonTTL)
		case guardBurst:
			add(fmt.Sprintf("Removals of %s that are due at one instant", count(x.Items)), rate(x.PerS), short(goalGuardPerS)+"/s or more", "")
		case guardTakeover:
			add("Late at most, where one of two workers is killed meanwhile", lateMost(x.LateMS), fmt.Sprintf("within %d s", goalTakeoverS), "")
		}
	}
	add(fmt.Sprintf("Memory of a worker with %s deadlines armed", count(g.Armed)), short(g.ArmedMB)+" MB", fmt.Sprintf("a million in less than %d MB", goalArmedMB), "")
	add("Removed early, twice, not at all", g.faults(), "none", "")
	return list
}

func lateMost(l *Lateness) string {
	if l == nil {
		return ""
	}
	return short(l.Max/1000) + " s"
}
