package bench

import "fmt"

// Expiry is what an experiment with deadlines found at an endpoint.
type Expiry struct {
	Experiment string `json:"experiment"`
	About      string `json:"about"`
	Target     string `json:"target"`
	Items      int    `json:"items"`
	NoTTL      bool   `json:"no_ttl,omitempty"` // the endpoint has no TTL, so that nothing was measured

	// Commit is how late the removals were durable, as the server's own histogram tells; missing for a server without one.
	Commit *Lateness `json:"commit_ms,omitempty"`
	// Stream is how late their records were in a reader's hands; missing where the table has no stream.
	Stream *Lateness `json:"stream_ms,omitempty"`
	// Beside is the same of another table, some of whose items expire meanwhile.
	Beside *Lateness `json:"beside_stream_ms,omitempty"`

	// DrainPerS is how many items a second were removed, from the deadline that they share to the last removal.
	DrainPerS float64 `json:"drain_per_s,omitempty"`
	// CPUUS is the server's CPU time per removal, that of the foreground included.
	CPUUS float64 `json:"server_cpu_us,omitempty"`

	Faults

	Foreground []Foreground `json:"foreground,omitempty"`
}

// Faults counts what should not happen to items that expire.
type Faults struct {
	Early      int `json:"early"`       // records before their deadlines
	Twice      int `json:"twice"`       // records that came again
	NotRemoved int `json:"not_removed"` // items that were in the table when the time was over
	Lost       int `json:"lost"`        // items that were neither in the table nor recorded then
}

func (f Faults) sum() int { return f.Early + f.Twice + f.NotRemoved + f.Lost }

func (f Faults) list() string {
	return fmt.Sprintf("early %d, twice %d, lost %d, not removed %d", f.Early, f.Twice, f.Lost, f.NotRemoved)
}

// line says the most important in a few words.
func (x *Expiry) line() string {
	late := x.Commit
	if late == nil {
		late = x.Stream
	}
	switch {
	case x.NoTTL:
		return "no TTL"
	case x.DrainPerS > 0:
		return fmt.Sprintf("%.0f removed/s", x.DrainPerS)
	case late != nil:
		return fmt.Sprintf("p50 %.1f ms, p99 %.1f ms after the deadlines", late.P50, late.P99)
	}
	return fmt.Sprintf("%d of %d not removed", x.NotRemoved, x.Items)
}

// Lateness summarizes how long after their deadlines things happened, in milliseconds.
type Lateness struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

// Foreground is the latency of calls that are made at a steady rate, while nothing expires and while much does.
type Foreground struct {
	Operation   string  `json:"operation"`
	PerS        int     `json:"per_s"`
	IdleP50MS   float64 `json:"idle_p50_ms"`
	IdleP99MS   float64 `json:"idle_p99_ms"`
	IdleCalls   int     `json:"idle_calls"`
	DuringP50MS float64 `json:"during_p50_ms"`
	DuringP99MS float64 `json:"during_p99_ms"`
	DuringCalls int     `json:"during_calls"`
}

// Drain is how fast items are removed that are all due at once, while nothing else happens.
type Drain struct {
	About  string `json:"about"`
	Target string `json:"target"`
	Items  int    `json:"items"`
	Plain  bool   `json:"plain"` // nothing needs the old images

	PerS  Spread `json:"per_s"`
	CPUUS Spread `json:"cpu_us"` // per removal; zero where it is not known
	// OverLoop is PerS over that of the loop that does the same; missing of the loop itself.
	OverLoop *Spread `json:"over_loop,omitempty"`
}

// Start is what the program's own server needs to be there. Memory is what is resident, in millions of bytes; zero where it is not
// known.
type Start struct {
	BinaryMB      float64 `json:"binary_mb"`       // the program's file
	FirstAnswerMS Spread  `json:"first_answer_ms"` // from the start of the process, with an empty directory
	IdleMB        float64 `json:"idle_mb"`         // after that
	MostMB        float64 `json:"most_mb"`         // ever, of the server that everything else was measured with

	Items                 int     `json:"items"`                    // in a directory that is closed and opened again
	DiskBytesPerItem      float64 `json:"disk_bytes_per_item"`      // with deadline and stream record
	ReopenedFirstAnswerMS Spread  `json:"reopened_first_answer_ms"` // with those items in it
	ReopenedMB            float64 `json:"reopened_mb"`              // after that
}
