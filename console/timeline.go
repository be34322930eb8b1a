package console

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/mayflydb/mayfly/internal/chart"
	"github.com/mayflydb/mayfly/internal/when"
	"github.com/mayflydb/mayfly/internal/work/attr"
)

const (
	timelineSteps = 120
	timelineKeys  = 100
)

// spanMost is the longest range of a timeline. A time.Duration ends at 292 years.
const spanMost = 200 * 365 * 24 * time.Hour

// spans are the ranges of a timeline to choose from.
var spans = []struct {
	name string
	time time.Duration
}{
	{"10 minutes", 10 * time.Minute}, {"hour", time.Hour}, {"day", 24 * time.Hour}, {"week", 7 * 24 * time.Hour},
	{"month", 30 * 24 * time.Hour}, {"year", 365 * 24 * time.Hour}, {"10 years", 3650 * 24 * time.Hour},
}

// showTimeline shows the deadlines of a table's items on an axis of time.
func showTimeline(ctx context.Context, v *visit) (*page, error) {
	t, err := v.table(ctx)
	if err != nil {
		return nil, err
	}
	if t.noTTL != "" {
		return t.page("timeline", lacks(t.noTTL)), nil
	}
	if t.ttl == "" {
		return t.page("timeline", el("p", has("class", "none"), words("Nothing expires: the table's TTL is off. "), el("a", has("href", t.path()), words("Enable it")))), nil
	}
	now := v.clock(ctx).now
	from, to, err := readSpan(v.r, now)
	if err != nil {
		return nil, err
	}
	ranges := el("nav", has("class", "tabs"), has("aria-label", "Range"), el("ul", spanLinks(v.r, from, to, now)...))
	found, err := t.values(ctx, v)
	if err != nil {
		return nil, err
	}
	if !v.clock(ctx).ours && v.r.FormValue("read") == "" {
		return t.page("timeline", ranges,
			el("p", words("This page cannot ask the endpoint for the table's deadlines. It can read a part of the table, and estimate the rest.")),
			v.readLink("read", "Read the deadlines"), found), nil
	}
	u, err := v.upcoming(ctx, t, from, to, timelineSteps, timelineKeys)
	if err != nil {
		return nil, err
	}
	body := []node{
		ranges,
		el("p", has("role", "status"), u.summary()),
		u.chart(now),
		el("p", el("small", words("Drag over the chart to zoom in, click to list the items from an instant on."))),
	}
	due, heading := u, group{words("First in this range")}
	if text := v.r.FormValue("at"); text != "" {
		ms, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, errSpan
		}
		at := time.UnixMilli(ms)
		step := to.Sub(from) / timelineSteps
		if at = at.Add(-step / 2); v.clock(ctx).ours {
			due, err = v.upcoming(ctx, t, at, to, 0, timelineKeys)
		} else {
			due = u.after(at, timelineKeys)
		}
		if err != nil {
			return nil, err
		}
		at = at.Add(step / 2)
		heading = group{words("From "), instant(at)}
	}
	rows := make([]node, len(due.due))
	for i, d := range due.due {
		rows[i] = el("tr", el("td", el("a", has("href", t.itemPath(d.key)), words(clip(keyText(d.item(), t.keys()), 2*cellMost)))), el("td", until(d.at, now)), el("td", instant(d.at)))
	}
	instants := "Deadline"
	if v.clock(ctx).ours {
		instants = "Removed at" // later than the deadline with aws expiry
	}
	none, unlisted := "No item expires in this range.", due.unlisted()
	if unlisted != nil {
		none = "No item is listed."
	}
	body = append(body, u.cliffs(v.r, now), found, el("h2", has("id", "items"), heading), unlisted, list([]string{"Item", "Expires", instants}, rows, none))
	return t.page("timeline", body...), nil
}

// errSpan is the refusal of an invalid range.
var errSpan = &pageError{http.StatusBadRequest, "The URL's range is not two instants in milliseconds, the earlier one first."}

// readSpan returns the range in a URL: two instants, or the next hour.
func readSpan(r *http.Request, now time.Time) (from, to time.Time, err error) {
	if text := r.FormValue("next"); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil || d < time.Second || d > 100*365*24*time.Hour {
			return now, now, errSpan
		}
		return now, now.Add(d), nil
	}
	if r.FormValue("from") == "" {
		return now, now.Add(time.Hour), nil
	}
	a, errA := strconv.ParseInt(r.FormValue("from"), 10, 64)
	b, errB := strconv.ParseInt(r.FormValue("to"), 10, 64)
	const most = 1 << 52 // ms
	if errA != nil || errB != nil || b <= a || a < -most || b > most {
		return now, now, errSpan
	}
	if b-a > spanMost.Milliseconds() {
		return now, now, &pageError{http.StatusBadRequest, "The range is longer than 200 years, which is the most that a timeline shows. Choose a shorter one."}
	}
	return time.UnixMilli(a), time.UnixMilli(max(b, a+timelineSteps)), nil
}

// spanLinks returns links to the usual ranges from now on, and to twice the present one.
func spanLinks(r *http.Request, from, to, now time.Time) (links []node) {
	chosen, err := time.ParseDuration(r.FormValue("next"))
	if err != nil && r.FormValue("from") == "" {
		chosen = time.Hour
	}
	for _, s := range spans {
		links = append(links, el("li", el("a",
			has("href", urlWith(r.URL, url.Values{"next": {s.time.String()}, "from": {""}, "to": {""}, "at": {""}})),
			optional(chosen == s.time, has("aria-current", "true")), words("next "+s.name),
		)))
	}
	if to.Sub(from) > spanMost/2 {
		return links
	}
	half := to.Sub(from) / 2
	wider := url.Values{"next": {""}, "at": {""}, "from": {millis(from.Add(-half))}, "to": {millis(to.Add(half))}}
	return append(links, el("li", el("a", has("href", urlWith(r.URL, wider)), words("zoom out"))))
}

// summary returns the number of deadlines in the range, and whether it was counted or estimated.
func (u *upcoming) summary() node {
	text := counted(int64(math.Round(u.total())), "item") + " " + verb(u.total(), "expires", "expire") + " in this range"
	estimated := u.read != nil && !u.read.whole
	if estimated {
		text = "About " + text
	}
	parts := group{words(text)}
	if u.until.Before(u.to) {
		parts = append(parts, words(", counted up to "), instant(u.until))
	}
	if u.overdue > 0 {
		parts = append(parts, words(fmt.Sprintf("; %s expired and still there", counted(int64(math.Round(u.overdue)), "item"))))
	}
	parts = append(parts, words("."))
	if u.read != nil {
		parts = append(parts, words(" "+u.read.text()))
	}
	if estimated {
		parts = append(parts, words(" The numbers are estimates from that part."))
	}
	return parts
}

func verb(n float64, one, many string) string {
	if math.Round(n) == 1 {
		return one
	}
	return many
}

// chart draws the counts as bars over time.
func (u *upcoming) chart(now time.Time) node {
	highest := 4.0 // so that each line of the axis is a whole number
	for _, c := range u.counts {
		highest = max(highest, c)
	}
	scale := chart.NewScale(0, max(highest, 4), 4) // items are whole
	n := float64(len(u.counts))
	step := u.to.Sub(u.from) / time.Duration(n)
	return el("div", has("class", "timeline"), has("data-from", millis(u.from)), has("data-to", millis(u.to)),
		drawing("Deadlines from "+utc(u.from)+" to "+utc(u.to), func(p plot, d *chart.Drawing) {
			f := p.frame
			d.ValueAxis(f, scale, "grid", "label", func(v float64) string { return grouped(int64(v)) })
			width := (f.Right - f.Left) / n
			for i, c := range u.counts {
				if c == 0 {
					continue
				}
				at := u.from.Add(time.Duration(i) * step)
				y := min(f.Y(scale, c), f.Bottom-1)
				d.Rect(f.X(float64(i)/n), y, max(width-0.5, 0.5), f.Bottom-y, `class="bar"`, fmt.Sprintf("%s: %s", utc(at), counted(int64(math.Round(c)), "item")))
			}
			p.timeAxis(d, u.from, u.to)
			if share := float64(now.Sub(u.from)) / float64(u.to.Sub(u.from)); share >= 0 && share <= 1 {
				d.Line(f.X(share), f.Top, f.X(share), f.Bottom, `class="here"`)
			}
			d.Rect(f.Left, f.Top, 0, f.Bottom-f.Top, `class="drag"`, "")
		}))
}

// cliffShare is the part of a range's deadlines that makes one step a cliff.
const cliffShare = 0.2

// cliffs names the steps in which many items expire at once.
func (u *upcoming) cliffs(r *http.Request, now time.Time) node {
	total, step := u.total(), u.to.Sub(u.from)/time.Duration(len(u.counts))
	var all []node
	for i, c := range u.counts {
		if c < 20 || c < cliffShare*total {
			continue
		}
		at := u.from.Add(time.Duration(i) * step)
		there := url.Values{"from": {millis(at)}, "to": {millis(at.Add(step))}, "next": {""}, "at": {""}, "values": {""}}
		all = append(all, el("li",
			el("a", has("href", urlWith(r.URL, there)), words(counted(int64(math.Round(c)), "item"))),
			words(" within "+when.Text(step)+" from "), instant(at), words(", "), until(at, now),
		))
	}
	return optional(len(all) > 0, group{el("h2", words("Cliffs")), el("ul", all...)})
}

// keyText returns a key as its values.
func keyText(key attr.Item, names []string) string {
	var parts []string
	for _, name := range names {
		text, _ := short(key[name])
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}
