package console_test

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/mayflydb/mayfly/internal/testkit"
	"github.com/mayflydb/mayfly/internal/testkit/chrome"
)

// routesOf reads the routes of all pages from the code.
func routesOf(t *testing.T) (all []string) {
	t.Helper()
	code, err := os.ReadFile("route.go")
	must(t, err)
	for _, m := range regexp.MustCompile(`"GET "\+(root|below)\+"([^"]*)", p\.page\(`).FindAllStringSubmatch(string(code), -1) {
		all = append(all, map[string]string{"below": "console/"}[m[1]]+m[2])
	}
	return all
}

// Each page has data in the world of the tests that look at all pages.
func TestSightsAreComplete(t *testing.T) {
	routes := routesOf(t)
	if len(routes) < 15 {
		t.Fatalf("only %d routes are found in the code", len(routes))
	}
	for _, r := range routes {
		if len(sights[r]) == 0 {
			t.Errorf("sights has no address for the page %q: add one, with data", r)
		}
	}
	for r := range sights {
		if !slices.Contains(routes, r) {
			t.Errorf("sights has a page that is none: %q", r)
		}
	}
}

// eachSight opens all pages with data, one after another.
func eachSight(t *testing.T, tab *chrome.Tab, w *world, look func(name string)) {
	t.Helper()
	for _, route := range slices.Sorted(maps.Keys(sights)) {
		for _, at := range sights[route] {
			tab.Go(w.pages + at)
			if title := tab.Text("h1"); title == "" || title == "This did not work" {
				t.Errorf("%s shows %q: %s", at, title, tab.Text("main"))
			}
			tab.Wait(`!document.body.dataset.live || document.querySelector("#calls table, #records tr, time[data-clock=ms]")`) // the clock is there from the start
			look("/" + at)
			tab.Forgive(wrongStatement)
		}
	}
}

// byView are the rules of axe whose results depend on the theme or the width of the window, and
// byTheme the rules that see the theme.
var (
	byView  = append([]string{"target-size", "scrollable-region-focusable", "meta-viewport", "bypass", "region"}, byTheme...)
	byTheme = []string{"color-contrast", "link-in-text-block"}
)

// axe has nothing against any page, by day and by night, on a telephone and at a desk. Nor has it
// against a dialog, errors and a focused field.
func TestBrowserAccessible(t *testing.T) {
	axe := testkit.NPM(t, "axe-core/axe.min.js")
	w := newRichWorld(t)
	tab := chrome.Start(t).Open(t, chrome.Desk)
	seen := map[string]bool{}
	check := func(name string) {
		for i, view := range chrome.Views {
			var rules []string // all
			switch {
			case i > 0 && !testkit.Full():
				rules = byView
			case !walks(view):
				rules = byTheme
			}
			tab.Change(view)
			for _, f := range tab.Axe(axe, rules...) {
				text := fmt.Sprintf("%s (%s): %s\n%s\n%s\n%s", f.Rule, f.Impact, f.Help, f.Target, f.HTML, f.Why)
				if !seen[text] {
					seen[text] = true
					t.Errorf("%s, %s: %s", name, view.Name, text)
				}
			}
		}
	}
	eachSight(t, tab, w, check)

	tab.Press("?")
	tab.Wait(`document.querySelector("dialog[open]")`)
	check("the keys")
	tab.Go(w.pages + "console/nothing")
	tab.WaitText("h1", "This did not work")
	check("an error")
	tab.Forgive("404")

	tab.Go(w.pages + "console/new")
	tab.Fill("[name=name]", "sessions")
	tab.Fill("[name=pk]", "id")
	tab.FollowText("Create the table")
	tab.WaitText("[role=alert]", "sessions")
	check("a form with an error")
	tab.Forgive("400")
	tab.Click("[name=sk]")
	check("a focused field")
	tab.Go(w.pages + "console/table/sessions/item")
	tab.Fill("[name=item]", "{")
	tab.Wait(`document.querySelector("[aria-invalid=true]")`)
	check("an editor with an error")

	tab.Go(w.pages + "console/table/sessions/items")
	tab.Click("[name=key]")
	tab.FollowText("Preview")
	check("a preview")
	tab.FollowText("Delete 1 item")
	check("a bulk change")
	tab.Go(w.pages + "console/clock")
	tab.FollowKey("n") // to the next deadline
	tab.WaitText("main", "The clock moved")
	check("a move of the clock")
}
