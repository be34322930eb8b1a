package console_test

import (
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/testkit/chrome"
)

func TestBrowserTimeline(t *testing.T) {
	b := chrome.Start(t)
	walk := func(t *testing.T, w *world) {
		w.newTable(t, "offers")
		if w.name == "dynalite" {
			for _, view := range w.views() {
				tab := b.Open(t, view)
				tab.Go(w.pages + "console/table/offers/timeline")
				tab.WaitText("main", "This endpoint has no time to live")
				tab.Picture("missing-" + view.Name)
			}
			return
		}
		d := newDeadlines(t, w, "offers")
		if w.name == "aws" {
			d = d.late(t, w, b.Open(t, chrome.Desk))
		}
		for _, view := range w.views() {
			t.Run(view.Name, func(t *testing.T) {
				tab := b.Open(t, view)
				tab.Go(w.pages + "console/tables")
				tab.FollowText("offers")
				tab.FollowText("Timeline")
				readDeadlines(w, tab)
				tab.FollowText("next day")
				d.shown(t, tab, 24*time.Hour)
				tab.Picture("day")
				if !walks(view) {
					return
				}
				zoom(t, d, tab)
				underCursor(t, b, view, d, tab)
				cliffs(t, d, tab)
				wrongValues(t, tab)
			})
		}
		t.Run("nothing expires", func(t *testing.T) { nothingExpires(t, w, b.Open(t, chrome.Desk)) })
	}
	everywhere(t, walk)
	t.Run("other", func(t *testing.T) { walk(t, newOther(t)) })
}

// readDeadlines asks for the deadlines where mayfly does not count them.
func readDeadlines(w *world, tab *chrome.Tab) {
	if w.name != "other" {
		return
	}
	tab.WaitText("main", "reads up to 20,000 items or 2,000 read units at each view")
	tab.Picture("asks")
	tab.FollowText("Read the deadlines")
	tab.WaitText("[role=status]", "(the whole table), for ")
}

// deadlines are the deadlines of a table's items, in milliseconds, in order.
type deadlines []int64

// newDeadlines puts items that expire in the minutes, hours and years to come, a cliff of 30 at one
// instant, and values that are mistakes.
func newDeadlines(t *testing.T, w *world, table string) (all deadlines) {
	now := w.now().Unix()
	add := func(id string, at int64) {
		w.put(t, table, id, at)
		all = append(all, 1000*at)
	}
	for i := range int64(24) {
		add(fmt.Sprintf("hour-%d", i), now+600+3600*i)
	}
	for i := range int64(5) {
		add(fmt.Sprintf("year-%d", i), now+86400*365*(i+1))
	}
	for i := range 30 {
		add(fmt.Sprintf("cliff-%d", i), now+5*3600)
	}
	slices.Sort(all)
	w.put(t, table, "wrong", 1000*(now+3600))
	w.putItem(t, table, map[string]types.AttributeValue{"id": text("words"), "expires": text("tomorrow")})
	return all
}

// late returns when items are removed by a server in the mode of Amazon's: some time after their
// deadlines.
func (d deadlines) late(t *testing.T, w *world, tab *chrome.Tab) deadlines {
	tab.Go(w.pages + "console/table/offers/timeline?next=87600h")
	removed := chrome.Eval[deadlines](tab, `[...document.querySelectorAll("#items ~ * tbody time[data-until]")].map(e => Number(e.dataset.until))`)
	if len(removed) != len(d) {
		t.Fatalf("%d items are listed, not %d", len(removed), len(d))
	}
	for i, at := range removed {
		if late := at - d[i]; late < 0 || late > 48*time.Hour.Milliseconds() {
			t.Errorf("an item expires %d ms after its deadline", late)
		}
	}
	return removed
}

// between returns the number of deadlines in a range.
func (d deadlines) between(from, to int64) (n int) {
	for _, at := range d {
		if at >= from && at < to {
			n++
		}
	}
	return n
}

// rangeOf returns the range of the chart.
func rangeOf(tab *chrome.Tab) (from, to int64) {
	r := chrome.Eval[[]string](tab, `(d => [d.from, d.to])(document.querySelector(".timeline").dataset)`)
	from, _ = strconv.ParseInt(r[0], 10, 64)
	to, _ = strconv.ParseInt(r[1], 10, 64)
	return from, to
}

// shown checks the page's count and bars. span is the range's length.
func (d deadlines) shown(t *testing.T, tab *chrome.Tab, span time.Duration) {
	t.Helper()
	from, to := rangeOf(tab)
	if to-from != span.Milliseconds() {
		t.Errorf("the range is %d ms long, not %d", to-from, span.Milliseconds())
	}
	n := d.between(from, to)
	text := fmt.Sprintf("%d items expire in this range", n)
	if n == 1 {
		text = "1 item expires in this range"
	}
	tab.WaitText("[role=status]", text)
	bars := chrome.Eval[[]string](tab, `[...document.querySelectorAll(".timeline .bar")].filter(e => e.getBoundingClientRect().height > 0).map(e => e.textContent)`)
	sum := 0
	for _, bar := range bars {
		var n int
		if _, err := fmt.Sscanf(bar[len("2006-01-02 15:04:05 UTC: "):], "%d", &n); err != nil {
			t.Errorf("%q: %v", bar, err)
		}
		sum += n
	}
	if sum != n {
		t.Errorf("the bars have %d items, not %d: %q", sum, n, bars)
	}
}

const drawing = ".timeline svg"

// zoom drags over the chart, twice, and goes back out.
func zoom(t *testing.T, d deadlines, tab *chrome.Tab) {
	from, to := rangeOf(tab)
	left, right := frame(tab)
	drag := func(a, b float64) {
		from, to = rangeOf(tab)
		tab.Drag(drawing, left+a*(right-left), left+b*(right-left))
		tab.Wait(`document.querySelector(".timeline")`)
		gotFrom, gotTo := rangeOf(tab)
		length := float64(to - from)
		for _, off := range []float64{float64(gotFrom-from)/length - min(a, b), float64(gotTo-from)/length - max(a, b)} {
			if math.Abs(off) > 0.02 {
				t.Errorf("a drag from %v to %v of %d…%d leads to %d…%d", a, b, from, to, gotFrom, gotTo)
			}
		}
		d.shown(t, tab, time.Duration(gotTo-gotFrom)*time.Millisecond)
	}
	drag(0.1, 0.6)
	drag(0.8, 0.3) // also to the left
	tab.Picture("zoom")
	from, to = rangeOf(tab)
	tab.FollowText("zoom out")
	tab.Wait(`document.querySelector(".timeline")`)
	if a, b := rangeOf(tab); max(b-a-2*(to-from), 2*(to-from)-b+a) > 1 {
		t.Errorf("zooming out of %d…%d leads to %d…%d", from, to, a, b)
	}
	tab.Go(tab.URL())
	a, b := rangeOf(tab)
	d.shown(t, tab, time.Duration(b-a)*time.Millisecond)
}

// frame returns the shares of the drawing's width at which the axis begins and ends.
func frame(tab *chrome.Tab) (left, right float64) {
	r := chrome.Eval[[]float64](tab, `(e => [e.dataset.left / e.viewBox.baseVal.width, e.dataset.right / e.viewBox.baseVal.width])(
		[...document.querySelectorAll(".timeline svg")].find(e => e.getBoundingClientRect().width > 0))`)
	return r[0], r[1]
}

// underCursor clicks the chart, which lists the items from there on, and looks at the page again in
// another window.
func underCursor(t *testing.T, b *chrome.Browser, view chrome.View, d deadlines, tab *chrome.Tab) {
	tab.FollowText("next day")
	left, right := frame(tab)
	tab.ClickAt(drawing, left+0.5*(right-left))
	tab.WaitText("#items", "From ")
	from, to := rangeOf(tab)
	u, err := url.Parse(tab.URL())
	if err != nil {
		t.Fatal(err)
	}
	at, err := strconv.ParseInt(u.Query().Get("at"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	if off := float64(at-from)/float64(to-from) - 0.5; math.Abs(off) > 0.01 {
		t.Errorf("a click in the middle of %d…%d leads to %d", from, to, at)
	}
	step := (to - from) / 120
	first := d[slices.IndexFunc(d, func(x int64) bool { return x >= at-step/2 })]
	rows := `[...document.querySelectorAll("#items ~ * tbody tr")]`
	if got := chrome.Eval[string](tab, rows+`[0].querySelector("time").dataset.until`); got != strconv.FormatInt(first, 10) {
		t.Errorf("the first item from %d on expires at %s, not %d", at, got, first)
	}
	if n := chrome.Eval[int](tab, rows+".length"); n != d.between(at-step/2, to) {
		t.Errorf("%d items are listed, not %d", n, d.between(at-step/2, to))
	}
	tab.Picture("items")
	text := chrome.Eval[string](tab, rows+".map(r => r.cells[0].innerText).join()")
	other := b.Open(t, view)
	other.Go(tab.URL())
	if got := chrome.Eval[string](other, rows+".map(r => r.cells[0].innerText).join()"); got != text {
		t.Errorf("another window lists %q, not %q", got, text)
	}
	tab.Press("j", chrome.Enter)
	tab.Wait(`location.pathname.endsWith("/item")`)
	tab.WaitText("main", "expires")
	tab.Go(u.String())
}

// cliffs follows the cliff to its step.
func cliffs(t *testing.T, d deadlines, tab *chrome.Tab) {
	tab.WaitText("main", "Cliffs")
	link := "main > ul a"
	text := tab.Text(link)
	tab.Follow(link)
	from, to := rangeOf(tab)
	if got := fmt.Sprint(d.between(from, to), " items"); got != text {
		t.Errorf("the range of the cliff of %s has %s", text, got)
	}
	d.shown(t, tab, time.Duration(to-from)*time.Millisecond)
}

// wrongValues asks for the doctor's findings.
func wrongValues(t *testing.T, tab *chrome.Tab) {
	tab.FollowText("Look for TTL values that never expire")
	tab.WaitText("main", "mistake: milliseconds")
	tab.WaitText("main", "mistake: string")
	tab.WaitText("main", "wrong")
	tab.WaitText("main", "The page read 61 items (the whole table), for ")
	chrome.Eval[bool](tab, `([...document.querySelectorAll("h2")].find(h => h.innerText === "TTL values").scrollIntoView(), true)`)
	tab.Picture("values")
}

// nothingExpires looks at a table without TTL, and enables it.
func nothingExpires(t *testing.T, w *world, tab *chrome.Tab) {
	tab.Go(w.pages + "console/new")
	tab.Fill("[name=name]", "forever")
	tab.Fill("[name=pk]", "id")
	tab.FollowText("Create the table")
	w.waitActive(t, "forever")
	tab.FollowText("Timeline")
	tab.WaitText("main", "Nothing expires: the table's TTL is off.")
	tab.FollowText("Enable it")
	tab.Fill("[name=attribute]", "expires")
	tab.FollowText("Enable TTL")
	tab.FollowText("Timeline")
	readDeadlines(w, tab)
	tab.WaitText("[role=status]", "0 items expire in this range")
}
