package sim

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// WriteText writes a report for people.
func (r *Report) WriteText(out io.Writer) error {
	var b strings.Builder
	for _, f := range r.Findings {
		for _, v := range f.Violations {
			fmt.Fprintln(&b, v)
		}
		fmt.Fprintf(&b, "replay: %s\n\n", f.Replay)
	}
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	c := r.Counts
	for _, row := range []struct {
		name string
		n    int64
	}{
		{"episodes", c.Episodes}, {"crashes", c.Crashes}, {"of these after errors of the disk", c.DiskErrors}, {"clean restarts", c.Restarts},
		{"starts with the machine's clock set back", c.ClockBack}, {"pauses of the server", c.Pauses}, {"full disks", c.DiskFull}, {"writes refused for these", c.Roomless},
		{"damaged files", c.Damages}, {"of these, starts refused", c.DamageRefused}, {"TTL switched on or off", c.TTLChanges}, {"indexes built", c.Indexes},
		{"requests", c.Requests}, {"of these with a mishap of the network", c.Mishaps}, {"without a known outcome", c.Unknown}, {"acknowledged writes", c.Writes},
		{"transactions", c.Transactions}, {"reads that were judged", c.Reads}, {"expirations", c.Expirations}, {"deadlines that moved or went", c.Renewed},
		{"writes over an expired item", c.Overwritten}, {"episodes with a broken law", int64(len(r.Findings))},
	} {
		fmt.Fprintf(w, "%s\t%d\n", row.name, row.n)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(&b, "seed %d, %v, %d processes\n", r.Seed, time.Duration(r.Seconds*float64(time.Second)).Round(time.Second), r.Workers)
	if c.Episodes < int64(r.Wanted) {
		fmt.Fprintf(&b, "%d of %d episodes ran: the time was over, or the findings enough\n", c.Episodes, r.Wanted)
	}
	if r.Trace != "" {
		fmt.Fprintf(&b, "trace %s: a replay that prints the same was exact\n", r.Trace)
	}
	if !r.Exact {
		fmt.Fprintln(&b, "The order of goroutines could not be fixed here, so a replay may differ.")
	}
	_, err := io.WriteString(out, b.String())
	return err
}
