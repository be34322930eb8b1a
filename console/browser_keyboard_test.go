package console_test

import (
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/mayflydb/mayfly/internal/testkit"
	"github.com/mayflydb/mayfly/internal/testkit/chrome"
)

// looks are functions of JavaScript that compute what a style sheet makes of an element.
const looks = `
const channels = color => {
	const [r, g, b, a = 1] = color.match(/[\d.]+/g).map(Number);
	return {r, g, b, a};
};
const luminance = ({r, g, b}) => {
	const part = c => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
	return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
};
// over returns a color with some transparency as it appears in front of another one.
const over = (c, back, opacity = 1) => {
	const a = c.a * opacity, mix = (x, y) => a * x + (1 - a) * y;
	return {r: mix(c.r, back.r), g: mix(c.g, back.g), b: mix(c.b, back.b), a: 1};
};
const behind = e => {
	for (; e; e = e.parentElement) {
		const c = channels(getComputedStyle(e).backgroundColor);
		if (c.a > 0) return c;
	}
	return {r: 255, g: 255, b: 255, a: 1};
};
const contrast = (a, b) => {
	const [x, y] = [luminance(a), luminance(b)].sort((p, q) => q - p);
	return (x + 0.05) / (y + 0.05);
};
const named = e => e.outerHTML.slice(0, 150);
`

// focused is the element that has the focus.
type focused struct {
	End      bool // none has, or one that had it already
	Element  string
	Style    string
	Width    float64
	Contrast float64 // of the outline with its background
	Seen     bool    // a part of the element is in the window
}

// The Tab key reaches all that can be operated, in a circle, and the outline of the focus is to be
// seen.
func TestBrowserFocus(t *testing.T) {
	w := newRichWorld(t)
	b := chrome.Start(t)
	for _, view := range testkit.Size(chrome.Views[1:2], []chrome.View{chrome.Views[0], chrome.Views[3]}) { // both widths, both themes
		t.Run(view.Name, func(t *testing.T) {
			tab := b.Open(t, view)
			eachSight(t, tab, w, func(name string) {
				chrome.Eval[any](tab, `{`+looks+`
					const all = document.querySelectorAll("a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex='0']");
					window.missing = new Set([...all].filter(e => !e.disabled && e.checkVisibility()));
					const reached = new Set();
					window.focused = () => {
						const e = document.activeElement;
						if (!e || e === document.body || reached.has(e)) return {End: true};
						reached.add(e);
						missing.delete(e);
						const style = getComputedStyle(e), box = e.getBoundingClientRect();
						return {
							Element: named(e), Style: style.outlineStyle, Width: parseFloat(style.outlineWidth),
							Contrast: contrast(channels(style.outlineColor), behind(e.parentElement)),
							Seen: box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth,
						};
					};
				} null`)
				steps := 0
				for {
					tab.Press(kb.Tab)
					f := chrome.Eval[focused](tab, "focused()")
					if f.End {
						break
					}
					steps++
					if f.Style == "none" || f.Width < 2 || f.Contrast < 3 {
						t.Errorf("%s: the focus is not to be seen: outline %s, %g px, contrast %.1f: %s", name, f.Style, f.Width, f.Contrast, f.Element)
					}
					if !f.Seen {
						t.Errorf("%s: the focus is outside of the window: %s", name, f.Element)
					}
				}
				for _, e := range chrome.Eval[[]string](tab, `[...missing].map(e => e.outerHTML.slice(0, 150))`) {
					t.Errorf("%s: %d presses of Tab do not reach %s", name, steps, e)
				}
			})
		})
	}
}

// The first link of a page goes to its content, past the navigation.
func TestBrowserSkipLink(t *testing.T) {
	w := newRichWorld(t)
	b := chrome.Start(t)
	for _, view := range chrome.Views {
		t.Run(view.Name, func(t *testing.T) {
			tab := b.Open(t, view)
			for _, at := range []string{"", "console/tables", "console/table/sessions/items"} {
				tab.Go(w.pages + at)
				tab.Press(kb.Tab)
				if text := tab.Text(":focus"); text != "Skip to the content" {
					t.Errorf("/%s: the first Tab goes to %q", at, text)
				}
				tab.Wait(`(box => box.left >= 0 && box.top >= 0)(document.querySelector(".skip").getBoundingClientRect())`)
				tab.Press(kb.Enter)
				tab.Wait(`document.activeElement.id === "main"`)
				tab.Press(kb.Tab)
				tab.Wait(`document.activeElement.closest("main")`)
			}
		})
	}
}
