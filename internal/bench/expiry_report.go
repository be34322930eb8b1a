package bench

import (
	"cmp"
	"fmt"
)

// Expiry is the result of an experiment with deadlines at a server: medians over the rounds, the
// greatest of all rounds as maximum, and the faults of all rounds.
type Expiry struct {
	Experiment string `json:"experiment"`
	About      string `json:"about"`
	Target     string `json:"target"`
	Items      int    `json:"items"`             // in each round
	AtOnce     int    `json:"at_once,omitempty"` // items that are due at one instant; 0: they are spread evenly
	Rounds     int    `json:"rounds,omitempty"`
	NoTTL      bool   `json:"no_ttl,omitempty"` // the endpoint has no TTL, so there are no figures

	// Commit is the lateness of durable removals, by the server's own histogram; nil for a server
	// without one.
	Commit *Lateness `json:"commit_ms,omitempty"`
	// Stream is the lateness of their records at a reader that polls; nil for a table without a
	// stream.
	Stream *Lateness `json:"stream_ms,omitempty"`
	// Beside is the same for another table that expires evenly at the same time.
	Beside *Lateness `json:"beside_stream_ms,omitempty"`

	// DrainPerS is the rate of removals per second, from the common deadline to the last removal.
	DrainPerS float64 `json:"drain_per_s,omitempty"`
	// ReaderPerS is the rate of their records at a reader, from that deadline to the last record.
	ReaderPerS float64 `json:"reader_per_s,omitempty"`
	// CPUUS is the server's CPU time per removal, including the foreground's.
	CPUUS float64 `json:"server_cpu_us,omitempty"`

	Faults

	Foreground []Foreground `json:"foreground,omitempty"`
}

// Faults counts faults of expiring items.
type Faults struct {
	Early      int `json:"early"`       // records before their deadlines
	Twice      int `json:"twice"`       // repeated records
	NotRemoved int `json:"not_removed"` // items still in the table after the grace period
	Lost       int `json:"lost"`        // items neither in the table nor recorded then
}

func (f *Faults) add(other Faults) {
	f.Early, f.Twice, f.NotRemoved, f.Lost = f.Early+other.Early, f.Twice+other.Twice, f.NotRemoved+other.NotRemoved, f.Lost+other.Lost
}

func (f Faults) sum() int { return f.Early + f.Twice + f.NotRemoved + f.Lost }

func (f Faults) list() string {
	return fmt.Sprintf("early %d, twice %d, lost %d, not removed %d", f.Early, f.Twice, f.Lost, f.NotRemoved)
}

// line summarizes the result in a few words.
func (x *Expiry) line() string {
	late := cmp.Or(x.Stream, x.Commit)
	switch {
	case x.NoTTL:
		return "no TTL"
	case x.DrainPerS == 0 && late == nil:
		return fmt.Sprintf("%d of %d not removed", x.NotRemoved, x.Items)
	}
	return brief(x.DrainPerS, late)
}

// brief returns a rate, or else a lateness, in a few words; "" if both are unknown.
func brief(perS float64, l *Lateness) string {
	switch {
	case perS > 0:
		return fmt.Sprintf("%.0f/s", perS)
	case l != nil:
		return fmt.Sprintf("p50 %.1f ms, p99 %.1f ms, at most %.0f ms late", l.P50, l.P99, l.Max)
	}
	return ""
}

// Lateness summarizes times after deadlines, in milliseconds.
type Lateness struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

// Foreground is the latency of calls at a steady rate, without expiry and during it.
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

// ratio returns how many times longer the slowest calls took during expiry.
func (f *Foreground) ratio() float64 { return f.DuringP99MS / max(f.IdleP99MS, 1e-3) }

// Drain is the removal rate of items that are due at once, without other work.
type Drain struct {
	About  string `json:"about"`
	Target string `json:"target"`
	Items  int    `json:"items"`
	Plain  bool   `json:"plain"` // no old images are needed

	PerS  Spread `json:"per_s"`
	CPUUS Spread `json:"cpu_us"` // per removal; zero if unknown
	// OverLoop is the ratio of PerS to the loop's; nil for the loop itself.
	OverLoop *Spread `json:"over_loop,omitempty"`
}

// Start has the resources of the program's own server. Memory is resident, in millions of bytes;
// zero if unknown.
type Start struct {
	BinaryMB      float64 `json:"binary_mb"`       // the program's file
	FirstAnswerMS Spread  `json:"first_answer_ms"` // from the start of the process, with an empty directory
	IdleMB        float64 `json:"idle_mb"`         // afterwards
	// maximum of the server of all other measurements
	MostMB float64 `json:"most_mb"`

	// in a directory that is closed and reopened
	Items                 int     `json:"items"`
	DiskBytesPerItem      float64 `json:"disk_bytes_per_item"`      // with deadline and stream record
	ReopenedFirstAnswerMS Spread  `json:"reopened_first_answer_ms"` // with those items in it
	ReopenedMB            float64 `json:"reopened_mb"`              // afterwards
}
