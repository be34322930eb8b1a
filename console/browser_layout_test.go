package console_test

import (
	"strings"
	"testing"

	"github.com/mayflydb/mayfly/internal/testkit/chrome"
)

// No page is wider than its window: from a small telephone to a large screen. Wide lists scroll within
// the page.
func TestBrowserLayout(t *testing.T) {
	b := chrome.Start(t)
	check := func(t *testing.T, tab *chrome.Tab, name string) {
		for _, width := range []int64{360, 390, 1440, 3840} {
			tab.Change(chrome.View{Width: width, Height: 844})
			if text := chrome.Eval[string](tab, `document.documentElement.scrollWidth <= innerWidth ? "" :
				[...document.querySelectorAll("body *")].filter(e => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest(".scroll, pre")).map(e => e.outerHTML.slice(0, 100)).join("\n")`); text != "" {
				t.Errorf("%s is wider than %d px by:\n%s", name, width, text)
			}
		}
	}
	t.Run("mayfly", func(t *testing.T) {
		w := newRichWorld(t)
		tab := b.Open(t, chrome.Desk)
		eachSight(t, tab, w, func(name string) { check(t, tab, name) })
		tab.Forgive("400")               // of a statement that is none
		name := strings.Repeat("x", 255) // the longest
		w.newTable(t, name)
		for _, at := range []string{"console/tables", "console/table/" + name, "console/table/" + name + "/timeline"} {
			tab.Go(w.pages + at)
			check(t, tab, at)
		}
	})
	t.Run("dynalite", func(t *testing.T) {
		w := newDynalite(t)
		w.newTable(t, "sessions")
		tab := b.Open(t, chrome.Desk)
		for _, route := range routesOf(t) {
			tab.Go(w.pages + strings.NewReplacer("{table}", "sessions", "{$}", "", "{lifecycle}", "none").Replace(route))
			check(t, tab, route)
		}
		for _, status := range []string{"400", "404", "502"} { // there is no such lifecycle or item
			tab.Forgive(status)
		}
	})
}

// The theme is the visitor's: the browser's setting, or a choice that stays.
func TestBrowserThemes(t *testing.T) {
	w := worlds["mayfly"](t)
	b := chrome.Start(t)
	dark := `(c => c[0] + c[1] + c[2] < 200)(getComputedStyle(document.documentElement).backgroundColor.match(/\d+/g).map(Number))`
	for _, view := range chrome.Views {
		tab := b.Open(t, view)
		expect := func(want bool, when string) {
			t.Helper()
			if chrome.Eval[bool](tab, dark) != want {
				t.Errorf("%s: the page is dark: %v %s", view.Name, !want, when)
			}
		}
		tab.Go(w.pages + "console/tables?q=x")
		expect(view.Dark, "by the setting")
		for _, choice := range []string{"dark", "light"} {
			tab.FollowText(choice)
			tab.WaitText("h1", "Tables")
			if !strings.HasSuffix(tab.URL(), "/tables?q=x") {
				t.Errorf("the choice leads to %s", tab.URL())
			}
			expect(choice == "dark", "by the choice")
			tab.Press("g", "c")
			tab.WaitText("h1", "Clock")
			expect(choice == "dark", "on the next page")
			tab.Go(w.pages + "console/tables?q=x")
		}
		tab.FollowText("system")
		tab.WaitText("h1", "Tables")
		expect(view.Dark, "by the setting again")
	}
}
