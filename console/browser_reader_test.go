package console_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/testkit/chrome"
)

// A screen reader has a name for each field, button, picture and region, and the fields of a group
// have different ones.
func TestBrowserNames(t *testing.T) {
	w := newRichWorld(t)
	tab := chrome.Start(t).Open(t, chrome.Desk)
	eachSight(t, tab, w, func(name string) {
		chrome.Eval[any](tab, `document.querySelectorAll("details").forEach(d => d.open = true), null`)
		all := tab.Widgets()
		if len(all) < 10 {
			t.Errorf("%s has only %d widgets: %v", name, len(all), all)
		}
		for _, one := range all {
			if slices.Contains([]string{"", "by", "to", "with", "and"}, strings.TrimSpace(one.Name)) {
				t.Errorf("%s: a %s is named %q", name, one.Role, one.Name)
			}
		}
		for _, same := range chrome.Eval[[]string](tab, `[...document.forms].flatMap(form => {
			const seen = new Set();
			return [...form.elements].filter(e => e.matches("input:not([type=hidden]), select, textarea")).flatMap(e => {
				let part = "";
				for (let g = e.closest("fieldset, [role=group]"); g; g = g.parentElement.closest("fieldset, [role=group]"))
					part = (g.getAttribute("aria-label") || g.querySelector("legend").textContent) + ": " + part;
				const label = [...e.labels].map(l => l.firstChild.textContent.trim()).join(" ");
				const name = part + (e.getAttribute("aria-label") || label);
				if (!seen.has(name)) { seen.add(name); return []; }
				return [name];
			});
		})`) {
			t.Errorf("%s: two fields of a form are named %q", name, same)
		}
	})
}

// said is what a screen reader says without being asked.
type said struct{ Where, How, Text string }

// listen collects what the live regions of a page say from now on.
const listen = `(() => {
	window.said = [];
	const regions = "[aria-live]:not([aria-live=off]), [role=alert], [role=status], [role=log], output";
	new MutationObserver(changes => {
		for (const c of changes) {
			const e = c.target.nodeType === Node.ELEMENT_NODE ? c.target : c.target.parentElement;
			const region = e?.closest("[aria-live], [role=alert], [role=status], [role=log], output");
			if (region?.matches(regions)) said.push({Where: region.id || region.outerHTML.slice(0, 100), How: region.getAttribute("aria-live") || region.getAttribute("role"), Text: e.textContent});
		}
	}).observe(document.body, {subtree: true, childList: true, characterData: true});
})(), null`

// Values that change each second are not read aloud; a new alarm is, when the reader pauses.
func TestBrowserLiveRegions(t *testing.T) {
	w := newRichWorld(t)
	b := chrome.Start(t)
	put := func(id string, until int64) {
		_, err := w.db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("sessions"), Item: map[string]types.AttributeValue{
			"user": &types.AttributeValueMemberS{Value: "new"}, "device": &types.AttributeValueMemberN{Value: id}, "until": &types.AttributeValueMemberN{Value: fmt.Sprint(until)},
		}})
		must(t, err)
	}
	later := w.own.Clock().Now().Add(time.Hour).Unix()

	now := b.Open(t, chrome.Desk)
	now.Go(w.pages)
	now.Wait(`document.querySelector("#calls table")`)
	chrome.Eval[any](now, listen)
	for i := range 3 {
		before := chrome.Eval[string](now, `window.before = document.getElementById("calls").innerText`)
		put(fmt.Sprint(i), later)
		now.Wait(`document.getElementById("calls").innerText !== before`)
		if before == "" {
			t.Error("the calls are not shown")
		}
	}
	if all := chrome.Eval[[]said](now, "said"); len(all) > 0 {
		t.Errorf("a screen reader says, while nothing needs attention: %+v", all)
	}
	put("4", 1000*later) // a mistake: milliseconds
	now.Wait(`said.length`)
	for _, one := range chrome.Eval[[]said](now, "said") {
		if one.Where != "alarms" || one.How != "polite" {
			t.Errorf("an alarm is said by %+v", one)
		}
	}

	stream := b.Open(t, chrome.Desk)
	stream.Go(w.pages + "console/table/sessions/stream?from=oldest")
	stream.Wait(`document.querySelector("#records tr")`)
	chrome.Eval[any](stream, listen)
	for i := range 3 {
		put(fmt.Sprint(10+i), later)
		stream.WaitText("#records tr", fmt.Sprint("new, ", 10+i))
	}
	if all := chrome.Eval[[]said](stream, "said"); len(all) > 0 {
		t.Errorf("a screen reader says, while records come: %+v", all)
	}
}

// A page that changes by itself can be paused. It keeps the focus and the scroll positions of its
// parts, and what a visitor has opened.
func TestBrowserPause(t *testing.T) {
	w := newRichWorld(t)
	tab := chrome.Start(t).Open(t, chrome.Views[0])
	tab.Go(w.pages)
	tab.Wait(`document.querySelector("#calls .scroll")`)
	chrome.Eval[any](tab, `(() => {
		window.calls = document.querySelector("#calls .scroll");
		calls.focus();
		calls.scrollLeft = 40;
		window.changes = 0;
		new MutationObserver(() => changes++).observe(document.getElementById("calls"), {subtree: true, childList: true, characterData: true});
	})(), null`)
	read := func() {
		_, err := w.db.ListTables(t.Context(), &dynamodb.ListTablesInput{})
		must(t, err)
	}
	for range 2 {
		chrome.Eval[any](tab, `changes = 0`)
		read()
		tab.Wait(`changes`)
	}
	tab.Wait(`document.activeElement === calls && calls.isConnected && calls.scrollLeft === 40`)
	tab.ClickText("Pause updates")
	tab.WaitText("[data-pause]", "Continue")
	chrome.Eval[any](tab, `changes = 0`)
	// Another page is followed for two more changes: the paused one has had the time for them too.
	other := chrome.Start(t).Open(t, chrome.Desk)
	other.Go(w.pages)
	other.Wait(`document.querySelector("#calls .scroll")`)
	for range 2 {
		chrome.Eval[any](other, `window.before = document.getElementById("calls").innerText`)
		read()
		other.Wait(`document.getElementById("calls").innerText !== before`)
	}
	if n := chrome.Eval[int](tab, `changes`); n > 0 {
		t.Errorf("the paused page changed %d times", n)
	}
	tab.ClickText("Continue updates")
	tab.Wait(`changes`)

	// A stream that is read from its oldest record shows each record once afterwards too.
	const records = `document.querySelectorAll("#records > tr").length`
	tab.Go(w.pages + "console/table/sessions/stream?from=oldest")
	tab.Wait(records)
	tab.Wait(`/at the end/.test(document.getElementById("position").innerText)`)
	chrome.Eval[any](tab, `new MutationObserver(all => { if (all.some(c => c.addedNodes.length)) window.appended = true; }).observe(document.getElementById("records"), {childList: true}), null`)
	before := chrome.Eval[int](tab, records)
	tab.ClickText("Pause updates")
	tab.ClickText("Continue updates")
	tab.Wait(`window.appended`)
	if after := chrome.Eval[int](tab, records); after != before {
		t.Errorf("there are %d records after the pause, and %d before", after, before)
	}
}

// ink is a part of a chart that has to stand out from what is behind it.
type ink struct {
	What     string
	Contrast float64
	Text     bool
}

// The texts and the bars of charts meet AA by day and by night.
func TestBrowserCharts(t *testing.T) {
	w := newRichWorld(t)
	tab := chrome.Start(t).Open(t, chrome.Desk)
	bars, texts := 0, 0
	eachSight(t, tab, w, func(name string) {
		for _, view := range chrome.Views {
			tab.Change(view)
			for _, one := range chrome.Eval[[]ink](tab, `(() => {`+looks+`
				return [...document.querySelectorAll("main svg :is(text, rect, circle, path, line.here)")].filter(e => e.checkVisibility() && !e.matches(".drag")).map(e => {
					const style = getComputedStyle(e), back = behind(e.closest("svg").parentElement);
					const color = style.fill === "none" || e.matches("line") ? style.stroke : style.fill;
					return {What: named(e), Contrast: contrast(over(channels(color), back, Number(style.opacity)), back), Text: e.matches("text")};
				});
			})()`) {
				least := 3.0
				if one.Text {
					least = 4.5
					texts++
				} else {
					bars++
				}
				if one.Contrast < least {
					t.Errorf("%s, %s: the contrast of %s is %.1f, less than %g", name, view.Name, one.What, one.Contrast, least)
				}
			}
		}
	})
	if bars < 100 || texts < 100 {
		t.Errorf("only %d bars and %d texts were seen", bars, texts)
	}
}

// For visitors who want less motion nothing is animated, and no text changes more often than once a
// second.
func TestBrowserReducedMotion(t *testing.T) {
	w := newRichWorld(t)
	must(t, w.own.Clock().SetRate(1))
	tab := chrome.Start(t).Open(t, chrome.Desk)
	tab.Before(`window.intervals = []; { const set = window.setInterval; window.setInterval = (f, ms) => { intervals.push(ms); return set(f, ms); }; }`)
	fast := func() bool { return chrome.Eval[bool](tab, `intervals.some(ms => ms < 1000)`) }
	tab.Go(w.pages + "console/clock")
	if !fast() {
		t.Error("the clock does not show milliseconds to those who have not asked for less motion")
	}
	tab.PreferStill()
	eachSight(t, tab, w, func(name string) {
		if fast() {
			t.Errorf("%s changes more often than once a second", name)
		}
		for _, e := range chrome.Eval[[]string](tab, `[...document.querySelectorAll("*")].filter(e => {
			const s = getComputedStyle(e);
			return s.animationName !== "none" || s.transitionDuration.split(", ").some(d => parseFloat(d) > 0) && s.transitionProperty !== "none" || s.scrollBehavior === "smooth";
		}).map(e => e.outerHTML.slice(0, 100))`) {
			t.Errorf("%s moves %s", name, e)
		}
	})
}
