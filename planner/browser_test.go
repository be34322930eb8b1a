package planner

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/testkit/chrome"
)

// harness loads each page into frames of several widths. measure measures the layout of one. The
// query string is the number of pages.
const harness = `<!DOCTYPE html><meta charset="utf-8"><body><script>
const all = [...Array(+location.search.slice(1)).keys()].flatMap(page => [360, 1280].map(width => ({page, width})));
function visible(e) { const r = e.getBoundingClientRect(); return r.width > 0 && r.height >= 0 && r.width + r.height > 0; }
function box(r) { return {left: r.left, top: r.top, right: r.right, bottom: r.bottom}; }
function measure(frame) {
  const d = frame.contentDocument, w = frame.contentWindow, root = d.documentElement;
  return {
    page: +w.location.pathname.slice(1), width: w.innerWidth, scrollWidth: root.scrollWidth, dark: w.matchMedia("(prefers-color-scheme: dark)").matches,
    ground: w.getComputedStyle(d.body).backgroundColor,
    resources: w.performance.getEntriesByType("resource").map(r => r.name),
    texts: [...d.querySelectorAll("h1,h2,p,th,td,li,footer,span,strong,svg text")].map(e => {
      const style = w.getComputedStyle(e);
      return {text: e.textContent, colour: e.closest("svg") ? style.fill : style.color, on: e.closest(".tiles") ? w.getComputedStyle(e.parentElement).backgroundColor : "", visible: visible(e)};
    }),
    charts: [...d.querySelectorAll("svg")].map(s => ({
      title: s.getAttribute("aria-label"), box: box(s.getBoundingClientRect()), scale: s.getBoundingClientRect().width / s.viewBox.baseVal.width,
      drawn: [...s.querySelectorAll("polyline,polygon,rect,circle")].map(e => ({tag: e.tagName, colour: e.getAttribute("fill") == "none" ? w.getComputedStyle(e).stroke : w.getComputedStyle(e).fill, visible: visible(e), box: box(e.getBoundingClientRect())})),
      labels: [...s.querySelectorAll("text")].map(e => ({text: e.textContent, box: box(e.getBoundingClientRect())})),
    })),
  };
}
const frames = all.map(({page, width}) => {
  const frame = document.createElement("iframe");
  frame.width = width; frame.height = 900; frame.style.border = 0; frame.src = "/" + page;
  document.body.append(frame);
  return frame;
});
</script></body>`

type rectangle struct{ Left, Top, Right, Bottom float64 }

// overlaps reports an overlap of more than a rounding error.
func (a rectangle) overlaps(b rectangle) bool {
	return math.Min(a.Right, b.Right)-math.Max(a.Left, b.Left) > 1 && math.Min(a.Bottom, b.Bottom)-math.Max(a.Top, b.Top) > 1
}

func (a rectangle) within(b rectangle) bool {
	return a.Left >= b.Left-1 && a.Top >= b.Top-1 && a.Right <= b.Right+1 && a.Bottom <= b.Bottom+1
}

// measured is what measure returns for a frame.
type measured struct {
	Page               int
	Width, ScrollWidth float64
	Dark               bool
	Ground             string
	Resources          []string
	Texts              []struct {
		Text, Colour, On string
		Visible          bool
	}
	Charts []struct {
		Title string
		Box   rectangle
		Scale float64
		Drawn []struct {
			Tag, Colour string
			Visible     bool
			Box         rectangle
		}
		Labels []struct {
			Text string
			Box  rectangle
		}
	}
}

// TestPageInABrowser shows the page in Chromium, in light and dark, in a narrow window and a wide
// one. Its charts have shapes, texts neither overlap nor end at an edge, colors have enough
// contrast, and the page requests no resource.
func TestPageInABrowser(t *testing.T) {
	pages := []struct {
		of     string
		w      Workload
		charts int
	}{
		{"a week's shape", orders(), 4}, {"the same all the time", readings(), 3},
		{"next to nothing", Workload{Writes: 1e-6, Mix: Mix{Eventual: 1e-6}, ItemBytes: 1, Retention: time.Second}, 4},
		{"as much as can be", Workload{Writes: rateMax, Mix: Mix{Strong: rateMax}, ItemBytes: itemMax, Retention: retentionMax, Renewals: 1e6, Indexes: []Index{{Name: strings.Repeat("long", 30)}}}, 4},
	}
	served := http.NewServeMux()
	served.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, harness) })
	for i, p := range pages {
		var page bytes.Buffer
		if err := made(t, p.w, USEast1).WritePage(&page); err != nil {
			t.Fatal(err)
		}
		served.HandleFunc(fmt.Sprintf("GET /%d", i), func(w http.ResponseWriter, _ *http.Request) {
			// The policy refuses every request of the page, and the console reports it.
			w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
			w.Write(page.Bytes())
		})
	}
	served.HandleFunc("GET /favicon.ico", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	server := httptest.NewServer(served)
	defer server.Close()

	browser := chrome.Start(t)
	for scheme, dark := range map[string]bool{"light": false, "dark": true} {
		tab := browser.Open(t, chrome.View{Width: 1700, Height: 1000, Dark: dark})
		tab.Go(fmt.Sprintf("%s/?%d", server.URL, len(pages)))
		frames := chrome.Eval[[]measured](tab, "frames.map(measure)")
		if len(frames) != 2*len(pages) {
			t.Fatalf("%d frames", len(frames))
		}
		for _, f := range frames {
			of := pages[f.Page]
			t.Run(fmt.Sprintf("%s, %s, %v wide", of.of, scheme, f.Width), func(t *testing.T) {
				f.check(t, dark)
				if len(f.Charts) != of.charts {
					t.Errorf("%d charts, want %d", len(f.Charts), of.charts)
				}
			})
		}
	}
}

func (f *measured) check(t *testing.T, dark bool) {
	if f.Dark != dark {
		t.Fatalf("dark is %v", f.Dark)
	}
	if f.ScrollWidth > f.Width {
		t.Errorf("it is %v wide in a window of %v", f.ScrollWidth, f.Width)
	}
	if len(f.Resources) > 0 {
		t.Errorf("it asked for %q", f.Resources)
	}
	if light := luminance(t, f.Ground) > 0.5; light == dark {
		t.Errorf("the ground is %s", f.Ground)
	}
	if len(f.Texts) < 80 {
		t.Errorf("%d texts", len(f.Texts))
	}
	for _, x := range f.Texts {
		ground := f.Ground
		if x.On != "" {
			ground = x.On
		}
		if c := contrast(t, x.Colour, ground); c < 4.5 { // WCAG 2.2, level AA
			t.Errorf("%q is %s on %s, a contrast of %.1f", x.Text, x.Colour, ground, c)
		}
		if !x.Visible && strings.TrimSpace(x.Text) != "" {
			t.Errorf("%q is not to be seen", x.Text)
		}
	}
	for _, c := range f.Charts {
		if c.Box.Right-c.Box.Left < 300 || c.Box.Bottom-c.Box.Top < 100 || len(c.Drawn) < 4 || len(c.Labels) < 8 {
			t.Errorf("%s: %+v, of %d shapes and %d labels", c.Title, c.Box, len(c.Drawn), len(c.Labels))
		}
		if px := 12 * c.Scale; px < 9 {
			t.Errorf("%s: its text is %.1f pixels high", c.Title, px)
		}
		for _, d := range c.Drawn {
			if !d.Visible || !d.Box.within(c.Box) {
				t.Errorf("%s: a %s is not in it: %+v", c.Title, d.Tag, d.Box)
			}
			if r := contrast(t, d.Colour, f.Ground); r < 3 {
				t.Errorf("%s: a %s is %s on %s, a contrast of %.1f", c.Title, d.Tag, d.Colour, f.Ground, r)
			}
		}
		for i, l := range c.Labels {
			if !l.Box.within(c.Box) {
				t.Errorf("%s: %q is cut off", c.Title, l.Text)
			}
			for _, other := range c.Labels[:i] {
				if l.Box.overlaps(other.Box) {
					t.Errorf("%s: %q and %q lie upon each other", c.Title, other.Text, l.Text)
				}
			}
		}
	}
}

// luminance and contrast are defined by WCAG, for colors in the browsers' form.
func luminance(t *testing.T, colour string) float64 {
	t.Helper()
	var c [3]float64
	if _, err := fmt.Sscanf(colour, "rgb(%f, %f, %f)", &c[0], &c[1], &c[2]); err != nil {
		t.Fatalf("%q is no colour that covers", colour)
	}
	for i, v := range c {
		if v /= 255; v <= 0.04045 {
			c[i] = v / 12.92
		} else {
			c[i] = math.Pow((v+0.055)/1.055, 2.4)
		}
	}
	return 0.2126*c[0] + 0.7152*c[1] + 0.0722*c[2]
}

func contrast(t *testing.T, a, b string) float64 {
	t.Helper()
	x, y := luminance(t, a), luminance(t, b)
	return (math.Max(x, y) + 0.05) / (math.Min(x, y) + 0.05)
}
