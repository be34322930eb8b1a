package console_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/testkit/chrome"
	"github.com/mayflydb/mayfly/internal/work/attr"
)

// hostile are texts that set window.pwned if a page takes them for markup or script.
var hostile = []string{
	`<script>window.pwned=1</script>`,
	`</script><script>window.pwned=1</script>`,
	`<img src=x onerror="window.pwned=1">`,
	`"><svg onload="window.pwned=1">`,
	`' autofocus onfocus='window.pwned=1`,
	`" onmouseover="window.pwned=1" style="position:fixed;inset:0" x="`,
	`</textarea><script>window.pwned=1</script>`,
	`</title><script>window.pwned=1</script>`,
	`</code></pre><iframe srcdoc="<script>parent.pwned=1</script>">`,
	`<a href="javascript:window.pwned=1">click</a>`,
	`javascript:window.pwned=1`,
	`<details open ontoggle="window.pwned=1">`,
	`<style>@import 'data:text/css,*{}'</style><base href="//example.invalid/">`,
	`<meta http-equiv="refresh" content="0;url=javascript:window.pwned=1">`,
	`<math><mtext></form><form><mglyph><style></math><img src onerror="window.pwned=1">`,
	"<!--\n--><script>\nwindow.pwned=1\n</script>",
	`<form action="https://example.invalid/"><button>`,
	`&lt;script&gt;window.pwned=1&lt;/script&gt;`,
	`{{constructor.constructor("window.pwned=1")()}}`,
}

// odd are keys that a URL, a path or a list can lose.
var odd = []string{
	"/", "//a/../b", "?", "a?b=c&d", "#", "a#b", "%", "%2F", "%zz", "+", "a+b", " ", "  two  spaces ", "\u200b", "\u3000", "\t", "\n", "a\r\nb",
	"ä", "日本", "🦋", "e\u0301", "\u202eabc", `"`, `\`, `'`, "`", "&amp;", ";", ":", "@", "=", "..", ".", "null", "0", "\x00", strings.Repeat("\x01", 2048),
}

func TestBrowserMarkup(t *testing.T) {
	b := chrome.Start(t)
	everywhere(t, func(t *testing.T, w *world) {
		o := newOrders(t, w, "orders")
		if o.expires() {
			if _, err := w.db.UpdateTable(t.Context(), &dynamodb.UpdateTableInput{TableName: &o.table, StreamSpecification: &types.StreamSpecification{
				StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewAndOldImages,
			}}); err != nil {
				t.Fatal(err)
			}
		}
		for i, text := range hostile {
			v := attr.S(text)
			o.write(order(text, i, attr.Item{
				text: v, "state": v, "list": list(v), "map": attr.M(attr.Item{text: v}), "set": &types.AttributeValueMemberSS{Value: []string{text}},
				"expires": attr.Seconds(o.clock().Add(time.Hour)), "Expires": v,
			}))
		}
		for _, view := range w.views() {
			t.Run(view.Name, func(t *testing.T) {
				tab := b.Open(t, view)
				o.harmless(t, tab, view == chrome.Views[0])
			})
		}
	})
}

// unharmed fails the test if a text of the data has run on the page, or has become an element of it.
func unharmed(t *testing.T, tab *chrome.Tab) {
	t.Helper()
	if chrome.Eval[bool](tab, `window.pwned !== undefined`) {
		t.Errorf("a script ran at %s", tab.URL())
	}
	if n := chrome.Eval[int](tab, `document.querySelectorAll("main :is(script, iframe, img:not([alt]), style, base, meta, mglyph, [onerror], [onload], [onfocus], [onmouseover], [ontoggle], [style*=fixed], [href^=javascript])").length`); n > 0 {
		t.Errorf("%d elements of %s are of the data", n, tab.URL())
	}
	if n := chrome.Eval[int](tab, `document.scripts.length`); n != 1 {
		t.Errorf("%s has %d scripts", tab.URL(), n)
	}
}

// harmless looks at the pages that show items, or at those with the most texts.
func (o *orders) harmless(t *testing.T, tab *chrome.Tab, all bool) {
	tab.Go(o.page("/items", "limit", "200"))
	tab.WaitText("main", "<script>")
	unharmed(t, tab)
	tab.Picture("items")
	tab.ClickText("all of this page")
	tab.FollowText("Preview")
	tab.WaitText("main", "<script>")
	unharmed(t, tab)
	for i, text := range hostile {
		if !all && i%5 > 0 {
			continue
		}
		tab.Go(o.page("/item", "key", key(text, i)))
		tab.WaitText("h2", "Item")
		unharmed(t, tab)
		for _, name := range []string{"AWS CLI", "Python", "JavaScript", "Go"} {
			tab.ClickText(name)
		}
		unharmed(t, tab)
		if i == 2 {
			tab.Picture("item")
		}
		set := url.Values{"k0": {text}, "f0": {text}, "fv0": {text}, "projection": {text}, "index": {text}, "start": {text}}
		tab.Go(o.pages + "console/table/orders/items?" + set.Encode())
		unharmed(t, tab)
		set.Del("index")
		set.Del("start")
		tab.Go(o.pages + "console/table/orders/items?" + set.Encode())
		unharmed(t, tab)
	}
	tab.Go(o.page("/timeline"))
	unharmed(t, tab)
	tab.Go(o.page("/timeline", "values", "yes"))
	unharmed(t, tab)
	if o.expires() {
		tab.Go(o.page("/stream", "from", "oldest"))
		tab.WaitText("#records", "<script>")
		unharmed(t, tab)
		tab.Go(o.pages + "console/partiql?" + url.Values{"statement": {`SELECT * FROM "orders"`}}.Encode())
		tab.WaitText("main", "<script>")
		unharmed(t, tab)
	}
	for _, text := range hostile {
		for _, page := range []string{"partiql?statement=", "tables?q=", "table/", "lifecycle/", "theme?back=", "schedules?q=", "deadletters?q=", "reminders?q="} {
			if !all {
				continue
			}
			tab.Go(o.pages + "console/" + page + url.QueryEscape(text))
			unharmed(t, tab)
		}
	}
	for _, status := range []string{"400", "404", "403", "502"} {
		tab.Forgive(status)
	}
}

func TestBrowserOddKeys(t *testing.T) {
	b := chrome.Start(t)
	everywhere(t, func(t *testing.T, w *world) {
		o := newOrders(t, w, "orders")
		for _, text := range odd {
			o.write(order(text, 1, nil))
		}
		for _, view := range w.views() {
			t.Run(view.Name, func(t *testing.T) {
				tab := b.Open(t, view)
				tab.Go(o.page("/items"))
				tab.Picture("keys")
				if empty := chrome.Eval[int](tab, `[...document.querySelectorAll("main tbody a")].filter(a => !a.innerText.trim()).length`); empty > 0 {
					t.Errorf("%d links to items show nothing", empty)
				}
				links := chrome.Eval[[]string](tab, `[...document.querySelectorAll("main tbody a")].map(a => a.href)`)
				if len(links) != len(odd) {
					t.Fatalf("the page has %d links, not %d", len(links), len(odd))
				}
				if view != chrome.Views[0] {
					links = links[:3]
				}
				for n := range links {
					tab.Go(o.page("/items"))
					tab.Follow(fmt.Sprintf("main tbody tr:nth-child(%d) a", n+1))
					tab.WaitText("h2", "Item")
					tab.FollowText("Save")
					tab.WaitText(".done", "Saved")
				}
				for _, text := range odd { // saved as they were
					o.check(text, 1, order(text, 1, nil))
				}
			})
		}
	})
}
