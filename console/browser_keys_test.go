package console_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mayflydb/mayfly/internal/testkit/chrome"
)

func TestBrowserKeys(t *testing.T) {
	w := worlds["mayfly"](t)
	for _, name := range []string{"carts", "offers", "sessions"} {
		w.newTable(t, name)
	}
	tab := chrome.Start(t).Open(t, chrome.Desk)
	tab.Go(w.pages)

	tab.Press("?")
	tab.WaitText("dialog[open]", "Next and previous row")
	tab.WaitText("dialog[open]", "g t")
	tab.Picture("help")
	tab.Press(chrome.Escape)
	tab.Wait(`!document.querySelector("dialog[open]")`)

	areas := chrome.Eval[map[string]string](tab, `Object.fromEntries([...document.querySelectorAll("a[data-keys]")].map(a => [a.dataset.keys, a.pathname]))`)
	if len(areas) < 10 || areas["g t"] != "/_mayfly/console/tables" {
		t.Errorf("the keys of the areas are %v", areas)
	}
	for keys, path := range areas {
		tab.Press(keys[:1], keys[2:])
		tab.Wait(fmt.Sprintf(`location.pathname === %q && document.readyState === "complete"`, path)) // before that, the script does not listen
	}

	tab.Go(w.pages)
	tab.Press("/") // this page has no field for a search, but the list of tables has
	tab.Wait(`location.pathname.endsWith("/tables") && document.readyState === "complete" && document.activeElement.name === "q"`)
	tab.Press("g", "t", "j", "?", "/")
	tab.Wait(`document.activeElement.value === "gtj?/"`)
	if chrome.Eval[bool](tab, `Boolean(document.querySelector("dialog[open], tr.chosen"))`) {
		t.Error("what is typed into a field acts as keys")
	}
	tab.Press(chrome.Escape)
	tab.Wait(`document.activeElement === document.body`)

	tab.Go(w.pages + "console/tables")
	chosen := func(name string) {
		t.Helper()
		tab.Wait(fmt.Sprintf(`[...document.querySelectorAll("tr.chosen")].map(r => r.cells[0].innerText).join() === %q`, name))
	}
	for _, step := range []struct{ key, row string }{{"j", "carts"}, {"j", "offers"}, {"j", "sessions"}, {"j", "sessions"}, {"k", "offers"}} {
		tab.Press(step.key)
		chosen(step.row)
	}
	tab.Press(chrome.Enter)
	tab.Wait(`location.pathname.endsWith("/table/offers/items")`)
	tab.WaitText("h1", "offers")
}

// The URL has the state of a page: a reload and another window show the same.
func TestBrowserURLs(t *testing.T) {
	w := newRichWorld(t)
	b := chrome.Start(t)
	tab, other := b.Open(t, chrome.Desk), b.Open(t, chrome.Desk)
	seen := `document.querySelector("main").innerText + [...document.querySelectorAll("main input, main select")].map(e => [e.name, e.name === "token" ? "" : e.value])`
	same := func(name string, shown string) {
		t.Helper()
		tab.Wait(shown)
		want := chrome.Eval[string](tab, seen)
		tab.Go(tab.URL())
		other.Go(tab.URL())
		for which, tab := range map[string]*chrome.Tab{"a reload": tab, "another window": other} {
			if got := chrome.Eval[string](tab, seen); got != want {
				t.Errorf("%s of %s shows:\n%s\nand not:\n%s", which, name, got, want)
			}
		}
	}
	tab.Go(w.pages + "console/tables")
	tab.Fill("[name=q]", "s")
	tab.FollowText("Filter")
	same("a filter of tables", `document.querySelector("[name=q]").value === "s"`)

	tab.Go(w.pages + "console/table/sessions/items")
	tab.Fill("[name=k0]", "u-5")
	tab.FollowText("Show")
	tab.WaitText("main", "u-5")
	same("a query", `document.querySelector("[name=k0]").value === "u-5"`)

	tab.FollowText("Timeline")
	tab.FollowText("next 10 minutes")
	tab.Drag(drawing, 0.2, 0.9)
	tab.WaitText("[role=status]", "in this range")
	same("a range of time", `Number(document.querySelector(".timeline").dataset.to) - Number(document.querySelector(".timeline").dataset.from) < 6e5`)
}

// Dates are in the visitor's time, which is Berlin's, with UTC under the pointer.
func TestBrowserDates(t *testing.T) {
	w := newRichWorld(t) // it starts at noon UTC on the first of January, 2030
	tab := chrome.Start(t).Open(t, chrome.Desk)
	tab.Go(w.pages + "console/table/sessions/timeline?next=10m")
	tab.WaitText("header .clock", "Jan 1, 2030, 1:06")
	look := func(name, list, inTitle, local string) {
		t.Helper()
		type date struct{ Text, Title string }
		found := chrome.Eval[[]date](tab, list)
		if len(found) == 0 {
			t.Errorf("no %s is shown", name)
		}
		for _, d := range found {
			if !strings.Contains(d.Title, inTitle) || !strings.Contains(d.Text, local) {
				t.Errorf("%s is shown as %q, with %q under the pointer", name, d.Text, d.Title)
			}
		}
	}
	look("the clock", `[...document.querySelectorAll("header time")].map(e => ({Text: e.innerText, Title: e.title}))`, "2030-01-01 12:06", "1:06")
	look("a deadline", `[...document.querySelectorAll("main time[data-at]")].map(e => ({Text: e.innerText, Title: e.title}))`, "2030-01-01 12:", "Jan 1, 2030, 1:")
	look("a label of the axis", `[...document.querySelectorAll("main text[data-at]")].map(e => ({Text: e.firstChild.data, Title: e.querySelector("title").textContent}))`, "2030-01-01 12:", "01:")
}
