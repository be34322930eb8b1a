// Package chrome drives Debian's Chromium in tests as a visitor would: by clicks, keys and
// visible text. It is a package of its own so that only tests with pages need the library for it.
package chrome

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/css"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	cdpruntime "github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// View is a window and what its visitor prefers.
type View struct {
	Name          string
	Width, Height int64
	Dark          bool
}

// Views are a telephone and a desk, by day and by night.
var Views = []View{
	{"phone-light", 390, 844, false}, {"phone-dark", 390, 844, true},
	{"desk-light", 1440, 900, false}, {"desk-dark", 1440, 900, true},
}

// Desk is the view for a test to which the view does not matter.
var Desk = Views[2]

// patience is the time that a tab waits for the expected text. A loaded machine needs most of it.
const patience = 40 * time.Second

// action is a step in a tab.
type action = chromedp.Action[chromedp.Void]

// command is a command of the DevTools protocol as an action.
func command[P, R any](c cdp.Command[P, R], params P) action {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, c, params)
		return err
	})
}

// Tab is a window of one visitor.
type Tab struct {
	t       testing.TB
	ctx     context.Context
	view    View
	mu      sync.Mutex
	errors  []string
	refuses atomic.Bool
}

// Open opens an empty window. At the end of the test it fails the test for each error that the
// browser reported: scripts that failed, refusals of the content security policy, missing files, and
// errors and warnings that scripts write to the console.
func (b *Browser) Open(t testing.TB, view View) *Tab {
	t.Helper()
	ctx, leave := chromedp.NewContext(b.ctx, chromedp.WithNewBrowserContext())
	tab := &Tab{t: t, ctx: ctx, view: view}
	if err := chromedp.Listen(ctx, tab.hear); err != nil {
		t.Fatal(err)
	}
	tab.Do(
		command(css.Disable, cdp.Empty{}), // the library enables both for its own queries, and they cost time on each page
		command(dom.Disable, cdp.Empty{}),
		permit("clipboard-write"), // which a browser with windows permits after a click
		chromedp.EmulateViewport(view.Width, view.Height),
		preferring("prefers-color-scheme", theme(view)),
		command(emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "Europe/Berlin"}),
	)
	t.Cleanup(func() {
		if t.Failed() {
			_ = tab.keep("failed") // the test has failed already
		}
		leave()
		tab.mu.Lock()
		defer tab.mu.Unlock()
		for _, text := range tab.errors {
			t.Error("the browser: " + text)
		}
	})
	return tab
}

func (tab *Tab) hear(event any) {
	add := func(text string) {
		tab.mu.Lock()
		defer tab.mu.Unlock()
		tab.errors = append(tab.errors, text)
	}
	switch e := event.(type) {
	case *cdpruntime.EventExceptionThrown:
		text := e.ExceptionDetails.Text
		if thrown := e.ExceptionDetails.Exception; thrown != nil {
			text += " " + thrown.Description
		}
		add(text)
	case *cdpruntime.EventConsoleAPICalled:
		if e.Type == cdpruntime.ConsoleAPICalledTypeError || e.Type == cdpruntime.ConsoleAPICalledTypeWarning {
			var texts []string
			for _, arg := range e.Args {
				texts = append(texts, cmp.Or(arg.Description, string(arg.Value)))
			}
			add("console: " + strings.Join(texts, " "))
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError {
			add(e.Entry.Text + " " + e.Entry.URL)
		}
	case *page.EventJavascriptDialogOpening:
		accept := !tab.refuses.Load()
		go func() { // the events wait for this function
			_, _ = chromedp.Call(tab.ctx, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{Accept: accept}) // fails only with the tab
		}()
	}
}

// Forgive forgets the reported errors that contain text: those which the test has caused.
func (tab *Tab) Forgive(text string) {
	tab.mu.Lock()
	defer tab.mu.Unlock()
	kept := tab.errors[:0]
	for _, e := range tab.errors {
		if !strings.Contains(e, text) {
			kept = append(kept, e)
		}
	}
	tab.errors = kept
}

// Do does actions, and fails the test if they do not succeed in time.
func (tab *Tab) Do(actions ...action) {
	tab.t.Helper()
	ctx, cancel := context.WithTimeout(tab.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		tab.t.Fatalf("%v\nThe page shows:\n%s", err, tab.shown())
	}
}

// shown returns the text of the page, for messages.
func (tab *Tab) shown() string {
	ctx, cancel := context.WithTimeout(tab.ctx, 10*time.Second)
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string](`location.href + "\n" + document.body.innerText.slice(0, 3000)`))
	if err != nil {
		return err.Error()
	}
	return text
}

// Go opens a page and waits until it is complete.
func (tab *Tab) Go(url string) {
	tab.t.Helper()
	tab.Do(chromedp.Navigate(url))
}

// SignIn sends a user and a password with each request, as a browser does after its question.
func (tab *Tab) SignIn(user, password string) {
	tab.t.Helper()
	value := "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
	tab.Do(command(network.SetExtraHTTPHeaders, network.SetExtraHTTPHeadersParams{Headers: network.Headers{"Authorization": value}}))
}

// Refuse makes the visitor answer no to questions such as "Delete?".
func (tab *Tab) Refuse(no bool) { tab.refuses.Store(no) }

// Click clicks the first visible element that a CSS selector finds.
func (tab *Tab) Click(selector string) {
	tab.t.Helper()
	tab.Do(click(bySelector(selector)))
}

// Follow clicks an element that goes to another page, and waits for that page.
func (tab *Tab) Follow(selector string) {
	tab.t.Helper()
	tab.leave(click(bySelector(selector)))
}

// FollowText clicks the first visible link or button with this text, and waits for the next page.
func (tab *Tab) FollowText(text string) {
	tab.t.Helper()
	tab.leave(click(byText(text)))
}

// ClickText clicks the first visible link, button or summary with this text.
func (tab *Tab) ClickText(text string) {
	tab.t.Helper()
	tab.Do(click(byText(text)))
}

// leave does actions that lead to another page, and waits for it.
func (tab *Tab) leave(actions ...action) {
	tab.t.Helper()
	tab.Do(chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.RunResponse(ctx, actions...)
		return err
	}))
}

// Fill replaces the text of a field: it selects all and types.
func (tab *Tab) Fill(selector, text string) {
	tab.t.Helper()
	if text == "" {
		text = kb.Backspace
	}
	tab.Do(selectText(selector), write(text))
}

// Choose chooses the option with a value.
func (tab *Tab) Choose(selector, value string) {
	tab.t.Helper()
	tab.Do(wait(`(e => {
		if (!e) return false;
		e.value = `+quoted(value)+`;
		if (e.value !== `+quoted(value)+`) return false;
		for (const kind of ["input", "change"]) e.dispatchEvent(new Event(kind, {bubbles: true}));
		return true;
	})(`+visible(bySelector(selector))+`)`, fmt.Sprintf("no visible field for %q has the option %q", selector, value)))
}

// Press presses keys, one after another: "g", "t", or a key of package kb such as kb.Enter.
func (tab *Tab) Press(keys ...string) {
	tab.t.Helper()
	for _, key := range keys {
		tab.Do(chromedp.KeyEvent(key))
	}
}

// FollowKey presses a key that goes to another page, and waits for that page.
func (tab *Tab) FollowKey(key string) {
	tab.t.Helper()
	tab.leave(chromedp.KeyEvent(key))
}

// Keys that have a name.
const (
	Enter  = kb.Enter
	Escape = kb.Escape
)

// Drag drags the mouse over an element, from one share of its width to another, and waits for the
// page to which this leads.
func (tab *Tab) Drag(selector string, from, to float64) {
	tab.t.Helper()
	x, y := tab.place(selector)
	tab.leave(chromedp.DragAndDropXY(x(from), y, x(to), y))
}

// place scrolls to an element. It returns a function for the x of a share of the element's width, and
// the y of its middle.
func (tab *Tab) place(selector string) (x func(share float64) float64, y float64) {
	tab.t.Helper()
	box := Eval[struct{ X, Y, Width, Height float64 }](tab, `(() => {
		const e = [...document.querySelectorAll(`+quoted(selector)+`)].find(e => e.getBoundingClientRect().width > 0);
		e.scrollIntoView({block: "center"});
		const r = e.getBoundingClientRect();
		return {X: r.x, Y: r.y, Width: r.width, Height: r.height};
	})()`)
	return func(share float64) float64 { return box.X + share*box.Width }, box.Y + box.Height/2
}

// ClickAt clicks an element at a share of its width.
func (tab *Tab) ClickAt(selector string, share float64) {
	tab.t.Helper()
	x, y := tab.place(selector)
	tab.leave(chromedp.MouseClickXY(x(share), y))
}

// Cover hides the page: the visitor minimizes its window.
func (tab *Tab) Cover() {
	tab.t.Helper()
	tab.Do(window(browser.WindowStateMinimized))
	tab.Wait("document.hidden")
}

// Uncover shows the page that Cover has hidden.
func (tab *Tab) Uncover() {
	tab.t.Helper()
	tab.Do(window(browser.WindowStateNormal))
	tab.Wait("!document.hidden")
}

// window changes the state of the window.
func window(state browser.WindowState) action {
	return chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		found, err := chromedp.Call(ctx, browser.GetWindowForTarget, browser.GetWindowForTargetParams{})
		if err != nil {
			return err
		}
		_, err = chromedp.Call(ctx, browser.SetWindowBounds, browser.SetWindowBoundsParams{WindowID: found.WindowID, Bounds: &browser.Bounds{WindowState: state}})
		return err
	})
}

// Text returns the text of the first element that a selector finds, as it is shown.
func (tab *Tab) Text(selector string) string {
	tab.t.Helper()
	return Eval[string](tab, `document.querySelector(`+quoted(selector)+`)?.innerText ?? ""`)
}

// Wait waits until an expression of JavaScript is true, also across pages.
func (tab *Tab) Wait(expression string) {
	tab.t.Helper()
	tab.Do(wait(expression, "this was never true: "+expression))
}

// WaitText waits until the shown text of an element contains text.
func (tab *Tab) WaitText(selector, text string) {
	tab.t.Helper()
	tab.Wait(`(document.querySelector(` + quoted(selector) + `)?.innerText ?? "").includes(` + quoted(text) + `)`)
}

// Eval runs JavaScript and returns its result, or that of its promise.
func Eval[T any](tab *Tab, expression string) T {
	tab.t.Helper()
	ctx, cancel := context.WithTimeout(tab.ctx, patience)
	defer cancel()
	result, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		tab.t.Fatalf("%s: %v\nThe page shows:\n%s", expression, err, tab.shown())
	}
	return result
}

// URL returns the address of the page.
func (tab *Tab) URL() string {
	tab.t.Helper()
	return Eval[string](tab, "location.href")
}

// Picture keeps a picture of the window as an artefact, if CONSOLE_PICTURES names a directory for
// them.
func (tab *Tab) Picture(name string) {
	tab.t.Helper()
	if err := tab.keep(name); err != nil {
		tab.t.Fatal(err)
	}
}

func (tab *Tab) keep(name string) error {
	dir := os.Getenv("CONSOLE_PICTURES")
	if dir == "" {
		return nil
	}
	png, err := tab.png()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, strings.NewReplacer("/", "-", " ", "-").Replace(tab.t.Name()+"-"+name)+".png"), png, 0o644)
}

// PNG returns a picture of the window.
func (tab *Tab) PNG() []byte {
	tab.t.Helper()
	png, err := tab.png()
	if err != nil {
		tab.t.Fatal(err)
	}
	return png
}

func (tab *Tab) png() ([]byte, error) {
	ctx, cancel := context.WithTimeout(tab.ctx, patience)
	defer cancel()
	return chromedp.Run(ctx, chromedp.CaptureScreenshot())
}
