package console_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/mayflydb/mayfly/console"
	"github.com/mayflydb/mayfly/internal/testkit"
	"github.com/mayflydb/mayfly/internal/testkit/chrome"
)

// Texts full of markup that are stored in schedules, triggers, reminders, lifecycles, dead letters
// and workers of guard do nothing in a browser, and are shown as they are.
func TestBrowserStoredMarkup(t *testing.T) {
	b := chrome.Start(t)
	w := newWorld(t, "stored", console.StoredOptions(hostile))
	stored := console.Store(t, w.own, hostile)
	for _, view := range testkit.Size(chrome.Views[:1], chrome.Views) {
		t.Run(view.Name, func(t *testing.T) {
			tab := b.Open(t, view)
			for _, p := range stored.Pages {
				tab.Go(w.pages + "console/" + p.Path)
				if strings.HasSuffix(p.Path, ".svg") {
					if chrome.Eval[bool](tab, `window.pwned !== undefined`) {
						t.Errorf("a script ran at %s", tab.URL())
					}
					continue
				}
				chrome.Eval[any](tab, `document.querySelectorAll("details").forEach(d => d.open = true), null`)
				unharmed(t, tab)
				for _, text := range p.Texts {
					quoted, err := json.Marshal(text)
					must(t, err)
					if !chrome.Eval[bool](tab, `document.querySelector("main").textContent.includes(`+string(quoted)+`)`) {
						t.Errorf("%s does not show %s", p.Path, quoted)
					}
				}
			}
			tab.Picture("worker")
		})
	}
}
