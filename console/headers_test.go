package console

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/work/attr"
)

// checkHeaders: the browser runs scripts of this server only, shows the page in no frame, and takes
// no file for another kind.
func checkHeaders(t testing.TB, a answer) {
	t.Helper()
	for name, want := range map[string]string{
		"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
		"X-Content-Type-Options":  "nosniff", "Referrer-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
	} {
		if got := a.header.Values(name); len(got) != 1 || got[0] != want {
			t.Errorf("%s has the %s %q; want %q", a.path, name, got, want)
		}
	}
}

// usualTags are the elements of the pages. A text that became another one would be a fault.
var usualTags = strings.Fields(`!doctype html head meta title link script body a header img nav ul ol li main div h1 h2 footer span small strong p
	form label input select option textarea button fieldset legend details summary table thead tbody tr th td dl dt dd code pre kbd del ins time section dialog
	svg g line rect circle path polyline text tspan`)

// checkMarkup: a page has no script or style of its own, and leads to this server only.
func checkMarkup(t testing.TB, path string, m markup) {
	t.Helper()
	for _, one := range m.tags {
		if !slices.Contains(usualTags, one.name) {
			t.Errorf("%s has an element %q", path, one.name)
		}
		if one.name == "script" && one.values["src"] != assetPath("console.js") {
			t.Errorf("%s has the script %v", path, one.values)
		}
		for name, value := range one.values {
			lower := strings.ToLower(name)
			if strings.HasPrefix(lower, "on") || lower == "style" || lower == "srcdoc" {
				t.Errorf("%s has the attribute %s=%q", path, name, value)
			}
			if slices.Contains([]string{"href", "src", "action", "formaction"}, lower) && !strings.HasPrefix(value, "#") && !strings.HasPrefix(value, root) {
				t.Errorf("%s leads to %q", path, value)
			}
		}
	}
	if n := len(m.all("script")); n != 1 {
		t.Errorf("%s has %d scripts", path, n)
	}
}

// TestHeaders: all kinds of answers have the headers, also those that are no pages.
func TestHeaders(t *testing.T) {
	s := open(t, mayfly.Options{})
	s.table("things")
	s.put("things", attr.Item{"id": attr.S("a")})
	for path, status := range map[string]int{
		root: http.StatusOK, below: http.StatusFound, below + "nowhere": http.StatusNotFound, below + "table/none": http.StatusNotFound,
		assetPath("console.js"): http.StatusOK, assetPath("console.css"): http.StatusOK, assetPath("icon.svg"): http.StatusOK, below + "asset/0/none.js": http.StatusNotFound,
		below + "theme?to=dark": http.StatusSeeOther, below + "table/things/export": http.StatusOK, below + "lifecycle/none/drawing.svg": http.StatusNotFound,
	} {
		a := s.do(http.MethodGet, path, "", "")
		if a.status != status {
			t.Errorf("%s has the status %d; want %d", path, a.status, status)
		}
		checkHeaders(t, a)
	}
	if a := s.do(http.MethodPost, below+"tables", formKind, ""); a.status != http.StatusNotFound && a.status != http.StatusMethodNotAllowed {
		t.Errorf("a POST to a page without forms has the status %d", a.status)
	}
}

// TestThemeReturnsHere: the choice of a theme returns to a page of this server, wherever the link
// says.
func TestThemeReturnsHere(t *testing.T) {
	s := open(t, mayfly.Options{})
	for back, want := range map[string]string{
		below + "tables?q=a": below + "tables?q=a", root: root, "https://elsewhere.example/_mayfly/": root, "//elsewhere.example/_mayfly/": root,
		`/\elsewhere.example`: root, "javascript:alert(1)": root, "/": root, "": root, "%zz": root, below + "../../elsewhere": root,
	} {
		a := s.get("theme", url.Values{"to": {"dark"}, "back": {back}})
		if got := a.header.Get("Location"); got != want {
			t.Errorf("from %q the visitor goes to %q; want %q", back, got, want)
		}
		if cookie := a.header.Get("Set-Cookie"); !strings.Contains(cookie, "mayfly-theme=dark") || !strings.Contains(cookie, "HttpOnly") || !strings.Contains(cookie, "SameSite=Strict") {
			t.Errorf("the cookie is %q", cookie)
		}
	}
	dark := s.with("Cookie", "mayfly-theme=dark").page("tables", nil)
	if got := dark.all("html")[0].values["data-theme"]; got != "dark" {
		t.Errorf("the theme is %q", got)
	}
	if got, ok := s.with("Cookie", `mayfly-theme="><script>`).page("tables", nil).all("html")[0].values["data-theme"]; ok {
		t.Errorf("the theme is %q", got)
	}
}
