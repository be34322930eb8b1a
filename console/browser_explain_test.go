package console_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/testkit/chrome"
	"github.com/mayflydb/mayfly/internal/work/attr"
)

func TestBrowserExplain(t *testing.T) {
	b := chrome.Start(t)
	everywhere(t, func(t *testing.T, w *world) {
		for _, view := range w.views() {
			t.Run(view.Name, func(t *testing.T) {
				o := newOrders(t, w, "orders-"+view.Name)
				o.explain(t, b.Open(t, view))
			})
		}
	})
}

// explain looks at items with each kind of deadline.
func (o *orders) explain(t *testing.T, tab *chrome.Tab) {
	now := o.clock().Truncate(time.Second)
	kinds := []struct {
		item    attr.Item
		cell    string // in the list of items
		explain string // on the page of the item
		advice  string
	}{
		{attr.Item{"expires": attr.Seconds(now.Add(49 * time.Hour))}, "in 2d", "The item expires at ", "eadline"},
		{nil, "never", "The item never expires: it has no attribute expires.", ""},
		{attr.Item{"expires": attr.S("soon")}, "never: not a number", "is a string", "Write a number"},
		{attr.Item{"expires": attr.Int(now.UnixMilli())}, "never: looks like milliseconds", "looks like milliseconds", "Divide it by 1,000"},
		{attr.Item{"expires": attr.N("3600")}, "never: is more than five years in the past", "is more than five years in the past", "which is now plus the lifetime"},
		{attr.Item{"Expires": attr.Seconds(now.Add(time.Hour))}, "never", "TTL reads expires, and the item has", "Write the name exactly"},
	}
	for i, k := range kinds {
		o.write(order("c-1", i+1, k.item))
	}
	tab.Go(o.page("/items"))
	if !o.expires() {
		tab.Follow("main tbody a")
		tab.WaitText(".explain", "The item never expires: the table's TTL is off.")
		return
	}
	for i, shown := range column(tab, 2) {
		if !strings.HasPrefix(shown, kinds[i].cell) {
			t.Errorf("item %d shows %q, not %q", i+1, shown, kinds[i].cell)
		}
	}
	tab.Picture("list")
	for i, k := range kinds {
		tab.Go(o.page("/item", "key", key("c-1", i+1)))
		tab.WaitText(".explain", k.explain)
		tab.WaitText(".explain", k.advice)
		if i == 3 {
			tab.Picture("milliseconds")
		}
	}
	if o.name != "mayfly" {
		return
	}
	// the deadline passes
	tab.Go(o.page("/item", "key", key("c-1", 1)))
	if _, err := o.own.Clock().Advance(context.Background(), 50*time.Hour); err != nil {
		t.Fatal(err)
	}
	tab.Reload()
	tab.WaitText(alert, "The table has no item")
	tab.WaitText("main", "was deleted or has expired")
	tab.WaitText("main", "removed at once")
	tab.Forgive("404")
}
