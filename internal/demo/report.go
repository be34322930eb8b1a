package demo

import "fmt"

// Report counts the observations, during a run or at its end.
type Report struct {
	Items  int  `json:"items"`
	Unit   Unit `json:"deadline_unit"`
	AtOnce int  `json:"due_at_once"` // largest number of items with the same deadline
	counts
	P50MS    int      `json:"p50_ms"` // lateness, in whole milliseconds
	P99MS    int      `json:"p99_ms"`
	MaxMS    int      `json:"max_ms"`
	Lateness []Bucket `json:"lateness"`
	Latest   Arrival  `json:"-"`
}

// Snapshot returns the present report.
func (d *Demo) Snapshot() Report {
	t := d.tally
	t.mu.Lock()
	defer t.mu.Unlock()
	return Report{
		Items:    t.mu.items,
		Unit:     d.Unit,
		AtOnce:   d.atOnce,
		counts:   t.mu.counts,
		P50MS:    t.mu.lateness.quantile(0.50),
		P99MS:    t.mu.lateness.quantile(0.99),
		MaxMS:    int(t.mu.lateness.max.Milliseconds()),
		Lateness: t.mu.lateness.buckets(),
		Latest:   t.mu.latest,
	}
}

// finalReport returns the report at the end, which counts missing removals as lost.
func (d *Demo) finalReport() Report {
	d.tally.mu.Lock()
	d.tally.mu.Lost = d.tally.mu.items - d.tally.mu.Removes
	d.tally.mu.Unlock()
	return d.Snapshot()
}

// Broken returns each broken law with its count.
func (r Report) Broken() []string {
	var broken []string
	for _, law := range []struct {
		count int
		what  string
	}{
		{r.Early, "gone before the deadline"},
		{r.Visible, "answered after the deadline"},
		{r.Lost, "removed without a record, or not removed"},
		{r.Twice, "recorded twice"},
		{r.Unmarked, "recorded without the service's identity"},
		{r.Altered, "recorded with another image than was written"},
		{r.Remaining, "still found by a scan at the end"},
	} {
		if law.count > 0 {
			broken = append(broken, fmt.Sprintf("%d %s", law.count, law.what))
		}
	}
	return broken
}
