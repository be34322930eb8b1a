package chrome

import (
	"context"
	"encoding/json"
	"os"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/chromedp"
)

// Change gives the window the size and the theme of another view. The page stays.
func (tab *Tab) Change(to View) {
	tab.t.Helper()
	tab.Do(chromedp.EmulateViewport(to.Width, to.Height), preferring("prefers-color-scheme", theme(to)))
}

// PreferStill makes the visitor one who has asked for reduced motion.
func (tab *Tab) PreferStill() {
	tab.t.Helper()
	tab.Do(preferring("prefers-reduced-motion", "reduce"))
}

// preferring makes the visitor prefer something that a style sheet can ask for.
func preferring(feature, value string) action {
	return command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: feature, Value: value}}})
}

func theme(v View) string {
	if v.Dark {
		return "dark"
	}
	return "light"
}

// Before runs a script at the start of each page that the tab opens from now on.
func (tab *Tab) Before(script string) {
	tab.t.Helper()
	tab.Do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: script})
		return err
	}))
}

// Fault is what axe has against an element of a page.
type Fault struct {
	Rule   string
	Impact string // minor, moderate, serious or critical
	Help   string
	Target string // selector of the element
	HTML   string
	Why    string
}

// Axe checks the page with axe-core, by the rules of WCAG 2.2 AA and its advice, or only by some
// rules. file is axe.min.js.
func (tab *Tab) Axe(file string, rules ...string) []Fault {
	tab.t.Helper()
	script, err := os.ReadFile(file)
	if err != nil {
		tab.t.Fatal(err)
	}
	if !Eval[bool](tab, "window.axe !== undefined") {
		Eval[any](tab, string(script)+"; null") // the content security policy does not bind the DevTools
	}
	only, _ := json.Marshal(rules) // texts
	return Eval[[]Fault](tab, `axe.run(document, {
		runOnly: `+string(only)+` || ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22a", "wcag22aa", "best-practice"],
		resultTypes: ["violations"],
	}).then(found => found.violations.flatMap(v => v.nodes.map(n => ({
		Rule: v.id, Impact: n.impact || v.impact, Help: v.help, Target: n.target.join(" "), HTML: n.html.slice(0, 300), Why: n.failureSummary,
	}))))`)
}

// Widget is an element that a visitor operates, as a screen reader names it.
type Widget struct{ Role, Name string }

// widgets are the roles of elements that need a name.
var widgets = map[string]bool{
	"button": true, "checkbox": true, "combobox": true, "link": true, "listbox": true, "radio": true, "searchbox": true, "slider": true,
	"spinbutton": true, "textbox": true, "DisclosureTriangle": true, "image": true, "img": true, "region": true, "dialog": true, "navigation": true,
}

// Widgets returns the widgets, images and regions of the page from the tree for screen readers.
func (tab *Tab) Widgets() []Widget {
	tab.t.Helper()
	var found []Widget
	tab.Do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		tree, err := cdp.Call(ctx, t, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
		if err != nil {
			return err
		}
		text := func(v *accessibility.Value) (s string) {
			if v != nil {
				_ = json.Unmarshal(v.Value, &s) // names and roles are texts
			}
			return s
		}
		for _, n := range tree.Nodes {
			if role := text(n.Role); widgets[role] && !n.Ignored {
				found = append(found, Widget{role, text(n.Name)})
			}
		}
		return nil
	}))
	return found
}

// Figures returns what the browser counts of the page, such as Nodes and JSHeapUsedSize, after a
// collection of garbage. Durations are seconds of the processor since the first call.
func (tab *Tab) Figures() map[string]float64 {
	tab.t.Helper()
	found := map[string]float64{}
	tab.Do(
		command(heapprofiler.CollectGarbage, cdp.Empty{}),
		command(performance.Enable, performance.EnableParams{TimeDomain: performance.EnableTimeDomainThreadTicks}),
		chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
			answer, err := cdp.Call(ctx, t, performance.GetMetrics, cdp.Empty{})
			if err != nil {
				return err
			}
			for _, m := range answer.Metrics {
				found[m.Name] = m.Value
			}
			return nil
		}),
	)
	return found
}
