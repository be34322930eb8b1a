package console

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mayflydb/mayfly/internal/chart"
	"github.com/mayflydb/mayfly/internal/clock"
)

// showNow shows the present: expirations, lateness, calls and alarms. The values follow as events.
func showNow(ctx context.Context, v *visit) (*page, error) {
	p := &page{title: "Now", area: root}
	if _, err := v.DynamoDB().ListTables(ctx, listOne); err != nil {
		return nil, err
	}
	if _, err := v.metrics(ctx); err != nil {
		p.body = []node{
			missing("Live values are read from mayfly's metrics, and this endpoint has none for this page.", err),
			el("p", words("Upcoming deadlines are in the timeline of a "), el("a", has("href", below+"tables"), words("table")), words(".")),
		}
		return p, nil
	}
	p.live = below + "live/now"
	part := func(id string) node { return el("div", has("id", id)) }
	p.body = []node{
		part("problem"), el("div", has("id", "alarms"), has("aria-live", "polite")), part("cards"),
		el("h2", words("Expirations per second")), part("rate"),
		el("h2", words("Lateness of expirations")), el("p", el("small", words("How long after its deadline an item was removed, in numbers of items: since this page was opened, or since the server's start if nothing has expired since."))), part("lateness"),
		el("h2", words("Calls")), part("calls"),
	}
	return p, nil
}

const (
	pastFor   = 5 * time.Minute
	nextFor   = time.Hour
	pastStep  = 5 * time.Second
	nextStep  = 30 * time.Second
	nextSteps = int(nextFor/nextStep) + 1 // the first one has begun
	askMost   = 30 * time.Second          // the deadlines of the next hour are counted at least so often,
	askLeast  = time.Second               // at most so often,
	askShare  = 200                       // and otherwise for one part of the time in so many
)

// present is the state of a followed page: recent expirations, upcoming deadlines, last metrics.
type present struct {
	past    map[int64]removals // by the step that begins then
	at      time.Time          // the end of past; zero: it has not begun
	unknown bool               // past is to be read from the server, which knows the removals of each minute
	coming  []float64          // per second
	from    time.Time          // of coming
	until   time.Time          // coming is complete before it
	asked   clock.Elapsed      // since coming was asked for; nil: never
	pause   time.Duration      // until coming is asked for again
	last    metrics
	since   clock.Elapsed // since last was read
	started distribution  // the lateness when the page was opened
}

// followNow sends the values of the page.
func followNow(ctx context.Context, v *visit, l *live) error {
	var p present
	return every(ctx, func() error {
		v.read = nil
		at := v.clock(ctx)
		m, err := v.metrics(ctx)
		if err != nil {
			return err
		}
		if m, err = p.note(ctx, v, m, at); err != nil {
			return err
		}
		before, passed := m, 1.0
		if p.last != nil {
			before, passed = p.last, p.since().Seconds()
		}
		p.last, p.since = m, clock.Stopwatch()
		for _, err := range []error{
			l.clock(at),
			l.replace("alarms", alarms(m)),
			l.replace("cards", cards(m, before, passed, p.lateness(m))),
			l.replace("rate", p.rateChart(at.now), p.countedUntil()),
			l.replace("lateness", latenessChart(p.lateness(m))),
			l.replace("calls", callsTable(m, before, passed)),
		} {
			if err != nil {
				return err
			}
		}
		return nil
	})
}

const (
	deletedMetric  = "TimeToLiveDeletedItemCount"
	latenessMetric = "mayfly_lateness_commit_seconds"
)

// note records the expirations since the last call, and now and then asks for the deadlines of the
// next hour. It returns the metrics up to which expirations are recorded.
func (p *present) note(ctx context.Context, v *visit, m metrics, at reading) (metrics, error) {
	if p.past == nil {
		p.past, p.started = map[int64]removals{}, m.distribution(latenessMetric, nil)
	}
	if at.now.Sub(p.at) > time.Minute { // the page is new, or the clock has jumped
		p.unknown = true
	} else if n := max(m.sum(deletedMetric)-p.last.sum(deletedMetric), 0); n > 0 || at.now.After(p.at) {
		p.spread(p.at, at.now, n)
	}
	p.at = at.now
	for step := range p.past {
		if step < at.now.Add(-pastFor-time.Minute).UnixMilli() {
			delete(p.past, step)
		}
	}
	jumped := p.unknown && at.rate <= 1 // at a high rate, each second is a jump
	if p.asked != nil && p.asked() < p.pause && !jumped {
		return m, nil
	}
	p.asked = clock.Stopwatch()
	p.from = at.now.Truncate(nextStep) // so that bars keep their places
	q := url.Values{"from_ms": {millis(p.from)}, "to_ms": {millis(p.from.Add(time.Duration(nextSteps) * nextStep))}, "steps": {strconv.Itoa(nextSteps)}}
	if p.unknown {
		q.Set("minutes", strconv.Itoa(int(pastFor/time.Minute)))
	}
	text, err := v.ask(ctx, http.MethodGet, "/_mayfly/deadlines?"+q.Encode(), nil)
	if err != nil {
		return nil, err
	}
	p.pause = min(max(askShare*p.asked(), askLeast), askMost)
	var said struct {
		Counts  []float64 `json:"counts"`
		Until   int64     `json:"counted_until_ms"`
		Removed []struct {
			Minute int64   `json:"minute_ms"`
			Items  float64 `json:"items"`
		} `json:"removed"`
	}
	if err := json.Unmarshal(text, &said); err != nil {
		return nil, err
	}
	for i := range said.Counts {
		said.Counts[i] /= nextStep.Seconds()
	}
	p.coming, p.until = said.Counts, time.UnixMilli(said.Until)
	if !p.unknown {
		return m, nil
	}
	p.unknown, p.past = false, map[int64]removals{}
	p.at = at.now.Add(time.Duration(float64(p.asked()) * at.rate)) // the server has counted up to here
	for _, one := range said.Removed {
		minute := time.UnixMilli(one.Minute)
		end := minute.Add(time.Minute)
		if end.After(p.at) {
			end = p.at
		}
		p.spread(minute, end, one.Items)
	}
	return v.metrics(ctx) // what was removed meanwhile is in the minutes
}

// removals are the removals of a step, or of the part of it that was seen.
type removals struct {
	items float64
	seen  time.Duration
}

// rate returns the removals per second.
func (r removals) rate() float64 { return r.items / r.seen.Seconds() }

// spread adds the removals between two instants to the steps of that time. If the clock stands, it
// treats them as the removals of one second.
func (p *present) spread(from, to time.Time, items float64) {
	if !from.Before(to) {
		from = to.Add(-time.Second)
	}
	all := to.Sub(from)
	for from.Before(to) {
		step := from.Truncate(pastStep)
		seen := min(step.Add(pastStep).Sub(from), to.Sub(from))
		r := p.past[step.UnixMilli()]
		p.past[step.UnixMilli()] = removals{r.items + items*seen.Seconds()/all.Seconds(), r.seen + seen}
		from = from.Add(seen)
	}
}

// countedUntil says how far the coming deadlines are counted, unless they all are.
func (p *present) countedUntil() node {
	if !p.until.Before(p.from.Add(time.Duration(nextSteps) * nextStep)) {
		return nil
	}
	return el("p", el("small", words("The coming deadlines are counted up to "), instant(p.until), words(": there are too many to count all.")))
}

// lateness returns the lateness of the expirations since the page was opened. If there were none,
// it returns the lateness of all expirations since the server's start.
func (p *present) lateness(m metrics) distribution {
	all := m.distribution(latenessMetric, nil)
	if since := all.since(p.started); since.total() > 0 {
		return since
	}
	return all
}

// alarms shows what needs attention.
func alarms(m metrics) node {
	var all []node
	alarm := func(on bool, text string) {
		if on {
			all = append(all, el("li", has("class", "problem"), words(text)))
		}
	}
	alarm(m.sum("mayfly_store_failed") > 0, "The store has stopped after a failed write. Check the disk, then start the server again.")
	alarm(m.sum("mayfly_disk_full") > 0, "The disk is full: writes that grow the data are refused.")
	alarm(m.sum("mayfly_damaged_files") > 0, fmt.Sprintf("%s cannot be read in part: run mayfly check.", counted(int64(m.sum("mayfly_damaged_files")), "file")))
	alarm(m.sum("mayfly_stream_held_full") > 0, "Streams keep more for slow consumers than their limit.")
	alarm(m.sum("mayfly_clock_standing") > 0, "The clock waits for the machine's, which is behind an instant that was used already.")
	for _, one := range m.all("mayfly_ttl_suspicious_values_total") {
		if n := int64(value(one)); n > 0 {
			all = append(all, suspicious(label(one, "table"), label(one, "reason"), n))
		}
	}
	if len(all) == 0 {
		return el("p", el("small", words("No alarms.")))
	}
	return el("ul", group(all))
}

// suspicious returns the alarm about TTL values that look like mistakes.
func suspicious(table, reason string, n int64) node {
	text := " look like mistakes: "
	if n == 1 {
		text = " looks like a mistake: "
	}
	return el("li", has("class", "problem"),
		words("Table "+table+" got "+counted(n, "TTL value")+" since the server's start that"+text+strings.ReplaceAll(reason, "_", " ")+". "),
		el("a", has("href", tablePath(table)+"/timeline?values=yes"), words("Find them")),
		words(" or run: "), el("code", words("mayfly doctor --table "+table)))
}

// cards shows the most important values.
func cards(m, before metrics, passed float64, late distribution) node {
	card := func(name, text string) node {
		return el("div", has("class", "card"), el("div", has("class", "big"), words(text)), words(name))
	}
	rate := func(name string) string {
		return strconv.FormatFloat(math.Round(10*max(m.sum(name)-before.sum(name), 0)/passed)/10, 'f', -1, 64)
	}
	return el("div", has("class", "cards"),
		card("expirations per second", rate(deletedMetric)),
		card("lateness p50", atMost(late.quantile(0.5))),
		card("lateness p99", atMost(late.quantile(0.99))),
		card("due and not yet removed", grouped(int64(m.sum("mayfly_backlog_items")))),
		card("calls per second", rate("mayfly_requests_total")),
	)
}

// atMost returns a bound of a histogram, in seconds, as text.
func atMost(seconds float64) string {
	switch {
	case seconds == 0:
		return "–"
	case math.IsInf(seconds, 1):
		return "over a minute"
	case seconds < 1:
		return strconv.FormatFloat(1000*seconds, 'f', -1, 64) + " ms"
	}
	return strconv.FormatFloat(seconds, 'f', -1, 64) + " s"
}

// rateChart draws the past five minutes and the next hour on one axis, with now in the middle.
func (p *present) rateChart(now time.Time) node {
	highest := 0.0
	for _, r := range p.past {
		highest = max(highest, r.rate())
	}
	for _, n := range p.coming {
		highest = max(highest, n)
	}
	if highest == 0 {
		highest = 1
	}
	scale := chart.NewScale(0, highest, 4)
	return drawing("Expirations per second: the past five minutes and the next hour", func(size plot, d *chart.Drawing) {
		f := size.frame
		middle := f.X(0.5)
		d.ValueAxis(f, scale, "grid", "label", func(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) })
		bar := func(x0, x1, n float64, class, title string) {
			x0, x1 = max(x0, f.Left), min(x1, f.Right)
			if n <= 0 || x1 <= x0 {
				return
			}
			y := min(f.Y(scale, n), f.Bottom-1)
			d.Rect(x0, y, max(x1-x0-0.5, 0.5), f.Bottom-y, `class="`+class+`"`, title)
		}
		for _, at := range slices.Sorted(maps.Keys(p.past)) { // in one order, so that an equal chart is not sent again
			r := p.past[at]
			ago := now.Sub(time.UnixMilli(at))
			x := func(ago time.Duration) float64 { return middle - (middle-f.Left)*ago.Seconds()/pastFor.Seconds() }
			bar(x(ago), min(x(ago-pastStep), middle), r.rate(), "bar past", fmt.Sprintf("%s: %.2g per second", utc(time.UnixMilli(at)), r.rate()))
		}
		for i, n := range p.coming {
			at := p.from.Add(time.Duration(i) * nextStep)
			x := func(in time.Duration) float64 { return middle + (f.Right-middle)*in.Seconds()/nextFor.Seconds() }
			bar(max(x(at.Sub(now)), middle), x(at.Add(nextStep).Sub(now)), n, "bar", fmt.Sprintf("%s: %.2g per second", utc(at), n))
		}
		d.Line(middle, f.Top, middle, f.Bottom, `class="here"`)
		marks := []struct {
			share  float64
			anchor string
			text   string
		}{{0, "start", "5 minutes ago"}, {0.5, "middle", "now"}, {1, "end", "in an hour"}, {0.75, "middle", "in 30 minutes"}}
		if size.class == "narrow" {
			marks = marks[:3]
		}
		for _, at := range marks {
			d.Text(f.X(at.share), f.Bottom+20, `text-anchor="`+at.anchor+`"`, at.text)
		}
	})
}

// latenessChart draws a histogram of the lateness.
func latenessChart(late distribution) node {
	total := late.total()
	if total == 0 {
		return el("p", has("class", "none"), words("Nothing has expired yet."))
	}
	highest := 0.0
	for _, n := range late.counts {
		highest = max(highest, n)
	}
	scale := chart.NewScale(0, max(highest, 4), 4) // items are whole
	return group{
		el("p", words(fmt.Sprintf("%s: p50 %s, p99 %s.", counted(int64(total), "expiration"), atMost(late.quantile(0.5)), atMost(late.quantile(0.99))))),
		drawing("Histogram of the lateness", func(p plot, d *chart.Drawing) {
			f := p.frame
			d.ValueAxis(f, scale, "grid", "label", func(v float64) string { return grouped(int64(v)) })
			n := float64(len(late.counts))
			for i, c := range late.counts {
				if c > 0 {
					y := min(f.Y(scale, c), f.Bottom-1)
					d.Rect(f.X(float64(i)/n)+1, y, (f.Right-f.Left)/n-2, f.Bottom-y, `class="bar"`, fmt.Sprintf("up to %s: %s", atMost(late.bounds[i]), counted(int64(c), "item")))
				}
				if every := p.every(len(late.counts)); i%every == every-1 && !math.IsInf(late.bounds[i], 1) {
					d.Text(f.X((float64(i)+1)/n)-2, f.Bottom+20, `text-anchor="end"`, atMost(late.bounds[i]))
				}
			}
		}),
	}
}

// callsTable shows the calls by operation.
func callsTable(m, before metrics, passed float64) node {
	earlier := map[string]calls{}
	for _, c := range before.operations() {
		earlier[c.operation] = c
	}
	var rows []node
	for _, c := range m.operations() {
		was := earlier[c.operation]
		rows = append(rows, el("tr",
			el("td", words(c.operation)),
			el("td", has("class", "number"), words(grouped(int64(c.count)))),
			el("td", has("class", "number"), words(strconv.FormatFloat(math.Round(10*(c.count-was.count)/passed)/10, 'f', -1, 64))),
			el("td", has("class", "number"), words(grouped(int64(c.errors)))),
			el("td", has("class", "number"), words(atMost(c.duration.quantile(0.5)))),
			el("td", has("class", "number"), words(atMost(c.duration.quantile(0.99)))),
		))
	}
	return list([]string{"Operation", "Calls", "Per second", "Errors", "p50", "p99"}, rows, "No calls yet.")
}
