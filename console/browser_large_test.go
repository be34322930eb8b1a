package console_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/testkit/chrome"
	"github.com/mayflydb/mayfly/internal/work/attr"
)

// elementsMost is the number of elements of the largest page: 1,000 rows of six cells.
const elementsMost = 15_000

// bounded fails the test if a page has more elements or text than a browser shows without a pause,
// and logs the longest task of the page.
func bounded(t *testing.T, tab *chrome.Tab, elements int) {
	t.Helper()
	if n := chrome.Eval[int](tab, `document.querySelectorAll("*").length`); n > elements {
		t.Errorf("%s has %d elements, not at most %d", tab.URL(), n, elements)
	}
	longest := chrome.Eval[float64](tab, `new Promise(done => {
		const seen = new PerformanceObserver(list => done(Math.max(...list.getEntries().map(e => e.duration))));
		seen.observe({type: "longtask", buffered: true});
		requestAnimationFrame(() => setTimeout(() => done(0), 50));
	})`)
	t.Logf("the longest task took %.0f ms, with %d elements", longest, chrome.Eval[int](tab, `document.querySelectorAll("*").length`))
}

func TestBrowserManyItems(t *testing.T) {
	b := chrome.Start(t)
	o := newOrders(t, newWorld(t, "mayfly", mayfly.Options{}), "orders")
	const customers, lines = 10, 10_000
	for c := range customers {
		var all []attr.Item
		for n := range lines {
			all = append(all, order(fmt.Sprintf("c-%d", c), n, nil))
		}
		o.write(all...)
	}
	for _, view := range chrome.Views {
		t.Run(view.Name, func(t *testing.T) {
			tab := b.Open(t, view)
			tab.Go(o.page("/items", "limit", "1000"))
			for range 3 {
				tab.WaitText("main", "1,000 items")
				bounded(t, tab, elementsMost)
				before := column(tab, 1)[0]
				tab.FollowText("Next page")
				tab.Wait(fmt.Sprintf(`document.querySelector("main tbody tr").cells[2].innerText !== %q`, before))
			}
			tab.Go(o.page("/items"))
			bounded(t, tab, elementsMost/10)
			tab.Press("j", "j")
			tab.Wait(`document.querySelector("main tbody tr:nth-child(2)").classList.contains("chosen")`)
		})
	}
}

func TestBrowserLargeItems(t *testing.T) {
	b := chrome.Start(t)
	everywhere(t, func(t *testing.T, w *world) {
		o := newOrders(t, w, "orders")
		many := make([]types.AttributeValue, 20_000)
		for i := range many {
			many[i] = attr.N(fmt.Sprint(i))
		}
		wide := make([]types.AttributeValue, 300)
		for i := range wide {
			inner := make([]types.AttributeValue, 300)
			for k := range inner {
				inner[k] = attr.Bool(true)
			}
			wide[i] = list(inner...)
		}
		deep := attr.S("the bottom")
		for range 31 {
			deep = list(deep)
		}
		items := []attr.Item{
			order("large", 1, attr.Item{"text": attr.S(strings.Repeat("lorem ipsum ", 390_000/12))}),
			order("large", 2, attr.Item{"many": list(many...)}),
			order("large", 3, attr.Item{"deep": deep}),
			order("large", 4, attr.Item{"wide": list(wide...)}),
			order("large", 5, attr.Item{"word": attr.S(strings.Repeat("x", 390_000))}),
			order("large", 6, attr.Item{"blob": attr.B([]byte(strings.Repeat("\xff", 390_000)))}),
		}
		for _, item := range items {
			o.write(item)
		}
		for _, view := range w.views() {
			t.Run(view.Name, func(t *testing.T) {
				tab := b.Open(t, view)
				tab.Go(o.page("/items"))
				tab.Wait(`document.querySelector("a[rel=next]")`) // a page has at most 1 MB
				bounded(t, tab, 500)
				if n := len(chrome.Eval[string](tab, "document.documentElement.outerHTML")); n > 100_000 {
					t.Errorf("the list has %d bytes", n)
				}
				tab.Picture("list")
				for i := range items {
					tab.Go(o.page("/item", "key", key("large", i+1)))
					tab.WaitText("h2", "large")
					bounded(t, tab, 3000)
					if wide := chrome.Eval[int](tab, "document.documentElement.scrollWidth"); int64(wide) > view.Width {
						t.Errorf("item %d is %d pixels wide", i+1, wide)
					}
					if i < 3 {
						tab.Picture(fmt.Sprint("item-", i+1))
					}
				}
				if !walks(view) {
					return
				}
				// the nested one opens down to its end
				tab.Go(o.page("/item", "key", key("large", 3)))
				chrome.Eval[bool](tab, `([...document.querySelectorAll(".members")].forEach(d => d.open = true), true)`)
				tab.WaitText(".facts", "the bottom")
				tab.Picture("deep")
				// the JSON opens, and can be changed and saved
				for _, line := range []int{1, 2, 3} {
					for _, as := range []string{"", "plain"} {
						tab.Go(o.page("/item", "key", key("large", line), "as", as))
						if line < 3 {
							tab.Follow("main a[href*=edit]")
						}
						o.saveState(t, tab, line, as)
					}
				}
			})
		}
	})
}

// saveState changes the state of a large item in the text of its editor, and checks that nothing else
// has changed.
func (o *orders) saveState(t *testing.T, tab *chrome.Tab, line int, as string) {
	t.Helper()
	bounded(t, tab, 3000)
	was := o.get("large", line)
	state := attr.String(was["state"])
	chrome.Eval[bool](tab, fmt.Sprintf(`(e => {
		e.value = e.value.replace(%[1]q, %[2]q);
		e.dispatchEvent(new Event("input"));
		return true;
	})(document.querySelector("textarea[name=item]"))`, `"`+state+`"`, `"`+state+`+"`))
	tab.FollowText("Save")
	tab.WaitText(".done", "Saved")
	was["state"] = attr.S(state + "+")
	if got := o.get("large", line); !reflect.DeepEqual(got, was) {
		t.Errorf("item %d is not the same after an edit as %q", line, as)
	}
}
