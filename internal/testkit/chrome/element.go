package chrome

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
)

// Elements are found by JavaScript. The library's own queries run on its copy of the document: the
// browser sends it a page's nodes, and each change of them, for as long as the page is open.

// elements are some elements of the page.
type elements struct {
	name   string // the selector or the text, for messages
	script string // JavaScript that finds them
}

// bySelector returns the elements that a CSS selector finds.
func bySelector(selector string) elements {
	return elements{selector, "document.querySelectorAll(" + quoted(selector) + ")"}
}

// byText returns the links, buttons, summaries and labels with a text.
func byText(text string) elements {
	return elements{text, `[...document.querySelectorAll("a, button, summary, label")].filter(e => e.textContent.replace(/\s+/g, " ").trim() === ` + quoted(text) + `)`}
}

// quoted returns a text as JavaScript.
func quoted(text string) string {
	quoted, _ := json.Marshal(text) // a text
	return string(quoted)
}

// visible returns JavaScript for the first visible one of some elements, or undefined.
func visible(all elements) string {
	return `[...` + all.script + `].find(e => e.checkVisibility({visibilityProperty: true}) && e.getClientRects().length)`
}

// point is a place in the window.
type point struct{ X, Y float64 }

// clickPoint returns JavaScript for the place where a visitor clicks the first visible one of some
// elements, which it scrolls to. It is null if there is none, or if another element covers it.
func clickPoint(all elements) string {
	return `(e => {
	const uncovered = () => {
		const box = [...e.getClientRects()].find(box => box.width && box.height);
		const at = box && {X: box.x + box.width / 2, Y: box.y + box.height / 2};
		return at && e.contains(document.elementFromPoint(at.X, at.Y)) ? at : null;
	};
	const seen = e && uncovered();
	if (!e || seen) return seen || null;
	e.scrollIntoView({block: "center", inline: "center", behavior: "instant"});
	return uncovered();
})(` + visible(all) + `)`
}

// click clicks the first visible one of some elements.
func click(all elements) action {
	return func(ctx context.Context, t *chromedp.Target) (none chromedp.Void, err error) {
		at, err := until[*point](ctx, t, clickPoint(all), fmt.Sprintf("no visible element for %q could be clicked", all.name))
		if err != nil {
			return none, err
		}
		return chromedp.MouseClickXY(at.X, at.Y)(ctx, t)
	}
}

// until evaluates an expression until its value is neither false nor null, also across pages, and
// returns that value. The error begins with failure.
func until[T comparable](ctx context.Context, t *chromedp.Target, expression, failure string) (value T, err error) {
	var none T
	for {
		value, err = chromedp.Evaluate[T](expression)(ctx, t)
		if err == nil && value != none {
			return value, nil
		}
		if _, late := chromedp.Sleep(20*time.Millisecond)(ctx, t); late != nil { // an error may be a change of the page
			return none, fmt.Errorf("%s: %w", failure, errors.Join(late, err))
		}
	}
}

// typedMost is the longest text in bytes that a visitor types. A longer one is pasted.
const typedMost = 40

// write writes a text into the focused field.
func write(text string) action {
	if len(text) > typedMost {
		return command(input.InsertText, input.InsertTextParams{Text: text})
	}
	return chromedp.KeyEvent(text)
}

// wait waits until an expression is true, also across pages. The error begins with failure.
func wait(expression, failure string) action {
	return func(ctx context.Context, t *chromedp.Target) (none chromedp.Void, err error) {
		_, err = until[bool](ctx, t, "Boolean("+expression+")", failure)
		return none, err
	}
}

// selectText focuses the first visible field that a selector finds, and selects its text.
func selectText(selector string) action {
	return wait(`(e => e && (e.focus(), e.select(), true))(`+visible(bySelector(selector))+`)`, fmt.Sprintf("no visible field for %q could be selected", selector))
}
