package console_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/testkit/chrome"
	"github.com/mayflydb/mayfly/internal/work/attr"
)

func TestBrowserBulk(t *testing.T) {
	b := chrome.Start(t)
	everywhere(t, func(t *testing.T, w *world) {
		for _, view := range w.views() {
			t.Run(view.Name, func(t *testing.T) {
				o := newOrders(t, w, "orders-"+view.Name)
				for n := range 4 {
					o.write(order("c-1", n+1, nil))
				}
				o.write(order("c-2", 1, nil))
				tab := b.Open(t, view)
				o.changeSeveral(t, tab)
				if !walks(view) {
					return
				}
				o.renewSeveral(t, tab)
				o.deleteSeveral(t, tab)
				o.importFiles(t, tab)
				o.statements(t, tab)
			})
		}
	})
}

// tick checks the boxes of the rows with these numbers, which begin with 1.
func tick(tab *chrome.Tab, rows ...string) {
	for _, row := range rows {
		tab.Click("main tbody tr:nth-child(" + row + ") input[name=key]")
	}
}

// changeSeveral sets an attribute of some items.
func (o *orders) changeSeveral(t *testing.T, tab *chrome.Tab) {
	at := o.page("/items", "k0", "c-1")
	tab.Go(at)
	tab.FollowText("Preview")
	tab.WaitText(alert, "Choose items first.")
	tab.Forgive("400")

	tab.Go(at)
	tick(tab, "2", "3")
	tab.Choose("select[name=do]", "set")
	tab.Fill(".named input[name=name]", "state")
	tab.Fill(".valued input[name=value]", "sent")
	tab.FollowText("Preview")
	tab.WaitText("main", "Set the attribute state of 2 items to sent? Nothing has changed yet.")
	expect(t, tab, 1, "open", "open")
	expect(t, tab, 2, "sent", "sent")
	tab.Picture("preview")
	o.check("c-1", 2, order("c-1", 2, nil))
	tab.FollowText("Change nothing")
	if tab.URL() != at {
		t.Errorf("back is %s, not %s", tab.URL(), at)
	}
	o.check("c-1", 2, order("c-1", 2, nil))

	tick(tab, "2", "3")
	tab.Choose("select[name=do]", "set")
	tab.Fill(".named input[name=name]", "state")
	tab.Fill(".valued input[name=value]", "sent")
	tab.FollowText("Preview")
	tab.FollowText("Set the attribute state of 2 items to sent")
	tab.WaitText(".done", "2 items changed.")
	expect(t, tab, 1, "1", "2", "3", "4") // of the query from which the change came
	sent := attr.Item{"state": attr.S("sent")}
	o.check("c-1", 1, order("c-1", 1, nil))
	o.check("c-1", 2, order("c-1", 2, sent))
	o.check("c-1", 3, order("c-1", 3, sent))
	o.write(order("c-1", 2, nil))
	tab.Reload() // changes nothing again
	tab.WaitText("main", "4 items")
	o.check("c-1", 2, order("c-1", 2, nil))
}

// renewSeveral moves deadlines; an item without one is named.
func (o *orders) renewSeveral(t *testing.T, tab *chrome.Tab) {
	if !o.expires() {
		return
	}
	deadline := o.clock().Truncate(time.Second).Add(time.Hour)
	at := attr.Seconds(deadline)
	o.write(order("c-1", 1, attr.Item{"expires": at}), order("c-1", 2, attr.Item{"expires": at}))
	tab.Go(o.page("/items", "k0", "c-1"))
	tick(tab, "1", "2", "3")
	tab.Choose("select[name=do]", "renew")
	tab.Fill(".timed input", "1d")
	tab.FollowText("Preview")
	tab.WaitText("main", "Move the deadline of 3 items by 1d?")
	tab.WaitText("main tbody", "not changed: it has no deadline")
	tab.WaitText("main tbody tr", "in 1d")
	tab.FollowText("Move the deadline of 3 items by 1d")
	tab.WaitText("main", "2 items changed, 1 not.")
	tab.WaitText("main tbody", `"N":"3"`)
	tab.Picture("partly")
	for line := 1; line <= 2; line++ {
		o.check("c-1", line, order("c-1", line, attr.Item{"expires": attr.Seconds(deadline.Add(24 * time.Hour))}))
	}
	tab.FollowText("Back to the items")
	expect(t, tab, 1, "1", "2", "3", "4")
}

// deleteSeveral deletes all items of a page.
func (o *orders) deleteSeveral(t *testing.T, tab *chrome.Tab) {
	tab.Go(o.page("/items", "k0", "c-1"))
	tab.ClickText("all of this page")
	tab.FollowText("Preview")
	tab.WaitText("main", "Delete 4 items? Nothing has changed yet.")
	tab.FollowText("Delete 4 items")
	tab.WaitText(".done", "4 items changed.")
	tab.WaitText(".none", "No item matches.")
	for line := range 4 {
		o.check("c-1", line+1, nil)
	}
	o.check("c-2", 1, order("c-2", 1, nil))
}

// importFiles imports a file with a mistake, and then two without.
func (o *orders) importFiles(t *testing.T, tab *chrome.Tab) {
	dir := t.TempDir()
	file := func(name string, lines ...string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	tab.Go(o.page("/items"))
	tab.FollowText("Import")
	tab.Picture("import")
	tab.Upload("input[type=file]", file("wrong.jsonl", typed(order("i-1", 1, nil)), `{"customer":"i-2"}`))
	tab.Follow("main form button")
	tab.WaitText(alert, "wrong.jsonl: line 2: ")
	tab.WaitText(alert, "Nothing was written.")
	tab.Forgive("400")
	o.check("i-1", 1, nil)

	tab.Upload("input[type=file]",
		file("lines.jsonl", typed(order("i-1", 1, rich())), "", `{"customer":"i-1","line":2,"exact":`+largeNumber+`,"list":["<b>"]}`),
		file("table.CSV", "customer,line,note", `i-2,7,"a, ""b"""`))
	tab.Follow("main form button")
	tab.WaitText(".done", "3 items written.")
	tab.Reload()
	tab.WaitText(".done", "3 items written.")
	o.check("i-1", 1, order("i-1", 1, rich()))
	o.check("i-1", 2, attr.Item{"customer": attr.S("i-1"), "line": attr.N("2"), "exact": attr.N(largeNumber), "list": list(attr.S("<b>"))})
	o.check("i-2", 7, attr.Item{"customer": attr.S("i-2"), "line": attr.N("7"), "note": attr.S(`a, "b"`)})
}

// statements runs PartiQL, where the endpoint has it.
func (o *orders) statements(t *testing.T, tab *chrome.Tab) {
	tab.Go(o.pages + "console/partiql")
	if o.own == nil {
		tab.WaitText(".missing", "This endpoint has no PartiQL.")
		if tab.Text("main textarea") != "" {
			t.Error("there is a box for statements")
		}
		tab.Picture("no-partiql")
		return
	}
	box := "textarea[name=statement]"
	tab.Press("/")
	tab.Wait(`document.activeElement.name === "statement"`)
	tab.Paste(box, `SELECT customer, exact FROM "`+o.table+`" WHERE customer = 'i-1' AND line = 2`)
	tab.FollowText("Run")
	expect(t, tab, 1, largeNumber)
	tab.Picture("partiql")
	steady(t, tab, 1)
	tab.WaitText("main", "Python")

	tab.Paste(box, `SELEC`)
	tab.FollowText("Run")
	tab.WaitText(alert, "ValidationException")
	tab.Forgive("400")
	if got := chrome.Eval[string](tab, `document.querySelector("textarea").value`); got != "SELEC" {
		t.Errorf("the statement became %q", got)
	}

	tab.Paste(box, `UPDATE "`+o.table+`" SET note = 'changed' WHERE customer = 'i-2' AND line = 7`)
	tab.FollowText("Run")
	tab.WaitText(".done", "Done.")
	changed := attr.Item{"customer": attr.S("i-2"), "line": attr.N("7"), "note": attr.S("changed")}
	o.check("i-2", 7, changed)
	changed["note"] = attr.S("since then")
	o.write(changed)
	tab.Reload() // runs nothing again
	o.check("i-2", 7, changed)
}
