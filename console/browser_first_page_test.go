package console_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/testkit/chrome"
)

// transferMost is the number of bytes that the first page may take from an empty cache.
const transferMost = 150_000

func TestBrowserTransfer(t *testing.T) {
	w := newRichWorld(t)
	tab := chrome.Start(t).Open(t, chrome.Desk)
	tab.Go(w.pages)
	type entry struct {
		Name string
		Size float64
	}
	entries := chrome.Eval[[]entry](tab, `performance.getEntries().filter(e => "encodedBodySize" in e).map(e => ({Name: e.name, Size: e.encodedBodySize}))`)
	sum := 0.0
	for _, e := range entries {
		if !strings.HasPrefix(e.Name, w.pages) {
			t.Errorf("%s is loaded from elsewhere", e.Name)
		}
		sum += e.Size
	}
	if len(entries) < 4 || sum == 0 || sum > transferMost {
		t.Errorf("the first page takes %.0f bytes: %v", sum, entries)
	}
	t.Logf("the first page takes %.0f bytes", sum)
}

// BenchmarkFirstPaint opens the first page in a new window with an empty cache, on loopback. It
// reports the median of the time until something is seen, by the browser's clock.
func BenchmarkFirstPaint(b *testing.B) {
	w := newWorld(b, "mayfly", mayfly.Options{})
	browser := chrome.Start(b)
	var all []float64
	for b.Loop() {
		tab := browser.Open(b, chrome.Desk)
		tab.Go(w.pages)
		tab.Wait(`performance.getEntriesByName("first-contentful-paint").length`)
		all = append(all, chrome.Eval[float64](tab, `performance.getEntriesByName("first-contentful-paint")[0].startTime`))
	}
	slices.Sort(all)
	b.ReportMetric(all[len(all)/2], "paint-ms")
	b.ReportMetric(all[0], "least-ms") // on a busy machine the median is the machine's
}
