package planner

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// WriteText writes the report for people.
func (r *Report) WriteText(out io.Writer) error {
	var b strings.Builder
	for _, line := range r.summary() {
		b.WriteString(line + "\n")
	}
	for _, s := range r.sections() {
		b.WriteString("\n" + s.title + "\n")
		writeColumns(&b, s.heading, s.rows)
		for _, line := range s.below {
			b.WriteString("  " + line + "\n")
		}
	}
	if len(r.Notes) > 0 {
		b.WriteString("\nTo know\n")
		for _, n := range r.Notes {
			b.WriteString("  " + n + "\n")
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// section is a part of the report: a table with lines below.
type section struct {
	title   string
	heading []string // of columns; the first is left-aligned, and the last too if it has words
	rows    [][]string
	below   []string
}

func (r *Report) summary() []string {
	w := &r.Workload
	asked := []string{fmt.Sprintf("%s writes/s (%s a day, %s a month) and %s reads/s of %s items", number(r.WritesPerS), millions(r.WritesPerDay), millions(r.WritesPerMonth), number(r.ReadsPerS), bytesText(w.ItemBytes))}
	if w.Retention > 0 {
		asked[0] += fmt.Sprintf(", kept for %s", short(w.Retention))
	}
	if r.ShapeMinutes > 0 {
		asked = append(asked, fmt.Sprintf("traffic of %s minutes, on average as above", number(float64(r.ShapeMinutes))))
	}
	return append(asked, fmt.Sprintf("prices of %s in US dollars, in force since %s; a month has 30 days", r.Prices.Region, r.Prices.Since))
}

func millions(v float64) string {
	switch {
	case v >= 1e12:
		return number(v/1e9) + " billion"
	case v >= 1e9:
		return number2(v/1e9) + " billion"
	case v >= 1e6:
		return number2(v/1e6) + " million"
	}
	return number(v)
}

// number2 formats a value with up to two decimals.
func number2(v float64) string {
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.2f", v), "0"), ".")
}

func bytesText(n int) string {
	if n%1024 == 0 {
		return fmt.Sprintf("%d KB", n/1024)
	}
	return number(float64(n)) + "-byte"
}

func (r *Report) sections() []section {
	all := []section{r.modesSection(), r.tracksSection(), r.besidesSection(), r.hotSection()}
	if len(r.Expiry) > 0 {
		all = append(all, r.expirySection())
	}
	return all
}

func (r *Report) modesSection() section {
	s := section{title: "Capacity, a month", heading: []string{"", "on demand", "autoscaled", "utilisation", "same at"}}
	for i, t := range r.Tracks {
		if t.Asked == 0 {
			continue
		}
		s.rows = append(s.rows, []string{t.Resource + ", " + string(t.Kind), dollars(r.Demands[i].USD), dollars(t.USD), percent(t.Used), percent(r.Prices.Crossing(t.Kind))})
	}
	m := &r.Modes
	s.rows = append(s.rows, []string{"together", dollars(m.OnDemandUSD), dollars(m.AutoscaledUSD), "", ""})
	low, high := m.AutoscaledUSD, m.OnDemandUSD
	if m.Cheaper == ModeOnDemand {
		low, high = high, low
	}
	if low == high {
		s.below = append(s.below, "both modes cost the same")
	} else {
		verdict := fmt.Sprintf("%s is cheaper, by %s (%s)", m.Cheaper, dollars(high-low), percent((high-low)/high))
		if m.Throttles && m.Cheaper == ModeAutoscaled {
			verdict += "; but it throttles, see below"
		}
		s.below = append(s.below, verdict)
	}
	s.below = append(s.below,
		fmt.Sprintf("on demand is the cheaper one while less than %s of provisioned write capacity is used, and %s of read capacity", percent(m.CrossingWrites), percent(m.CrossingReads)),
		fmt.Sprintf("provisioned for the peak at %s, and never changed: %s", percent(r.Workload.Scaling.Target), dollars(m.PeakUSD)))
	return s
}

func (r *Report) tracksSection() section {
	s := section{title: "Autoscaling, units a second", heading: []string{"", "demand", "peak", "least", "mean", "most", "out", "in", "throttled"}}
	for _, t := range r.Tracks {
		if t.Asked == 0 {
			continue
		}
		s.rows = append(s.rows, []string{t.Resource + ", " + string(t.Kind), number(t.Demand), number(t.Peak), number(t.Least), number(t.Mean), number(t.Most), number(float64(t.Out)), number(float64(t.In)), percent(t.Throttled / t.Asked)})
		if t.Kept > 0 {
			s.below = append(s.below, fmt.Sprintf("%s, %s: scaling in was put off %d times, as the day's decreases were used up", t.Resource, t.Kind, t.Kept))
		}
	}
	return s
}

func (r *Report) besidesSection() section {
	s := section{title: "Besides, a month, in either mode", heading: []string{"", "amount", "cost"}}
	s.rows = append(s.rows, []string{"storage", size(r.StoredBytes), dollars(r.StorageUSD)})
	if r.StreamReads > 0 {
		s.rows = append(s.rows, []string{"stream", millions(r.StreamReads) + " reads", dollars(r.StreamUSD)})
	}
	s.below = append(s.below, fmt.Sprintf("%s items, their index entries, and 100 bytes more for each", millions(r.StoredItems)))
	return s
}

func (r *Report) hotSection() section {
	s := section{title: "Partitions", heading: []string{"", "about", "hot risk", "shards to set"}}
	for _, h := range r.Hot {
		s.rows = append(s.rows, []string{h.Resource, number(h.Partitions), string(h.Risk), fmt.Sprint(h.Shards)})
		if h.Why != "" {
			s.below = append(s.below, h.Resource+": "+h.Why)
		}
	}
	if r.KinesisShards > 1 {
		s.below = append(s.below, fmt.Sprintf("if the writes come through Kinesis Data Streams: %s shards at the peak, of 1,000 records or 1 MB a second", number(float64(r.KinesisShards))))
	}
	return s
}

func (r *Report) expirySection() section {
	s := section{title: fmt.Sprintf("A million expiries, on demand; %s a month expire, %s a second at the peak", millions(r.Expiries), number(r.PeakExpiry)), heading: []string{"", "a million", "a month", "shards", "late"}}
	for _, x := range r.Expiry {
		shards := ""
		if x.Shards > 0 {
			shards = fmt.Sprint(x.Shards)
		}
		s.rows = append(s.rows, []string{x.Name, dollars(x.PerMillion), dollars(x.Month), shards, x.Late})
	}
	return s
}

// writeColumns writes a table: the first column left-aligned, and the last one too if it has words.
func writeColumns(b *strings.Builder, heading []string, rows [][]string) {
	widths := make([]int, len(heading))
	for _, row := range append([][]string{heading}, rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range append([][]string{heading}, rows...) {
		var line strings.Builder
		line.WriteString("  ")
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if leftAligned(heading, i) {
				line.WriteString(cell + pad + "  ")
			} else {
				line.WriteString(pad + cell + "  ")
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
}

func leftAligned(heading []string, i int) bool { return i == 0 || heading[i] == "late" }
